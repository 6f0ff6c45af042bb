/* SPDX-License-Identifier: Apache-2.0 */
/* What nodes answer, hostile nodes among them, and the files that come back from them. */
#include "scratch.h"
#include <fcntl.h>
#include <sys/wait.h>
#include "test.h"
#include "core/file/file.h"
#include "deploy/received.h"
#include "deploy/talk.h"

#define SUM "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03" /* of "hello\n" */

struct heard {
	char text[4096];
	size_t events;
};

static enum status hear(void *arg, const struct answer_event *e, struct error *err)
{
	struct heard *h = arg;
	size_t used = strlen(h->text);

	(void)err;
	h->events++;
	if (e->kind == ANSWER_DATA)
		snprintf(h->text + used, sizeof(h->text) - used, "[%.*s]", (int)e->size, e->data);
	else
		snprintf(h->text + used, sizeof(h->text) - used, "%d:%s:%llu:%s:%d ", e->kind, e->text ? e->text : "",
			 (unsigned long long)e->number, e->sum, e->run);
	return STATUS_OK;
}

/* Feeds a text in pieces of `step` bytes. */
static enum status feed(struct heard *h, const char *text, size_t step, struct answer *left, struct error *err)
{
	struct answer a = {.take = hear, .arg = h};
	enum status st = STATUS_OK;

	*h = (struct heard){0};
	for (size_t at = 0, n = strlen(text); at < n && !st; at += step)
		st = answer_feed(&a, text + at, n - at < step ? n - at : step, err);
	if (left)
		*left = a;
	return st;
}

static void test_answer__each_line_is_understood(void **state)
{
	struct heard h;
	struct error err = {0};
	struct answer a;
	char want[256];

	(void)state;
	assert_int_equal(feed(&h, "begin\narch x86_64\nfree 123\nlacks tar\npart 7\nhave " SUM "\nend\n", 1000, &a, &err), STATUS_OK);
	snprintf(want, sizeof(want), "%d:x86_64:0::0 %d:123:123::0 %d:tar:0::0 %d:7:7::0 %d:" SUM ":0:" SUM ":0 %d::0::0 ",
		 ANSWER_ARCH, ANSWER_FREE, ANSWER_LACKS, ANSWER_PART, ANSWER_HAVE, ANSWER_END);
	assert_string_equal(h.text, want);
	assert_true(a.begun && a.ended && !a.left);
}

static void test_answer__states_and_bytes(void **state)
{
	static const char text[] = "begin\nrun running\nbytes err 6\nbegin\nrun ended 3\nfile 3 " SUM " work/a/b\nend"
				   "file 0 " SUM " out\nskip\nsame " SUM " err\nfail state no\ncleaned\nend\nmore";
	struct heard whole, parts;
	struct error err = {0};
	struct answer a;

	(void)state;
	assert_int_equal(feed(&whole, text, sizeof(text), &a, &err), STATUS_OK);
	assert_non_null(strstr(whole.text, "[begin\n]"));
	assert_non_null(strstr(whole.text, ":work/a/b:3:" SUM ":0 [end]"));
	assert_true(a.ended);
	for (size_t step = 1; step < 9; step++) { /* the same events, whatever the pieces */
		assert_int_equal(feed(&parts, text, step, &a, &err), STATUS_OK);
		assert_true(a.ended && parts.events >= whole.events);
	}
}

static void test_answer__a_greeting_is_skipped(void **state)
{
	struct heard h;
	struct error err = {0};
	struct answer a = {.take = hear, .arg = &h};
	char line[4096];

	(void)state;
	assert_int_equal(feed(&h, "Welcome!\n\nfile 3 x ../y\nbegin\nend\n", 5, &a, &err), STATUS_OK);
	assert_true(a.ended);
	a = (struct answer){.take = hear, .arg = &h};
	memset(line, 'x', sizeof(line));
	for (int i = 0; i < 16; i++)
		assert_int_equal(answer_feed(&a, line, sizeof(line), &err), STATUS_OK);
	assert_int_equal(answer_feed(&a, line, sizeof(line), &err), STATUS_MISMATCH);
	assert_non_null(strstr(err.text, "before the first line"));
}

