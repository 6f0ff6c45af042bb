/* SPDX-License-Identifier: Apache-2.0 */
/* The states of a host, its saved state, and the copy that it gets. */
#include "scratch.h"
#include "test.h"
#include "core/file/file.h"
#include "deploy/deploy.h"

enum { EXITED_255 = 255 << 8, EXITED_1 = 1 << 8 };
#define SECOND 1000000000ull

/* A deployment of two hosts, with a bundle of a program and a library. */
struct world {
	struct deploy d;
	struct hosts hosts;
	char bundle[PATH_MAX];
};
static volatile sig_atomic_t no_stop;
static const char *const words[] = {"check", "it's", "$HOME"};

static void put(const char *folder, const char *name, const char *text)
{
	char path[PATH_MAX];
	struct error err = {0};

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	if (file_write(path, text, strlen(text), &err))
		fail_msg("%s", err.text);
}

static void begin(struct world *w, const char *folder)
{
	struct error err = {0};
	char lib[PATH_MAX + 8], program[PATH_MAX + 8];

	*w = (struct world){0};
	snprintf(w->bundle, sizeof(w->bundle), "%.200s/bundle", folder);
	snprintf(lib, sizeof(lib), "%s/lib", w->bundle);
	snprintf(program, sizeof(program), "%s/assay", w->bundle);
	assert_int_equal(file_make_dir(lib, &err), STATUS_OK);
	put(w->bundle, "assay", "#!/bin/sh\n");
	put(lib, "libx.so.1", "x");
	assert_int_equal(chmod(program, 0755), 0);
	assert_int_equal(hosts_parse(&w->hosts, "me@gpu1,gpu2", "test", &err), STATUS_OK);
	text_copy(w->d.folder, sizeof(w->d.folder), folder);
	w->d.job = (struct deploy_job){.bundle = w->bundle, .words = {words, 3}, .fetch_most = 1000};
	w->d.patience_s = 60;
	w->d.stop = &no_stop;
	assert_int_equal(deploy_hosts(&w->d, &w->hosts, &err), STATUS_OK);
	if (deploy_prepare(&w->d, &err))
		fail_msg("%s", err.text);
}

static void end(struct world *w)
{
	deploy_release(&w->d);
	hosts_release(&w->hosts);
}

/* The end of a connection: how ssh ended, and whether the answer was whole. */
static void finish(struct deploy_host *h, enum host_step step, int wait_status, bool whole, uint64_t now_ns)
{
	h->step = step;
	h->talk.process.ended = true;
	h->talk.process.wait_status = wait_status;
	h->talk.answer.begun = h->talk.answer.ended = whole;
	host_finish(h, now_ns);
	h->talk = (struct talk){0};
}

static void test_host__the_way_of_a_run(void **state)
{
	struct world w;
	struct deploy_host *h;

	begin(&w, *state);
	h = &w.d.host[0];
	assert_int_equal(host_next_step(h), STEP_LOOK);
	h->node = NODE_NONE;
	finish(h, STEP_LOOK, 0, true, 1);
	assert_int_equal(h->state, HOST_COPYING);
	assert_int_equal(host_next_step(h), STEP_RECEIVE);
	finish(h, STEP_RECEIVE, 0, true, 1); /* only a part arrived */
	assert_int_equal(host_next_step(h), STEP_LOOK);
	finish(h, STEP_LOOK, 0, true, 1);
	h->told_state = true;
	h->node = NODE_RUNNING;
	finish(h, STEP_RECEIVE, 0, true, 1);
	assert_int_equal(h->state, HOST_RUNNING);
	assert_int_equal(host_next_step(h), STEP_FOLLOW);
	h->node = NODE_ENDED;
	h->exit_code = 1;
	finish(h, STEP_FOLLOW, 0, true, 1);
	assert_int_equal(host_next_step(h), STEP_FETCH);
	finish(h, STEP_FETCH, 0, true, 1);
	assert_int_equal(h->state, HOST_FETCHED);
	assert_int_equal(host_next_step(h), STEP_CLEAN);
	assert_false(host_is_done(h));
	finish(h, STEP_CLEAN, 0, true, 1);
	assert_int_equal(h->state, HOST_CLEANED);
	assert_true(host_is_done(h));
	end(&w);
}

