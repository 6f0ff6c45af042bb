/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode.h's kernels. References: tests/gpu/ref_decode.c.
 *
 * decode_tokens is one kernel a few tokens, not a graph of some hundred: between two steps there is a barrier of the grid
 * (about a microsecond) in place of a kernel's end and begin, and while a block waits there, L2 already fetches the first
 * weights of its next step, so that the memory does not rest. A token's choice (the largest logit) is made by every block for
 * itself.
 */
#include "kernel/decode_attend.cuh"

#define BARRIER_POLLS (1u << 24) /* some ten seconds: the grid is broken, an error is better than a hang */

static __device__ struct room room_of(float4 *shared, uint32_t in_max, uint32_t u_max)
{
	struct room s;

	s.notes = (float *)shared;
	s.x = s.notes + DECODE_MISC;
	s.u = s.x + decode_padded(in_max);
	s.sum = s.u + u_max;
	return s;
}

static __device__ void linear(const struct decode_linear_args *a, const struct room *s)
{
	stage(s, a->x, NULL, a->norm, a->map.in, a->eps);
	if (a->map.adapters && a->kind != DECODE_DOWN)
		stage_u(s, a->u, a->map.adapters * a->map.rank);
	linear_out(a, s);
}

ENTRY void __launch_bounds__(DECODE_THREADS, 1) decode_linear(const __grid_constant__ struct decode_linear_args a)
{
	extern __shared__ float4 shared[];
	const struct room s = room_of(shared, a.map.in, a.map.adapters * a.map.rank);

	linear(&a, &s);
}

ENTRY void __launch_bounds__(DECODE_THREADS, 1) decode_attend(const __grid_constant__ struct decode_attend_args a)
{
	extern __shared__ float4 shared[];
	const struct room s = room_of(shared, 0, 0);

	(void)attend(&a, &s);
}

ENTRY void __launch_bounds__(DECODE_THREADS, 1) decode_rows(const __grid_constant__ struct decode_rows_args a)
{
	extern __shared__ float4 shared[];
	const struct room s = room_of(shared, 0, 0);

	attend_rows(&a, &s);
}

static __device__ uint32_t load_acquire(const uint32_t *p)
{
#ifndef EMULATED
	uint32_t v;

	asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
	return v;
#else
	return emulate_poll(p);
#endif
}

/* What the grid wrote before it, every block reads behind it (past its L1: __ldcg). */
static __device__ void grid_barrier(uint32_t *counter, uint32_t *passed)
{
	const uint32_t target = (*passed += gridDim.x);

	__syncthreads();
	if (threadIdx.x == 0) {
		__threadfence();
		atomicAdd(counter, 1u);
		for (uint32_t polls = 0; (int32_t)(load_acquire(counter) - target) < 0; polls++)
			if (polls == BARRIER_POLLS)
				__trap();
		__threadfence();
	}
	__syncthreads();
}

struct token {
	const struct decode_tokens_args *a;
	struct room room;
	struct decode_layer *layer[2]; /* shared memory: this one's and the next one's tables */
	uint32_t passed;	       /* arrivals at the barrier when all were there last */
	uint32_t position;
	int32_t id;
};

static __device__ void copy_layer(const struct token *t, uint32_t layer)
{
	const uint64_t *from = (const uint64_t *)(t->a->layers + layer);
	uint64_t *to = (uint64_t *)t->layer[layer % 2];

	for (uint32_t i = threadIdx.x; i < sizeof(struct decode_layer) / 8; i += DECODE_THREADS)
		to[i] = from[i];
}

static __device__ void prefetch(const struct decode_map *m, int pairs, uint32_t bytes)
{
	const struct rows r = m->adapters ? rows_of(m->a, m->adapters * m->rank, m->in, m->in, 0)
					  : rows_of(m->w, m->out, m->in, m->ld, pairs);

	prefetch_rows(&r, bytes);
}

/* One map on what is staged by it: adapters first, whose products all blocks need. Behind it the grid meets. */
static __device__ __noinline__ void step(struct token *t, struct decode_linear_args *l, const uint16_t *row,
					 const struct decode_map *next, int next_pairs, uint32_t next_bytes)
{
	stage(&t->room, l->x, row, l->norm, l->map.in, l->eps);
	if (l->map.adapters) {
		const uint32_t kind = l->kind;
		const struct rows r = rows_of(l->map.w, l->map.out, l->map.in, l->map.ld, kind == DECODE_SWIGLU);

		l->kind = DECODE_DOWN;
		linear_out(l, &t->room);
		l->kind = kind;
		prefetch_rows(&r, t->a->prefetch);
		grid_barrier(t->a->barrier, &t->passed);
		stage_u(&t->room, l->u, l->map.adapters * l->map.rank);
	}
	linear_out(l, &t->room);
	if (next)
		prefetch(next, next_pairs, next_bytes);
	grid_barrier(t->a->barrier, &t->passed);
}

static __device__ __noinline__ void attention(struct token *t, const struct decode_layer *l)
{
	const struct decode_tokens_args *a = t->a;
	const struct decode_attend_args at = {a->qkv,	 a->cos_sin, l->q_norm, l->k_norm, l->kv,	a->o,
					      a->part, a->arrived, a->heads,	 t->position, 0};

	(void)attend(&at, &t->room);
	prefetch(&l->o, 0, a->prefetch_o);
	grid_barrier(a->barrier, &t->passed);
}

/* The first layer's input is the token's row of the embedding, which one block writes down for the sum behind attention. */
static __device__ const uint16_t *first_input(const struct token *t)
{
	const uint16_t *row = t->a->embed + (uint64_t)(uint32_t)t->id * t->a->hidden;

	if (blockIdx.x == 0)
		for (uint32_t i = threadIdx.x; i < t->a->hidden; i += DECODE_THREADS)
			t->a->x[i] = bf16_at(row, i);
	return row;
}

