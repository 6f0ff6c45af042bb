/* SPDX-License-Identifier: Apache-2.0 */
/* The streams, gather and chase: kernel/memory/stream.cu, memory_bulk.cu, as gpu/move launches them. */
#include "cases.h"
#include "core/math/random.h"
#include "kernel/test_data/numbers.h"
#include "kernel/memory/stream.h"
#include "move_ops.h"
#include "ref.h"
#include <inttypes.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Each runs with every operation and every rung; blocks 0: one tile a block. bulk: p0 tile bytes, p1 stages.
 */
static const struct kernel_case cases[] = {
	{"stream", "a single float", 1, 1, 128, 0, 0},
	{"stream", "no whole vector", 3, 2, 128, 0, 0},
	{"stream", "one vector", 4, 1, 128, 0, 0},
	{"stream", "one past a block", 513, 1, 128, 0, 0},
	{"stream", "one block walks all", 65536, 1, 256, 0, 0},
	{"stream", "several turns and a rest of 3", 100003, 7, 256, 0, 0},
	{"stream", "more blocks than work", 1000, 64, 256, 0, 0},
	{"stream", "whole tiles, a tile a block", 1 << 20, 0, 256, 0, 0},
	{"stream", "a tile a block and a rest of 1", (1 << 20) + 1, 0, 512, 0, 0},
	{"stream", "largest block", (1 << 18) + 2, 0, 512, 0, 0},
	{"bulk", "one short tile", 4, 1, 96, 1024, 1},
	{"bulk", "one stage: load, store, load again", 8192, 1, 96, 1024, 1},
	{"bulk", "two stages and a short last tile", 8196, 1, 96, 1024, 2},
	{"bulk", "more stages than tiles", 1024, 2, 160, 1024, 8},
	{"bulk", "all stages, many turns", 1 << 18, 3, 288, 1024, MEMORY_STAGES_MAX},
	{"bulk", "uneven turns over the blocks", 100004, 7, 288, 2048, 4},
	{"bulk", "big tiles over the whole device", 1 << 22, 132, 288, 16384, 4},
	{"bulk", "a group a block, the last one short", 100004, 0, 288, 2048, 4},
	{"bulk", "a group of one", 65536, 0, 96, 1024, 1},
	{"gather", "fewer than a vector", 3, 1, 128, 0, 0},
	{"gather", "one past a block", 513, 1, 128, 0, 0},
	{"gather", "several turns and a rest", (1 << 18) + 3, 33, 256, 0, 0},
	{"chase", "a ring of one", 1, 1, 32, 5, 0},
	{"chase", "once around and on", 1000, 1, 32, 1234, 0},
	{"chase", "a part of a large ring", 1 << 16, 1, 32, 4096, 0},
};

struct arrays {
	struct guarded in0, in1, out, partial;
	float *host[3]; /* in0, in1, out as the reference leaves it */
	double *host_partial;
	uint64_t count, blocks;
};

static void arrays_free(struct kit *k, struct arrays *a)
{
	kit_free(k, &a->in0);
	kit_free(k, &a->in1);
	kit_free(k, &a->out);
	kit_free(k, &a->partial);
	for (int i = 0; i < 3; i++)
		free(a->host[i]);
	free(a->host_partial);
	*a = (struct arrays){0};
}

static enum status arrays_make(struct kit *k, struct arrays *a, uint64_t count, struct error *err)
{
	struct guarded *const device[] = {&a->in0, &a->in1, &a->out};
	enum status st = STATUS_OK;

	*a = (struct arrays){.count = count, .blocks = move_blocks_max(count)};
	for (unsigned i = 0; i < 3 && !st; i++) {
		a->host[i] = calloc(count, sizeof(float));
		if (!a->host[i])
			return error_set(err, STATUS_NO_RESOURCE, "no memory for %" PRIu64 " floats", count);
		for (uint64_t j = 0; j < count; j++)
			a->host[i][j] = (float)ref_integer(k->seed, i + 1, j);
		st = kit_alloc(k, device[i], count * sizeof(float), err);
		if (!st && i < 2)
			st = gpu_copy_to(k->device, device[i]->data, a->host[i], count * sizeof(float), err);
	}
	a->host_partial = calloc(a->blocks, sizeof(double));
	if (!st && !a->host_partial)
		st = error_set(err, STATUS_NO_RESOURCE, "no memory for partial sums");
	return st ? st : kit_alloc(k, &a->partial, a->blocks * sizeof(double), err);
}

