/* SPDX-License-Identifier: Apache-2.0 */
#include "model/gpu/decode.h"
#include <math.h>
#include <stdlib.h>
#include "kernel/decode/decode.h"
#include "model/gpu/backend.h"

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
	X(best, (int64_t)BLOCKS_MAX * (int64_t)(sizeof(struct decode_best) / sizeof(float)))\
	X(made, (int64_t)(sizeof(struct made) / sizeof(float)))                             \
	X(barrier, 1)                                                                       \
	X(arrived, s->kv_heads)                                                             \
	X(layers, s->layers * (int64_t)(sizeof(struct decode_layer) / sizeof(float)))
/* clang-format on */

/* Results of a launch, fetched by one copy. */
struct made {
	struct decode_state state;
	int32_t chosen[DECODE_LAUNCH];
};

struct decode {
	const struct model *model;
	const struct cache *cache;
	int64_t u_most; /* largest adapters * rank of a linear layer */
	struct mat memory;
	struct gpu_device *device; /* NULL while planning */
	struct gpu_stream *stream;
	struct gpu_kernel *kernel;
	struct gpu_event *done[DECODE_FLIGHT];
	void *made;   /* struct made [DECODE_FLIGHT], pinned */
	void *logits; /* pinned; NULL until the first decode_logits */
	struct decode_layer *layers;
	struct decode_tokens_args args;
	unsigned blocks, shared_bytes;
	uint64_t enqueued, fetched;
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

enum status decode_check_heads(int64_t head_dim, struct error *err)
{
	return decode_refuses_heads(head_dim)
		       ? error_set(err, STATUS_UNSUPPORTED,
				   "a GPU generates with a head size of 16, 32, 64, 128 or 256, but this "
				   "model has %lld; use --device cpu, which supports any",
				   (long long)head_dim)
		       : STATUS_OK;
}

/* Whether the kernels do not support the shape. */
static bool refuses(const struct shape *s)
{
	return decode_refuses_heads(s->head_dim) || s->hidden % 8 || s->ffn % 8 ||
	       decode_refuses_rows((uint64_t)tall_of(s), (uint32_t)wide_of(s), BLOCKS_MAX);
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

	for (size_t i = 0; i < sizeof(maps) / sizeof(maps[0]); i++) {
		const uint32_t map = decode_work((uint32_t)maps[i][0], (uint32_t)maps[i][1], blocks);

		work = map > work ? map : work;
	}
	return decode_front(&heads, work, (uint32_t)d->u_most);
}

static struct decode_tokens_args args_of(const struct decode *d)
{
	const struct model *m = d->model;
	const struct shape *s = &m->shape;

