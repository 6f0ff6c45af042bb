/* SPDX-License-Identifier: Apache-2.0 */
/* Block lists: patterns against a matrix of pairs, files good and bad, and what they keep. */
#include "test.h"

#include "core/math/random.h"
#include "kernel/attention/sparse/block_lists.h"
#include "probe/attention/attended_pairs.h"
#include "scratch.h"

enum { MOST = 4096 };

static bool seen(const struct attention_problem *p, uint32_t b, uint32_t i, uint32_t j)
{
	int64_t keys = attention_kv_len(p, b), own = (int64_t)i + keys - attention_q_len(p, b);

	if (j >= keys)
		return false;
	if (p->mask == ATTENTION_CAUSAL)
		return j <= own;
	if (p->mask == ATTENTION_WINDOW)
		return j >= own - (int64_t)p->window_left && j <= own + (int64_t)p->window_right;
	return true;
}

static bool listed(const uint32_t *list, uint32_t count, uint32_t block)
{
	for (uint32_t i = 0; i < count; i++)
		if (list[i] == block)
			return true;
	return false;
}

/* Each row's spans hold exactly the pairs that lists and mask keep, rise, and add up. */
static void check_kept(const struct attention_problem *p, const struct attention_blocks *l)
{
	static struct attention_keys span[MOST];
	double pairs = 0;

	assert_true(attention_attended_room(l) <= MOST);
	for (uint32_t b = 0; b < p->batch; b++)
		for (uint32_t h = 0; h < p->heads; h++)
			for (uint32_t i = 0; i < attention_q_len(p, b); i++) {
				struct attention_row row = attention_blocks_row(l, b, h, i / l->q_block);
				uint32_t count = attention_pairs_spans(p, l, b, h, i, span), at = 0;

				for (uint32_t j = 0; j < p->kv_len; j++) {
					bool keep = listed(row.full, row.full_count, j / l->k_block) ||
						    (listed(row.partial, row.partial_count, j / l->k_block) &&
						     seen(p, b, i, j));

					while (at < count && j >= span[at].to)
						at++;
					assert_int_equal(keep, at < count && j >= span[at].from);
					pairs += keep;
				}
				for (uint32_t s = 1; s < count; s++)
					assert_true(span[s].from > span[s - 1].to);
			}
	assert_true(attention_attended_pairs(p, l) == pairs);
}

static struct attention_blocks *built(const struct attention_problem *p, struct attention_pattern_of how)
{
	struct attention_blocks *l = NULL;
	struct error err = {0};

	assert_int_equal(attention_blocks_build(&l, p, &how, NULL, &err), STATUS_OK);
	assert_int_equal(attention_blocks_fit(l, p, "built", &err), STATUS_OK);
	return l;
}

static const uint32_t starts[] = {0, 5, 105, 105};
static const struct attention_problem problems[] = {
	{.batch = 1, .heads = 2, .kv_heads = 1, .q_len = 64, .kv_len = 64, .head_dim = 64},
	{.batch = 2, .heads = 1, .kv_heads = 1, .q_len = 100, .kv_len = 100, .head_dim = 64, .mask = ATTENTION_CAUSAL},
	{.batch = 1, .heads = 1, .kv_heads = 1, .q_len = 70, .kv_len = 33, .head_dim = 64, .mask = ATTENTION_CAUSAL},
	{.batch = 1, .heads = 1, .kv_heads = 1, .q_len = 33, .kv_len = 95, .head_dim = 64, .mask = ATTENTION_WINDOW, .window_left = 20, .window_right = 3},
	{.batch = 1, .heads = 1, .kv_heads = 1, .q_len = 96, .kv_len = 96, .head_dim = 64, .mask = ATTENTION_WINDOW, .window_left = ATTENTION_UNBOUNDED},
	{.batch = 3, .heads = 2, .kv_heads = 2, .q_len = 100, .kv_len = 100, .head_dim = 64, .mask = ATTENTION_CAUSAL, .q_starts = starts, .kv_starts = starts},
};
enum { PROBLEMS = sizeof(problems) / sizeof(problems[0]) };

/* All blocks that the mask leaves keep what the mask keeps, for every shape of blocks. */
static void test_mask(void **state)
{
	static const uint32_t sizes[][2] = {{16, 16}, {32, 16}, {16, 64}, {128, 128}};

	(void)state;
	for (size_t i = 0; i < PROBLEMS; i++)
		for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
			struct attention_blocks *l =
				built(&problems[i], (struct attention_pattern_of){ATTENTION_BY_MASK, sizes[s][0], sizes[s][1], 1, 0});

			check_kept(&problems[i], l);
			assert_true(attention_attended_pairs(&problems[i], l) == attention_pairs(&problems[i]));
			attention_blocks_free(l);
		}
	check_kept(&problems[0], &(struct attention_blocks){1, 1, 4, 4, 16, 16, (uint32_t[5]){0}, NULL, (uint32_t[5]){0}, NULL});
}

