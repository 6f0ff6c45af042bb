/* SPDX-License-Identifier: Apache-2.0 */
/* Recordings: two nodes, seeking, cut and damaged files, a disk that is full. */
#include "watch_bed.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <zstd.h>
#include "scratch.h"
#include "core/file/file.h"
#include "core/math/random.h"
#include "watch/record.h"
#include "watch/replay.h"

/* Appends one frame as a recorder writes it: node 0 with one power value per second. */
static void add_minute(struct text *t, unsigned minute, unsigned seconds)
{
	struct watch_state s = {0};
	struct text whole = {0};
	unsigned from = minute * 60;

	bed_begin(&s);
	bed_values(&s, from + 1, 3, "[%u,%u,%u,%u]", CATALOGUE_GPU_POWER, from, CATALOGUE_GPU_SAMPLED_SETTING,
		   2 * from);
	watch_state_write(&s, &whole);
	text_addf(t, "%s1 %u 1000.500\n", WATCH_RECORDING, from * 1000);
	for (const char *at = text_str(&whole), *end; (end = strchr(at, '\n')); at = end + 1)
		text_addf(t, "0 %u %.*s\n", from * 1000, (int)(end - at), at);
	for (unsigned i = 1; i <= seconds; i++)
		text_addf(t, "0 %u {\"t\":%u000000000,\"s\":0,\"v\":{\"3\":[%u,%u,%u,%u]},\"end\":3}\n",
			  (from + i) * 1000, from + i + 1, CATALOGUE_GPU_POWER, from + i,
			  CATALOGUE_GPU_SAMPLED_SETTING, 2 * (from + i));
	text_release(&whole);
	watch_state_release(&s);
}

static void write_file(const char *path, const char *data, size_t size)
{
	FILE *f = fopen(path, "wb");

	assert_true(f && fwrite(data, 1, size, f) == size && !fclose(f));
}

static void record(struct watch_recorder *r, struct watch_state *s, unsigned node, const char *line)
{
	watch_recorder_line(r, node, line, strlen(line));
	bed_line(s, "%s", line);
}

static void expect_power(struct watch_replay *r, double seconds, double watts)
{
	struct error err = {0};
	const struct watch_state *s = watch_replay_state(r, 0);
	double rate = -1;

	if (watch_replay_seek(r, seconds, &err))
		fail_msg("%s", err.text);
	assert_int_equal(s->entity[3].scope, METRIC_SCOPE_GPU);
	assert_true(watch_get(&s->entity[3], CATALOGUE_GPU_POWER)->value == watts);
	if (seconds >= 1)
		assert_true(watch_rate(&rate, &s->entity[3], CATALOGUE_GPU_SAMPLED_SETTING) && rate == 2);
}

static void test_seek(void **state)
{
	struct text t = {0};
	struct watch_replay *r;
	struct error err = {0};
	char path[4200];

	for (unsigned m = 0; m < 4; m++)
		add_minute(&t, m, m < 3 ? 59 : 30);
	snprintf(path, sizeof(path), "%s/r", (char *)*state);
	write_file(path, text_str(&t), t.size);
	assert_int_equal(watch_replay_open(&r, path, &err), STATUS_OK);
	assert_int_equal(watch_replay_nodes(r), 1);
	assert_true(watch_replay_length(r) == 210);
	assert_null(watch_replay_why(r));
	assert_null(watch_replay_state(r, 1));
	expect_power(r, 0, 0);
	expect_power(r, 5, 5);
	expect_power(r, 200, 200);
	expect_power(r, 61, 61); /* back, and right after the beginning of a frame */
	expect_power(r, 120, 120);
	expect_power(r, 181.9, 181);
	expect_power(r, 1e9, 210);
	expect_power(r, -3, 0);
	for (int i = 1; i < 210; i++)
		expect_power(r, i, i);
	watch_replay_close(r);
	text_release(&t);
}

/* The same in compressed frames, as a recorder writes them. */
static void test_seek_in_compressed_frames(void **state)
{
	struct watch_replay *r;
	struct error err = {0};
	char path[4200], packed[1 << 16];
	FILE *f;

	snprintf(path, sizeof(path), "%s/r", (char *)*state);
	f = fopen(path, "wb");
	for (unsigned m = 0; m < 4; m++) {
		struct text t = {0};
		size_t size;

		add_minute(&t, m, m < 3 ? 59 : 30);
		size = ZSTD_compress(packed, sizeof(packed), t.data, t.size, 3);
		assert_false(ZSTD_isError(size));
		assert_int_equal(fwrite(packed, 1, size, f), size);
		text_release(&t);
	}
	assert_int_equal(fclose(f), 0);
	assert_int_equal(watch_replay_open(&r, path, &err), STATUS_OK);
	assert_true(watch_replay_length(r) == 210);
	assert_null(watch_replay_why(r));
	expect_power(r, 200, 200);
	expect_power(r, 61, 61);
	expect_power(r, 1e9, 210);
	for (int i = 1; i < 210; i++)
		expect_power(r, i, i);
	watch_replay_close(r);
}

