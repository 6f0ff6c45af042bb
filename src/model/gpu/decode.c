/* SPDX-License-Identifier: Apache-2.0 */
#include "model/gpu/decode.h"
#include <math.h>
#include <stdlib.h>
#include "kernel/decode/decode.h"
#include "model/backend/cost.h"
#include "model/gpu/backend.h"
#include "model/gpu/paged/lists.h"

enum {
	BLOCKS_MAX = 1024, /* limit for the SMs of any device, for planning */
	ALIGN_FLOATS = 64,
};

/* The kernels' workspace: parts of one block of device memory. name, floats */
/* clang-format off */
#define DECODE_PLACES(X)                                                                    \
	X(x, s->hidden)                                                                     \
	X(x2, s->hidden)                                                                    \
	X(qkv, (s->heads + 2 * s->kv_heads) * s->head_dim)                                  \
	X(o, s->heads * s->head_dim)                                                        \
	X(h, s->ffn)                                                                        \
	X(u, d->u_most)                                                                     \
	X(part, (int64_t)DECODE_SPLITS * s->heads * (s->head_dim + 2))                      \
	X(logits, s->vocab)                                                                 \
	X(barrier, 1)                                                                       \
	X(arrived, s->kv_heads)                                                             \
	X(layers, s->layers * (int64_t)(sizeof(struct decode_layer) / sizeof(float)))
/* clang-format on */

struct decode {
	const struct model *model;
	struct backend *back;
	const struct paged_layer *cache; /* [layers] */
	int64_t u_most;			 /* largest adapters * rank of a linear layer */
	struct mat memory;
	struct gpu_device *device; /* NULL while planning */
	struct gpu_stream *stream;
	struct gpu_kernel *kernel;
	bool filled; /* the table of layers is on the device */
	struct decode_token_args args;
	unsigned blocks, shared_bytes;
};