static void test_host__refusals_are_final(void **state)
{
	static const struct {
		enum talk_refusal refusal;
		const char *says;
	} rows[] = {{TALK_KEY_CHANGED, "ssh-keygen -R gpu1"}, {TALK_KEY_UNKNOWN, "--accept-new"}, {TALK_DENIED, "keys of this user"}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct world w;

		begin(&w, *state);
		w.d.host[0].talk.refusal = rows[i].refusal;
		finish(&w.d.host[0], STEP_LOOK, EXITED_255, false, 1);
		assert_int_equal(w.d.host[0].state, HOST_FAILED);
		assert_non_null(strstr(w.d.host[0].reason, rows[i].says));
		end(&w);
	}
}

static void test_host__a_host_that_was_never_there(void **state)
{
	struct world w;
	struct deploy_host *h;

	begin(&w, *state);
	h = &w.d.host[0];
	for (unsigned i = 0; i < 2; i++) {
		finish(h, STEP_LOOK, EXITED_255, false, SECOND);
		assert_false(host_is_done(h));
		assert_true(h->next_ns > SECOND);
	}
	finish(h, STEP_LOOK, EXITED_255, false, SECOND);
	assert_int_equal(h->state, HOST_LOST);
	end(&w);
}

static void test_host__a_host_that_went_away_has_patience_s(void **state)
{
	struct world w;
	struct deploy_host *h;

	begin(&w, *state);
	h = &w.d.host[0];
	h->node = NODE_RUNNING;
	finish(h, STEP_LOOK, 0, true, SECOND);
	h->state = HOST_FOLLOWED;
	finish(h, STEP_FOLLOW, EXITED_255, false, 20 * SECOND);
	assert_int_equal(h->state, HOST_RUNNING);
	finish(h, STEP_FOLLOW, EXITED_255, false, 60 * SECOND);
	assert_int_equal(h->state, HOST_RUNNING);
	finish(h, STEP_FOLLOW, EXITED_255, false, 62 * SECOND);
	assert_int_equal(h->state, HOST_LOST);
	assert_non_null(strstr(h->reason, "61 s"));
	end(&w);
}

static void test_host__a_host_that_hangs_from_the_start_has_patience_s(void **state)
{
	struct world w;
	struct deploy_host *h;

	begin(&w, *state);
	h = &w.d.host[0];
	h->contact_ns = 100 * SECOND; /* when its first connection began */
	finish(h, STEP_LOOK, EXITED_255, false, 161 * SECOND);
	assert_int_equal(h->state, HOST_LOST);
	end(&w);
}

/* A copy that takes longer than patience_s breaks. */
static void test_host__a_long_copy_is_progress_until_a_look_says_otherwise(void **state)
{
	struct world w;
	struct deploy_host *h;

	begin(&w, *state);
	h = &w.d.host[0];
	finish(h, STEP_LOOK, 0, true, SECOND);
	h->copied = true;
	h->from = 0;
	h->sent = 100;
	h->talk.heard_ns = 200 * SECOND;
	finish(h, STEP_RECEIVE, EXITED_255, false, 201 * SECOND);
	assert_int_equal(h->state, HOST_COPYING);
	finish(h, STEP_LOOK, EXITED_255, false, 250 * SECOND);
	assert_int_equal(h->state, HOST_COPYING);
	h->part = 0; /* nothing arrived */
	finish(h, STEP_LOOK, 0, true, 251 * SECOND);
	h->talk.heard_ns = 261 * SECOND;
	finish(h, STEP_RECEIVE, EXITED_255, false, 262 * SECOND);
	assert_int_equal(h->state, HOST_LOST);
	end(&w);
}

