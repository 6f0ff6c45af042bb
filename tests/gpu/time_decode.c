/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rates of the decode kernels: each map of two models alone, on weights that come from memory each time, then whole tokens on a
 * model's worth of random weights, at several lengths of the cache and depths of the rings. Bytes are the weights'.
 */
#include "decode_bed.h"
#include "kernel/test_data/gemm.h"
#include <math.h>
#include <stdlib.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

struct size {
	const char *name;
	uint32_t hidden, layers, heads, kv_heads, head_dim, ffn, vocab, rank;
	bool e4m3;
};
static const struct size sizes[] = {
	{"qwen2-7b", 3584, 28, 28, 4, 128, 18944, 152064, 0, false},
	{"qwen2-7b E4M3", 3584, 28, 28, 4, 128, 18944, 152064, 0, true},
	{"qwen2-7b r 64", 3584, 28, 28, 4, 128, 18944, 152064, 64, false},
	{"smollm2-135m", 576, 30, 9, 3, 64, 1536, 49152, 0, false},
};

static uint32_t qkv_rows(const struct size *s)
{
	return (s->heads + 2 * s->kv_heads) * s->head_dim;
}

/* Device memory, handed out from its begin. */
struct pool {
	gpu_ptr base;
	uint64_t size, used;
};

static uint64_t take(struct pool *p, uint64_t bytes)
{
	const uint64_t at = p->used;

	p->used += (bytes + 255) / 256 * 256;
	return p->base + at;
}

static enum status pool_make(struct kit *k, struct pool *p, uint64_t size, struct error *err)
{
	struct gpu_kernel *fill;
	enum status st = gpu_alloc(k->device, &p->base, size, err);

	p->size = size;
	p->used = 0;
	if (!st)
		st = gpu_kernel(k->device, &fill, "operand", "operand_fill", err);
	if (!st)
		st = gpu_launch_1d(fill, k->stream, 8 * gpu_sm_count(k->device), 256, 0,
				   &(struct operand_fill_args){p->base, size / 2, k->seed, 1, OPERAND_BF16, OPERAND_RANDOM, 0},
				   err);
	return st ? st : gpu_stream_wait(k->stream, err);
}

struct one_map {
	struct kit *kit;
	struct gpu_kernel *kernel;
	struct decode_linear_args args;
	const struct pool *pool;
	uint64_t bytes, at;
	uint32_t shared;
};

static enum status call_map(void *arg, struct error *err)
{
	struct one_map *m = arg;

	m->args.map.w = m->pool->base + m->at;
	m->at += (m->bytes + 255) / 256 * 256;
	if (m->at + m->bytes > m->pool->size)
		m->at = 0;
	return gpu_launch_1d(m->kernel, m->kit->stream, gpu_sm_count(m->kit->device), DECODE_THREADS, m->shared, &m->args, err);
}

static enum status time_map(struct kit *k, const struct pool *pool, gpu_ptr vectors, const struct size *s, const char *name,
			    uint32_t in, uint32_t out, uint32_t kind, bool norm, struct error *err)
{
	const bool e4m3 = s->e4m3 && out != s->vocab; /* the head is BF16 */
	struct one_map m = {.kit = k, .pool = pool, .bytes = (uint64_t)in * out * (e4m3 ? 1 : 2)};
	double ns;
	enum status st = gpu_kernel(k->device, &m.kernel, "decode", "decode_linear", err);

	m.args = (struct decode_linear_args){.map = {.w_scale = e4m3 ? vectors : 0, .out = out, .in = in, .ld = in},
					     .x = vectors,
					     .norm = norm ? pool->base : 0,
					     .residual = vectors,
					     .out = vectors + (1 << 20),
					     .kind = kind};
	m.args.ring = decode_front(NULL, decode_work(out, e4m3 ? in / 2 : in, gpu_sm_count(k->device)), 0);
	m.args.depth = decode_depth(m.args.ring, 232448);
	m.shared = decode_shared(m.args.ring, m.args.depth);
	if (!st)
		st = kit_time(k, call_map, &m, 60, &ns, err);
	if (!st)
		printf("time decode %-14s %-8s %6u -> %6u  %8.2f us  %7.1f GB/s\n", s->name, name, in, out, ns / 1e3,
		       (double)m.bytes / ns);
	return st;
}

