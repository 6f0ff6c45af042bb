/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs of collectives and their checks (kernel/test_data/collective.cu). */
#include "cases.h"
#include "kernel/test_data/collective.h"
#include "probe/collective/expect.h"
#include "ref.h"
#include <inttypes.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

enum { FIRST = 1000003 };

/* p0: type; p1: ranks + 100 * rule + 1000 * wrong ones planted */
#define EACH_TYPE(X, why, count, p1)                                                                         \
	X(F64, why, count, p1), X(F32, why, count, p1), X(F16, why, count, p1), X(BF16, why, count, p1),     \
		X(E4M3, why, count, p1), X(E5M2, why, count, p1), X(S8, why, count, p1),                     \
		X(S32, why, count, p1)
#define FILL(type, why, count, p1)                                                                           \
	{                                                                                                    \
		"collective_fill", #type ", " why, count, 3, 128, OPERAND_##type, p1                         \
	}
#define CHECK(type, why, count, p1)                                                                          \
	{                                                                                                    \
		"collective_check", #type ", " why, count, 3, 128, OPERAND_##type, p1                        \
	}

static const struct kernel_case cases[] = {
	EACH_TYPE(FILL, "sum of 4", 10001, 4),
	EACH_TYPE(FILL, "minimum of 3", 5003, 103),
	EACH_TYPE(FILL, "maximum of 8", 5003, 208),
	EACH_TYPE(FILL, "average of 2", 5003, 302),
	EACH_TYPE(FILL, "moved", 5003, 404),
	{"collective_fill", "one element", 1, 1, 128, OPERAND_BF16, 17},
	{"collective_fill", "average of 3: one gives", 999, 1, 64, OPERAND_F16, 303},
	EACH_TYPE(CHECK, "sum of 4, right", 10001, 4),
	EACH_TYPE(CHECK, "sum of 17, three wrong", 10001, 3017),
	EACH_TYPE(CHECK, "minimum of 3, three wrong", 5003, 3103),
	EACH_TYPE(CHECK, "maximum of 8, three wrong", 5003, 3208),
	EACH_TYPE(CHECK, "average of 8, right", 5003, 308),
	EACH_TYPE(CHECK, "average of 3, three wrong", 5003, 3303),
	EACH_TYPE(CHECK, "moved, three wrong", 5003, 3404),
	{"collective_check", "one element, wrong", 1, 1, 128, OPERAND_F32, 1004},
};

static struct collective_inputs inputs_of(const struct kit *k, const struct kernel_case *c)
{
	return collective_inputs((enum operand_type)c->p0, (enum collective_rule)(c->p1 / 100 % 10),
				 c->p1 % 100, k->seed);
}

static struct collective_fill_args fill_args(const struct collective_inputs *in, const struct kernel_case *c,
					     unsigned rank)
{
	return (struct collective_fill_args){
		.count = c->count,
		.first = FIRST,
		.seed = in->seed,
		.type = in->type,
		.rule = in->rule,
		.ranks = in->ranks,
		.rank = rank,
		.to = 1,
		.slots = in->slots,
		.most = in->most,
		.unit = in->unit,
	};
}

static enum status launch(struct kit *k, const struct kernel_case *c, const void *args, struct error *err)
{
	struct gpu_kernel *kernel;
	enum status st = gpu_kernel(k->device, &kernel, "collective", c->entry, err);

	return st ? st : gpu_launch_1d(kernel, k->stream, c->blocks, c->threads, 0, args, err);
}

static enum status test_fill(struct kit *k, const struct kernel_case *c, struct error *err)
{
	struct collective_inputs in = inputs_of(k, c);
	uint64_t size = c->count * collective_type_bytes(in.type);
	struct collective_fill_args args = fill_args(&in, c, in.ranks - 1);
	struct guarded out = {0};
	void *found = calloc(1, size + 4), *expected = calloc(1, size + 4);
	enum status st = found && expected ? kit_alloc(k, &out, size, err)
					   : error_set(err, STATUS_NO_RESOURCE, "no memory to compare");

	if (st)
		goto out;
	args.out = (uintptr_t)expected;
	ref_run(c->entry, (struct ref_grid){1, 1}, &args);
	args.out = out.data;
	st = launch(k, c, &args, err);
	if (!st)
		st = gpu_copy_from(k->device, found, out.data, size, err);
	if (!st)
		st = kit_compare(c->entry, found, expected, size + 3, err);
	if (!st)
		st = kit_guards(k, &out, c->entry, err);
out:
	kit_free(k, &out);
	free(found);
	free(expected);
	return st;
}

/* The answer from what the references of all ranks give. */
static enum status answer(const struct collective_inputs *in, const struct kernel_case *c, char *out,
			  struct error *err)
{
	unsigned bytes = collective_type_bytes(in->type), ranks = in->rule == COLLECTIVE_MOVE ? 1 : in->ranks;
	char *one = calloc(c->count, bytes);
	double *sum = calloc(c->count, sizeof(*sum));