static __device__ void run_layer(struct token *t, uint32_t i)
{
	const struct decode_tokens_args *a = t->a;
	const struct decode_layer *l = t->layer[i % 2];
	const int more = i + 1 < a->layer_count;
	const struct decode_map head = {a->head, NULL, NULL, {NULL, NULL, NULL}, {0, 0, 0}, {0, 0, 0}, a->vocab, a->hidden,
					a->hidden, 0, 0, 0};
	const uint16_t *row = i ? NULL : first_input(t);

	{
		struct decode_linear_args s = {l->qkv, i ? a->x : NULL, l->norm1, NULL, a->qkv, a->u, NULL, a->heads.eps,
					       DECODE_PLAIN, 0, 0};
		step(t, &s, row, NULL, 0, 0);
	}
	if (more)
		copy_layer(t, i + 1);
	attention(t, l);
	{
		struct decode_linear_args s = {l->o, a->o, NULL, a->x, a->x2, a->u, NULL, 0, DECODE_ADD, 0, 0};

		step(t, &s, NULL, &l->gate_up, 1, a->prefetch);
	}
	{
		struct decode_linear_args s = {l->gate_up, a->x2, l->norm2, NULL, a->h, a->u, NULL, a->heads.eps,
					       DECODE_SWIGLU, 0, 0};

		step(t, &s, NULL, &l->down, 0, a->prefetch);
	}
	{
		struct decode_linear_args s = {l->down, a->h, NULL, a->x2, a->x, a->u, NULL, 0, DECODE_ADD, 0, 0};

		step(t, &s, NULL, more ? &t->layer[(i + 1) % 2]->qkv : &head, 0, a->prefetch);
	}
}

static __device__ void run_head(struct token *t)
{
	const struct decode_tokens_args *a = t->a;
	struct decode_linear_args s = {{a->head, NULL, NULL, {NULL, NULL, NULL}, {0, 0, 0}, {0, 0, 0}, a->vocab, a->hidden,
					a->hidden, 0, 0, 0},
				       a->x, a->norm, NULL, a->logits, NULL, a->best, a->heads.eps, DECODE_LOGITS, a->limit, 0};

	copy_layer(t, 0); /* of the next token; step's first barrier stands before its use */
	step(t, &s, NULL, &t->layer[0]->qkv, 0, a->prefetch);
}

/* All blocks choose, each for itself. */
static __device__ int32_t choose(struct token *t, uint32_t *infinite)
{
	const struct decode_tokens_args *a = t->a;
	uint32_t *flag = (uint32_t *)t->room.notes + 64;
	float best = 0;
	int32_t id = -1;

	if (threadIdx.x == 0)
		*flag = 0;
	__syncthreads();
	for (uint32_t i = threadIdx.x; i < gridDim.x; i += DECODE_THREADS) {
		const float value = __ldcg(&a->best[i].value);
		const int32_t candidate = __ldcg(&a->best[i].id);

		if (__ldcg(&a->best[i].infinite))
			*flag = 1;
		if (is_better(value, candidate, best, id)) {
			best = value;
			id = candidate;
		}
	}
	best_of_block(&t->room, &best, &id);
	*infinite = *flag;
	__syncthreads();
	return id < 0 ? 0 : id;
}

static __device__ int stops(const struct decode_tokens_args *a, int32_t id)
{
	for (uint32_t i = 0; i < a->stops; i++)
		if (a->stop[i] == id)
			return 1;
	return 0;
}

static __device__ uint32_t in_max(const struct decode_tokens_args *a, uint32_t ffn)
{
	const uint32_t heads = a->heads.heads * a->heads.head_dim, most = heads > a->hidden ? heads : a->hidden;

	return ffn > most ? ffn : most;
}

static __device__ uint32_t u_max(const struct decode_layer *l)
{
	const struct decode_map *maps[4] = {&l->qkv, &l->o, &l->gate_up, &l->down};
	uint32_t most = 0;

	for (int i = 0; i < 4; i++) {
		const uint32_t rows = maps[i]->adapters * maps[i]->rank;

		most = rows > most ? rows : most;
	}
	return (most + 3) / 4 * 4;
}

ENTRY void __launch_bounds__(DECODE_THREADS, 1) decode_tokens(const __grid_constant__ struct decode_tokens_args a)
{
	extern __shared__ float4 shared[];
	const uint32_t tables = 2 * sizeof(struct decode_layer) / sizeof(float4);
	struct token t = {&a, {NULL, NULL, NULL, NULL}, {(struct decode_layer *)shared, (struct decode_layer *)shared + 1}, 0,
			  a.state->position, a.state->token};
	uint32_t made = 0, infinite = 0, stopped = a.state->stopped;

	if (stopped) {
		if (blockIdx.x == 0 && threadIdx.x == 0)
			a.state->made = 0;
		return;
	}
	t.room = room_of(shared + tables, in_max(&a, a.layers->down.in), u_max(a.layers));
	copy_layer(&t, 0);
	__syncthreads();
	while (made < a.count && !stopped && !infinite) {
		for (uint32_t i = 0; i < a.layer_count; i++)
			run_layer(&t, i);
		run_head(&t);
		t.id = choose(&t, &infinite);
		t.position++;
		made++;
		stopped = stops(&a, t.id);
		if (blockIdx.x == 0 && threadIdx.x == 0)
			a.chosen[made - 1] = t.id;
	}
	if (blockIdx.x == 0 && threadIdx.x == 0) {
		const struct decode_state end = {t.id, t.position, made, stopped, infinite ? made : 0, {0, 0, 0}};

		*a.state = end;
	}
}