static enum status time_maps(struct kit *k, const struct pool *pool, gpu_ptr vectors, const struct size *s, struct error *err)
{
	const uint32_t q = s->heads * s->head_dim;
	enum status st = time_map(k, pool, vectors, s, "qkv", s->hidden, qkv_rows(s), DECODE_PLAIN, true, err);

	if (!st)
		st = time_map(k, pool, vectors, s, "o", q, s->hidden, DECODE_ADD, false, err);
	if (!st)
		st = time_map(k, pool, vectors, s, "gate_up", s->hidden, 2 * s->ffn, DECODE_SWIGLU, true, err);
	if (!st)
		st = time_map(k, pool, vectors, s, "down", s->ffn, s->hidden, DECODE_ADD, false, err);
	return st ? st : time_map(k, pool, vectors, s, "head", s->hidden, s->vocab, DECODE_PLAIN, true, err);
}

enum { POSITIONS = 8256, PAGE_BITS = 5, PAGES = POSITIONS >> PAGE_BITS };

struct whole {
	struct kit *kit;
	struct gpu_kernel *kernel;
	struct decode_token_args args;
	int32_t lists[2 + PAGES]; /* token, position, page numbers */
	uint64_t bytes; /* of weights, a token */
	uint32_t depth; /* of the rings, at most */
};

static struct decode_map map_of(struct whole *w, struct pool *p, const struct size *s, uint32_t in, uint32_t out,
				uint32_t adapters, bool bias)
{
	const uint64_t bytes = (uint64_t)in * out * (s->e4m3 ? 1 : 2);
	struct decode_map m = {.w = take(p, bytes),
			       .w_scale = s->e4m3 ? take(p, (uint64_t)out * 4) : 0,
			       .bias = bias ? take(p, (uint64_t)out * 2) : 0,
			       .out = out,
			       .in = in,
			       .ld = in};

	w->bytes += bytes;
	if (!s->rank)
		return m;
	m.a = take(p, (uint64_t)adapters * s->rank * in * 2);
	m.adapters = adapters;
	m.rank = s->rank;
	m.scale = 1e-3f;
	for (uint32_t i = 0; i < adapters; i++) {
		m.begin[i] = out / adapters * i;
		m.end[i] = out / adapters * (i + 1);
		m.b[i] = take(p, (uint64_t)out * s->rank * 2);
	}
	w->bytes += ((uint64_t)adapters * in + out) * s->rank * 2;
	return m;
}

