/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on the flat vector (kernel/train/flat_vector.h): live copies, sums, AdamW. */
#include <stdlib.h>
#include "kernel/train/adamw_states.h"
#include "kernel/train/flat_vector.h"
#include "model/gpu/internal.h"

_Static_assert(TRAIN_STATES_BLOCK == (int)ADAMW_BLOCK, "one block of 8-bit moments");

/* Makes the table on the device. Once, because the list is the same in every call. */
static enum status make_live(struct backend *back, const struct live_part *part, int count, struct error *err)
{
	struct gpu_state *g = gpu_of(back);
	struct train_live *table = calloc((size_t)count, sizeof(*table));
	struct mat to = {.rows = 1, .cols = count * (int64_t)sizeof(*table), .dtype = DTYPE_U8};
	enum status st;

	if (!table)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory for a table of parts");
	for (int i = 0; i < count; i++)
		table[i] = (struct train_live){
			.begin = part[i].begin,
			.count = (uint64_t)(part[i].to.rows * part[i].to.cols),
			.to = gpu_address(part[i].to.data),
			.ld = part[i].to.ld,
			.cols = (uint32_t)part[i].to.cols,
			.scale = 1,
			.decay = 1,
		};
	gpu_free(g->device, &g->live);
	st = gpu_alloc(g->device, &g->live, (uint64_t)to.cols, err);
	to.data = (void *)(uintptr_t)g->live;
	to.ld = to.cols;
	if (!st)
		st = gpu_backend_put(back, to, table, err);
	free(table);
	g->live_of = st ? NULL : part;
	g->live_count = count;
	return st;
}

/* The main stream copies the table. */
static enum status make_table(struct backend *back, const struct live_range *range,
			      const struct gpu_stream *stream, struct error *err)
{
	struct gpu_state *g = gpu_of(back);
	enum status st = make_live(back, range->all, range->total, err);

	return st || stream == g->stream ? st : gpu_stream_wait(g->stream, err);
}

enum status gpu_refresh_on(struct backend *back, struct mat master, const struct live_range *range,
			   struct gpu_stream *stream, struct error *err)
{
	struct gpu_state *g = gpu_of(back);
	const struct live_part *first = &range->all[range->first], *last = first + range->count - 1;
	struct train_adamw_args args = {
		.master = gpu_address((const float *)master.data + first->begin),
		.begin = first->begin,
		.count = last->begin + (uint64_t)(last->to.rows * last->to.cols) - first->begin,
		.tensors = (uint32_t)range->count,
	};
	enum status st = STATUS_OK;

	if (g->live_of != range->all || g->live_count != range->total)
		st = make_table(back, range, stream, err);
	args.live = g->live + (uint64_t)range->first * sizeof(struct train_live);
	cost_refresh(back, range);
	return st ? st
		  : gpu_launch_1d(g->kernel[GPU_KERNEL_LIVE], stream, train_blocks(1, args.count),
				  TRAIN_THREADS, 0, &args, err);
}

enum status gpu_refresh(struct backend *back, struct mat master, const struct live_range *range,
			struct error *err)
{
	enum status st = gpu_part(back, gpu_kernel_part(GPU_KERNEL_LIVE), err);

	return st ? st : gpu_refresh_on(back, master, range, gpu_of(back)->stream, err);
}

enum status gpu_reduce(struct backend *back, struct mat x, enum reduction reduction, double *sum,
		       struct error *err)
{
	const struct arena_mark mark = arena_mark(back->arena);
	struct train_reduce_args args = {
		.x = gpu_address(x.data),
		.sum = gpu_address(sum),
		.count = (uint64_t)(x.rows * x.cols),
		.squares = reduction == REDUCE_SUM_SQUARES,
		.bf16 = x.dtype == DTYPE_BF16,
	};
	struct mat sums;
	enum status st = workspace_reduce(back, &x, &sums, err);

	cost_touch(back, &x, 1);
	if (!st && x.ld != x.cols && x.rows > 1)
		st = error_set(err, STATUS_BUG, "a sum over rows that are not contiguous");
	if (!st) {
		args.sums = gpu_address(sums.data);
		st = gpu_run(back, GPU_KERNEL_REDUCE, TRAIN_REDUCE_BLOCKS, TRAIN_THREADS, 0, &args, err);
	}
	if (!st)
		st = gpu_run(back, GPU_KERNEL_REDUCE_END, 1, TRAIN_THREADS, 0, &args, err);
	arena_reset(back->arena, &mark);
	return st;
}

/* All operands F32. */
static enum status adamw_plain(struct backend *back, const struct adamw_part *p, const struct adamw *a,
			       struct error *err)
{
	const struct train_adamw_args args = {
		.g = gpu_address(p->g.data),
		.m = gpu_address(p->m.data),
		.v = gpu_address(p->v.data),
		.master = gpu_address(p->w.data),
		.norm_squares = gpu_address(a->squares),
		.count = (uint64_t)p->g.cols,
		.max_norm = a->max_norm,
		.lr = a->lr,
		.beta1 = a->beta1,
		.beta2 = a->beta2,
		.eps = a->eps,
		.decay = a->decay,
		.clip_scale = 1,
		.correction1 = a->correction1,
		.correction2 = a->correction2,
	};

	return gpu_over(back, GPU_KERNEL_ADAMW, 1, p->g.cols, &args, err);
}

static enum status adamw_states(struct backend *back, const struct adamw_part *p, const struct adamw *a,
				struct error *err)
{
	const bool codes = p->m.dtype == DTYPE_U8;
	const struct train_states_args args = {
		.g = gpu_address(p->g.data),
		.m = gpu_address(p->m.data),
		.v = gpu_address(p->v.data),
		.m_scale = gpu_address(p->m_scale.data),
		.v_scale = gpu_address(p->v_scale.data),
		.w = gpu_address(p->w.data),
		.rest = p->rest.rows ? gpu_address(p->rest.data) : 0,
		.norm_squares = gpu_address(a->squares),
		.count = (uint64_t)p->g.cols,
		.first = p->first,
		.seed = a->seed,
		.max_norm = a->max_norm,
		.lr = a->lr,
		.beta1 = a->beta1,
		.beta2 = a->beta2,
		.eps = a->eps,
		.decay = a->decay,
		.correction1 = a->correction1,
		.correction2 = a->correction2,
		.step = a->step,
		.g_bf16 = p->g.dtype == DTYPE_BF16,
		.moments = codes		      ? TRAIN_MOMENTS_CODES
			   : p->m.dtype == DTYPE_BF16 ? TRAIN_MOMENTS_BF16
						      : TRAIN_MOMENTS_F32,
		.weight = p->w.dtype == DTYPE_F32 ? TRAIN_WEIGHT_F32
			  : p->rest.rows	  ? TRAIN_WEIGHT_SPLIT
						  : TRAIN_WEIGHT_BF16,
	};

	return codes ? gpu_run(back, GPU_KERNEL_ADAMW_8BIT, train_states_blocks(args.count), TRAIN_THREADS, 0,
			       &args, err)
		     : gpu_over(back, GPU_KERNEL_ADAMW_STATES, 1, p->g.cols, &args, err);
}

enum status gpu_adamw(struct backend *back, const struct adamw_part *p, const struct adamw *a,
		      struct error *err)
{
	const bool plain = p->g.dtype == DTYPE_F32 && p->m.dtype == DTYPE_F32 && p->w.dtype == DTYPE_F32;

	cost_adamw(back, p);
	return plain ? adamw_plain(back, p, a, err) : adamw_states(back, p, a, err);
}