/* Each copy breaks at the same byte, while the host answers in between. */
static void test_host__a_copy_that_does_not_advance(void **state)
{
	struct world w;
	struct deploy_host *h;

	begin(&w, *state);
	h = &w.d.host[0];
	finish(h, STEP_LOOK, 0, true, SECOND);
	for (unsigned i = 1; i < 7; i++) {
		assert_false(host_is_done(h));
		h->copied = true;
		h->from = h->part = 100;
		finish(h, STEP_RECEIVE, EXITED_255, false, i * 10 * SECOND);
		assert_int_equal(host_next_step(h), STEP_LOOK);
		finish(h, STEP_LOOK, 0, true, i * 10 * SECOND);
	}
	finish(h, STEP_RECEIVE, EXITED_255, false, 62 * SECOND);
	assert_int_equal(h->state, HOST_LOST);
	/* one that advances is not lost */
	h = &w.d.host[1];
	finish(h, STEP_LOOK, 0, true, SECOND);
	for (unsigned i = 1; i < 20; i++) {
		h->copied = true;
		h->from = h->part;
		h->part += 100;
		finish(h, STEP_RECEIVE, EXITED_255, false, i * 30 * SECOND);
		finish(h, STEP_LOOK, 0, true, i * 30 * SECOND);
	}
	assert_int_equal(h->state, HOST_COPYING);
	end(&w);
}

static void test_host__what_a_look_refuses(void **state)
{
	struct world w;
	struct deploy_host *h;

	begin(&w, *state);
	h = &w.d.host[0];
	h->free_kib = 16 << 10; /* just the spare */
	finish(h, STEP_LOOK, 0, true, 1);
	assert_int_equal(h->state, HOST_COPYING); /* the two files have no KiB */
	h->free_kib = (16 << 10) - 1;
	finish(h, STEP_LOOK, 0, true, 1);
	assert_int_equal(h->state, HOST_FAILED);
	assert_non_null(strstr(h->reason, "its disk is full: 15 MiB are free, and 16 MiB are needed"));
	h = &w.d.host[1];
	text_copy(h->lacks, sizeof(h->lacks), " dd");
	finish(h, STEP_LOOK, 0, true, 1);
	assert_non_null(strstr(h->reason, "lacks programs"));
	*h->lacks = '\0';
	h->state = HOST_WAITING;
	text_copy(w.d.bundle.arch, sizeof(w.d.bundle.arch), "x86_64");
	text_copy(h->arch, sizeof(h->arch), "riscv64");
	finish(h, STEP_LOOK, 0, true, 1);
	assert_non_null(strstr(h->reason, "its CPU is riscv64, but the bundle is for x86_64"));
	end(&w);
}

static void test_host__what_a_node_refuses(void **state)
{
	struct world w;
	struct deploy_host *h;

	begin(&w, *state);
	h = &w.d.host[0];
	h->looked = true;
	for (unsigned i = 0; i < 2; i++) { /* twice again, then no more */
		text_copy(h->fail, sizeof(h->fail), "damaged the copy");
		finish(h, STEP_RECEIVE, EXITED_1, true, 1);
		assert_int_equal(host_next_step(h), STEP_LOOK);
	}
	finish(h, STEP_RECEIVE, EXITED_1, true, 1);
	assert_int_equal(h->state, HOST_FAILED);
	h = &w.d.host[1];
	text_copy(h->fail, sizeof(h->fail), "program GLIBC_2.38 not found");
	finish(h, STEP_RECEIVE, EXITED_1, true, 1);
	assert_string_equal(h->reason, "the program does not start there: GLIBC_2.38 not found");
	end(&w);
}

static void test_host__a_run_without_an_exit_code(void **state)
{
	struct world w;
	struct deploy_host *h;

	begin(&w, *state);
	h = &w.d.host[0];
	h->node = NODE_GONE;
	finish(h, STEP_LOOK, 0, true, 1);
	assert_int_equal(h->state, HOST_FETCHING);
	assert_non_null(strstr(h->reason, "without an exit code"));
	h = &w.d.host[1];
	h->looked = true;
	h->node = NODE_NONE;
	h->told_state = true;
	finish(h, STEP_FOLLOW, 0, true, 1);
	assert_int_equal(h->state, HOST_FAILED);
	end(&w);
}

