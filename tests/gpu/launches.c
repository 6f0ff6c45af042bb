/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches of known work, for whoever looks on from outside: profilers beside each other and beside none
 * (tools/check-gpu, steps counters and launches).
 *
 * usage: launches counted ROUNDS [small]
 *                                   a copy, a BF16 product of 4096 by cuBLASLt and an attention of ours, each
 *                                   alone, so often: one kernel each
 *        launches product ROUNDS [small]   the product alone
 *        launches empty COUNT NS    so many kernels back to back that do nothing, or that stay for NS: the
 * host's and the whole time of one in ns, the median of five loops
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "gpu/attention/own_forward.h"
#include "gpu/matmul/matmul.h"
#include "gpu/memory/move.h"
#include "kernel/timing/empty.h"
#include "kernel/fatbin.h"
#include "kernel/timing/spin.h"

enum { LOOPS = 5, WARM = 1000, NO_GPU = 77, USAGE = 64 };
enum { FP16_SIXTEENTH = 0x2c002c00, BF16_ONE = 0x3f803f80 }; /* two of them */

struct sizes {
	uint64_t floats, side; /* copied; of a square product */
	uint32_t batch, heads, length;
};
static const struct sizes whole = {
	.floats = 256 << 20, .side = 4096, .batch = 16, .heads = 96, .length = 512};
static const struct sizes small = {.floats = 1 << 20, .side = 128, .batch = 1, .heads = 1, .length = 64};

struct launching {
	const struct sizes *size;
	struct gpu_device *d;
	struct gpu_stream *s;
	struct matmul *mm;
	struct matmul_plan *plan;
	struct attention_own *attention;
	gpu_ptr memory[4];
};

static enum status allocate(struct launching *l, unsigned i, uint64_t bytes, uint32_t word, struct error *err)
{
	enum status st = gpu_alloc(l->d, &l->memory[i], bytes, err);

	return st ? st : gpu_stream_fill32(l->s, l->memory[i], word, bytes / 4, err);
}

static enum status run_copy(struct launching *l, const struct move *copy, struct error *err)
{
	return move_launch(
		copy,
		&(struct move_arrays){.in0 = l->memory[0], .out = l->memory[1], .count = l->size->floats},
		l->s, err);
}

static enum status run_product(struct launching *l, struct error *err)
{
	return matmul_plan_enqueue(
		l->plan,
		&(struct matmul_operands){
			.a = l->memory[2], .b = l->memory[3], .d = l->memory[1], .alpha = 1},
		l->s, err);
}

static enum status run_attention(struct launching *l, struct error *err)
{
	const struct attention_operands o = {
		.q = l->memory[0], .k = l->memory[0], .v = l->memory[0], .o = l->memory[1]};

	return attention_own_enqueue(l->attention, &o, l->s, err);
}

static enum status prepare_product(struct launching *l, struct error *err)
{
	const struct matmul_shape product = {.a = MATMUL_BF16,
					     .b = MATMUL_BF16,
					     .d = MATMUL_BF16,
					     .compute = MATMUL_COMPUTE_F32,
					     .m = l->size->side,
					     .n = l->size->side,
					     .k = l->size->side};
	enum status st = STATUS_OK;

	for (unsigned i = 2; i < 4 && !st; i++)
		st = allocate(l, i, l->size->side * l->size->side * 2, BF16_ONE, err);
	if (!st)
		st = matmul_open(&l->mm, l->d, NULL, 0, err);
	if (!st)
		st = matmul_plan_create(&l->plan, l->mm, &product, err);
	if (!st)
		st = matmul_plan_first(l->plan, err);
	return st;
}

static enum status prepare(struct launching *l, struct move *copy, struct error *err)
{
	const struct attention_problem attention = {.type = ATTENTION_F16,
						    .out_type = ATTENTION_F16,
						    .batch = l->size->batch,
						    .heads = l->size->heads,
						    .kv_heads = l->size->heads,
						    .q_len = l->size->length,
						    .kv_len = l->size->length,
						    .head_dim = 64};
	unsigned shapes;
	enum status st = allocate(l, 0, l->size->floats * sizeof(float), FP16_SIXTEENTH, err);

	if (!st)
		st = allocate(l, 1, l->size->floats * sizeof(float), 0, err);
	if (!st)
		st = move_prepare(copy, l->d, MOVE_COPY, move_shapes(l->d, MOVE_COPY, &shapes),
				  l->size->floats, err);
	if (!st)
		st = prepare_product(l, err);
	if (!st)
		st = attention_own_create(&l->attention, l->d, &attention, err);
	return st;
}

