/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times every rung and launch shape of every operation on streams of kit->bytes, back to back, beside the
 * driver's copy and fill; the best of each last. Bytes are the operation's (STREAM's convention): copy counts
 * twice.
 */
#include "cases.h"
#include "gpu/move.h"
#include "kernel/data.h"
#include "kernel/memory.h"
#include "time_memory.h"
#include "vendor/cuda.h"
#include <inttypes.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

double device_bytes_per_s(const struct gpu_device *d)
{
	double khz = gpu_attribute(d, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
	double bits = gpu_attribute(d, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);

	return khz > 0 && bits > 0 ? 2e3 * khz * bits / 8 : 0;
}

void streams_free(struct kit *k, struct streams *s)
{
	gpu_free(k->device, &s->arrays.in0);
	gpu_free(k->device, &s->arrays.in1);
	gpu_free(k->device, &s->arrays.out);
	gpu_free(k->device, &s->arrays.partial);
	*s = (struct streams){0};
}

enum status streams_make(struct kit *k, struct streams *s, struct error *err)
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

enum status streams_time(struct streams *s, enum move_op op, const struct move_shape *shape, unsigned calls,
			 double *ns, struct error *err)
{
	enum status st = move_prepare(&s->move, s->kit->device, op, shape, s->arrays.count, err);

	return st ? st : kit_time(s->kit, call_move, s, calls, ns, err);
}

enum status streams_time_driver(struct streams *s, bool set, unsigned calls, double *ns, struct error *err)
{
	return kit_time(s->kit, set ? call_driver_set : call_driver_copy, s, calls, ns, err);
}

static void line(struct streams *s, const char *name, uint64_t bytes, double ns)
{
	double peak = device_bytes_per_s(s->kit->device);

	printf("time memory %-52s %9.0f ns %7.1f GB/s", name, ns, (double)bytes / ns);
	if (peak > 0)
		printf(" %5.1f %%", 1e11 * (double)bytes / ns / peak);
	printf("\n");
}

struct best {
	double ns;
	char name[64];
};

static enum status try_shape(struct streams *s, enum move_op op, const struct move_shape *shape,
			     struct best *best, struct error *err)
{
	double ns = 0;
	struct error own = {0};
	enum status st = streams_time(s, op, shape, 4, &ns, &own);

	if (st == STATUS_UNSUPPORTED)
		return STATUS_OK; /* a shape that this device is too small or too old for */
	if (st) {
		*err = own;
		return st;
	}
	line(s, s->move.name, move_bytes(op, s->arrays.count), ns);
	if (best->ns <= 0 || ns < best->ns) {
		best->ns = ns;
		memcpy(best->name, s->move.name, sizeof(best->name));
	}
	return STATUS_OK;
}

static enum status sweep(struct streams *s, enum move_op op, struct best *best, struct error *err)
{
	static const unsigned threads[] = {128, 256, 512, 1024}, per_sm[] = {0, 2, 4, 8, 16, 32};
	static const unsigned tiles[] = {4096, 8192, 16384, 32768}, in_flight[] = {24, 48, 96, 192};
	bool sum = op == MOVE_READ || op == MOVE_DOT;
	unsigned workers = op == MOVE_WRITE || op == MOVE_COPY ? 0 : (sum ? 256 : 384);
	enum status st = STATUS_OK;

	for (int rung = MOVE_V1; rung <= MOVE_V7; rung++)
		for (unsigned t = 0; t < COUNT(threads); t++)
			for (unsigned b = 0; b < COUNT(per_sm) && !st; b++) {
				struct move_shape shape = {
					(enum move_rung)rung, threads[t], per_sm[b], 0, 0, 0};
				unsigned held = threads[t] * per_sm[b];

				if (rung <= MOVE_V2 && (threads[t] != 256 || b != 3))
					continue; /* the naive rungs in one shape */
				if (rung == MOVE_V6 && threads[t] > 512)
					continue;
				if (per_sm[b] && (held < 1024 || held > 8192))
					continue;
				st = try_shape(s, op, &shape, best, err);
			}
	for (unsigned t = 0; t < COUNT(tiles); t++)
		for (unsigned f = 0; f < COUNT(in_flight); f++)
			for (unsigned b = 1; b <= 4 && !st; b *= 2)
				for (unsigned hint = 0; hint < 2 && !st; hint++) {
					struct move_shape shape = {MOVE_BULK, workers + 32, b, tiles[t],
								   0,	      hint};
					unsigned inputs =
						op == MOVE_DOT || op == MOVE_ADD || op == MOVE_TRIAD ? 2 : 1;

					shape.stages = in_flight[f] * 1024 / b / inputs / tiles[t];
					if (op == MOVE_WRITE) {
						shape.threads = 128;
						shape.stages = 1;
						if (f)
							continue;
					}
					if (!shape.stages || shape.stages > MEMORY_STAGES_MAX)
						continue;
					st = try_shape(s, op, &shape, best, err);
				}
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
	struct best best[MOVE_OP_COUNT] = {0};
	struct streams s;
	enum status st = streams_make(k, &s, err);

	if (!st)
		st = time_driver(&s, err);
	for (int op = 0; op < MOVE_OP_COUNT && !st; op++)
		if (!k->filter || strstr(move_op_name((enum move_op)op), k->filter))
			st = sweep(&s, (enum move_op)op, &best[op], err);
	if (!st)
		st = time_driver(&s, err);
	for (int op = 0; op < MOVE_OP_COUNT && !st; op++)
		if (best[op].ns > 0) {
			printf("best ");
			line(&s, best[op].name, move_bytes((enum move_op)op, s.arrays.count), best[op].ns);
		}
	streams_free(k, &s);
	return st;
}