static void test_answer__hostile_lines_are_refused(void **state)
{
	static const char *const lines[] = {
		"hello",
		"",
		" arch x",
		"arch",
		"free x",
		"free -1",
		"free 12345678901234567890",
		"free 1 2",
		"have xyz",
		"have " SUM "0",
		"have " SUM " more",
		"run",
		"run elsewhere",
		"run ended",
		"run ended 256",
		"run ended 1 2",
		"bytes log 3",
		"bytes out",
		"bytes out -3",
		"file 3 " SUM " /etc/passwd",
		"file 3 " SUM " ../x",
		"file 3 " SUM " work/../../x",
		"file 3 " SUM " work/./x",
		"file 3 " SUM " work//x",
		"file 3 " SUM " work/",
		"file 3 " SUM " work",
		"file 3 " SUM " work/a b",
		"file 3 " SUM " work/a\tb",
		"file 3 " SUM " work/\xc3\xa4",
		"file 3 " SUM " deploy.json",
		"file 3 " SUM "",
		"file " SUM " work/a",
		"file 99999999999999999999 " SUM " work/a",
		"file 3 " SUM " work/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16",
		"same " SUM " ../x",
		"skip it",
		"end now",
		"\x1b[2J",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct heard h;
		struct error err = {0};
		char text[512];

		snprintf(text, sizeof(text), "begin\n%s\n", lines[i]);
		if (feed(&h, text, 7, NULL, &err) != STATUS_MISMATCH)
			fail_msg("\"%s\" was taken", lines[i]);
		assert_int_equal(h.events, 0);
		assert_null(strchr(err.text, '\x1b'));
	}
}

static void test_answer__long_lines_are_refused(void **state)
{
	char text[ANSWER_LINE + 100];
	struct heard h;
	struct error err = {0};

	(void)state;
	memset(text, 'a', sizeof(text));
	memcpy(text, "begin\narch ", 11);
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(feed(&h, text, 64, NULL, &err), STATUS_MISMATCH);
}

static enum status receive(void *arg, const struct answer_event *e, struct error *err)
{
	return e->kind == ANSWER_END ? STATUS_OK : received_take(arg, e, err);
}

static enum status fetch(struct received *r, const char *folder, const char *text, struct error *err)
{
	struct answer a = {.take = receive, .arg = r};
	enum status st;

	text_copy(r->folder, sizeof(r->folder), folder);
	st = answer_feed(&a, text, strlen(text), err);
	received_abandon(r);
	return st;
}

static void test_received__files_get_their_names_when_whole(void **state)
{
	struct received r = {.most = 1000};
	struct text here = {0};
	struct error err = {0};
	char path[PATH_MAX];

	assert_int_equal(fetch(&r, *state, "begin\nfile 6 " SUM " work/a/b\nhello\nfile 6 " SUM " out\nhello\nskip\nend\n", &err),
			 STATUS_OK);
	assert_int_equal(r.files, 2);
	assert_int_equal(r.skipped, 1);
	assert_int_equal(received_list(&here, *state, &err), STATUS_OK);
	assert_string_equal(text_str(&here), SUM " out\n" SUM " work/a/b\n");
	text_release(&here);
	/* a part is no file, and leaves nothing */
	r = (struct received){.most = 1000};
	assert_int_equal(fetch(&r, *state, "begin\nfile 6 " SUM " err\nhel", &err), STATUS_OK);
	snprintf(path, sizeof(path), "%s/err", (char *)*state);
	assert_int_not_equal(access(path, F_OK), 0);
}

static void test_received__wrong_files_are_refused(void **state)
{
	struct received r = {.most = 1000};
	struct error err = {0};
	char path[PATH_MAX];

	assert_int_equal(fetch(&r, *state, "begin\nfile 6 " SUM " out\nhellO\nend\n", &err), STATUS_MISMATCH);
	assert_non_null(strstr(err.text, "another checksum"));
	snprintf(path, sizeof(path), "%s/out", (char *)*state);
	assert_int_not_equal(access(path, F_OK), 0);
	error_clear(&err);
	r = (struct received){.most = 10};
	assert_int_equal(fetch(&r, *state, "begin\nfile 6 " SUM " out\nhello\nfile 6 " SUM " err\nhello\nend\n", &err),
			 STATUS_MISMATCH);
	assert_non_null(strstr(err.text, "--fetch-most"));
}

static void test_received__too_many_files_are_refused(void **state)
{
	struct received r = {.most = 1000, .files = RECEIVED_FILES_MAX};
	struct error err = {0};

	assert_int_equal(fetch(&r, *state, "begin\nsame " SUM " out\nend\n", &err), STATUS_MISMATCH);
}