static enum status products(struct launching *l, unsigned long rounds, struct error *err)
{
	enum status st = allocate(l, 1, l->size->side * l->size->side * 2, 0, err);

	if (!st)
		st = prepare_product(l, err);
	for (unsigned long i = 0; i < rounds && !st; i++) {
		st = run_product(l, err);
		if (!st)
			st = gpu_stream_wait(l->s, err);
	}
	return st;
}

static enum status counted(struct launching *l, unsigned long rounds, struct error *err)
{
	struct move copy;
	enum status st = prepare(l, &copy, err);

	for (unsigned long i = 0; i < rounds && !st; i++) {
		st = run_copy(l, &copy, err);
		if (!st)
			st = gpu_stream_wait(l->s, err);
		if (!st)
			st = run_product(l, err);
		if (!st)
			st = gpu_stream_wait(l->s, err);
		if (!st)
			st = run_attention(l, err);
		if (!st)
			st = gpu_stream_wait(l->s, err);
	}
	return st;
}

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int by_value(const void *a_, const void *b_)
{
	const double *a = a_, *b = b_;

	return (*a > *b) - (*a < *b);
}

static enum status loop(struct launching *l, struct gpu_kernel *k, const void *args, unsigned long count,
			double *host_ns, double *all_ns, struct error *err)
{
	double from = now_ns();
	enum status st = STATUS_OK;

	for (unsigned long i = 0; i < count && !st; i++)
		st = gpu_launch_1d(k, l->s, 1, 32, 0, args, err);
	*host_ns = (now_ns() - from) / (double)count;
	if (!st)
		st = gpu_stream_wait(l->s, err);
	*all_ns = (now_ns() - from) / (double)count;
	return st;
}

static enum status empty(struct launching *l, unsigned long count, unsigned long ns, struct error *err)
{
	const struct spin_args spin = {.ns = ns};
	const struct empty_args nothing = {0};
	const void *args = ns ? (const void *)&spin : &nothing;
	double host_ns[LOOPS], all_ns[LOOPS];
	struct gpu_kernel *k;
	enum status st = gpu_kernel(l->d, &k, ns ? "spin" : "empty", ns ? "spin" : "empty", err);

	if (!st)
		st = loop(l, k, args, WARM, host_ns, all_ns, err);
	for (unsigned i = 0; i < LOOPS && !st; i++)
		st = loop(l, k, args, count / LOOPS, &host_ns[i], &all_ns[i], err);
	if (st)
		return st;
	qsort(host_ns, LOOPS, sizeof(*host_ns), by_value);
	qsort(all_ns, LOOPS, sizeof(*all_ns), by_value);
	printf("%.1f %.1f\n", host_ns[LOOPS / 2], all_ns[LOOPS / 2]);
	return STATUS_OK;
}

static void release(struct launching *l)
{
	attention_own_destroy(&l->attention);
	matmul_plan_destroy(&l->plan);
	matmul_close(&l->mm);
	gpu_stream_destroy(&l->s);
	for (unsigned i = 0; l->d && i < sizeof(l->memory) / sizeof(l->memory[0]); i++)
		gpu_free(l->d, &l->memory[i]);
	gpu_close(&l->d);
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "";
	unsigned long number = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
	bool is_empty = argc == 4 && !strcmp(what, "empty") && number >= LOOPS;
	bool rounds = number && (argc == 3 || (argc == 4 && !strcmp(argv[3], "small")));
	bool is_counted = rounds && !strcmp(what, "counted"), is_product = rounds && !strcmp(what, "product");
	struct launching l = {.size = argc == 4 ? &small : &whole};
	struct error err = {0};
	enum status st;

	if (!is_empty && !is_counted && !is_product) {
		fprintf(stderr, "usage: launches counted|product ROUNDS [small] | launches empty COUNT NS\n");
		return USAGE;
	}
	if (!kernel_fatbin_at(0)) {
		puts("launches: built without kernels: no nvcc at build time");
		return NO_GPU;
	}
	st = gpu_open(&l.d, NULL, &err);
	if (!st)
		st = gpu_stream_create(l.d, &l.s, &err);
	if (!st)
		st = is_empty	  ? empty(&l, number, strtoul(argv[3], NULL, 10), &err)
		     : is_product ? products(&l, number, &err)
				  : counted(&l, number, &err);
	if (st)
		fprintf(stderr, "launches: %s\n", err.text);
	release(&l);
	return st != STATUS_OK;
}
