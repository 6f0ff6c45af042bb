/* SPDX-License-Identifier: Apache-2.0 */
/* Files of all ranks to rank 0, and what cannot come. */
#include "test.h"

#include <limits.h>
#include <sys/stat.h>
#include "core/file/file.h"
#include "journal/journal.h"
#include "journal/file/rank_dir.h"
#include "scratch.h"
#include "team/control/collect_receive.h"
#include "team_bed.h"

static char root[PATH_MAX / 4]; /* each rank's files: ROOT/R */
static unsigned limit_ms;

static char *path_of(const char *format, ...)
{
	static char path[8][PATH_MAX];
	static unsigned next;
	char *out = path[next++ % 8];
	va_list args;

	va_start(args, format);
	vsnprintf(out, PATH_MAX / 2, format, args);
	va_end(args);
	return out;
}

static void own_file(unsigned rank, const char *name, const char *bytes, size_t size)
{
	char *dir = path_of("%s/%u", root, rank);

	assert_int_equal(file_make_dir(dir, NULL), STATUS_OK);
	assert_int_equal(file_write(path_of("%s/%s", dir, name), bytes, size, NULL), STATUS_OK);
}

static void set(struct stage *s, unsigned count, enum status (*play)(struct actor *), void **state)
{
	text_copy(root, sizeof(root), *state);
	limit_ms = LONG_MS;
	stage_set(s, count, play);
	for (unsigned r = 0; r < count; r++) {
		own_file(r, JOURNAL_FILE, "one\n", 4);
		snprintf(s->actor[r].o.place.node, 64, "node-%u", r);
	}
}

static bool came(const char *node, unsigned rank, const char *name, const char *bytes, size_t size)
{
	char dir[PATH_MAX], *data = NULL;
	size_t got = 0;
	bool same;

	rank_dir_path(dir, sizeof(dir), path_of("%s/0", root), node, rank);
	same = !file_read(&data, &got, path_of("%s/%s", dir, name), size, NULL) && got == size &&
	       !memcmp(data, bytes, size);
	free(data);
	return same;
}

static struct text missing;

static enum status collect(struct actor *a)
{
	char dir[PATH_MAX / 2];

	snprintf(dir, sizeof(dir), "%s/%u", root, a->o.place.rank);
	return control_collect(a->control, dir, limit_ms, &missing, &a->err);
}

static enum status part_and_collect(struct actor *a)
{
	enum status st = control_part(a->control, LONG_MS, &a->err);

	return st ? st : collect(a);
}

static void test_collect__all_files_come(void **state)
{
	enum { LARGE = 3 * 1000 * 1000 + 7 }; /* many chunks, and a part of one */
	char *large = calloc(1, LARGE);
	struct stage s;

	assert_non_null(large);
	for (size_t i = 0; i < LARGE; i++)
		large[i] = (char)(i * 2654435761u >> 24);
	set(&s, 4, part_and_collect, state);
	own_file(2, JOURNAL_FILE, large, LARGE);
	own_file(2, JOURNAL_FILE JOURNAL_CUT, "torn", 4);
	own_file(2, "other", "mine", 4);
	own_file(3, JOURNAL_FILE, "", 0);
	stage_play(&s);
	all_well(&s);
	assert_string_equal(text_str(&missing), "");
	assert_true(came("node-1", 1, JOURNAL_FILE, "one\n", 4));
	assert_true(came("node-2", 2, JOURNAL_FILE, large, LARGE));
	assert_true(came("node-2", 2, JOURNAL_FILE JOURNAL_CUT, "torn", 4));
	assert_false(came("node-2", 2, "other", "mine", 4)); /* of the table alone */
	assert_true(came("node-3", 3, JOURNAL_FILE, "", 0));
	stage_clear(&s);
	free(large);
}

static void test_collect__a_name_leads_nowhere_else(void **state)
{
	json_t *about = json_pack("{s:s}", "shown", "../../../escaped");
	struct stage s;

	set(&s, 3, part_and_collect, state);
	s.actor[1].o.about = s.actor[2].o.about = about;
	stage_play(&s);
	all_well(&s);
	assert_true(came("../../../escaped", 1, JOURNAL_FILE, "one\n", 4));
	assert_int_equal(access(path_of("%s/0/nodes/_._.._.._escaped/rank-1", root), F_OK), 0);
	assert_int_equal(access(path_of("%s/0/nodes/_._.._.._escaped-rank-2/rank-2", root), F_OK), 0);
	assert_int_not_equal(access(path_of("%s/../escaped", root), F_OK), 0);
	stage_clear(&s);
	json_decref(about);
}

