/* SPDX-License-Identifier: Apache-2.0 */
/* Feeds from a child process and over ssh. This program plays the node: `watch_feed __watch node .. --runs
 * SCENE`. */
#include "watch_bed.h"

#include <poll.h>
#include <signal.h>
#include "scratch.h"
#include "core/clock.h"
#include "watch/feed.h"
#include "watch/replay.h"

enum { PATIENCE_MS = 60000 };

static void say(const char *text)
{
	fputs(text, stdout);
	fputc('\n', stdout);
	fflush(stdout);
}

/* A node that gives two readings, and a third after it hears the feed; it then waits for the end. */
static int play_good(void)
{
	struct text header = {0};
	char byte;

	bed_header_text(&header, "boot-1", 1);
	say("Welcome to this machine");
	say(text_str(&header));
	say(BED_GPU);
	for (int i = 1; i <= 2; i++) {
		printf("{\"t\":%d000000000,\"s\":0,\"v\":{\"3\":[%u,%d]},\"end\":true}\n", i,
		       CATALOGUE_GPU_POWER, i);
		fflush(stdout);
	}
	if (read(0, &byte, 1) == 1)
		say("{\"t\":3000000000,\"s\":0,\"done\":true}");
	while (read(0, &byte, 1) == 1)
		;
	text_release(&header);
	return 0;
}

static int play(const char *scene)
{
	struct text header = {0};

	if (!strcmp(scene, "good"))
		return play_good();
	if (!strcmp(scene, "dies")) {
		fputs("first\nno such \033[31mthing\n", stderr);
		return 3;
	}
	if (!strcmp(scene, "talks"))
		for (;;)
			say("this is a login that never ends");
	bed_header_text(&header, "boot-1", 1);
	say(text_str(&header));
	if (!strcmp(scene, "wrong"))
		say("{\"gone\":-1}");
	if (!strcmp(scene, "long"))
		for (;;)
			fputs("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", stdout);
	if (!strcmp(scene, "deaf"))
		signal(SIGTERM, SIG_IGN);
	for (;;)
		pause();
}

static struct watch_feed *start(const struct watch_feed_spec *spec)
{
	struct watch_feed *f;
	struct error err = {0};

	if (watch_feed_start(&f, spec, &err))
		fail_msg("%s", err.text);
	return f;
}

static void wait_until(struct watch_feed *f, bool (*done)(const struct watch_feed *f))
{
	uint64_t end = clock_now_ns(clock_monotonic()) + PATIENCE_MS * 1000000ull;

	while (!done(f) && clock_now_ns(clock_monotonic()) < end) {
		struct pollfd p = {.fd = watch_feed_fd(f), .events = POLLIN};

		poll(&p, 1, 50);
		watch_feed_poll(f);
	}
	if (!done(f))
		fail_msg("waited in vain; %s", watch_feed_why(f) ? watch_feed_why(f) : "the feed works");
}

static bool has_ended(const struct watch_feed *f)
{
	return watch_feed_why(f) != NULL;
}

static bool has_three(const struct watch_feed *f)
{
	return watch_feed_state(f)->readings >= 3;
}

static const char *ended_with(const char *scene)
{
	const struct watch_feed_spec spec = {.interval = 1, .runs = scene};
	struct watch_feed *f = start(&spec);
	static char why[1000];

	wait_until(f, has_ended);
	assert_int_equal(watch_feed_fd(f), -1);
	assert_false(watch_feed_poll(f));
	text_copy(why, sizeof(why), watch_feed_why(f));
	watch_feed_close(f);
	return why;
}