static uint32_t larger(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

static uint32_t work_most(const struct size *s, uint32_t grid)
{
	const uint32_t q = s->heads * s->head_dim, wide = larger(s->ffn, q);
	const uint32_t square = larger(decode_work(s->hidden, wide, grid), decode_work(3 * s->rank, wide, grid));

	return larger(square, larger(decode_work(s->vocab, s->hidden, grid), decode_work(2 * s->ffn, s->hidden, grid)));
}

static enum status whole_make(struct whole *w, struct pool *p, const struct size *s, struct error *err)
{
	struct decode_layer layer[64];
	struct decode_token_args *a = &w->args;
	const uint32_t grid = gpu_sm_count(w->kit->device), q = s->heads * s->head_dim;

	w->bytes = (uint64_t)s->vocab * s->hidden * 2;
	for (uint32_t i = 0; i < s->layers; i++)
		layer[i] = (struct decode_layer){
			.qkv = map_of(w, p, s, s->hidden, qkv_rows(s), 3, true),
			.o = map_of(w, p, s, q, s->hidden, 1, false),
			.gate_up = map_of(w, p, s, s->hidden, 2 * s->ffn, 2, false),
			.down = map_of(w, p, s, s->ffn, s->hidden, 1, false),
			.norm1 = take(p, s->hidden * 2),
			.norm2 = take(p, s->hidden * 2),
			.kv = take(p, (uint64_t)POSITIONS * 4 * s->kv_heads * s->head_dim),
		};
	*a = (struct decode_token_args){
		.layers = take(p, sizeof(layer)),
		.embed = take(p, (uint64_t)s->vocab * s->hidden * 2),
		.norm = take(p, s->hidden * 2),
		.head = take(p, (uint64_t)s->vocab * s->hidden * 2),
		.cos_sin = take(p, (uint64_t)POSITIONS * s->head_dim * 4),
		.token = take(p, sizeof(w->lists)),
		.barrier = take(p, 4),
		.arrived = take(p, 4 * s->kv_heads),
		.x = take(p, 4 * s->hidden),
		.x2 = take(p, 4 * s->hidden),
		.qkv = take(p, 4 * qkv_rows(s)),
		.o = take(p, 4 * q),
		.h = take(p, 4 * s->ffn),
		.u = take(p, 4 * 3 * s->rank),
		.part = take(p, (uint64_t)4 * DECODE_SPLITS * s->heads * (s->head_dim + 2)),
		.logits = take(p, 4 * s->vocab),
		.heads = {s->heads, s->kv_heads, s->head_dim, 1e-6f, 1 / sqrtf((float)s->head_dim), 0},
		.layer_count = s->layers,
		.hidden = s->hidden,
		.vocab = s->vocab,
		.page_bits = PAGE_BITS,
	};
	a->position = a->token + sizeof(int32_t);
	a->page = a->token + 2 * sizeof(int32_t);
	w->lists[0] = 1;
	for (int32_t i = 0; i < PAGES; i++) /* 97 has no common divisor with the number of pages */
		w->lists[2 + i] = i * 97 % PAGES;
	a->ring = decode_front(&a->heads, work_most(s, grid), (3 * s->rank + 3) / 4 * 4);
	w->depth = decode_depth(a->ring, 232448);
	return p->base ? gpu_copy_to(w->kit->device, a->layers, layer, sizeof(layer), err) : STATUS_OK;
}

static enum status call_whole(void *arg, struct error *err)
{
	struct whole *w = arg;
	struct gpu_stream *stream = w->kit->stream;

	return gpu_launch_together(w->kernel, stream, gpu_sm_count(w->kit->device), DECODE_THREADS,
				   decode_shared(w->args.ring, w->args.depth), &w->args, err);
}

static enum status set_position(struct whole *w, uint32_t position, struct error *err)
{
	w->lists[1] = (int32_t)position;
	return gpu_copy_to(w->kit->device, w->args.token, w->lists, sizeof(w->lists), err);
}

static enum status clear_counters(struct whole *w, struct error *err)
{
	struct gpu_stream *stream = w->kit->stream;
	enum status st = gpu_stream_fill32(stream, w->args.barrier, 0, 1, err);

	if (!st)
		st = gpu_stream_fill32(stream, w->args.arrived, 0, w->args.heads.kv_heads, err);
	return st ? st : gpu_stream_wait(stream, err);
}

/* Tokens in the cache, and slots of a ring; 0: as many as there is room for. */
static const struct {
	uint32_t length, depth;
} runs[] = {{300, 0}, {300, 1}, {300, 2}, {300, 3}, {32, 0}, {1024, 0}, {8192, 0}};

/* Cycles of each kind of step's four parts in one token, the mean over layers: waiting to begin is the step before's. */
static enum status trace(struct kit *k, struct whole *w, const struct size *s, struct error *err)
{
	static const char *const steps[] = {"qkv", "attend", "o", "gate_up", "down", "head"};
	const uint32_t stamps = (5 * s->layers + 1) * DECODE_STAMPS;
	uint64_t *clock = calloc(stamps, sizeof(*clock));
	gpu_ptr to = 0;
	enum status st = clock ? gpu_alloc(k->device, &to, stamps * sizeof(*clock), err)
			       : error_set(err, STATUS_NO_RESOURCE, "no memory for stamps");

	w->args.trace = to;
	if (!st)
		st = set_position(w, runs[0].length, err);
	if (!st)
		st = call_whole(w, err);
	if (!st)
		st = gpu_stream_wait(w->kit->stream, err);
	if (!st)
		st = gpu_copy_from(k->device, clock, to, stamps * sizeof(*clock), err);
	for (uint32_t kind = 0; !st && kind < COUNT(steps); kind++) {
		double part[DECODE_STAMPS] = {0};
		const uint32_t times = kind < 5 ? s->layers - 1 : 1;

		for (uint32_t i = 0; i < times; i++) {
			const uint64_t *at = clock + ((kind < 5 ? 5 * (i + 1) + kind : 5 * s->layers)) * DECODE_STAMPS;

			part[0] += (double)(at[0] - at[-1]);
			for (int j = 1; j < DECODE_STAMPS; j++)
				part[j] += (double)(at[j] - at[j - 1]);
		}
		printf("trace decode %-14s %-8s cycles: between %.0f, staged %.0f, computed %.0f, all there %.0f\n", s->name,
		       steps[kind], part[0] / times, part[1] / times, part[2] / times, part[3] / times);
	}
	w->args.trace = 0;
	gpu_free(k->device, &to);
	free(clock);
	return st;
}

static enum status time_tokens(struct kit *k, const struct size *s, struct error *err)
{
	struct whole w = {.kit = k};
	struct pool pool = {0}, plan = {0};
	enum status st = gpu_kernel(k->device, &w.kernel, "decode", s->e4m3 ? "decode_token_e4m3" : "decode_token", err);

	if (!st)
		st = whole_make(&w, &plan, s, err); /* counts what it takes */
	if (!st)
		st = pool_make(k, &pool, plan.used, err);
	if (!st)
		st = whole_make(&w, &pool, s, err);
	if (!st)
		st = clear_counters(&w, err);
	for (size_t i = 0; !st && i < COUNT(runs); i++) {
		double ns;

		w.args.depth = runs[i].depth ? runs[i].depth : w.depth;
		st = set_position(&w, runs[i].length, err);
		if (!st)
			st = kit_time(k, call_whole, &w, 32, &ns, err);
		if (!st)
			printf("time decode %-14s token at %5u, rings of %u  %8.1f us  %7.1f tokens/s  %7.1f GB/s\n",
			       s->name, runs[i].length, w.args.depth, ns / 1e3, 1e9 / ns, (double)w.bytes / ns);
	}
	w.args.depth = w.depth;
	if (!st)
		st = trace(k, &w, s, err);
	gpu_free(k->device, &pool.base);
	return st;
}

enum status decode_time(struct kit *k, struct error *err)
{
	struct pool pool = {0};
	gpu_ptr vectors = 0;
	enum status st = gpu_alloc(k->device, &vectors, 4 << 20, err);

	if (!st)
		st = gpu_stream_fill32(k->stream, vectors, 0x3c003c00u, 1 << 20, err);
	if (!st)
		st = pool_make(k, &pool, k->bytes, err);
	for (size_t i = 0; !st && i < COUNT(sizes); i++)
		if (!sizes[i].rank)
			st = time_maps(k, &pool, vectors, &sizes[i], err);
	gpu_free(k->device, &pool.base);
	gpu_free(k->device, &vectors);
	for (size_t i = 0; !st && i < COUNT(sizes); i++)
		st = time_tokens(k, &sizes[i], err);
	return st;
}
