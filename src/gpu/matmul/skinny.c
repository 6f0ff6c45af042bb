/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/matmul/skinny.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "gpu/device/tensor_map.h"
#include "gpu/matmul/skinny_internal.h"

#define FILE_NAME "skinny"
#define FILE_NAME_ADAPTERS "skinny_adapters"
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define CHOICE(c, t, s, r)                                                                                   \
	{                                                                                                    \
		.cluster = (c), .together = (t), .per_sm = (s), .running = (r)                               \
	}

static const struct {
	const char *name;
	unsigned w_bytes, x_bytes, rows_most;
} kinds[SKINNY_KIND_COUNT] = {
	[SKINNY_KIND_BF16] = {"bf16", 2, 2, SKINNY_ROWS_MOST},
	[SKINNY_KIND_MIXED] = {"mixed", 1, 2, SKINNY_MIXED_ROWS_MOST},
	[SKINNY_KIND_E4M3] = {"e4m3", 1, 1, SKINNY_ROWS_MOST},
};
#define X(size, ...) size,
static const unsigned sizes[] = {SKINNY_SIZES(X, 0)};
#undef X
static_assert(COUNT(sizes) == SKINNY_SIZE_COUNT, "one kernel for each size");

enum status skinny_open(struct skinny **out, struct gpu_device *d, struct error *err)
{
	struct skinny *s;
	enum status st;

	*out = NULL;
	if (gpu_cc(d) != 90)
		return error_set(err, STATUS_UNSUPPORTED,
				 "the GEMM kernels for few rows are for sm_90, not sm_%u", gpu_cc(d));
	s = calloc(1, sizeof(*s));
	if (!s)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory for GEMM kernels");
	s->device = d;
	s->sms = gpu_sm_count(d);
	s->shared_most = gpu_shared_most(d);
	st = gpu_kernel(d, &s->quantize, FILE_NAME, "skinny_quantize", err);
	if (st) {
		free(s);
		return st;
	}
	*out = s;
	return STATUS_OK;
}

void skinny_close(struct skinny **s)
{
	if (*s)
		gpu_free((*s)->device, &(*s)->state);
	free(*s);
	*s = NULL;
}

enum skinny_kind skinny_kind_of(const struct skinny_problem *p)
{
	return !p->w_scale ? SKINNY_KIND_BF16 : p->x_scale ? SKINNY_KIND_E4M3 : SKINNY_KIND_MIXED;
}

static bool are_aligned(const struct skinny_problem *p)
{
	const enum skinny_kind kind = skinny_kind_of(p);

	return !((p->w | p->x | p->w_scale) % 16 || (p->y | p->bias | p->residual) % 8 || p->x_scale % 4 ||
		 p->row_w * kinds[kind].w_bytes % 16 || p->row_x * kinds[kind].x_bytes % 16 || p->row_y % 4 ||
		 p->row_residual % 4);
}

enum status skinny_check(const struct skinny_problem *p, struct error *err)
{
	const enum skinny_kind kind = skinny_kind_of(p);

	if (!p->rows || p->rows > kinds[kind].rows_most)
		return error_set(err, STATUS_UNSUPPORTED, "a GEMM of kind %s has 1 to %u rows, not %u",
				 kinds[kind].name, kinds[kind].rows_most, p->rows);
	if (!p->outputs || p->outputs % 8 || !p->k || p->k % (kind == SKINNY_KIND_BF16 ? 8 : 16))
		return error_set(
			err, STATUS_UNSUPPORTED,
			"a GEMM of kind %s has a multiple of 8 outputs and of %d elements along k, not "
			"%u and %u",
			kinds[kind].name, kind == SKINNY_KIND_BF16 ? 8 : 16, p->outputs, p->k);
	if (p->swiglu && (p->bias || p->residual))
		return error_set(err, STATUS_UNSUPPORTED, "a GEMM with SwiGLU has neither bias nor residual");
	if (p->x_scale && !p->w_scale)
		return error_set(err, STATUS_BUG, "activations in E4M3 need weights in E4M3");
	if (!are_aligned(p))
		return error_set(
			err, STATUS_UNSUPPORTED,
			"an operand of a GEMM, or a row of it, does not begin at a multiple of 16 bytes");
	return STATUS_OK;
}