static void test_host__stop_cleans_a_host_without_a_run(void **state)
{
	struct world w;
	struct deploy_host *h;

	begin(&w, *state);
	w.d.stop_runs = true;
	h = &w.d.host[0];
	finish(h, STEP_LOOK, 0, true, 1);
	assert_int_equal(host_next_step(h), STEP_CLEAN);
	finish(h, STEP_CLEAN, 0, true, 1);
	assert_int_equal(h->state, HOST_CLEANED);
	assert_int_equal(h->exit_code, -1);
	h = &w.d.host[1];
	h->node = NODE_RUNNING;
	finish(h, STEP_LOOK, 0, true, 1);
	assert_int_equal(host_next_step(h), STEP_STOP);
	finish(h, STEP_STOP, 0, true, 1);
	assert_int_equal(host_next_step(h), STEP_FOLLOW);
	end(&w);
}

static void test_state__it_is_read_back(void **state)
{
	struct world w;
	struct deploy back = {0};
	struct error err = {0};

	begin(&w, *state);
	w.d.host[0].state = HOST_CLEANED;
	w.d.host[0].exit_code = 0;
	w.d.host[1].state = HOST_LOST;
	text_copy(w.d.host[1].reason, HOST_REASON, "a \"reason\"");
	assert_int_equal(deploy_save(&w.d, &err), STATUS_OK);
	text_copy(back.folder, sizeof(back.folder), *state);
	if (deploy_load(&back, &err))
		fail_msg("%s", err.text);
	assert_int_equal(back.count, 2);
	assert_string_equal(back.host[0].name, "me@gpu1");
	assert_string_equal(back.host[0].run, w.d.host[0].run);
	assert_int_equal(back.host[0].state, HOST_CLEANED);
	assert_int_equal(back.host[0].exit_code, 0);
	assert_int_equal(back.host[1].exit_code, -1);
	assert_string_equal(back.host[1].reason, "a \"reason\"");
	assert_int_equal(back.job.words.count, 3);
	assert_string_equal(back.job.words.word[1], "it's");
	assert_null(back.job.ssh_config);
	/* the hosts continue, but not with another program */
	assert_int_equal(deploy_prepare(&back, &err), STATUS_OK);
	assert_int_equal(back.host[1].state, HOST_WAITING);
	put(w.bundle, "lib/libx.so.1", "y");
	bundle_release(&back.bundle);
	assert_int_equal(deploy_prepare(&back, &err), STATUS_MISMATCH);
	deploy_release(&back);
	end(&w);
}

static void test_state__damage_is_refused(void **state)
{
	static const char *const texts[] = {"",
					    "{",
					    "[]",
					    "{\"schema\": 2}",
					    "{\"schema\": 1}",
					    "{\"schema\": 1, \"bundle\": \"/b\", \"bundle_id\": \"x\", \"hosts\": [1]}"};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct deploy d = {0};
		struct error err = {0};

		put(*state, DEPLOY_FILE, texts[i]);
		text_copy(d.folder, sizeof(d.folder), *state);
		assert_int_equal(deploy_load(&d, &err), STATUS_BAD_INPUT);
		assert_non_null(strstr(err.text, DEPLOY_FILE));
		deploy_release(&d);
	}
}