	return (struct decode_tokens_args){
		.layers = place(d, PLACE_layers),
		.embed = address(m->embed.w.data),
		.norm = address(m->norm.w.data),
		.head = address(m->head.w.data),
		.cos_sin = address(m->cos_sin.data),
		.state = place(d, PLACE_made),
		.chosen = place(d, PLACE_made) + offsetof(struct made, chosen),
		.best = place(d, PLACE_best),
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
	st = gpu_kernel(d->device, &d->kernel, "decode", "decode_tokens", err);
	for (int i = 0; !st && i < DECODE_FLIGHT; i++)
		st = gpu_event_create(d->device, &d->done[i], err);
	if (!st)
		st = gpu_host_alloc(d->device, &d->made, DECODE_FLIGHT * sizeof(struct made), err);
	if (st)
		return st;
	d->layers = calloc((size_t)d->model->shape.layers, sizeof(*d->layers));
	if (!d->layers)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory for a table of layers");
	d->args = args_of(d);
	d->args.depth = depth;
	d->args.ring = front;
	return gpu_stream_fill32(d->stream, d->args.arrived, 0, (uint64_t)d->model->shape.kv_heads, err);
}

enum status decode_create(struct decode **out, const struct model *m, struct backend *back,
			  const struct cache *cache, struct error *err)
{
	int64_t at[PLACES + 1];
	bool refused = false;
	struct decode *d;
	enum status st;

	*out = NULL;
	if (refuses(&m->shape) || m->e4m3) /* the kernels read weights in BF16 */
		return STATUS_OK;
	d = calloc(1, sizeof(*d));
	if (!d)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "no memory for a decoder");
	d->model = m;
	d->cache = cache;
	d->u_most = adapters_most(m);
	lay_out(d, at);
	d->memory = (struct mat){.rows = 1, .cols = at[PLACES], .dtype = DTYPE_F32};
	st = arena_mat(back->arena, MEM_CACHE, &d->memory, "workspace of decode", err);
	if (!st && d->memory.data)
		st = open_device(d, back, &refused, err);
	if (st || refused)
		decode_release(&d);
	*out = d;
	return st;
}

void decode_release(struct decode **out)
{
	struct decode *d = *out;

	if (!d)
		return;
	if (d->device)
		gpu_stream_wait(d->stream, NULL); /* an error here has occurred and been reported before */
	for (int i = 0; i < DECODE_FLIGHT; i++)
		gpu_event_destroy(&d->done[i]);
	if (d->device) {
		gpu_host_free(d->device, &d->made);
		gpu_host_free(d->device, &d->logits);
	}
	free(d->layers);
	free(d);
	*out = NULL;
}

static struct decode_map map_of(const struct linear *l)
{
	struct decode_map m = {
		.w = address(l->w.w.data),
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

static void fill_layers(struct decode *d)
{
	for (int64_t i = 0; i < d->model->shape.layers; i++) {
		const struct layer *l = &d->model->layer[i];

		d->layers[i] = (struct decode_layer){
			.qkv = map_of(&l->qkv),
			.o = map_of(&l->o),
			.gate_up = map_of(&l->gate_up),
			.down = map_of(&l->down),
			.norm1 = weight_of(&l->norm1),
			.norm2 = weight_of(&l->norm2),
			.q_norm = weight_of(&l->q_norm),
			.k_norm = weight_of(&l->k_norm),
			.kv = address(d->cache->kv[i].data),
		};
	}
}

enum status decode_begin(struct decode *d, int32_t token, int64_t position, const struct decode_ask *ask,
			 struct error *err)
{
	const struct decode_state state = {.token = token, .position = (uint32_t)position};
	const int64_t vocab = d->model->shape.vocab;
	enum status st;

	fill_layers(d);
	d->args.limit = (uint32_t)(ask->vocab < vocab ? ask->vocab : vocab);
	d->args.stops = 0;
	for (size_t i = 0; i < ask->stops && d->args.stops < DECODE_STOPS; i++)
		d->args.stop[d->args.stops++] = ask->stop[i];
	st = gpu_stream_copy_to(d->stream, d->args.layers, d->layers,
				(uint64_t)d->model->shape.layers * sizeof(*d->layers), err);
	return st ? st : gpu_stream_copy_to(d->stream, d->args.state, &state, sizeof(state), err);
}

enum status decode_enqueue(struct decode *d, int64_t count, struct error *err)
{
	const unsigned slot = (unsigned)(d->enqueued % DECODE_FLIGHT);
	struct made *made = (struct made *)d->made + slot;
	enum status st = gpu_stream_fill32(d->stream, d->args.barrier, 0, 1, err);

	d->args.count = (uint32_t)count;
	if (!st)
		st = gpu_launch_together(d->kernel, d->stream, d->blocks, DECODE_THREADS, d->shared_bytes,
					 &d->args, err);
	if (!st)
		st = gpu_stream_copy_from(d->stream, made, d->args.state, sizeof(*made), err);
	if (!st)
		st = gpu_event_record(d->done[slot], d->stream, err);
	if (!st)
		d->enqueued++;
	return st;
}

enum status decode_fetch(struct decode *d, struct decode_made *out, struct error *err)
{
	const unsigned slot = (unsigned)(d->fetched % DECODE_FLIGHT);
	const struct made *made = (const struct made *)d->made + slot;
	enum status st = gpu_event_wait(d->done[slot], err);

	d->fetched++;
	*out = (struct decode_made){0};
	if (!st)
		*out = (struct decode_made){.id = made->chosen,
					    .count = made->state.made,
					    .stopped = made->state.stopped != 0,
					    .infinite = made->state.infinite};
	return st;
}

int decode_in_flight(const struct decode *d)
{
	return (int)(d->enqueued - d->fetched);
}

enum status decode_logits(struct decode *d, const float **logits, struct error *err)
{
	const uint64_t size = (uint64_t)d->model->shape.vocab * sizeof(float);
	enum status st = d->logits ? STATUS_OK : gpu_host_alloc(d->device, &d->logits, size, err);

	if (!st)
		st = gpu_stream_copy_from(d->stream, d->logits, d->args.logits, size, err);
	if (!st)
		st = gpu_stream_wait(d->stream, err);
	*logits = d->logits;
	return st;
}