	if (!one || !sum) {
		free(one);
		free(sum);
		return error_set(err, STATUS_NO_RESOURCE, "no memory to compare");
	}
	for (unsigned r = 0; r < ranks; r++) {
		struct collective_fill_args args = fill_args(in, c, r);

		args.out = (uintptr_t)one;
		ref_run("collective_fill", (struct ref_grid){1, 1}, &args);
		for (uint64_t i = 0; i < c->count && in->rule != COLLECTIVE_MOVE; i++) {
			double v = ref_operand_get(in->type, one, i), s = sum[i];

			sum[i] = !r || (in->rule == COLLECTIVE_MIN && v < s) ||
						 (in->rule == COLLECTIVE_MAX && v > s)
					 ? v
				 : in->rule == COLLECTIVE_MIN || in->rule == COLLECTIVE_MAX ? s
											    : s + v;
		}
	}
	for (uint64_t i = 0; i < c->count && in->rule != COLLECTIVE_MOVE; i++)
		ref_operand_put(in->type, out, i, in->rule == COLLECTIVE_AVG ? sum[i] / in->ranks : sum[i]);
	if (in->rule == COLLECTIVE_MOVE)
		memcpy(out, one, c->count * bytes);
	free(one);
	free(sum);
	return STATUS_OK;
}

struct counts {
	struct operand_found found;
	unsigned long long suspect[2 * 32 + 1];
};

static struct collective_check_args check_args(const struct collective_inputs *in,
					       const struct kernel_case *c, uint64_t data, uint64_t counts)
{
	return (struct collective_check_args){
		.data = data,
		.found = counts + offsetof(struct counts, found),
		.suspect = counts + offsetof(struct counts, suspect),
		.count = c->count,
		.first = FIRST,
		.seed = in->seed,
		.type = in->type,
		.rule = in->rule,
		.ranks = in->ranks,
		.to = 1,
		.slots = in->slots,
		.most = in->most,
		.unit = in->unit,
		.ulp = in->ulp,
	};
}

/* Both must count what was planted, and count it alike. */
static enum status same(const struct counts *found, const struct counts *expected, unsigned planted,
			struct error *err)
{
	if (expected->found.wrong != planted)
		return error_set(err, STATUS_MISMATCH, "the reference counts %llu of %u planted",
				 expected->found.wrong, planted);
	if (memcmp(found, expected, sizeof(*found)))
		return error_set(err, STATUS_MISMATCH,
				 "found %llu wrong (%llu NaN), first %llu; the reference %llu (%llu), %llu; "
				 "or suspects differ",
				 found->found.wrong, found->found.nan, found->found.first,
				 expected->found.wrong, expected->found.nan, expected->found.first);
	return STATUS_OK;
}

static enum status test_check(struct kit *k, const struct kernel_case *c, struct error *err)
{
	struct collective_inputs in = inputs_of(k, c);
	unsigned bytes = collective_type_bytes(in.type), planted = c->p1 / 1000;
	uint64_t size = c->count * bytes;
	struct counts start = {.found.first = UINT64_MAX}, found, expected = start;
	struct guarded data = {0}, counts = {0};
	struct collective_check_args args;
	char *host = calloc(1, size);
	enum status st =
		host ? answer(&in, c, host, err) : error_set(err, STATUS_NO_RESOURCE, "no memory to compare");

	for (unsigned p = 0; p < planted && host; p++)
		host[(c->count - 1) / (p + 1) * bytes + bytes - 1] ^= 0x41;
	if (!st)
		st = kit_alloc(k, &data, size, err);
	if (!st)
		st = kit_alloc(k, &counts, sizeof(start), err);
	if (!st)
		st = gpu_copy_to(k->device, data.data, host, size, err);
	if (!st)
		st = gpu_copy_to(k->device, counts.data, &start, sizeof(start), err);
	if (st)
		goto out;
	args = check_args(&in, c, (uintptr_t)host, (uintptr_t)&expected);
	ref_run(c->entry, (struct ref_grid){c->blocks, c->threads}, &args);
	args = check_args(&in, c, data.data, counts.data);
	st = launch(k, c, &args, err);
	if (!st)
		st = gpu_copy_from(k->device, &found, counts.data, sizeof(found), err);
	if (!st)
		st = same(&found, &expected, planted, err);
	if (!st)
		st = kit_guards(k, &counts, c->entry, err);
out:
	kit_free(k, &data);
	kit_free(k, &counts);
	free(host);
	return st;
}

static enum status one(struct kit *k, const struct kernel_case *c, struct error *err)
{
	return strcmp(c->entry, "collective_fill") ? test_check(k, c, err) : test_fill(k, c, err);
}

static void test(struct kit *k)
{
	kit_cases(k, &group_collective, one);
}

const struct kernel_group group_collective = {
	.name = "collective",
	.cases = cases,
	.count = COUNT(cases),
	.test = test,
};
