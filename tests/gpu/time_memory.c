/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times every rung and launch shape of every operation on streams of kit->bytes, back to back, beside the
 * driver's copy and fill; the best of each last. Bytes are the operation's (STREAM's convention): copy counts
 * twice.
 */
#include "cases.h"
#include "core/math/stats.h"
#include "kernel/test_data/numbers.h"
#include "kernel/memory/stream.h"
#include "move_ops.h"
#include <inttypes.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Three streams of kit->bytes of uniform random floats. */
struct streams {
	struct kit *kit;
	struct move move;
	struct move_arrays arrays;
};

static void streams_free(struct kit *k, struct streams *s)
{
	gpu_free(k->device, &s->arrays.in0);
	gpu_free(k->device, &s->arrays.in1);
	gpu_free(k->device, &s->arrays.out);
	gpu_free(k->device, &s->arrays.partial);
	*s = (struct streams){0};
}

static enum status streams_make(struct kit *k, struct streams *s, struct error *err)
{
	gpu_ptr *const p[] = {&s->arrays.in0, &s->arrays.in1, &s->arrays.out};
	struct gpu_kernel *fill;
	enum status st = gpu_kernel(k->device, &fill, "data", "fill_uniform", err);

	*s = (struct streams){.kit = k, .arrays = {.count = k->bytes / sizeof(float), .factor = 3}};
	for (unsigned i = 0; i < COUNT(p) && !st; i++) {
		st = gpu_alloc(k->device, p[i], k->bytes, err);
		if (!st)
			st = gpu_launch_1d(fill, k->stream, 8 * gpu_sm_count(k->device), 256, 0,
					   &(struct fill_args){*p[i], s->arrays.count, k->seed, i + 1, 1},
					   err);
	}
	if (!st)
		st = gpu_alloc(k->device, &s->arrays.partial,
			       move_blocks_max(s->arrays.count) * sizeof(double), err);
	return st ? st : gpu_stream_wait(k->stream, err);
}

static enum status call_move(void *arg, struct error *err)
{
	struct streams *s = arg;

	return move_launch(&s->move, &s->arrays, s->kit->stream, err);
}

static enum status call_driver_copy(void *arg, struct error *err)
{
	struct streams *s = arg;

	return gpu_stream_copy(s->kit->stream, s->arrays.out, s->arrays.in0, s->kit->bytes, err);
}

static enum status call_driver_set(void *arg, struct error *err)
{
	struct streams *s = arg;

	return gpu_stream_fill32(s->kit->stream, s->arrays.out, 0x3f3f3f3fu, s->arrays.count, err);
}

static enum status streams_time(struct streams *s, enum move_op op, const struct move_shape *shape,
				unsigned calls, double *ns, struct error *err)
{
	enum status st = move_prepare(&s->move, s->kit->device, op, shape, s->arrays.count, err);

	return st ? st : kit_time(s->kit, call_move, s, calls, ns, err);
}

static enum status streams_time_driver(struct streams *s, bool set, unsigned calls, double *ns,
				       struct error *err)
{
	return kit_time(s->kit, set ? call_driver_set : call_driver_copy, s, calls, ns, err);
}

static void line(struct streams *s, const char *name, uint64_t bytes, double ns)
{
	double peak = gpu_dram_rate(s->kit->device);

	printf("time memory %-52s %9.0f ns %7.1f GB/s", name, ns, (double)bytes / ns);
	if (peak > 0)
		printf(" %5.1f %%", 1e11 * (double)bytes / ns / peak);
	printf("\n");
}

enum { KEPT = 5, ROUNDS = 9 };

/* The fastest shapes of an operation so far, fastest first. */
struct best {
	unsigned count;
	struct {
		struct move_shape shape;
		double ns;
	} kept[KEPT];
};

static void keep(struct best *b, const struct move_shape *shape, double ns)
{
	unsigned at = b->count < KEPT ? b->count++ : KEPT - 1;

	if (b->count == KEPT && at == KEPT - 1 && b->kept[at].ns > 0 && b->kept[at].ns <= ns)
		return;
	for (; at > 0 && b->kept[at - 1].ns > ns; at--)
		b->kept[at] = b->kept[at - 1];
	b->kept[at].shape = *shape;
	b->kept[at].ns = ns;
}

static enum status try_shape(struct streams *s, enum move_op op, struct move_shape shape, struct best *best,
			     struct error *err)
{
	double ns = 0;
	struct error own = {0};
	enum status st = streams_time(s, op, &shape, 3, &ns, &own);

	if (st == STATUS_UNSUPPORTED)
		return STATUS_OK; /* a shape that this device is too small or too old for */
	if (st) {
		*err = own;
		return st;
	}
	line(s, s->move.name, move_bytes(op, s->arrays.count), ns);
	keep(best, &shape, ns);
	return STATUS_OK;
}

static enum status sweep_ladder(struct streams *s, enum move_op op, struct best *best, struct error *err)
{
	static const unsigned threads[] = {128, 256, 512, 1024}, resident[] = {0, 1, 2, 3, 4, 6};
	enum status st = try_shape(s, op, (struct move_shape){.rung = MOVE_V1, .threads = 256, .per_sm = 8},
				   best, err);

	if (!st)
		st = try_shape(s, op, (struct move_shape){.rung = MOVE_V2, .threads = 256, .per_sm = 8}, best,
			       err);
	for (int rung = MOVE_V3; rung <= MOVE_V10 && !st; rung++) {
		struct move_shape shape = {.rung = (enum move_rung)rung, .threads = 512, .per_sm = 8};

		st = try_shape(s, op, shape, best, err);
		shape.per_sm = 0;
		for (unsigned t = 0; t < COUNT(threads); t++)
			for (unsigned r = 0; r < COUNT(resident) && !st; r++) {
				shape.threads = threads[t];
				shape.resident = resident[r];
				if (r && (threads[t] * resident[r] < 256 || threads[t] * resident[r] > 1536))
					continue;
				st = try_shape(s, op, shape, best, err);
			}
	}
	return st;
}

static enum status sweep_bulk(struct streams *s, enum move_op op, struct best *best, struct error *err)
{
	static const unsigned tiles[] = {4096, 8192, 16384, 32768}, stages[] = {1, 2, 4, 8},
			      resident[] = {0, 2, 4};
	bool sum = op == MOVE_READ || op == MOVE_DOT;
	unsigned workers = op == MOVE_WRITE || op == MOVE_COPY ? 0 : (sum ? 256 : 384);
	struct move_shape shape = {
		.rung = MOVE_BULK, .threads = workers + 32, .per_sm = 1, .tile_bytes = 32768, .stages = 3};
	enum status st = try_shape(s, op, shape, best, err);

	shape.per_sm = 0;
	if (op == MOVE_WRITE)
		shape.threads = 128;
	for (unsigned t = 0; t < COUNT(tiles); t++)
		for (unsigned g = 0; g < COUNT(stages); g++)
			for (unsigned r = 0; r < COUNT(resident) && !st; r++) {
				shape.tile_bytes = tiles[t];
				shape.stages = stages[g];
				shape.resident = resident[r];
				st = try_shape(s, op, shape, best, err);
			}
	return st;
}

/* The best again, in turns with each other and with the driver: what won once may have been lucky. */
static enum status finals(struct streams *s, enum move_op op, const struct best *best, struct error *err)
{
	double ns[KEPT + 1][ROUNDS];
	bool driver = op == MOVE_COPY || op == MOVE_WRITE;
	uint64_t bytes = move_bytes(op, s->arrays.count);
	enum status st = STATUS_OK;
	char name[128];

	for (unsigned round = 0; round < ROUNDS; round++) {
		for (unsigned i = 0; i < best->count && !st; i++)
			st = streams_time(s, op, &best->kept[i].shape, 3, &ns[i][round], err);
		if (!st && driver)
			st = streams_time_driver(s, op == MOVE_WRITE, 3, &ns[KEPT][round], err);
	}
	for (unsigned i = 0; i < best->count && !st; i++) {
		st = move_prepare(&s->move, s->kit->device, op, &best->kept[i].shape, s->arrays.count, err);
		snprintf(name, sizeof(name), "final %s", s->move.name);
		line(s, name, bytes, stats_median(ns[i], ROUNDS));
	}
	if (!st && driver)
		line(s, op == MOVE_WRITE ? "final driver set" : "final driver copy", bytes,
		     stats_median(ns[KEPT], ROUNDS));
	return st;
}

static enum status time_driver(struct streams *s, struct error *err)
{
	double ns;
	enum status st = streams_time_driver(s, false, 8, &ns, err);

	if (st)
		return st;
	line(s, "driver copy", 2 * s->kit->bytes, ns);
	st = streams_time_driver(s, true, 8, &ns, err);
	if (!st)
		line(s, "driver set", s->kit->bytes, ns);
	return st;
}

enum status time_memory(struct kit *k, struct error *err);
enum status time_memory(struct kit *k, struct error *err)
{
	struct streams s;
	enum status st = streams_make(k, &s, err);

	if (!st)
		st = time_driver(&s, err);
	for (int op = 0; op < MOVE_OP_COUNT && !st; op++) {
		struct best best = {0};

		if (k->filter && !strstr(move_op_name((enum move_op)op), k->filter))
			continue;
		st = sweep_ladder(&s, (enum move_op)op, &best, err);
		if (!st)
			st = sweep_bulk(&s, (enum move_op)op, &best, err);
		if (!st)
			st = finals(&s, (enum move_op)op, &best, err);
	}
	streams_free(k, &s);
	return st;
}