static void test_patterns(void **state)
{
	struct attention_problem large = {.batch = 2, .heads = 3, .kv_heads = 3, .q_len = 1024, .kv_len = 1024, .head_dim = 64};
	struct attention_pattern_of how = {ATTENTION_RANDOM, 16, 16, 0.25, 7};
	struct attention_blocks *l, *again;

	(void)state;
	for (size_t i = 0; i < PROBLEMS; i++)
		for (int pattern = ATTENTION_STRIDED; pattern <= ATTENTION_RANDOM; pattern++) {
			l = built(&problems[i], (struct attention_pattern_of){(enum attention_pattern)pattern, 16, 16, 0.4, 3});
			check_kept(&problems[i], l);
			attention_blocks_free(l);
		}
	l = built(&large, how);
	again = built(&large, how);
	assert_int_equal(l->batches * l->heads, 6); /* each its own */
	assert_true(attention_blocks_density(l) > 0.24 && attention_blocks_density(l) < 0.26);
	assert_memory_equal(l->full_begin, again->full_begin, (6 * 64 + 1) * sizeof(uint32_t));
	assert_memory_equal(l->full, again->full, l->full_begin[6 * 64] * sizeof(uint32_t));
	for (uint64_t i = 0, kept = 0; i < 6 * 64 * 64; i++) /* each by its own number */
		if (random_u32(7, ATTENTION_BLOCK_STREAM, i) < 0x1p30)
			assert_int_equal(l->full[kept++], i % 64);
	attention_blocks_free(l);
	how.seed = 8;
	l = built(&large, how);
	assert_true(l->full_begin[6 * 64] != again->full_begin[6 * 64] ||
		    memcmp(l->full, again->full, l->full_begin[6 * 64] * sizeof(uint32_t)) != 0);
	attention_blocks_free(l);
	attention_blocks_free(again);
	how.pattern = ATTENTION_STRIDED;
	l = built(&large, how);
	assert_int_equal(l->heads, 1); /* shared */
	assert_true(attention_blocks_density(l) == 0.25);
	assert_int_equal(attention_blocks_row(l, 1, 2, 5).full[1], 5); /* 1, 5, 9 .. */
	attention_blocks_free(l);
}

/* Hours' worth of blocks are refused before any is asked, and a stop ends what is being made. */
static void test_unbuilt(void **state)
{
	struct attention_problem p = {.batch = 16, .heads = 8, .kv_heads = 8, .q_len = 1 << 20, .kv_len = 1 << 20, .head_dim = 64};
	struct attention_pattern_of how = {ATTENTION_RANDOM, 16, 16, 0.5, 1};
	volatile sig_atomic_t stop = 1;
	struct attention_blocks *l = NULL;
	struct error err = {0};

	(void)state;
	assert_int_equal(attention_blocks_build(&l, &p, &how, NULL, &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "5.498e+11 blocks of 16 queries and 16 keys"));
	how.q_block = how.k_block = 1024;
	err = (struct error){0};
	assert_int_equal(attention_blocks_build(&l, &p, &how, &stop, &err), STATUS_CANCELLED);
	assert_int_equal(err.cause, CAUSE_INTERRUPTED);
	assert_null(l);
}

/* -- files -- */

/* Two rows of four key blocks: full 0, 2, partial 3; full none, partial 1. */
static const uint32_t good[] = {1, 1, 1, 2, 4, 16, 16, 0, 2, 1, 0, 2, 3, 0, 1, 1};
enum { NUMBERS = sizeof(good) / sizeof(good[0]) };

static enum status parse(struct attention_blocks **l, const uint32_t *numbers, size_t size, struct error *err)
{
	unsigned char bytes[256] = "assayblk";

	for (size_t i = 0; i < NUMBERS; i++)
		for (unsigned k = 0; k < 4; k++)
			bytes[8 + 4 * i + k] = (unsigned char)(numbers[i] >> 8 * k);
	*l = NULL;
	*err = (struct error){0};
	return attention_blocks_parse(l, "a.blocks", bytes, size, err);
}

static void test_file(void **state)
{
	const struct attention_problem p = {.batch = 3, .heads = 2, .kv_heads = 2, .q_len = 32, .kv_len = 64, .head_dim = 64};
	char path[PATH_MAX];
	struct attention_blocks *l;
	struct error err;
	struct attention_row row;
	unsigned char bytes[8 + 4 * NUMBERS] = "assayblk";
	FILE *f;

	assert_int_equal(parse(&l, good, 8 + sizeof(good), &err), STATUS_OK);
	row = attention_blocks_row(l, 2, 1, 0);
	assert_int_equal(row.full_count, 2);
	assert_int_equal(row.full[1], 2);
	assert_int_equal(row.partial_count, 1);
	assert_int_equal(attention_blocks_row(l, 0, 0, 1).partial[0], 1);
	assert_int_equal(attention_blocks_fit(l, &p, "a.blocks", &err), STATUS_OK);
	check_kept(&p, l);
	attention_blocks_free(l);
	for (size_t i = 0; i < NUMBERS; i++)
		bytes[8 + 4 * i] = (unsigned char)good[i];
	snprintf(path, sizeof(path), "%s/a.blocks", (char *)*state);
	f = fopen(path, "wb");
	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, sizeof(bytes), f), sizeof(bytes));
	fclose(f);
	assert_int_equal(attention_blocks_read(&l, path, &err), STATUS_OK);
	assert_int_equal(l->k_blocks, 4);
	attention_blocks_free(l);
	assert_int_not_equal(attention_blocks_read(&l, "/nowhere/a.blocks", &err), STATUS_OK);
	assert_non_null(strstr(err.text, "/nowhere/a.blocks"));
}

