/* SPDX-License-Identifier: Apache-2.0 */
/* Fills, checks, sums, hash, comparison, permutation: kernel/test_data/numbers.cu. Planted faults must be found where they
 * are. */
#include "cases.h"
#include "kernel/test_data/numbers.h"
#include "kernel/memory/stream.h"
#include "ref.h"
#include <inttypes.h>
#include <math.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* checks and compare: p0 is the number of planted faults; sum_integers: 1 sums products */
static const struct kernel_case cases[] = {
	{"fill_integers", "one element", 1, 1, 32, 0, 0},
	{"fill_integers", "a word more than a block of the generator", 17, 1, 32, 0, 0},
	{"fill_integers", "several turns", 100003, 5, 128, 0, 0},
	{"fill_uniform", "one element", 1, 1, 32, 0, 0},
	{"fill_uniform", "several turns", 100003, 5, 128, 0, 0},
	{"fill_words", "one past a block of the generator", 5, 1, 32, 0, 0},
	{"fill_words", "several turns", 1 << 18, 7, 256, 0, 0},
	{"check_linear", "all right", 100003, 5, 128, 0, 0},
	{"check_linear", "one wrong element", 100003, 5, 128, 1, 0},
	{"check_linear", "wrong elements and a NaN", 65536, 3, 256, 7, 0},
	{"sum_integers", "one stream", 100003, 5, 128, 0, 0},
	{"sum_integers", "products of two", 100003, 5, 128, 1, 0},
	{"hash", "one word", 1, 1, 32, 0, 0},
	{"hash", "several turns", 100003, 5, 128, 0, 0},
	{"compare", "equal", 100003, 5, 128, 0, 0},
	{"compare", "three words differ", 100003, 5, 128, 3, 0},
	{"permute", "one", 1, 1, 32, 0, 0},
	{"permute", "not a power of two", 1000, 3, 64, 0, 0},
	{"permute", "past a power of four", 65537, 9, 128, 0, 0},
};

static enum status launch(struct kit *k, const struct kernel_case *c, const void *args, struct error *err)
{
	struct gpu_kernel *kernel;
	enum status st = gpu_kernel(k->device, &kernel, "data", c->entry, err);

	return st ? st : gpu_launch_1d(kernel, k->stream, c->blocks, c->threads, 0, args, err);
}

/* Fills and permute: words out, compared with the reference's. */
static enum status test_out(struct kit *k, const struct kernel_case *c, struct error *err)
{
	struct guarded out = {0};
	uint32_t *found = calloc(c->count, 4), *expected = calloc(c->count, 4);
	struct fill_args fill = {.count = c->count, .seed = k->seed, .stream = 9, .scale = 0.75f};
	struct permute_args permute = {.count = c->count, .seed = k->seed};
	void *args = c->entry[0] == 'p' ? (void *)&permute : (void *)&fill;
	enum status st = kit_alloc(k, &out, c->count * 4, err);

	if (!st && (!found || !expected))
		st = error_set(err, STATUS_NO_RESOURCE, "no memory to compare");
	if (st)
		goto out;
	fill.out = permute.out = (uintptr_t)expected;
	if (!ref_run(c->entry, (struct ref_grid){c->blocks, c->threads}, args))
		st = error_set(err, STATUS_BUG, "%s has no reference", c->entry);
	fill.out = permute.out = out.data;
	if (!st)
		st = launch(k, c, args, err);
	if (!st)
		st = gpu_copy_from(k->device, found, out.data, c->count * 4, err);
	if (!st)
		st = kit_compare(c->entry, found, expected, c->count * 4, err);
	if (!st)
		st = kit_guards(k, &out, c->entry, err);
out:
	kit_free(k, &out);
	free(found);
	free(expected);
	return st;
}

/* Elements at p0 places get wrong; the first of several is NaN. */
static void plant(float *x, const struct kernel_case *c)
{
	for (unsigned i = 0; i < c->p0; i++)
		x[c->count / (i + 2)] = i ? 1000.5f : (c->p0 > 1 ? NAN : 0.5f);
}