static unsigned size_index(uint32_t rows)
{
	unsigned i = 0;

	while (sizes[i] < rows)
		i++;
	return i;
}

static unsigned boxes_of(enum skinny_kind kind)
{
	return kinds[kind].x_bytes / kinds[kind].w_bytes;
}

/* As many stages as fit if `per_sm` blocks share an SM; each block costs 1 KiB more. */
static unsigned stages_of(const struct skinny *s, enum skinny_kind kind, unsigned size, unsigned per_sm)
{
	const unsigned room = (s->shared_most + 1024) / per_sm - 1024;
	unsigned stages = 0;

	while (stages < SKINNY_STAGES_MOST && SKINNY_SHARED(size, boxes_of(kind), stages + 1) <= room)
		stages++;
	return stages;
}

/* In the ring, a tile's sums of all rows are exchanged. */
static bool sums_fit(enum skinny_kind kind, unsigned size, unsigned stages)
{
	return stages >= 2 && stages * SKINNY_STAGE(size, boxes_of(kind)) >= 4 * SKINNY_TURN * size;
}

static uint32_t tiles_of(const struct skinny_problem *p)
{
	const uint32_t rows = p->swiglu ? SKINNY_GROUP : SKINNY_TILE;

	return (p->outputs + rows - 1) / rows;
}

static uint32_t steps_of(const struct skinny_problem *p)
{
	const uint32_t elements = SKINNY_BOX_BYTES / kinds[skinny_kind_of(p)].w_bytes;

	return (p->k + elements - 1) / elements;
}

static enum status kernel_of(struct skinny *s, enum skinny_kind kind, unsigned index, bool adapters,
			     struct gpu_kernel **out, struct error *err)
{
	const char *file = adapters ? FILE_NAME_ADAPTERS : FILE_NAME;
	struct gpu_kernel **k = &s->kernel[adapters][kind][index];
	enum status st = STATUS_OK;
	char entry[40];

	if (!*k) {
		snprintf(entry, sizeof(entry), "%s_%s_n%u", file, kinds[kind].name, sizes[index]);
		st = gpu_kernel(s->device, k, file, entry, err);
	}
	*out = *k;
	return st;
}

static enum status clusters_of(struct skinny *s, struct gpu_kernel *k, const struct gpu_cluster_launch *l,
			       unsigned *count, struct error *err)
{
	struct resident *r = s->resident;
	enum status st;

	for (unsigned i = 0; i < s->residents; i++)
		if (r[i].kernel == k && r[i].cluster == l->cluster && r[i].shared_bytes == l->shared_bytes) {
			*count = r[i].count;
			return STATUS_OK;
		}
	st = gpu_kernel_clusters(k, l, count, err);
	if (!st && !*count)
		st = error_set(err, STATUS_UNSUPPORTED, "clusters of %u blocks do not fit on %s", l->cluster,
			       gpu_name(s->device));
	if (!st && s->residents < COUNT(s->resident))
		r[s->residents++] = (struct resident){k, l->cluster, l->shared_bytes, *count};
	return st;
}

static enum status make_maps(struct skinny *s, const struct skinny_problem *p, enum skinny_kind kind,
			     unsigned size, bool short_fetch, struct skinny_args *a, struct error *err)
{
	const uint32_t w_rows = p->swiglu ? 2 * p->outputs : p->outputs;
	const struct gpu_tensor w = {
		.data = p->w,
		.element_bytes = kinds[kind].w_bytes,
		.short_fetch = short_fetch,
		.columns = p->k,
		.rows = w_rows,
		.heads = 1,
		.batches = 1,
		.row_step = p->row_w,
		.head_step = p->row_w * w_rows,
		.batch_step = p->row_w * w_rows,
	};
	const struct gpu_tensor x = {
		.data = p->x,
		.element_bytes = kinds[kind].x_bytes,
		.columns = p->k,
		.rows = p->rows,
		.heads = 1,
		.batches = 1,
		.row_step = p->row_x,
		.head_step = p->row_x * p->rows,
		.batch_step = p->row_x * p->rows,
	};
	enum status st = gpu_tensor_map(s->device, &a->w_map, &w, SKINNY_GROUP, err);

	return st ? st : gpu_tensor_map(s->device, &a->x_map, &x, size, err);
}