static int64_t most(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* The most columns of any linear layer. */
static int64_t wide_of(const struct shape *s)
{
	return most(most(s->hidden, s->heads * s->head_dim), s->ffn);
}

/* The most rows of any linear layer. */
static int64_t tall_of(const struct shape *s)
{
	return most(most(s->vocab, 2 * s->ffn), (s->heads + 2 * s->kv_heads) * s->head_dim);
}

static int64_t adapters_most(const struct model *m)
{
	const struct layer *l = &m->layer[0];
	const struct linear *maps[] = {&l->qkv, &l->o, &l->gate_up, &l->down};
	int64_t rows = 0;

	for (size_t i = 0; i < sizeof(maps) / sizeof(maps[0]); i++)
		rows = most(rows, maps[i]->adapters * maps[i]->rank);
	return (rows + 3) / 4 * 4;
}

static bool is_e4m3(const struct model *m)
{
	return m->storage.form == STORAGE_E4M3_ROWS;
}

/* Whether the kernels do not support the model. They read weights in BF16, or in E4M3 if there are no
 * adapters. */
static bool refuses(const struct model *m)
{
	const struct shape *s = &m->shape;
	const int64_t step = is_e4m3(m) ? 16 : 8;

	return (m->storage.form != STORAGE_NUMBERS && !is_e4m3(m)) || (is_e4m3(m) && adapters_most(m)) ||
	       decode_refuses_heads(s->head_dim) || s->hidden % step || s->ffn % step ||
	       decode_refuses_rows((uint64_t)tall_of(s), (uint32_t)wide_of(s), BLOCKS_MAX);
}

static gpu_ptr address(const void *data)
{
	return (gpu_ptr)(uintptr_t)data;
}

/* Offsets of the parts, in floats; the last one is the total. */
#define X(name, floats) PLACE_##name,
enum { DECODE_PLACES(X) PLACES };
#undef X
static void lay_out(const struct decode *d, int64_t at[PLACES + 1])
{
	const struct shape *s = &d->model->shape;
	const int64_t floats[PLACES] = {
#define X(name, count) count,
		DECODE_PLACES(X)
#undef X
	};

	at[0] = 0;
	for (int i = 0; i < PLACES; i++)
		at[i + 1] = at[i] + (floats[i] + ALIGN_FLOATS - 1) / ALIGN_FLOATS * ALIGN_FLOATS;
}

static gpu_ptr place(const struct decode *d, int which)
{
	int64_t at[PLACES + 1];

	lay_out(d, at);
	return address(d->memory.data) + (gpu_ptr)at[which] * sizeof(float);
}

/* Bytes of shared memory in front of the rings. */
static uint32_t front_of(const struct decode *d, unsigned blocks)
{
	const struct shape *s = &d->model->shape;
	const struct decode_heads heads = {.heads = (uint32_t)s->heads,
					   .kv_heads = (uint32_t)s->kv_heads,
					   .head_dim = (uint32_t)s->head_dim};

	const int64_t q = s->heads * s->head_dim, qkv = q + 2 * s->kv_heads * s->head_dim;
	const int64_t maps[][2] = {{qkv, s->hidden},	{s->hidden, q},	       {2 * s->ffn, s->hidden},
				   {s->hidden, s->ffn}, {s->vocab, s->hidden}, {d->u_most, wide_of(s)}};
	uint32_t work = 0;

	/* the head, the fifth one, stays BF16 */
	for (size_t i = 0; i < sizeof(maps) / sizeof(maps[0]); i++) {
		const int64_t words = is_e4m3(d->model) && i != 4 ? maps[i][1] / 2 : maps[i][1];
		const uint32_t map = decode_work((uint32_t)maps[i][0], (uint32_t)words, blocks);

		work = map > work ? map : work;
	}
	return decode_front(&heads, work, (uint32_t)d->u_most);
}

static uint32_t bits_of(int32_t page_tokens)
{
	uint32_t bits = 0;

	while (1 << bits < page_tokens)
		bits++;
	return bits;
}

static struct decode_token_args args_of(const struct decode *d)
{
	const struct model *m = d->model;
	const struct shape *s = &m->shape;

	return (struct decode_token_args){
		.layers = place(d, PLACE_layers),
		.embed = address(m->embed.w.data),
		.norm = address(m->norm.w.data),
		.head = address(m->head.w.data),
		.cos_sin = address(m->cos_sin.data),
		.barrier = place(d, PLACE_barrier),
		.arrived = place(d, PLACE_arrived),
		.x = place(d, PLACE_x),
		.x2 = place(d, PLACE_x2),
		.qkv = place(d, PLACE_qkv),
		.o = place(d, PLACE_o),
		.h = place(d, PLACE_h),
		.u = place(d, PLACE_u),
		.part = place(d, PLACE_part),
		.logits = place(d, PLACE_logits),
		.heads = {.heads = (uint32_t)s->heads,
			  .kv_heads = (uint32_t)s->kv_heads,
			  .head_dim = (uint32_t)s->head_dim,
			  .eps = (float)s->norm_eps,
			  .scale = (float)(1 / sqrt((double)s->head_dim))},
		.layer_count = (uint32_t)s->layers,
		.hidden = (uint32_t)s->hidden,
		.vocab = (uint32_t)s->vocab,
	};
}

/* *refused: the device has too little shared memory per block for this model. */
static enum status open_device(struct decode *d, const struct backend *back, bool *refused, struct error *err)
{
	enum status st = STATUS_OK;
	uint32_t front, depth;

	d->device = gpu_backend_device(back);
	d->stream = gpu_backend_stream(back);
	d->blocks = gpu_sm_count(d->device);
	front = front_of(d, d->blocks);
	depth = decode_depth(front, gpu_shared_most(d->device));
	*refused = !depth || d->blocks > BLOCKS_MAX;
	if (*refused)
		return STATUS_OK;
	d->shared_bytes = decode_shared(front, depth);
	st = gpu_kernel(d->device, &d->kernel, "decode",
			is_e4m3(d->model) ? "decode_token_e4m3" : "decode_token", err);
	if (st)
		return st;
	d->args = args_of(d);
	d->args.depth = depth;
	d->args.ring = front;
	st = gpu_stream_fill32(d->stream, d->args.barrier, 0, 1, err);
	return st ? st
		  : gpu_stream_fill32(d->stream, d->args.arrived, 0, (uint64_t)d->model->shape.kv_heads, err);
}

enum status decode_create(struct decode **out, const struct model *m, struct backend *back,
			  const struct paged_layer *cache, struct error *err)
{
	const struct arena_mark mark = arena_mark(back->arena);
	int64_t at[PLACES + 1];
	bool refused = false;
	struct decode *d;
	enum status st;

	*out = NULL;
	if (refuses(m))
		return STATUS_OK;
	d = calloc(1, sizeof(*d));
	if (!d)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "no memory for a decoder");
	d->model = m;
	d->back = back;
	d->cache = cache;
	d->u_most = adapters_most(m);
	lay_out(d, at);
	d->memory = (struct mat){.rows = 1, .cols = at[PLACES], .dtype = DTYPE_F32};
	st = arena_mat(back->arena, MEM_SCRATCH, &d->memory, "workspace of decode", err);
	if (!st && d->memory.data)
		st = open_device(d, back, &refused, err);
	if (st || refused) {
		arena_reset(back->arena, &mark);
		decode_release(&d);
	}
	*out = d;
	return st;
}

void decode_release(struct decode **out)
{
	free(*out);
	*out = NULL;
}

static struct decode_map map_of(const struct linear *l)
{
	struct decode_map m = {
		.w = address(l->w.w.data),
		.w_scale = l->w.w.dtype == DTYPE_E4M3 ? address(l->w.w.scales.data) : 0,
		.bias = l->bias.w.rows ? address(l->bias.w.data) : 0,
		.out = (uint32_t)l->out,
		.in = (uint32_t)l->in,
		.ld = (uint32_t)l->w.w.ld,
		.adapters = (uint32_t)l->adapters,
		.rank = (uint32_t)l->rank,
		.scale = l->lora_scale,
	};

