/* SPDX-License-Identifier: Apache-2.0 */
/* Loops of kernel/mma/args.h: every thread's sum against mma_expect, a planted wrong one is seen, and what an SM
 * does a clock. */
#include "cases.h"
#include "probe/shared/mma.h"
#include <inttypes.h>

#define CASE_FLOP 0x1p26 /* of one launch on one SM */

/* p0: type; p1: 1 = thread 3's answer is planted wrong, 2 = one SM
 * alone. */
static const struct kernel_case cases[] = {
	{"mma", "fp64", 0, 0, 0, MMA_FP64, 0},
	{"mma", "fp32", 0, 0, 0, MMA_FP32, 0},
	{"mma", "tf32", 0, 0, 0, MMA_TF32, 0},
	{"mma", "fp16", 0, 0, 0, MMA_FP16, 0},
	{"mma", "bf16", 0, 0, 0, MMA_BF16, 0},
	{"mma", "e4m3", 0, 0, 0, MMA_E4M3, 0},
	{"mma", "e5m2", 0, 0, 0, MMA_E5M2, 0},
	{"mma", "int8", 0, 0, 0, MMA_INT8, 0},
	{"mma", "bf16, a wrong answer is seen", 0, 0, 0, MMA_BF16, 1},
	{"mma", "bf16, the SM asked for alone", 0, 0, 0, MMA_BF16, 2},
	{"mma", "fp32, the SM asked for alone", 0, 0, 0, MMA_FP32, 2},
};

static enum status inspect(const struct mma *x, const struct mma_record *r, const struct kernel_case *c,
			   struct error *err)
{
	uint64_t runs = 0, wrong = 0, sms = 0;

	for (unsigned i = 0; i < MMA_RECORDS; i++) {
		runs += r[i].runs;
		sms += r[i].runs > 0;
		wrong += r[i].wrong_threads;
	}
	if (c->p1 == 1)
		return wrong == runs && r[0].wrong_first == 4
			       ? STATUS_OK
			       : error_set(err, STATUS_MISMATCH,
					   "one wrong thread a block was planted, %" PRIu64
					   " found in %" PRIu64 " blocks",
					   wrong, runs);
	if (wrong)
		return error_set(err, STATUS_MISMATCH, "%" PRIu64 " threads have wrong sums", wrong);
	if (c->p1 == 2 && (!r[5].runs || runs != r[5].runs))
		return error_set(err, STATUS_MISMATCH, "asked for SM 5, %" PRIu64 " runs, %llu of them there",
				 runs, r[5].runs);
	if (c->p1 == 0 && (runs != x->blocks || sms != x->blocks))
		return error_set(err, STATUS_MISMATCH, "%u blocks, %" PRIu64 " runs on %" PRIu64 " SMs",
				 x->blocks, runs, sms);
	return STATUS_OK;
}

static enum status one(struct kit *k, const struct kernel_case *c, struct error *err)
{
	struct bench b = {.device = k->device, .stream = {k->stream}};
	struct mma_record *records = calloc(MMA_RECORDS, sizeof(*records));
	int64_t wrong = 12345;
	struct mma x = {0};
	enum status st = records ? mma_init(&x, &b, (enum mma_type)c->p0, CASE_FLOP, err)
				 : error_set(err, STATUS_NO_RESOURCE, "no memory for records");

	if (!st && c->p1 == 1)
		st = gpu_copy_to(k->device, x.expected + 3 * sizeof(wrong), &wrong, sizeof(wrong), err);
	if (!st)
		st = mma_launch(&x, c->p1 == 2 ? 5 : -1, err);
	if (!st)
		st = mma_read(&x, records, err);
	if (!st)
		st = inspect(&x, records, c, err);
	mma_release(&x);
	free(records);
	return st;
}

static void test(struct kit *k)
{
	kit_cases(k, &group_mma, one);
}

/* FLOP per clock and SM, all SMs at once and one alone: what the units do at most, with no clock in it. */
static enum status time_type(struct kit *k, enum mma_type type, struct error *err)
{
	struct bench b = {.device = k->device, .stream = {k->stream}};
	struct mma_record *records = calloc(MMA_RECORDS, sizeof(*records));
	struct mma x = {0};
	double best = 1e300, worst = 0;
	enum status st = records ? mma_init(&x, &b, type, 0x1p31, err)
				 : error_set(err, STATUS_NO_RESOURCE, "no memory for records");

	for (int i = 0; !st && i < 10; i++)
		st = mma_launch(&x, -1, err);
	if (!st)
		st = mma_read(&x, records, err);
	for (unsigned i = 0; !st && i < MMA_RECORDS; i++)
		if (records[i].runs) {
			double cycles = (double)records[i].cycles_sum / (double)records[i].runs;

			best = cycles < best ? cycles : best;
			worst = cycles > worst ? cycles : worst;
		}
	if (!st)
		printf("%-20s %8.1f FLOP/clk/SM fastest SM, %8.1f slowest\n", x.layout.instruction,
		       mma_flop(&x) / best, mma_flop(&x) / worst);
	mma_release(&x);
	free(records);
	return st;
}

static enum status time(struct kit *k, struct error *err)
{
	enum status st = STATUS_OK;

	for (int type = 0; !st && type < MMA_TYPE_COUNT; type++)
		if (!mma_supports((enum mma_type)type, gpu_cc(k->device), NULL))
			st = time_type(k, (enum mma_type)type, err);
	return st;
}

const struct kernel_group group_mma = {
	.name = "mma",
	.cases = cases,
	.count = sizeof(cases) / sizeof(cases[0]),
	.test = test,
	.time = time,
};