/* The first units are whole rounds of tiles over the clusters that run at once; the rest is split along k. */
static void divide(const struct skinny *s, const struct skinny_problem *p, const struct skinny_choice *c,
		   unsigned resident, struct skinny_args *a)
{
	const uint32_t tiles = tiles_of(p);
	const uint32_t at_once = c->invariant ? s->sms * c->running / c->cluster : resident;

	a->wide_units = tiles / (at_once * c->cluster) * at_once;
	if (c->together == c->cluster) /* nothing is split */
		a->wide_units = tiles / c->cluster;
	a->together = c->together;
	a->units = a->wide_units + (tiles - a->wide_units * c->cluster + c->together - 1) / c->together;
}

static bool is_choice(const struct skinny_choice *c)
{
	return c->cluster && c->cluster <= SKINNY_CLUSTER_MOST && c->together &&
	       c->cluster % c->together == 0 && c->per_sm >= 1 && c->per_sm <= 2 && c->running >= 1 &&
	       c->running <= c->per_sm;
}

enum status skinny_prepare(struct skinny *s, const struct skinny_problem *p, const struct skinny_choice *c,
			   bool adapters, struct skinny_args *a, struct skinny_launch *out, struct error *err)
{
	const enum skinny_kind kind = skinny_kind_of(p);
	struct gpu_cluster_launch *l = &out->launch;
	enum status st = skinny_check(p, err);
	unsigned index, resident;

	if (st)
		return st;
	*a = (struct skinny_args){
		.y = p->y,
		.residual = p->residual,
		.bias = p->bias,
		.w_scale = p->w_scale,
		.x_scale = p->x_scale,
		.row_y = (int64_t)p->row_y,
		.row_residual = (int64_t)p->row_residual,
		.rows = p->rows,
		.outputs = p->outputs,
		.steps = steps_of(p),
		.second = p->swiglu ? p->outputs : SKINNY_GROUP,
		.tile_steps = p->swiglu ? SKINNY_GROUP : SKINNY_TILE,
		.swiglu = p->swiglu,
		.w_priority = c->keep ? SKINNY_KEEP : SKINNY_EVICT_FIRST,
	};
	*l = (struct gpu_cluster_launch){.threads = SKINNY_THREADS, .cluster = c->cluster};
	index = size_index(p->rows);
	out->size = sizes[index];
	a->stages = is_choice(c) ? stages_of(s, kind, out->size, c->per_sm) : 0;
	if (!sums_fit(kind, out->size, a->stages))
		return error_set(
			err, STATUS_UNSUPPORTED,
			"clusters of %u blocks, %u tiles at once and %u blocks per SM are no choice for a "
			"GEMM of %u rows",
			c->cluster, c->together, c->per_sm, p->rows);
	l->shared_bytes = SKINNY_SHARED(out->size, boxes_of(kind), a->stages);
	st = kernel_of(s, kind, index, adapters, &out->kernel, err);
	if (!st)
		st = clusters_of(s, out->kernel, l, &resident, err);
	if (!st)
		st = make_maps(s, p, kind, out->size, c->short_fetch, a, err);
	if (st)
		return st;
	resident = resident * c->running / c->per_sm;
	out->resident = resident ? resident : 1;
	divide(s, p, c, out->resident, a);
	return STATUS_OK;
}

enum status skinny_launch(const struct skinny_launch *l, uint32_t units, bool overlap, const void *args,
			  struct gpu_stream *stream, struct error *err)
{
	struct gpu_cluster_launch launch = l->launch;

