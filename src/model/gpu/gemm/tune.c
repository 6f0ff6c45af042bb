/* SPDX-License-Identifier: Apache-2.0 */
/* Times cuBLASLt's candidates for a GEMM with interleaved measurements, when its shape first occurs and
 * before it runs. */
#include "core/clock.h"
#include "kernel/train/rows.h"
#include "model/tensor/dtype.h"
#include "model/gpu/gemm/gemm.h"

/* For GEMMs of milliseconds, fewer candidates are timed, and fewer times, because this delays the first
 * steps. */
enum { CANDIDATES = 16, CANDIDATES_LARGE = 8, TIMES = 4, TIMES_LARGE = 2, WORTH_FLOP = 10000 };
#define LARGE_FLOP 1e12

/* Copies D to the packed rows of `kept`, or back. */
static enum status keep(struct backend *back, const struct mat *d, const struct mat *kept, bool again,
			struct error *err)
{
	const struct mat *from = again ? kept : d, *to = again ? d : kept;
	const struct train_copy_args args = {
		.from = gpu_address(from->data),
		.to = gpu_address(to->data),
		.pitch_from = (int64_t)dtype_bytes(d->dtype, (uint64_t)from->ld),
		.pitch_to = (int64_t)dtype_bytes(d->dtype, (uint64_t)to->ld),
		.rows = (uint32_t)d->rows,
		.bytes = dtype_bytes(d->dtype, (uint64_t)d->cols),
	};

	struct gpu_state *gpu = gpu_of(back);
	const double counted = gpu->counted_bytes; /* timing must not change the counted bytes */
	enum status st;

	gpu->counted_bytes = back->cost.bytes;
	st = gpu_run(back, GPU_KERNEL_COPY, train_blocks((uint64_t)d->rows, args.bytes / 2), TRAIN_THREADS, 0,
		     &args, err);
	gpu->counted_bytes = counted;
	return st;
}

enum status gpu_time(struct backend *back, enum status (*run)(void *arg, struct error *err), void *arg,
		     int times, double *seconds, struct error *err)
{
	struct gpu_event *event[2] = {NULL, NULL};
	struct gpu_state *gpu = gpu_of(back);
	enum status st = STATUS_OK;
	double ns = 0;

	for (int i = 0; !st && i < 2; i++)
		st = gpu_event_create(gpu->device, &event[i], err);
	for (int i = 0; !st && i <= times; i++) {
		if (i == 1)
			st = gpu_event_record(event[0], gpu->stream, err);
		if (!st)
			st = run(arg, err);
	}
	if (!st)
		st = gpu_event_record(event[1], gpu->stream, err);
	if (!st)
		st = gpu_event_wait(event[1], err);
	if (!st)
		st = gpu_event_elapsed_ns(event[0], event[1], &ns, err);
	for (int i = 0; i < 2; i++)
		gpu_event_destroy(&event[i]);
	*seconds = ns * 1e-9 / times;
	return st;
}

enum status gpu_tuning_begin(struct backend *back, uint64_t *began_ns, struct error *err)
{
	enum status st = gpu_stream_wait(gpu_of(back)->stream, err);

	*began_ns = clock_now_ns(clock_monotonic());
	return st;
}

void gpu_tuning_end(struct backend *back, uint64_t began_ns)
{
	gpu_of(back)->tuning_s += (double)(clock_now_ns(clock_monotonic()) - began_ns) * 1e-9;
}

struct product {
	struct gemm_plan *planned;
	const struct matmul_operands *operands;
	struct gpu_stream *stream;
};

static enum status run_product(void *arg, struct error *err)
{
	const struct product *p = arg;

	return matmul_plan_enqueue(p->planned->plan, p->operands, p->stream, err);
}

static double flop_of(const struct gemm_plan *p)
{
	return 2 * (double)p->shape.m * (double)p->shape.n * (double)p->shape.k;
}

/* A candidate that does not run with these operands is skipped. */
static enum status time_all(struct backend *back, struct gemm_plan *p, const struct matmul_operands *o,
			    struct error *err)
{
	struct product product = {.planned = p, .operands = o, .stream = gpu_of(back)->stream};
	const bool large = flop_of(p) > LARGE_FLOP;
	enum status st = matmul_plan_candidates(p->plan, large ? CANDIDATES_LARGE : CANDIDATES, err);

	for (unsigned i = 0; !st && i < matmul_plan_count(p->plan); i++) {
		struct error why = {0};
		double seconds;

		st = matmul_plan_select(p->plan, i, &why);
		if (!st)
			st = gpu_time(back, run_product, &product, large ? TIMES_LARGE : TIMES, &seconds,
				      &why);
		if (st == STATUS_UNSUPPORTED && i) {
			st = STATUS_OK;
			continue;
		}
		if (st)
			return error_set_cause(err, st, why.cause, "%s", why.text);
		if (!i)
			p->first_seconds = seconds;
		if (!i || seconds < p->seconds) {
			p->seconds = seconds;
			p->chosen = i;
		}
	}
	return st ? st : matmul_plan_select(p->plan, p->chosen, err);
}

enum status gemm_plans_tune(struct backend *back, struct gemm_plan *p, const struct gemm *g,
			    const struct matmul_operands *o, struct error *err)
{
	const struct arena before =
		*back->arena; /* restores the arena's peak, which is reported as the steps' memory */
	const bool in_place = g->beta != 0 && g->c.data == g->d.data;
	struct mat kept = {.rows = g->d.rows, .cols = g->d.cols, .dtype = g->d.dtype};
	struct error ignored = {0};
	uint64_t began_ns;
	enum status st;

	if (flop_of(p) >= WORTH_FLOP && in_place &&
	    arena_mat(back->arena, MEM_WORKSPACE, &kept, "saved result of a GEMM", &ignored)) {
		*back->arena = before;
		return STATUS_OK;
	}
	p->tuned = true;
	if (flop_of(p) < WORTH_FLOP)
		return STATUS_OK;
	st = gpu_tuning_begin(back, &began_ns, err);
	if (!st && in_place)
		st = keep(back, &g->d, &kept, false, err);
	if (!st)
		st = time_all(back, p, o, err);
	if (!st && in_place)
		st = keep(back, &g->d, &kept, true, err);
	gpu_tuning_end(back, began_ns);
	*back->arena = before;
	return st;
}