static void test_a_child(void **state)
{
	const struct watch_feed_spec spec = {.interval = 0.5, .runs = "good"};
	struct watch_feed *f = start(&spec);
	struct watch_recorder *rec;
	struct watch_replay *r;
	struct error err = {0};
	char path[4200];

	snprintf(path, sizeof(path), "%s/r", (char *)*state);
	assert_int_equal(watch_recorder_open(&rec, path, 1, &err), STATUS_OK);
	watch_feed_keep(f, CATALOGUE_GPU_POWER);
	watch_feed_record(f, rec, 0);
	wait_until(f, has_three);
	assert_string_equal(watch_feed_state(f)->node, "gpu7");
	assert_true(watch_feed_state(f)->arrival_ns > 0);
	assert_int_equal(watch_history(&watch_feed_state(f)->entity[3], CATALOGUE_GPU_POWER)->count, 2);
	watch_feed_close(f);
	assert_int_equal(watch_recorder_close(rec, &err), STATUS_OK);
	assert_int_equal(watch_replay_open(&r, path, &err), STATUS_OK);
	assert_int_equal(watch_replay_seek(r, 1e6, &err), STATUS_OK);
	assert_true(watch_get(&watch_replay_state(r, 0)->entity[3], CATALOGUE_GPU_POWER)->value == 2);
	watch_replay_close(r);
}

static void test_ends(void **unused)
{
	const char *why;

	(void)unused;
	why = ended_with("dies");
	assert_non_null(strstr(why, "the reader of this machine ended with exit code 3: no such  [31mthing"));
	assert_non_null(strstr(ended_with("wrong"), "names no entity"));
	assert_non_null(strstr(ended_with("long"), "more than 65536 bytes"));
	assert_non_null(strstr(ended_with("talks"), "does not answer with a stream"));
	watch_feed_close(NULL);
}

static void test_a_deaf_child_is_ended(void **unused)
{
	const struct watch_feed_spec spec = {.interval = 1, .runs = "deaf"};
	struct watch_feed *f = start(&spec);

	(void)unused;
	watch_feed_poll(f);
	watch_feed_close(f); /* KILL */
}

/* A program named ssh notes its words and lets a shell execute the last one. */
static void make_ssh(const char *folder)
{
	char path[4200];
	FILE *file;

	snprintf(path, sizeof(path), "%s/ssh", folder);
	file = fopen(path, "w");
	assert_non_null(file);
	fprintf(file, "#!/bin/sh\nprintf '%%s\\n' \"$@\" > '%s/words'\nfor last; do :; done\n", folder);
	fputs("case $last in *nowhere*) echo 'ssh: connect to host gpu9: No route to host' >&2; exit 255;; esac\n",
	      file);
	fputs("exec sh -c \"$last\"\n", file);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(chmod(path, 0755), 0);
	setenv("PATH", folder, 1);
}

static void test_ssh(void **state)
{
	struct watch_feed_spec spec = {
		.interval = 0.5, .slow = 2, .runs = "good", .host = "me@gpu9", .ssh_config = "/a/config"};
	char *before = strdup(getenv("PATH")), path[9000], words[4096] = "";
	struct watch_feed *f;
	FILE *file;

	snprintf(path, sizeof(path), "%s:%s", (char *)*state, before);
	make_ssh(*state);
	setenv("PATH", path, 1);
	f = start(&spec);
	wait_until(f, has_three);
	watch_feed_close(f);
	snprintf(path, sizeof(path), "%s/words", (char *)*state);
	file = fopen(path, "r");
	assert_non_null(file);
	assert_true(fread(words, 1, sizeof(words) - 1, file) > 0);
	fclose(file);
	assert_non_null(strstr(words, "-F\n/a/config\n"));
	assert_non_null(strstr(words, "-oStrictHostKeyChecking=yes\n"));
	assert_non_null(strstr(words, "\n-oCompression=yes\n-Tax\n--\nme@gpu9\n"));
	assert_non_null(strstr(words, " __watch node --interval 0.5 --slow 2 --runs good --lifeline\n"));
	spec.program = "/nowhere/assay";
	f = start(&spec);
	wait_until(f, has_ended);
	assert_non_null(strstr(watch_feed_why(f),
			       "the reader of me@gpu9 ended with exit code 255: ssh: connect to host"));
	watch_feed_close(f);
	setenv("PATH", before, 1);
	free(before);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		scratch_test(test_a_child),
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_a_deaf_child_is_ended),
		scratch_test(test_ssh),
	};

	for (int i = 1; i + 1 < argc; i++)
		if (!strcmp(argv[i], "--runs"))
			return play(argv[i + 1]);
	signal(SIGPIPE, SIG_IGN); /* as in main.c */
	return cmocka_run_group_tests_name("watch_feed", tests, NULL, NULL);
}
