/* SPDX-License-Identifier: Apache-2.0 */
#include "cases.h"
#include "kernel/test_data/gemm.h"
#include "ref.h"
#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { ROWS = 130, STREAM = 7, DENSE_BITS = 5 };
#define FILL(type, why)                                                                                      \
	{"operand_fill", why " random", 100003, 0, 128, type, OPERAND_RANDOM},                               \
	{                                                                                                    \
		"operand_fill", why " sparse", 100003, 0, 256, type, OPERAND_SPARSE                          \
	}

/* p0: type; p1: kind of data, or how many elements are planted wrong (the last of several NaN). */
static const struct kernel_case cases[] = {
	FILL(OPERAND_F64, "fp64"),
	FILL(OPERAND_F32, "fp32"),
	FILL(OPERAND_F16, "fp16"),
	FILL(OPERAND_BF16, "bf16"),
	FILL(OPERAND_E4M3, "e4m3"),
	FILL(OPERAND_E5M2, "e5m2"),
	FILL(OPERAND_S8, "int8"),
	{"operand_fill", "one element", 1, 0, 32, OPERAND_BF16, OPERAND_RANDOM},
	{"operand_fill", "bf16 dense", 100003, 0, 128, OPERAND_BF16, OPERAND_DENSE},
	{"operand_fill", "e4m3 dense", 4099, 0, 64, OPERAND_E4M3, OPERAND_DENSE},
	{"operand_fill", "int8 zeros", 4099, 0, 64, OPERAND_S8, OPERAND_ZEROS},
	{"operand_sums", "fp64", 1030, 0, 0, OPERAND_F64, 0},
	{"operand_sums", "fp32", 1030, 0, 0, OPERAND_F32, 0},
	{"operand_sums", "fp16", 1030, 0, 0, OPERAND_F16, 0},
	{"operand_sums", "bf16", 1030, 0, 0, OPERAND_BF16, 0},
	{"operand_sums", "int32", 1030, 0, 0, OPERAND_S32, 0},
	{"operand_sums", "one column", 1, 0, 0, OPERAND_F32, 0},
	{"operand_sums", "one past a block", 1025, 0, 0, OPERAND_BF16, 0},
	{"operand_sums", "a wrong element", 1030, 0, 0, OPERAND_BF16, 1},
	{"operand_sums", "wrong elements and a NaN", 1030, 0, 0, OPERAND_F32, 3},
	{"operand_compare", "fp64 equal", 100003, 7, 128, OPERAND_F64, 0},
	{"operand_compare", "fp32 wrong elements and a NaN", 100003, 7, 128, OPERAND_F32, 3},
	{"operand_compare", "fp16 a wrong element", 4099, 1, 128, OPERAND_F16, 1},
	{"operand_compare", "bf16 wrong elements and a NaN", 4099, 3, 128, OPERAND_BF16, 4},
	{"operand_compare", "int32 a wrong element", 4099, 3, 64, OPERAND_S32, 1},
	{"operand_judge", "all as expected", 1001, 2, 128, 0, 0},
	{"operand_judge", "wrong sums and odd elements", 1001, 2, 128, 0, 5},
	{"operand_memory", "two passes", 100002, 7, 128, 0, 0},
	{"operand_memory", "words that changed between passes", 100002, 7, 128, 0, 3},
};

static const unsigned bytes_of[] = {8, 4, 2, 2, 1, 1, 1, 4};

static enum status launch(struct kit *k, const char *entry, const unsigned grid[3], unsigned threads,
			  const void *args, struct error *err)
{
	const unsigned block[3] = {threads, 1, 1};
	struct gpu_kernel *kernel;
	enum status st = gpu_kernel(k->device, &kernel, "operand", entry, err);

	return st ? st : gpu_launch(kernel, k->stream, grid, block, 0, args, err);
}

static void reference(const char *entry, const void *args)
{
	ref_run(entry, (struct ref_grid){1, 1}, args);
}

static enum status test_fill(struct kit *k, const struct kernel_case *c, struct error *err)
{
	uint64_t size = c->count * bytes_of[c->p0];
	unsigned grid[3] = {(unsigned)((c->count + 3) / 4 / c->threads + 1), 1, 1};
	struct operand_fill_args args = {.count = c->count,
					 .seed = k->seed,
					 .stream = STREAM,
					 .type = c->p0,
					 .data = c->p1,
					 .bits = DENSE_BITS};
	struct guarded out = {0};
	void *found = calloc(1, size), *expected = calloc(1, size);
	enum status st = found && expected ? kit_alloc(k, &out, size, err)
					   : error_set(err, STATUS_NO_RESOURCE, "no memory to compare");

	if (st)
		goto out;
	args.out = (uintptr_t)expected;
	ref_run(c->entry, (struct ref_grid){grid[0], c->threads}, &args);
	args.out = out.data;
	st = launch(k, c->entry, grid, c->threads, &args, err);
	if (!st)
		st = gpu_copy_from(k->device, found, out.data, size, err);
	if (!st)
		st = kit_compare(c->entry, found, expected, size, err);
	if (!st)
		st = kit_guards(k, &out, c->entry, err);
out:
	kit_free(k, &out);
	free(found);
	free(expected);
	return st;
}