static void test_received__no_link_is_followed(void **state)
{
	struct received r = {.most = 1000};
	struct error err = {0};
	char link[PATH_MAX], victim[PATH_MAX];
	struct text here = {0};

	snprintf(link, sizeof(link), "%s/out", (char *)*state);
	snprintf(victim, sizeof(victim), "%s/victim", (char *)*state);
	assert_int_equal(symlink(victim, link), 0);
	assert_int_not_equal(fetch(&r, *state, "begin\nfile 6 " SUM " out\nhello\nend\n", &err), STATUS_OK);
	assert_int_not_equal(access(victim, F_OK), 0);
	assert_int_equal(received_list(&here, *state, &err), STATUS_OK);
	assert_string_equal(text_str(&here), "");
	text_release(&here);
}

/* What a killed process left is gone with the next file, and no folder is read for each file in it. */
static void test_received__nothing_half_stays(void **state)
{
	struct received r = {.most = 1000};
	struct error err = {0};
	char left[PATH_MAX], path[PATH_MAX + 600], here[FILE_HERE];
	struct stat info;
	DIR *d;
	pid_t child = fork();

	if (!child)
		_exit(0);
	assert_int_equal(waitpid(child, NULL, 0), child); /* a process id that is free */
	file_here(here);
	snprintf(left, sizeof(left), "%s/arriving.%d.%s.new", (char *)*state, (int)child, here);
	assert_int_equal(file_write(left, "hel", 3, &err), STATUS_OK);
	assert_int_equal(fetch(&r, *state, "begin\nfile 6 " SUM " work/a\nhello\nfile 6 " SUM " work/b\nhel", &err), STATUS_OK);
	assert_int_equal(r.whole, 1);
	d = opendir(*state);
	assert_non_null(d);
	for (struct dirent *e; (e = readdir(d));)
		assert_null(strstr(e->d_name, ".new"));
	closedir(d);
	snprintf(path, sizeof(path), "%s/work/a", (char *)*state);
	assert_int_equal(stat(path, &info), 0);
	assert_int_equal(received_sync(&r, &err), STATUS_OK);
	text_copy(r.folder, sizeof(r.folder), "/nowhere");
	assert_int_not_equal(received_sync(&r, &err), STATUS_OK);
}

/* Each file takes a time of the disk. */
static enum status take_slowly(void *arg, const struct answer_event *e, struct error *err)
{
	size_t *files = arg;

	(void)err;
	if (e->kind == ANSWER_DATA_END) {
		(*files)++;
		clock_sleep_ns(clock_monotonic(), 1000000);
	}
	return STATUS_OK;
}

static void test_talk__many_small_files_do_not_keep_the_turn(void **state)
{
	size_t files = 0, turns = 0;
	struct talk t = {.answer = {.take = take_slowly, .arg = &files}, .input = -1, .errors = -1, .active = true};
	struct text all = {0};
	int fd[2];

	(void)state;
	assert_int_equal(pipe2(fd, O_CLOEXEC | O_NONBLOCK), 0);
	text_add(&all, "begin\n");
	for (unsigned i = 0; i < 500; i++)
		text_addf(&all, "file 1 " SUM " work/%03u\nx", i);
	text_add(&all, "end\n");
	assert_int_equal(write(fd[1], text_str(&all), all.size), (ssize_t)all.size);
	close(fd[1]);
	text_release(&all);
	t.process = (struct process){.channel = -1, .output = fd[0], .ended = true};
	while (!talk_read(&t)) { /* ssh has ended, and what it wrote is still read */
		assert_true(files < 500 || turns);
		turns++;
	}
	assert_int_equal(files, 500);
	assert_true(turns >= 3);
	assert_true(talk_is_whole(&t));
	talk_end(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answer__each_line_is_understood),
		cmocka_unit_test(test_answer__states_and_bytes),
		cmocka_unit_test(test_answer__a_greeting_is_skipped),
		cmocka_unit_test(test_answer__hostile_lines_are_refused),
		cmocka_unit_test(test_answer__long_lines_are_refused),
		scratch_test(test_received__files_get_their_names_when_whole),
		scratch_test(test_received__wrong_files_are_refused),
		scratch_test(test_received__too_many_files_are_refused),
		scratch_test(test_received__no_link_is_followed),
		scratch_test(test_received__nothing_half_stays),
		cmocka_unit_test(test_talk__many_small_files_do_not_keep_the_turn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