	if (l->adapters)
		m.a = address(l->a.w.data);
	for (int i = 0; i < l->adapters; i++) {
		m.b[i] = address(l->adapter[i].b.w.data);
		m.begin[i] = (uint32_t)l->adapter[i].out_begin;
		m.end[i] = (uint32_t)(l->adapter[i].out_begin + l->adapter[i].out);
	}
	return m;
}

static gpu_ptr weight_of(const struct weight *w)
{
	return w->w.rows ? address(w->w.data) : 0;
}

static void fill_layers(const struct decode *d, struct decode_layer *layers)
{
	for (int64_t i = 0; i < d->model->shape.layers; i++) {
		const struct layer *l = &d->model->layer[i];

		layers[i] = (struct decode_layer){
			.qkv = map_of(&l->qkv),
			.o = map_of(&l->o),
			.gate_up = map_of(&l->gate_up),
			.down = map_of(&l->down),
			.norm1 = weight_of(&l->norm1),
			.norm2 = weight_of(&l->norm2),
			.q_norm = weight_of(&l->q_norm),
			.k_norm = weight_of(&l->k_norm),
			.kv = address(d->cache[i].kv.data),
		};
	}
}

/* Copies the table of layers to the device. */
static enum status fill_table(struct decode *d, struct error *err)
{
	const size_t count = (size_t)d->model->shape.layers;
	struct decode_layer *layers = calloc(count, sizeof(*layers));
	enum status st;

	if (!layers)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory for a table of layers");
	fill_layers(d, layers);
	st = gpu_stream_copy_to(d->stream, d->args.layers, layers, count * sizeof(*layers), err);
	if (!st)
		st = gpu_stream_wait(d->stream, err); /* it may read from the table until then */
	free(layers);
	d->filled = !st;
	return st;
}

static void cost_map(struct backend *back, const struct linear *l)
{
	const struct mat x = {.rows = 1, .cols = l->in, .dtype = DTYPE_F32};
	const struct mat y = {.rows = 1, .cols = l->out, .dtype = DTYPE_F32};
	const struct mat u = {.rows = 1, .cols = l->adapters * l->rank, .dtype = DTYPE_F32};

	cost_gemm(back, &(struct gemm){.a = x, .b = l->w.w, .d = y, .trans_b = true});
	if (l->adapters)
		cost_gemm(back, &(struct gemm){.a = x, .b = l->a.w, .d = u, .trans_b = true});
	for (int i = 0; i < l->adapters; i++) {
		const struct mat part = {.rows = 1, .cols = l->adapter[i].out, .dtype = DTYPE_F32};
		const struct mat own = {.rows = 1, .cols = l->rank, .dtype = DTYPE_F32};

		cost_gemm(back, &(struct gemm){.a = own, .b = l->adapter[i].b.w, .d = part, .trans_b = true});
	}
}

/* host: begin and keys of the row. */
static void add_cost(const struct decode *d, const struct paged_rows *host)
{
	const struct shape *s = &d->model->shape;
	const struct attention at = {
		.heads = (int)s->heads, .kv_heads = (int)s->kv_heads, .head_dim = (int)s->head_dim};
	const struct mat x = {.rows = 1, .cols = s->hidden, .dtype = DTYPE_F32};
	const struct mat y = {.rows = 1, .cols = s->vocab, .dtype = DTYPE_F32};

	for (int64_t i = 0; i < s->layers; i++) {
		const struct layer *l = &d->model->layer[i];

		cost_map(d->back, &l->qkv);
		cost_paged(d->back, &at, host);
		cost_map(d->back, &l->o);
		cost_map(d->back, &l->gate_up);
		cost_map(d->back, &l->down);
	}
	cost_gemm(d->back, &(struct gemm){.a = x, .b = d->model->head.w, .d = y, .trans_b = true});
}

static enum status launch(struct decode *d, const struct paged_rows *rows, struct mat last, struct error *err)
{
	const struct paged_placed *placed = rows->lists;
	enum status st = d->filled ? STATUS_OK : fill_table(d, err);

	add_cost(d, &placed->host);
	d->args.token = address(rows->token);
	d->args.position = address(rows->position);
	d->args.page = address(rows->page);
	d->args.page_bits = bits_of(rows->page_tokens);
	d->args.last = address(last.data);
	d->args.places = (uint32_t)last.cols;
	return st ? st
		  : gpu_launch_together(d->kernel, d->stream, d->blocks, DECODE_THREADS, d->shared_bytes,
					&d->args, err);
}

enum status decode_forward(struct decode *d, const struct paged_rows *rows, struct mat last,
			   struct mat *logits, struct error *err)
{
	const int64_t vocab = d->model->shape.vocab;
	enum status st = STATUS_OK;

	if (d->device)
		st = launch(d, rows, last, err);
	else
		add_cost(d, rows);
	*logits = (struct mat){.rows = 1, .cols = vocab, .ld = vocab, .dtype = DTYPE_F32};
	if (d->device)
		logits->data = (void *)(uintptr_t)d->args.logits;
	return st;
}