static void test_collect__too_large_or_none(void **state)
{
	struct stage s;

	set(&s, 4, part_and_collect, state);
	assert_int_equal(truncate(path_of("%s/1/" JOURNAL_FILE, root), (off_t)collect_rows[0].most + 1), 0);
	assert_int_equal(unlink(path_of("%s/2/" JOURNAL_FILE, root)), 0);
	assert_int_equal(unlink(path_of("%s/3/" JOURNAL_FILE, root)), 0);
	assert_int_equal(mkfifo(path_of("%s/3/" JOURNAL_FILE, root), 0600), 0);
	stage_play(&s);
	assert_int_equal(s.actor[0].st, STATUS_OK);
	assert_non_null(strstr(text_str(&missing), "rank 1 on node-1: journal.jsonl has 268435457 bytes; the limit is 268435456"));
	assert_non_null(strstr(text_str(&missing), "rank 2 on node-2: it sent no journal.jsonl"));
	assert_non_null(strstr(text_str(&missing), "rank 3 on node-3: journal.jsonl is not a regular file"));
	for (unsigned r = 1; r < 4; r++) {
		assert_int_equal(s.actor[r].st, STATUS_UNAVAILABLE);
		assert_non_null(strstr(s.actor[r].err.text, "rank 0 did not take the files of rank"));
	}
	stage_clear(&s);
}

static enum status leave_before(struct actor *a)
{
	enum status st = control_part(a->control, LONG_MS, &a->err);

	if (a->o.place.rank != 1)
		return st ? st : collect(a);
	control_leave(&a->control);
	return st;
}

static void test_collect__who_leaves_is_named_and_an_old_file_of_his_goes(void **state)
{
	char dir[PATH_MAX];
	struct stage s;

	set(&s, 3, leave_before, state);
	rank_dir_path(dir, sizeof(dir), path_of("%s/0", root), "node-1", 1);
	assert_int_equal(file_make_dir(dir, NULL), STATUS_OK);
	assert_int_equal(file_write(path_of("%s/" JOURNAL_FILE, dir), "old\n", 4, NULL), STATUS_OK);
	stage_play(&s);
	all_well(&s);
	assert_non_null(strstr(text_str(&missing), "no complete files from rank 1 on node-1: it"));
	assert_null(strstr(text_str(&missing), "rank 2"));
	assert_false(came("node-1", 1, JOURNAL_FILE, "old\n", 4));
	assert_true(came("node-2", 2, JOURNAL_FILE, "one\n", 4));
	stage_clear(&s);
}

static enum status lost_then_collect(struct actor *a)
{
	if (a->o.place.rank == 1) {
		control_leave(&a->control);
		return STATUS_OK;
	}
	assert_int_equal(attend(a, LONG_MS), STATUS_UNAVAILABLE);
	a->err = (struct error){0};
	return collect(a);
}

static void test_collect__a_team_that_ended_early_sends_what_it_has(void **state)
{
	struct stage s;

	set(&s, 4, lost_then_collect, state);
	stage_play(&s);
	all_well(&s);
	assert_non_null(strstr(text_str(&missing), "rank 1 on node-1: it was lost earlier"));
	assert_true(came("node-2", 2, JOURNAL_FILE, "one\n", 4));
	assert_true(came("node-3", 3, JOURNAL_FILE, "one\n", 4));
	stage_clear(&s);
}

static enum status one_is_late(struct actor *a)
{
	enum status st = control_part(a->control, LONG_MS, &a->err);

	return st || a->o.place.rank == 1 ? st : collect(a);
}

static enum status zero_does_not_ask(struct actor *a)
{
	enum status st = control_part(a->control, LONG_MS, &a->err);

	return st || !a->o.place.rank ? st : collect(a);
}

static void test_collect__nobody_waits_longer_than_the_limit(void **state)
{
	struct stage s;

	set(&s, 3, one_is_late, state);
	limit_ms = SHORT_MS;
	stage_play(&s);
	all_well(&s);
	assert_non_null(strstr(text_str(&missing), "rank 1 on node-1: it sent no more within 0.4 s (0 bytes received)"));
	assert_true(came("node-2", 2, JOURNAL_FILE, "one\n", 4));
	stage_clear(&s);
	set(&s, 2, zero_does_not_ask, state);
	limit_ms = 1; /* and the grace */
	stage_play(&s);
	assert_int_equal(s.actor[1].st, STATUS_UNAVAILABLE);
	assert_string_equal(s.actor[1].err.text, "rank 0 did not ask: the files of rank 1 stay in its own run directory");
	stage_clear(&s);
}

static enum status zero_goes(struct actor *a)
{
	enum status st = control_part(a->control, LONG_MS, &a->err);