	launch.blocks = launch.cluster * (l->resident < units ? l->resident : units);
	launch.overlap = overlap;
	return gpu_launch_clusters(l->kernel, stream, &launch, args, err);
}

enum status skinny_enqueue(struct skinny *s, const struct skinny_problem *p, const struct skinny_choice *c,
			   bool overlap, struct gpu_stream *stream, struct error *err)
{
	struct skinny_launch l;
	struct skinny_args a;
	enum status st = skinny_prepare(s, p, c, false, &a, &l, err);

	return st ? st : skinny_launch(&l, a.units, overlap, &a, stream, err);
}

/* Whether blocks of k's parts get enough steps to fill a ring, which a split should leave. */
static bool is_worth(const struct skinny_problem *p, const struct skinny_choice *c)
{
	return c->cluster / c->together == 1 || steps_of(p) * c->together / c->cluster >= 3;
}

unsigned skinny_choices(const struct skinny *s, const struct skinny_problem *p,
			struct skinny_choice out[SKINNY_CHOICES_MOST])
{
	static const struct skinny_choice order[] = {
		CHOICE(4, 1, 1, 1), CHOICE(2, 1, 1, 1), CHOICE(8, 2, 1, 1), CHOICE(4, 1, 2, 2),
		CHOICE(4, 2, 1, 1), CHOICE(8, 1, 2, 2), CHOICE(8, 2, 2, 2), CHOICE(8, 4, 1, 1),
		CHOICE(2, 1, 2, 2), CHOICE(4, 2, 2, 2), CHOICE(8, 4, 2, 2), CHOICE(8, 1, 1, 1),
		CHOICE(1, 1, 1, 1), CHOICE(2, 2, 1, 1), CHOICE(1, 1, 2, 2), CHOICE(4, 1, 2, 1),
		CHOICE(4, 2, 2, 1), CHOICE(2, 1, 2, 1), CHOICE(8, 1, 2, 1), CHOICE(8, 2, 2, 1),
		CHOICE(2, 2, 2, 2), CHOICE(4, 4, 2, 2), CHOICE(4, 4, 1, 1), CHOICE(1, 1, 2, 1),
	};
	const enum skinny_kind kind = skinny_kind_of(p);
	const unsigned size = sizes[size_index(p->rows)];
	unsigned count = 0;

	for (size_t i = 0; i < COUNT(order); i++)
		if (sums_fit(kind, size, stages_of(s, kind, size, order[i].per_sm)) && is_worth(p, &order[i]))
			out[count++] = order[i];
	return count;
}

struct skinny_choice skinny_invariant(const struct skinny *s, const struct skinny_problem *p)
{
	struct skinny_choice c = {.cluster = 4, .together = 1, .per_sm = 1, .running = 1, .invariant = true};

	(void)s;
	while (c.cluster > 1 && !is_worth(p, &c))
		c.cluster /= 2;
	return c;
}

enum status skinny_quantize(struct skinny *s, const struct skinny_quantize *q, bool overlap,
			    struct gpu_stream *stream, struct error *err)
{
	const struct gpu_cluster_launch l = {.blocks = (unsigned)q->rows,
					     .threads = SKINNY_QUANTIZE_THREADS,
					     .cluster = 1,
					     .overlap = overlap};
	const struct skinny_quantize_args a = {
		.from = q->from,
		.to = q->to,
		.scale = q->scale,
		.row_from = (int64_t)q->row_from,
		.row_to = (int64_t)q->row_to,
		.rows = (uint32_t)q->rows,
		.cols = (uint32_t)q->cols,
	};

	if (!q->rows || q->rows > INT32_MAX || q->cols % 8 || q->row_from % 8 || q->row_to % 8 ||
	    q->from % 16 || q->to % 8)
		return error_set(err, STATUS_UNSUPPORTED,
				 "rows to quantize begin at multiples of 16 bytes and have a multiple of 8 "
				 "elements, not %llu",
				 (unsigned long long)q->cols);
	return gpu_launch_clusters(s->quantize, stream, &l, &a, err);
}