static enum status check_output(struct kit *k, struct arrays *a, const struct move *m, enum move_op op,
				struct error *err)
{
	float *found = malloc(a->count * sizeof(float));
	double sum, expected = 0;
	enum status st;

	if (!found)
		return error_set(err, STATUS_NO_RESOURCE, "no memory to compare");
	if (op == MOVE_READ || op == MOVE_DOT) {
		for (unsigned i = 0; i < m->blocks; i++)
			expected += a->host_partial[i];
		st = move_sum(m, k->device, a->partial.data, &sum, err);
		if (!st && !(sum == expected))
			st = error_set(err, STATUS_MISMATCH, "the sum is %.17g, the reference has %.17g", sum,
				       expected);
	} else {
		st = gpu_copy_from(k->device, found, a->out.data, a->count * sizeof(float), err);
		if (!st)
			st = kit_compare("out", found, a->host[2], a->count * sizeof(float), err);
	}
	free(found);
	if (!st)
		st = kit_guards(k, &a->out, "out", err);
	if (!st)
		st = kit_guards(k, &a->partial, "partial", err);
	return st;
}

static enum status run_stream(struct kit *k, const struct kernel_case *c, enum move_op op,
			      enum move_rung rung, struct error *err)
{
	bool evict_first = c->count % 8 == 4; /* some cases with each of the two hints */
	struct move_shape shape = {.rung = rung,
				   .threads = c->threads,
				   .per_sm = c->blocks && rung != MOVE_V10 ? 1 : 0,
				   .tile_bytes = c->p0,
				   .stages = c->p1,
				   .evict_first = evict_first,
				   .resident = c->count % 3 == 0 ? 2 : 0};
	struct memory_args args = {.count = c->count, .factor = 3};
	struct arrays a;
	struct move m;
	enum status st = arrays_make(k, &a, c->count, err);

	if (!st)
		st = move_prepare(&m, k->device, op, &shape, c->count, err);
	if (!st && shape.per_sm)
		m.blocks = c->blocks;
	if (st)
		goto out;
	args.in0 = (uintptr_t)a.host[0];
	args.in1 = (uintptr_t)a.host[1];
	args.out = (uintptr_t)a.host[2];
	args.partial = (uintptr_t)a.host_partial;
	if (!ref_run(m.name, (struct ref_grid){m.blocks, c->threads}, &args)) {
		st = error_set(err, STATUS_BUG, "%s has no reference", m.name);
		goto out;
	}
	st = move_launch(&m,
			 &(struct move_arrays){.in0 = a.in0.data,
					       .in1 = a.in1.data,
					       .out = a.out.data,
					       .partial = a.partial.data,
					       .count = c->count,
					       .factor = 3},
			 k->stream, err);
	if (!st)
		st = gpu_stream_wait(k->stream, err);
	if (!st)
		st = check_output(k, &a, &m, op, err);
out:
	arrays_free(k, &a);
	return st;
}

static enum status run_gather(struct kit *k, const struct kernel_case *c, const char *entry,
			      struct error *err)
{
	struct guarded index = {0};
	uint32_t *host = calloc(c->count, sizeof(*host));
	double *partial = calloc(c->blocks, sizeof(*partial)), sum = 0, expected = 0;
	struct gpu_kernel *kernel;
	struct arrays a = {0};
	struct gather_args args;
	enum status st = STATUS_OK;

	if (!host || !partial)
		st = error_set(err, STATUS_NO_RESOURCE, "no memory for %" PRIu64 " indices", c->count);
	if (!st)
		st = arrays_make(k, &a, c->count, err);
	for (uint64_t i = 0; i < c->count && !st; i++) {
		host[i] = (uint32_t)ref_permutation(i, c->count, k->seed);
		expected += a.host[0][host[i]];
	}
	if (!st)
		st = kit_alloc(k, &index, c->count * sizeof(*host), err);
	if (!st)
		st = gpu_copy_to(k->device, index.data, host, c->count * sizeof(*host), err);
	if (!st)
		st = gpu_kernel(k->device, &kernel, "memory", entry, err);
	args = (struct gather_args){a.in0.data, index.data, a.partial.data, c->count};
	if (!st)
		st = gpu_launch_1d(kernel, k->stream, c->blocks, c->threads, 0, &args, err);
	if (!st)
		st = gpu_copy_from(k->device, partial, a.partial.data, c->blocks * sizeof(*partial), err);
	for (unsigned i = 0; i < c->blocks && !st; i++)
		sum += partial[i];
	if (!st && !(sum == expected))
		st = error_set(err, STATUS_MISMATCH, "the sum is %.17g, the reference has %.17g", sum,
			       expected);
	if (!st)
		st = kit_guards(k, &a.partial, "partial", err);
	kit_free(k, &index);
	arrays_free(k, &a);
	free(host);
	free(partial);
	return st;
}