static enum status same_record(const struct compare_record *found, const struct compare_record *expected,
			       struct error *err)
{
	if (found->count != expected->count || found->nan != expected->nan ||
	    found->first != expected->first || found->sum != expected->sum)
		return error_set(err, STATUS_MISMATCH,
				 "found %" PRIu64 " wrong (%" PRIu64 " NaN), first %" PRIu64 ", sum %" PRId64
				 "; the reference %" PRIu64 " (%" PRIu64 "), %" PRIu64 ", %" PRId64,
				 found->count, found->nan, found->first, found->sum, expected->count,
				 expected->nan, expected->first, expected->sum);
	return STATUS_OK;
}

union record_args {
	struct check_args check;
	struct sum_args sum;
	struct hash_args hash;
};

static void point(union record_args *args, const struct kernel_case *c, const struct kit *k, uint64_t data,
		  uint64_t other, uint64_t record)
{
	if (!strcmp(c->entry, "check_linear"))
		args->check = (struct check_args){data, record, c->count, k->seed, 1, 2, 1, 3, 0, 0};
	else if (!strcmp(c->entry, "sum_integers"))
		args->sum = (struct sum_args){record, c->count, k->seed, 1, 2, c->p0, 0};
	else
		args->hash = (struct hash_args){data, other, record, c->count};
}

/* Kernels that leave a record: the same record as the reference's, on the same data with the same planted
 * faults. */
static enum status test_record(struct kit *k, const struct kernel_case *c, struct error *err)
{
	struct guarded data = {0}, other = {0}, record = {0};
	struct compare_record found = {.first = UINT64_MAX}, expected = found;
	float *host = calloc(2 * c->count, 4), *host_other = host ? host + c->count : NULL;
	union record_args args;
	enum status st = kit_alloc(k, &data, c->count * 4, err);

	if (!st)
		st = kit_alloc(k, &other, c->count * 4, err);
	if (!st)
		st = kit_alloc(k, &record, sizeof(found), err);
	if (!st && !host)
		st = error_set(err, STATUS_NO_RESOURCE, "no memory to compare");
	if (st)
		goto out;
	for (uint64_t i = 0; i < c->count; i++)
		host[i] = host_other[i] =
			(float)(ref_integer(k->seed, 1, i) + 3 * ref_integer(k->seed, 2, i));
	if (strcmp(c->entry, "sum_integers"))
		plant(host, c);
	point(&args, c, k, (uintptr_t)host, (uintptr_t)host_other, (uintptr_t)&expected);
	if (!ref_run(c->entry, (struct ref_grid){c->blocks, c->threads}, &args))
		st = error_set(err, STATUS_BUG, "%s has no reference", c->entry);
	point(&args, c, k, data.data, other.data, record.data);
	if (!st)
		st = gpu_copy_to(k->device, data.data, host, c->count * 4, err);
	if (!st)
		st = gpu_copy_to(k->device, other.data, host_other, c->count * 4, err);
	if (!st)
		st = gpu_copy_to(k->device, record.data, &found, sizeof(found), err);
	if (!st)
		st = launch(k, c, &args, err);
	if (!st)
		st = gpu_copy_from(k->device, &found, record.data, sizeof(found), err);
	if (!st)
		st = same_record(&found, &expected, err);
	if (!st)
		st = kit_guards(k, &record, c->entry, err);
out:
	kit_free(k, &data);
	kit_free(k, &other);
	kit_free(k, &record);
	free(host);
	return st;
}

static enum status one(struct kit *k, const struct kernel_case *c, struct error *err)
{
	return !strncmp(c->entry, "fill", 4) || !strcmp(c->entry, "permute") ? test_out(k, c, err)
									     : test_record(k, c, err);
}

static void test(struct kit *k)
{
	kit_cases(k, &group_data, one);
}

const struct kernel_group group_data = {.name = "data", .cases = cases, .count = COUNT(cases), .test = test};