	if (a->o.place.rank)
		return st ? st : collect(a);
	control_leave(&a->control);
	return st;
}

static void test_collect__without_rank_0_the_files_stay(void **state)
{
	struct stage s;

	set(&s, 2, zero_goes, state);
	stage_play(&s);
	assert_string_equal(s.actor[1].err.text, "rank 0 is gone: the files of rank 1 stay in its own run directory");
	stage_clear(&s);
}

static void test_collect__alone_there_is_nothing_to_do(void **state)
{
	(void)state;
	assert_int_equal(control_collect(NULL, "/nowhere", 0, NULL, NULL), STATUS_OK);
	assert_null(control_team_json(NULL, 0, false));
}

static enum status refused(struct collect_in *in, const char *head)
{
	struct error err = {0};
	enum status st = collect_file(in, head, strlen(head), &err);

	assert_int_equal(st, err.status);
	return st;
}

static void test_collect__heads_that_are_not_sound(void **state)
{
	static const char *const heads[] = {
		"",
		"[]",
		"{}",
		"{\"name\":\"journal.jsonl\"}",
		"{\"name\":\"journal.jsonl\",\"size\":-1}",
		"{\"name\":\"journal.jsonl\",\"size\":268435457}",
		"{\"name\":\"journal.jsonl\",\"size\":1.5}",
		"{\"name\":\"../journal.jsonl\",\"size\":1}",
		"{\"name\":\"/etc/passwd\",\"size\":1}",
		"{\"name\":\"journal.jsonl\\u0000x\",\"size\":1}",
		"{\"name\":\"report.html\",\"size\":1}",
	};
	struct collect_in in = {.dir = ""};

	snprintf(in.dir, sizeof(in.dir), "%s/in", (char *)*state);
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
		assert_int_equal(refused(&in, heads[i]), STATUS_BAD_INPUT);
	assert_int_not_equal(access(in.dir, F_OK), 0);
}

static void test_collect__what_is_not_whole_is_taken_away(void **state)
{
	static const char head[] = "{\"name\":\"journal.jsonl\",\"size\":4}";
	struct collect_in in = {.dir = ""};
	char path[PATH_MAX];

	snprintf(in.dir, sizeof(in.dir), "%s/in", (char *)*state);
	snprintf(path, sizeof(path), "%s/in/journal.jsonl", (char *)*state);
	assert_int_equal(collect_data(&in, "x", 1, NULL), STATUS_BAD_INPUT); /* of no file */
	assert_int_equal(refused(&in, head), STATUS_OK);
	assert_int_equal(collect_data(&in, "abc", 3, NULL), STATUS_OK);
	assert_int_equal(refused(&in, head), STATUS_BAD_INPUT); /* before its end */
	assert_int_equal(collect_data(&in, "de", 2, NULL), STATUS_BAD_INPUT);
	assert_false(collect_close(&in));
	assert_int_not_equal(access(path, F_OK), 0);
	assert_int_equal(rmdir(in.dir), 0); /* nothing beside either */
	assert_int_equal(refused(&in, head), STATUS_OK);
	assert_int_equal(collect_data(&in, "abcd", 4, NULL), STATUS_OK);
	assert_true(collect_close(&in));
	assert_int_equal(in.taken, 1);
	assert_int_equal(refused(&in, head), STATUS_BAD_INPUT); /* twice */
	assert_int_equal(access(path, F_OK), 0);
	collect_forget(&in);
	assert_int_not_equal(access(path, F_OK), 0);
	in.taken = 0;
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(refused(&in, head), STATUS_BAD_INPUT);
}

static int collected_remove(void **state)
{
	text_release(&missing);
	return scratch_remove(state);
}

#define IN_SCRATCH(name) cmocka_unit_test_setup_teardown(name, scratch_create, collected_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_SCRATCH(test_collect__all_files_come),
		IN_SCRATCH(test_collect__a_name_leads_nowhere_else),
		IN_SCRATCH(test_collect__too_large_or_none),
		IN_SCRATCH(test_collect__who_leaves_is_named_and_an_old_file_of_his_goes),
		IN_SCRATCH(test_collect__a_team_that_ended_early_sends_what_it_has),
		IN_SCRATCH(test_collect__nobody_waits_longer_than_the_limit),
		IN_SCRATCH(test_collect__without_rank_0_the_files_stay),
		IN_SCRATCH(test_collect__alone_there_is_nothing_to_do),
		IN_SCRATCH(test_collect__heads_that_are_not_sound),
		IN_SCRATCH(test_collect__what_is_not_whole_is_taken_away),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