/* A recorder begins a new frame with the whole state after some megabytes. */
static void test_frames_of_a_recorder(void **state)
{
	enum { LINES = 150000 };
	struct watch_state s = {0};
	struct watch_recorder *rec;
	struct watch_replay *r;
	struct error err = {0};
	char path[4200], line[128], *file;
	unsigned frames = 0;
	size_t size, at = 0;

	snprintf(path, sizeof(path), "%s/r.zst", (char *)*state);
	assert_int_equal(watch_recorder_open(&rec, path, 1, &err), STATUS_OK);
	bed_begin(&s);
	watch_recorder_node(rec, 0, &s);
	for (unsigned i = 1; i <= LINES; i++) {
		snprintf(line, sizeof(line), "{\"t\":%u000000,\"s\":0,\"v\":{\"3\":[%u,%u]},\"end\":3}", i,
			 CATALOGUE_GPU_POWER, i);
		record(rec, &s, 0, line);
	}
	assert_int_equal(watch_recorder_close(rec, &err), STATUS_OK);
	assert_int_equal(file_read(&file, &size, path, 1 << 24, &err), STATUS_OK);
	for (; at < size; frames++)
		at += ZSTD_findFrameCompressedSize(file + at, size - at);
	free(file);
	assert_true(frames >= 2 && at == size);
	assert_int_equal(watch_replay_open(&r, path, &err), STATUS_OK);
	assert_null(watch_replay_why(r));
	assert_int_equal(watch_replay_seek(r, 1e6, &err), STATUS_OK);
	assert_true(watch_get(&watch_replay_state(r, 0)->entity[3], CATALOGUE_GPU_POWER)->value == LINES);
	watch_replay_close(r);
	watch_state_release(&s);
}

static void test_a_cut_file_is_read_up_to_the_cut(void **state)
{
	struct text t = {0};
	char path[4200];

	add_minute(&t, 0, 59);
	snprintf(path, sizeof(path), "%s/r", (char *)*state);
	for (size_t size = 0; size <= t.size; size += 37) {
		struct watch_replay *r = NULL;
		struct error err = {0};
		enum status st;

		write_file(path, text_str(&t), size);
		st = watch_replay_open(&r, path, &err);
		if (st) {
			assert_int_equal(st, STATUS_BAD_INPUT);
			assert_true(*err.text && !r && size < 64);
			continue;
		}
		assert_int_equal(watch_replay_seek(r, 1e6, &err), STATUS_OK);
		if (watch_replay_length(r) >= 1)
			expect_power(r, watch_replay_length(r), watch_replay_length(r));
		assert_true(text_str(&t)[size ? size - 1 : 0] == '\n' || watch_replay_why(r));
		watch_replay_close(r);
	}
	text_release(&t);
}

static void test_no_recording(void **state)
{
	static const char *const files[] = {"",
					    "x",
					    "assay-recording 2 1 0 1\n",
					    "assay-recording 1 0 0 1\n",
					    "assay-recording 1 9999999 0 1\n",
					    "assay-recording 1 1 99999999999999999999 1\n",
					    "assay-recording 1 1 0 nan\n",
					    "assay-recording 1 1 0\n",
					    "\x28\xb5\x2f\xfd",
					    "\x28\xb5\x2f\xfd garbage"};
	char path[4200];

	snprintf(path, sizeof(path), "%s/r", (char *)*state);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		struct watch_replay *r;
		struct error err = {0};

		write_file(path, files[i], strlen(files[i]));
		assert_int_equal(watch_replay_open(&r, path, &err), STATUS_BAD_INPUT);
		assert_non_null(strstr(err.text, "not a recording"));
	}
	unlink(path);
	{
		struct watch_replay *r;
		struct error err = {0};

		assert_int_equal(watch_replay_open(&r, path, &err), STATUS_UNAVAILABLE);
	}
}

static void test_a_wrong_line_stops_there(void **state)
{
	struct text t = {0};
	struct watch_replay *r;
	struct error err = {0};
	char path[4200];

	add_minute(&t, 0, 3);
	text_add(&t, "0 4000 {\"t\":5000000000,\"s\":0,\"v\":{\"99\":[0,1]}}\n0 5000 {\"t\":6000000000}\n");
	snprintf(path, sizeof(path), "%s/r", (char *)*state);
	write_file(path, text_str(&t), t.size);
	assert_int_equal(watch_replay_open(&r, path, &err), STATUS_OK);
	assert_int_equal(watch_replay_seek(r, 5, &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "entity 99"));
	assert_non_null(strstr(err.text, path)); /* the file and the place too */
	assert_non_null(strstr(err.text, "after 4.000 s"));
	assert_non_null(watch_replay_why(r));
	expect_power(r, 3, 3);
	watch_replay_close(r);
	text_release(&t);
}