/* Integers between -7 and 7 by position, then p1 wrong ones; the last of several is NaN where the type has
 * one. */
static void make(const struct kernel_case *c, void *to, uint64_t count, bool planted)
{
	for (uint64_t i = 0; i < count; i++)
		ref_operand_put(c->p0, to, i, (double)(i * 5 % 15) - 7);
	for (unsigned i = 0; planted && i < c->p1; i++)
		ref_operand_put(c->p0, to, count / (i + 2),
				i && i + 1 == c->p1 && c->p0 != OPERAND_S32 ? NAN : 100000.0);
}

/* cw, wc, then odd_row, odd_column, one after the other. */
static enum status test_sums(struct kit *k, const struct kernel_case *c, struct error *err)
{
	uint64_t columns = c->count, step = columns + 5, count = ROWS * step, size = count * bytes_of[c->p0];
	uint64_t sides = ROWS + columns, out_size = sides * (2 * 8 + 4);
	unsigned grid[3] = {(unsigned)(columns / OPERAND_SUMS_COLUMNS + 1), ROWS / OPERAND_SUMS_ROWS + 1, 1};
	struct guarded in = {0}, out = {0};
	char *data = calloc(1, size), *found = calloc(1, out_size), *expected = calloc(1, out_size);
	uint64_t base[] = {(uintptr_t)expected, 0};
	enum status st = data && found && expected
				 ? kit_alloc(k, &in, size, err)
				 : error_set(err, STATUS_NO_RESOURCE, "no memory to compare");

	if (!st)
		st = kit_alloc(k, &out, out_size, err);
	if (st)
		goto out;
	make(c, data, count, true);
	st = gpu_copy_to(k->device, in.data, data, size, err);
	if (!st)
		st = gpu_copy_to(k->device, out.data, found, out_size, err); /* zeros */
	base[1] = out.data;
	for (int i = 0; !st && i < 2; i++) {
		struct operand_sums_args args = {.c = i ? in.data : (uintptr_t)data,
						 .cw = base[i],
						 .wc = base[i] + (uint64_t)2 * ROWS * 8,
						 .odd_row = base[i] + 2 * sides * 8,
						 .odd_column = base[i] + 2 * sides * 8 + (uint64_t)ROWS * 4,
						 .rows = ROWS,
						 .columns = columns,
						 .row_step = step,
						 .type = c->p0,
						 .limit = 1000};

		if (i)
			st = launch(k, c->entry, grid, OPERAND_SUMS_THREADS, &args, err);
		else
			reference(c->entry, &args);
	}
	if (!st)
		st = gpu_copy_from(k->device, found, out.data, out_size, err);
	if (!st)
		st = kit_compare(c->entry, found, expected, out_size, err);
	if (!st)
		st = kit_guards(k, &out, c->entry, err);
out:
	kit_free(k, &in);
	kit_free(k, &out);
	free(data);
	free(found);
	free(expected);
	return st;
}

static enum status same(const struct operand_found *found, const struct operand_found *expected,
			struct error *err)
{
	if (found->wrong == expected->wrong && found->nan == expected->nan && found->first == expected->first)
		return STATUS_OK;
	return error_set(err, STATUS_MISMATCH,
			 "found %llu wrong (%llu NaN), first %llu; the reference %llu (%llu), %llu",
			 found->wrong, found->nan, found->first, expected->wrong, expected->nan,
			 expected->first);
}

/* Three arrays go to the device in one piece: `one`, `two`, then the record of what was found. */
struct trio {
	char *host, *expected;
	struct guarded device;
	uint64_t one, two, size;
};

static enum status trio_make(struct kit *k, struct trio *t, uint64_t one, uint64_t two, struct error *err)
{
	*t = (struct trio){.one = (one + 15) / 16 * 16, .two = (two + 15) / 16 * 16};
	t->size = t->one + t->two + sizeof(struct operand_found);
	t->host = calloc(1, t->size);
	t->expected = calloc(1, t->size);
	if (!t->host || !t->expected)
		return error_set(err, STATUS_NO_RESOURCE, "no memory to compare");
	((struct operand_found *)(t->host + t->one + t->two))->first = UINT64_MAX;
	return kit_alloc(k, &t->device, t->size, err);
}

/* Both sides from the same start: `launched` on the device, the reference on `expected`; records and data
 * must agree. */
static enum status trio_check(struct kit *k, struct trio *t, const struct kernel_case *c, struct error *err)
{
	enum status st = gpu_copy_from(k->device, t->host, t->device.data, t->size, err);

	if (!st)
		st = same((void *)(t->host + t->one + t->two), (void *)(t->expected + t->one + t->two), err);
	if (!st)
		st = kit_compare(c->entry, t->host, t->expected, t->one + t->two, err);
	return st ? st : kit_guards(k, &t->device, c->entry, err);
}