/* Each wrong number or end, and what is said of it. */
static void test_bad_files(void **state)
{
	static const struct {
		size_t at;
		uint32_t value;
		const char *says;
	} bad[] = {
		{0, 2, "a.blocks: offset 8: version 2"},
		{1, 0, "a.blocks: offset 12: the number of batches is 0"},
		{3, 3, "a.blocks: the file ends at offset 72, within (batch 0, head 0, query block 2)"},
		{3, 1u << 20, "a.blocks: the file ends at offset 72, too early for the 1048576 rows"},
		{4, 0, "a.blocks: offset 24: the number of key blocks is 0"},
		{4, 3, "a.blocks: offset 56: (batch 0, head 0, query block 0): key block 3 does not exist"},
		{4, 1u << 27, "a.blocks: offset 24: the number of key blocks is 134217728"},
		{5, 5000, "a.blocks: offset 28: the size of a query block is 5000"},
		{7, 1, "a.blocks: offset 36: the last number of the header must be 0"},
		{8, 0xffffffff, "a.blocks: the file ends at offset 72, within (batch 0, head 0, query block 0)"},
		{10, 3, "a.blocks: offset 52: (batch 0, head 0, query block 0): key block 2 follows a higher one"},
		{10, 2, "a.blocks: offset 52: (batch 0, head 0, query block 0): key block 2 is in the list twice"},
		{12, 2, "(batch 0, head 0, query block 0): key block 2 is in both lists, as full and as partial"},
		{14, 0, "a.blocks: offset 68: 4 extra bytes after the last row"},
		{15, 4, "a.blocks: offset 68: (batch 0, head 0, query block 1): key block 4 does not exist"},
	};
	uint32_t numbers[NUMBERS];
	struct attention_blocks *l;
	struct error err;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		memcpy(numbers, good, sizeof(good));
		numbers[bad[i].at] = bad[i].value;
		assert_int_equal(parse(&l, numbers, 8 + sizeof(good), &err), STATUS_BAD_INPUT);
		assert_null(l);
		if (!strstr(err.text, bad[i].says))
			fail_msg("\"%s\" lacks \"%s\"", err.text, bad[i].says);
	}
	for (size_t size = 0; size < 8 + sizeof(good); size++) {
		assert_int_equal(parse(&l, good, size, &err), STATUS_BAD_INPUT);
		assert_non_null(strstr(err.text, "a.blocks: the file ends at offset"));
	}
	assert_int_equal(attention_blocks_parse(&l, "b", "GGUF1234567890123456789012345678901234567890", 44, &err),
			 STATUS_BAD_INPUT);
}

/* Lists of another problem. */
static void test_misfits(void **state)
{
	static const struct {
		struct attention_problem p;
		const char *says;
	} bad[] = {
		{{.batch = 1, .heads = 1, .kv_heads = 1, .q_len = 33, .kv_len = 64, .head_dim = 64}, "sequences of 33 and 64 need 3 and 4 blocks"},
		{{.batch = 1, .heads = 1, .kv_heads = 1, .q_len = 32, .kv_len = 48, .head_dim = 64}, "4 blocks of 16 keys"},
		{{.batch = 1, .heads = 1, .kv_heads = 1, .q_len = 32, .kv_len = 64, .head_dim = 64, .mask = ATTENTION_WINDOW, .window_left = 40},
		 "(batch 0, head 0, query block 0): key block 0 is listed as full"},
		{{.batch = 1, .heads = 1, .kv_heads = 1, .q_len = 31, .kv_len = 64, .head_dim = 64, .mask = ATTENTION_WINDOW, .window_left = 16},
		 "is listed as full"},
	};
	struct attention_blocks *l;
	struct error err;

	(void)state;
	assert_int_equal(parse(&l, good, 8 + sizeof(good), &err), STATUS_OK);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		err = (struct error){0};
		assert_int_equal(attention_blocks_fit(l, &bad[i].p, "a.blocks", &err), STATUS_BAD_INPUT);
		if (!strstr(err.text, bad[i].says))
			fail_msg("\"%s\" lacks \"%s\"", err.text, bad[i].says);
	}
	l->heads = 2; /* nothing of the rows is looked at before */
	err = (struct error){0};
	assert_int_equal(attention_blocks_fit(l, &bad[0].p, "a.blocks", &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "lists for 1 batches and 2 heads"));
	l->heads = 1;
	attention_blocks_free(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mask), cmocka_unit_test(test_patterns), cmocka_unit_test(test_unbuilt), scratch_test(test_file),
		cmocka_unit_test(test_bad_files), cmocka_unit_test(test_misfits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