static void test_two_nodes(void **state)
{
	struct watch_state a = {0}, b = {0};
	struct watch_recorder *rec;
	struct watch_replay *r;
	struct error err = {0};
	char path[4200], line[128];
	char *file;
	size_t size;

	snprintf(path, sizeof(path), "%s/r.zst", (char *)*state);
	assert_int_equal(watch_recorder_open(&rec, path, 2, &err), STATUS_OK);
	bed_begin(&a);
	watch_recorder_node(rec, 0, &a);
	watch_recorder_node(rec, 1, &b);
	watch_recorder_node(rec, 2, &b); /* no such node */
	{
		struct text header = {0};

		bed_header_text(&header, "boot-9", 7);
		record(rec, &b, 1, text_str(&header));
		text_release(&header);
	}
	record(rec, &b, 1, BED_GPU);
	for (unsigned i = 1; i < 100; i++) {
		snprintf(line, sizeof(line), "{\"t\":%u000000000,\"s\":0,\"v\":{\"3\":[%u,%u]},\"end\":3}", i,
			 CATALOGUE_GPU_POWER, i);
		record(rec, i % 2 ? &a : &b, i % 2 ? 0 : 1, line);
	}
	assert_null(watch_recorder_why(rec));
	assert_int_equal(watch_recorder_close(rec, &err), STATUS_OK);
	assert_int_equal(watch_recorder_open(&rec, path, 2, &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "exists already"));
	err = (struct error){0};
	assert_int_equal(watch_replay_open(&r, path, &err), STATUS_OK);
	assert_int_equal(watch_replay_nodes(r), 2);
	assert_int_equal(watch_replay_seek(r, 1e6, &err), STATUS_OK);
	assert_true(watch_get(&watch_replay_state(r, 0)->entity[3], CATALOGUE_GPU_POWER)->value == 99);
	assert_true(watch_get(&watch_replay_state(r, 1)->entity[3], CATALOGUE_GPU_POWER)->value == 98);
	assert_string_equal(watch_replay_state(r, 1)->boot, "boot-9");
	watch_replay_close(r);
	/* cut at every place */
	assert_int_equal(file_read(&file, &size, path, 1 << 20, &err), STATUS_OK);
	for (size_t cut = 0; cut < size; cut += 11) {
		write_file(path, file, cut);
		err = (struct error){0};
		if (watch_replay_open(&r, path, &err))
			continue;
		watch_replay_seek(r, 1e6, &err);
		assert_non_null(watch_replay_why(r));
		watch_replay_close(r);
	}
	free(file);
	watch_state_release(&a);
	watch_state_release(&b);
}

static void test_a_full_disk_is_told(void **state)
{
	const struct rlimit small = {4096, RLIM_INFINITY};
	struct rlimit before;
	struct watch_recorder *rec;
	struct error err = {0};
	char path[4200], line[256];

	assert_int_equal(watch_recorder_open(&rec, "/nowhere/r", 1, &err), STATUS_UNAVAILABLE);
	err = (struct error){0};
	snprintf(path, sizeof(path), "%s/r", (char *)*state);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(watch_recorder_open(&rec, path, 1, &err), STATUS_OK);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	for (uint32_t i = 0; i < 100000 && !watch_recorder_why(rec); i++) {
		int n = snprintf(line, sizeof(line), "{\"t\":%u,\"noise\":%u}", i, random_u32(1, 2, i));

		watch_recorder_line(rec, 0, line, (size_t)n);
	}
	setrlimit(RLIMIT_FSIZE, &before);
	assert_non_null(strstr(watch_recorder_why(rec), path));
	assert_int_equal(watch_recorder_close(rec, &err), STATUS_NO_RESOURCE);
	assert_non_null(strstr(err.text, "cannot write the recording"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		scratch_test(test_seek),
		scratch_test(test_seek_in_compressed_frames),
		scratch_test(test_frames_of_a_recorder),
		scratch_test(test_a_cut_file_is_read_up_to_the_cut),
		scratch_test(test_no_recording),
		scratch_test(test_a_wrong_line_stops_there),
		scratch_test(test_two_nodes),
		scratch_test(test_a_full_disk_is_told),
	};

	return cmocka_run_group_tests_name("watch_record", tests, NULL, NULL);
}