/* The lines of the header and the bytes at the blocks that they name, as node.sh reads them. */
static void test_upload__it_holds_what_the_header_says(void **state)
{
	struct world w;
	struct upload u, again;
	struct error err = {0};
	bool have[3] = {false, true, false};
	char *data, sum[65], name[64];
	unsigned long long block, bytes;
	size_t size, files = 0;

	begin(&w, *state);
	assert_int_equal(w.d.bundle.count, 3);
	assert_int_equal(upload_make(&u, &w.d.bundle, have, *state, NULL, &err), STATUS_OK);
	assert_int_equal(file_read(&data, &size, u.path, 1 << 20, &err), STATUS_OK);
	assert_int_equal(size, u.size);
	for (char *at = data; sscanf(at, "file %64s %llu %llu", sum, &block, &bytes) == 3; at = strchr(at, '\n') + 1) {
		char found[65];

		file_sha256(found, data + 4096 * block, bytes);
		assert_string_equal(found, sum);
		files++;
	}
	assert_int_equal(files, 2);
	assert_non_null(strstr(data, "\nwhole\n"));
	assert_true(strstr(data, "\nwhole\n") < data + 4096 * u.header);
	assert_int_equal(sscanf(strstr(data, "name 700"), "name 700 %64s %63s", sum, name), 2);
	assert_string_equal(name, "bundle/assay");
	assert_int_equal(upload_make(&again, &w.d.bundle, have, *state, &u, &err), STATUS_OK);
	assert_string_equal(again.sum, u.sum);
	free(data);
	end(&w);
}

static void test_upload__a_long_header_has_its_blocks(void **state)
{
	struct bundle b = {0};
	struct upload u;
	struct error err = {0};
	bool have[400] = {false};
	char path[PATH_MAX], name[64], *data;
	size_t size;

	for (unsigned i = 0; i < 400; i++) {
		snprintf(name, sizeof(name), "file-%03u", i);
		put(*state, name, name);
		snprintf(path, sizeof(path), "%.200s/%s", (char *)*state, name);
		assert_int_equal(bundle_add_file(&b, path, &err), STATUS_OK);
	}
	assert_int_equal(upload_make(&u, &b, have, *state, NULL, &err), STATUS_OK);
	assert_true(u.header > 8);
	assert_int_equal(file_read(&data, &size, u.path, 8 << 20, &err), STATUS_OK);
	assert_string_equal(data + 4096 * u.header, "file-000");
	assert_string_equal(data + 4096 * (u.header + 399), "file-399");
	free(data);
	bundle_release(&b);
}

static void test_bundle__names_and_files_that_cannot_be_sent(void **state)
{
	struct bundle b = {0};
	struct error err = {0};
	char path[PATH_MAX], dir[PATH_MAX];

	put(*state, "a b", "x");
	snprintf(path, sizeof(path), "%s/a b", (char *)*state);
	assert_int_equal(bundle_add_file(&b, path, &err), STATUS_BAD_INPUT);
	error_clear(&err);
	assert_int_equal(bundle_add_file(&b, *state, &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "not a regular file"));
	error_clear(&err);
	put(*state, "one", "x");
	snprintf(path, sizeof(path), "%s/one", (char *)*state);
	assert_int_equal(bundle_add_file(&b, path, &err), STATUS_OK);
	assert_int_equal(bundle_add_file(&b, path, &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "two files"));
	error_clear(&err);
	assert_int_equal(bundle_find(dir, *state, &err), STATUS_BAD_INPUT);
	bundle_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		scratch_test(test_host__the_way_of_a_run),
		scratch_test(test_host__refusals_are_final),
		scratch_test(test_host__a_host_that_was_never_there),
		scratch_test(test_host__a_host_that_went_away_has_patience_s),
		scratch_test(test_host__a_host_that_hangs_from_the_start_has_patience_s),
		scratch_test(test_host__a_long_copy_is_progress_until_a_look_says_otherwise),
		scratch_test(test_host__a_copy_that_does_not_advance),
		scratch_test(test_host__what_a_look_refuses),
		scratch_test(test_host__what_a_node_refuses),
		scratch_test(test_host__a_run_without_an_exit_code),
		scratch_test(test_host__stop_cleans_a_host_without_a_run),
		scratch_test(test_state__it_is_read_back),
		scratch_test(test_state__damage_is_refused),
		scratch_test(test_upload__it_holds_what_the_header_says),
		scratch_test(test_upload__a_long_header_has_its_blocks),
		scratch_test(test_bundle__names_and_files_that_cannot_be_sent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