/* The ring is built by kernel `ring`; the node that the walk ends on must be at place hops % count. */
static enum status run_chase(struct kit *k, const struct kernel_case *c, struct error *err)
{
	struct guarded nodes = {0}, cursor = {0};
	struct gpu_kernel *ring, *chase;
	struct memory_node node;
	uint64_t at;
	enum status st = kit_alloc(k, &nodes, c->count * sizeof(node), err);

	if (!st)
		st = kit_alloc(k, &cursor, sizeof(at), err);
	if (!st)
		st = gpu_kernel(k->device, &ring, "data", "ring", err);
	if (!st)
		st = gpu_kernel(k->device, &chase, "memory", "chase", err);
	if (!st)
		st = gpu_launch_1d(ring, k->stream, 16, 256, 0,
				   &(struct ring_args){nodes.data, cursor.data, c->count, k->seed}, err);
	if (!st)
		st = gpu_launch_1d(chase, k->stream, 1, 1, 0, &(struct chase_args){cursor.data, c->p0}, err);
	if (!st)
		st = gpu_copy_from(k->device, &at, cursor.data, sizeof(at), err);
	if (!st && (at < nodes.data || at >= nodes.data + nodes.size))
		st = error_set(err, STATUS_MISMATCH, "the walk left the ring");
	if (!st)
		st = gpu_copy_from(k->device, &node, at, sizeof(node), err);
	if (!st && node.place != c->p0 % c->count)
		st = error_set(err, STATUS_MISMATCH, "the walk ended at place %" PRIu64 ", not %" PRIu64,
			       node.place, c->p0 % c->count);
	if (!st)
		st = kit_guards(k, &nodes, "nodes", err);
	kit_free(k, &nodes);
	kit_free(k, &cursor);
	return st;
}

static void report(struct kit *k, const char *name, const struct kernel_case *c, enum status st,
		   struct error *err)
{
	kit_result(k, "memory", name, c, st, err);
	error_clear(err);
}

static void test_streams(struct kit *k, const struct kernel_case *c, bool bulk)
{
	for (int op = 0; op < MOVE_OP_COUNT; op++) {
		for (int rung = bulk ? MOVE_BULK : MOVE_V1; rung <= (bulk ? MOVE_BULK : MOVE_V10); rung++) {
			struct error err = {0};
			char name[32];

			snprintf(name, sizeof(name), rung == MOVE_BULK ? "%s_bulk" : "%s_v%d",
				 move_op_name((enum move_op)op), rung);
			if (rung == MOVE_V10 && (op == MOVE_READ || op == MOVE_DOT))
				continue; /* v10 is of streams that write */
			if (kit_wants(k, name, c))
				report(k, name, c,
				       run_stream(k, c, (enum move_op)op, (enum move_rung)rung, &err), &err);
		}
	}
}

static void test(struct kit *k)
{
	static const char *const gathers[] = {"gather_v1", "gather_v2", "gather_v3"};

	for (size_t i = 0; i < COUNT(cases); i++) {
		const struct kernel_case *c = &cases[i];
		struct error err = {0};

		if (!strcmp(c->entry, "stream") || !strcmp(c->entry, "bulk"))
			test_streams(k, c, c->entry[0] == 'b');
		for (size_t g = 0; g < COUNT(gathers) && !strcmp(c->entry, "gather"); g++)
			if (kit_wants(k, gathers[g], c))
				report(k, gathers[g], c, run_gather(k, c, gathers[g], &err), &err);
		if (!strcmp(c->entry, "chase") && kit_wants(k, "chase", c))
			report(k, "chase", c, run_chase(k, c, &err), &err);
	}
}

enum status time_memory(struct kit *k, struct error *err); /* time_memory.c */

const struct kernel_group group_memory = {
	.name = "memory",
	.cases = cases,
	.count = COUNT(cases),
	.test = test,
	.time = time_memory,
};