static void trio_free(struct kit *k, struct trio *t)
{
	kit_free(k, &t->device);
	free(t->host);
	free(t->expected);
}

static enum status test_compare(struct kit *k, const struct kernel_case *c, struct error *err)
{
	uint64_t size = c->count * bytes_of[c->p0];
	const unsigned grid[3] = {c->blocks, 1, 1};
	struct trio t;
	enum status st = trio_make(k, &t, size, size, err);

	if (st)
		goto out;
	make(c, t.host, c->count, true);
	make(c, t.host + t.one, c->count, false);
	memcpy(t.expected, t.host, t.size);
	st = gpu_copy_to(k->device, t.device.data, t.host, t.size, err);
	for (int i = 0; !st && i < 2; i++) {
		uint64_t base = i ? t.device.data : (uintptr_t)t.expected;
		struct operand_compare_args args = {.a = base,
						    .b = base + t.one,
						    .found = base + t.one + t.two,
						    .count = c->count,
						    .tolerance = 0.5,
						    .type = c->p0};

		if (i)
			st = launch(k, c->entry, grid, c->threads, &args, err);
		else
			reference(c->entry, &args);
	}
	if (!st)
		st = trio_check(k, &t, c, err);
out:
	trio_free(k, &t);
	return st;
}

/* one: sums and odd; two: expected. */
static enum status test_judge(struct kit *k, const struct kernel_case *c, struct error *err)
{
	uint64_t n = c->count;
	const unsigned grid[3] = {c->blocks, 1, 1};
	struct trio t;
	enum status st = trio_make(k, &t, n * 20, n * 16, err);

	if (st)
		goto out;
	for (uint64_t i = 0; i < 2 * n; i++)
		((uint64_t *)t.host)[i] = ((uint64_t *)(t.host + t.one))[i] = i * 0x123456789u;
	for (unsigned i = 0; i < c->p1; i++) {
		((uint64_t *)t.host)[n / (i + 2)]++;
		((uint32_t *)(t.host + n * 16))[i] = i;
	}
	memcpy(t.expected, t.host, t.size);
	st = gpu_copy_to(k->device, t.device.data, t.host, t.size, err);
	for (int i = 0; !st && i < 2; i++) {
		uint64_t base = i ? t.device.data : (uintptr_t)t.expected;
		struct operand_judge_args args = {.sums = base,
						  .expected = base + t.one,
						  .odd = base + n * 16,
						  .found = base + t.one + t.two,
						  .count = n};

		if (i)
			st = launch(k, c->entry, grid, c->threads, &args, err);
		else
			reference(c->entry, &args);
	}
	if (!st)
		st = trio_check(k, &t, c, err);
out:
	trio_free(k, &t);
	return st;
}

/* Two passes; between them p1 words change. one: the words; two: the pass counter. */
static enum status test_memory(struct kit *k, const struct kernel_case *c, struct error *err)
{
	const unsigned grid[3] = {c->blocks, 1, 1}, single[3] = {1, 1, 1};
	struct trio t;
	enum status st = trio_make(k, &t, c->count * 8, 8, err);

	if (!st) {
		memcpy(t.expected, t.host, t.size);
		st = gpu_copy_to(k->device, t.device.data, t.host, t.size, err);
	}
	for (int step = 0; !st && step < 4; step++) {
		uint64_t base = step % 2 ? t.device.data : (uintptr_t)t.expected;
		struct operand_memory_args args = {.words = base,
						   .pass = base + t.one,
						   .found = base + t.one + t.two,
						   .count = c->count};

		for (unsigned i = 0; !st && step >= 2 && i < c->p1; i++) {
			uint64_t wrong = i, at = c->count / (i + 2) * 8;

			if (step == 2)
				memcpy(t.expected + at, &wrong, 8);
			else
				st = gpu_copy_to(k->device, t.device.data + at, &wrong, 8, err);
		}
		if (step % 2 == 0) {
			reference("operand_memory", &args);
			reference("operand_turn", &args);
			continue;
		}
		if (!st)
			st = launch(k, "operand_memory", grid, c->threads, &args, err);
		if (!st)
			st = launch(k, "operand_turn", single, 1, &args, err);
	}
	if (!st)
		st = trio_check(k, &t, c, err);
	trio_free(k, &t);
	return st;
}

static enum status one(struct kit *k, const struct kernel_case *c, struct error *err)
{
	switch (c->entry[8]) {
	case 'f':
		return test_fill(k, c, err);
	case 's':
		return test_sums(k, c, err);
	case 'c':
		return test_compare(k, c, err);
	case 'j':
		return test_judge(k, c, err);
	default:
		return test_memory(k, c, err);
	}
}

static void test(struct kit *k)
{
	kit_cases(k, &group_operand, one);
}

const struct kernel_group group_operand = {
	.name = "operand",
	.cases = cases,
	.count = sizeof(cases) / sizeof(cases[0]),
	.test = test,
};
