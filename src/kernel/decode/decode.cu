/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernels of decode.h. References: tests/gpu/ref_decode.c.
 *
 * decode_tokens is one kernel for a few tokens instead of a graph of some hundred kernels. A grid barrier
 * replaces the end of one kernel and the begin of the next. Each warp's ring of weights continues across it
 * (linear.cuh), so the memory is never idle. Every block determines the next token (the largest logit) by
 * itself.
 */
#include "kernel/decode/attention.cuh"

#define BARRIER_POLLS (1u << 24) /* about ten seconds; then the grid is broken, and an error is better than a hang */

static __device__ __forceinline__ struct room room_of(float4 *shared, uint32_t u_max)
{
	struct room s;

	s.notes = (float *)shared;
	s.u = s.notes + DECODE_MISC;
	s.x = s.u + u_max;
	return s;
}

static __device__ __forceinline__ struct rows *rings_rows(const struct room *s)
{
	return (struct rows *)(s->notes + DECODE_NOTES);
}

ENTRY void __launch_bounds__(DECODE_THREADS, 1) decode_linear(const __grid_constant__ struct decode_linear_args a)
{
	extern __shared__ float4 shared[];
	const struct room s = room_of(shared, (a.map.adapters * a.map.rank + 3) / 4 * 4);
	const int down = a.kind == DECODE_DOWN;
	const struct rows r = rows_of_map(&a.map, down, a.kind == DECODE_SWIGLU);
	const struct step step = {&a.map, a.x, a.residual, NULL, a.norm, a.out, a.u, a.best, a.eps, a.kind, a.limit};
	struct feed f;

	feed_open(&f, rings_rows(&s), (char *)shared + a.ring, a.depth);
	feed_part(&f, &r);
	feed_fill(&f);
	stage(&s, a.x, NULL, a.norm, a.map.in);
	if (a.map.adapters && !down)
		stage_u(&s, a.u, a.map.adapters * a.map.rank);
	linear_out(&f, &step, down, &s);
}

ENTRY void __launch_bounds__(DECODE_THREADS, 1) decode_attend(const __grid_constant__ struct decode_attend_args a)
{
	extern __shared__ float4 shared[];
	const struct room s = room_of(shared, 0);

	(void)attend(&a, &s);
}

ENTRY void __launch_bounds__(DECODE_THREADS, 1) decode_rows(const __grid_constant__ struct decode_rows_args a)
{
	extern __shared__ float4 shared[];
	const struct room s = room_of(shared, 0);

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

static __device__ void add_release(uint32_t *p)
{
#ifndef EMULATED
	asm volatile("red.release.gpu.global.add.u32 [%0], 1;" : : "l"(p) : "memory");
#else
	atomicAdd(p, 1u);
#endif
}

/* After this barrier every block reads what the grid wrote before it (bypassing its L1: __ldcg). */
static __device__ void grid_barrier(uint32_t *counter, uint32_t *passed)
{
	const uint32_t target = (*passed += gridDim.x);

	__syncthreads();
	if (threadIdx.x == 0) {
		add_release(counter);
		for (uint32_t polls = 0; (int32_t)(load_acquire(counter) - target) < 0; polls++)
			if (polls == BARRIER_POLLS)
				__trap();
	}
	__syncthreads();
}

/* A block's state while it generates tokens, in shared memory. A turn is one token of the launch. */
struct board {
	struct decode_tokens_args a;
	struct decode_layer layer[2]; /* tables of two layers; layer l is at l % 2 */
	struct decode_map head;
	struct decode_attend_args attend;
	struct order ready; /* the last layer whose table is loaded; layer_count: the head */
	uint32_t u_max, infinite;
	struct feed feed[DECODE_WARPS]; /* saved here while attention uses the registers */
};
static_assert(sizeof(struct board) <= DECODE_BOARD, "what the host leaves room for");
static_assert(sizeof(struct decode_layer) / 8 <= DECODE_THREADS, "a thread copies a word of the next table");
static_assert(sizeof(struct rows) == 48, "twelve words of DECODE_MISC");

static __device__ void copy_words(void *to, const void *from, uint32_t bytes)
{
	for (uint32_t i = threadIdx.x; i < bytes / 8; i += DECODE_THREADS)
		((uint64_t *)to)[i] = ((const uint64_t *)from)[i];
}

static __device__ void copy_layer(struct board *b, uint32_t layer)
{
	copy_words(&b->layer[layer % 2], b->a.layers + layer, sizeof(struct decode_layer));
}

static __device__ uint64_t clock_now(void)
{
#ifndef EMULATED
	return (uint64_t)clock64();
#else
	return 0;
#endif
}

static __device__ __forceinline__ void stamp(const struct board *b, uint32_t step, uint32_t which)
{
	if (b->a.trace && blockIdx.x == 0 && threadIdx.x == 0)
		b->a.trace[step * DECODE_STAMPS + which] = clock_now();
}

/* The next part in the order. It does not skip the A of a linear layer without adapters. */
static __device__ __forceinline__ struct order order_next(struct order o, uint32_t layers)
{
	if (o.layer == layers) {
		o.turn++;
		o.layer = o.part = 0;
	} else if (++o.part == 8) {
		o.layer++;
		o.part = o.layer == layers;
	}
	return o;
}

/* Opens the part after the open one. Returns false if its table is not loaded yet, or if there is none. */
static __device__ __forceinline__ int feed_next(struct feed *f)
{
	const struct board *b = f->board;
	const struct decode_map *maps;
	struct order o;
	struct rows r;

	if (!b)
		return 0;
	o = order_next(f->order, b->a.layer_count);
	if (o.turn > b->ready.turn || (o.turn == b->ready.turn && o.layer > b->ready.layer))
		return 0;
	maps = o.layer == b->a.layer_count ? &b->head : &b->layer[o.layer % 2].qkv; /* four adjacent structs */
	if (o.part % 2 == 0 && !maps[o.part / 2].adapters)
		o.part++;
	r = rows_of_map(maps + o.part / 2, o.part % 2 == 0, o.part == 5);
	f->order = o;
	feed_part(f, &r);
	return 1;
}

/* The linear layer of a layer's step 0, 2, 3 or 4 (1 is attention), or the head. The first layer's input is
 * the token's row of the embedding. One block writes it to memory for the residual after attention. */
static __device__ __forceinline__ struct step step_of(const struct board *b, uint32_t layer, uint32_t kind, int32_t id)
{
	const struct decode_tokens_args *a = &b->a;
	const struct decode_layer *l = &b->layer[layer % 2];
	struct step s = {&l->qkv, a->x, NULL, NULL, l->norm1, a->qkv, a->u, a->best, a->heads.eps, DECODE_PLAIN, a->limit};

	if (layer == a->layer_count) {
		s.map = &b->head;
		s.norm = a->norm;
		s.out = a->logits;
		s.kind = DECODE_LOGITS;
	} else if (kind == 2) {
		s.map = &l->o;
		s.x = a->o;
		s.residual = a->x;
		s.norm = NULL;
		s.out = a->x2;
		s.kind = DECODE_ADD;
	} else if (kind == 3) {
		s.map = &l->gate_up;
		s.x = a->x2;
		s.norm = l->norm2;
		s.out = a->h;
		s.kind = DECODE_SWIGLU;
	} else if (kind == 4) {
		s.map = &l->down;
		s.x = a->h;
		s.residual = a->x2;
		s.norm = NULL;
		s.out = a->x;
		s.kind = DECODE_ADD;
	} else if (layer == 0) {
		s.x = NULL;
		s.row = a->embed + (uint64_t)(uint32_t)id * a->hidden;
		if (blockIdx.x == 0)
			for (uint32_t i = threadIdx.x; i < a->hidden; i += DECODE_THREADS)
				a->x[i] = bf16_at(s.row, i);
	}
	return s;
}

static __device__ __forceinline__ void attention(struct board *b, struct feed *f, const struct room *s, uint32_t layer,
						 uint32_t position)
{
	const struct decode_layer *l = &b->layer[layer % 2];
	const int copies = layer + 1 < b->a.layer_count && threadIdx.x < sizeof(struct decode_layer) / 8;
	uint64_t word = 0; /* a word of the next layer's table, in flight while this one's is used */

	if (threadIdx.x % 32 == 0)
		b->feed[threadIdx.x / 32] = *f;
	if (copies)
		word = ((const uint64_t *)(b->a.layers + layer + 1))[threadIdx.x];
	if (threadIdx.x == 0) {
		b->attend.q_norm = l->q_norm;
		b->attend.k_norm = l->k_norm;
		b->attend.kv = l->kv;
		b->attend.position = position;
	}
	__syncthreads();
	(void)attend(&b->attend, s);
	if (copies)
		((uint64_t *)&b->layer[(layer + 1) % 2])[threadIdx.x] = word;
	if (threadIdx.x == 0)
		b->ready.layer = layer + 1; /* read only after the barrier */
	*f = b->feed[threadIdx.x / 32];
}

/* Every block determines the next token by itself. */
static __device__ __forceinline__ int32_t choose(struct board *b, const struct room *s)
{
	float best = 0;
	int32_t id = -1;

	if (threadIdx.x == 0)
		b->infinite = 0;
	__syncthreads();
	for (uint32_t i = threadIdx.x; i < gridDim.x; i += DECODE_THREADS) {
		const float value = __ldcg(&b->a.best[i].value);
		const int32_t candidate = __ldcg(&b->a.best[i].id);

		if (__ldcg(&b->a.best[i].infinite))
			b->infinite = 1;
		if (is_better(value, candidate, best, id)) {
			best = value;
			id = candidate;
		}
	}
	best_of_block(s, &best, &id);
	return id < 0 ? 0 : id;
}

static __device__ int stops(const struct decode_tokens_args *a, int32_t id)
{
	for (uint32_t i = 0; i < a->stops; i++)
		if (a->stop[i] == id)
			return 1;
	return 0;
}

/* Called after the arguments and the first layer's table are copied. */
static __device__ void board_open(struct board *b)
{
	const struct decode_tokens_args *a = &b->a;
	const struct decode_attend_args attend = {a->qkv,  a->cos_sin, NULL,	 NULL, NULL, a->o,
						  a->part, a->arrived, a->heads, 0,    0};
	const struct decode_map head = {a->head, NULL, NULL, {NULL, NULL, NULL}, {0, 0, 0}, {0, 0, 0}, a->vocab, a->hidden,
					a->hidden, 0, 0, 0};
	const struct decode_map *maps = &b->layer[0].qkv;

	b->attend = attend;
	b->head = head;
	b->ready.turn = b->ready.layer = 0;
	b->u_max = 0;
	for (int i = 0; i < 4; i++)
		if (maps[i].adapters * maps[i].rank > b->u_max)
			b->u_max = (maps[i].adapters * maps[i].rank + 3) / 4 * 4;
}

/* Runs one linear layer or attention, then the barrier. */
static __device__ __forceinline__ void take_step(struct board *b, struct feed *f, const struct room *s, uint32_t layer,
						 uint32_t kind, uint32_t position, int32_t id, uint32_t *passed)
{
	const uint32_t number = 5 * layer + kind;

	stamp(b, number, 0);
	if (kind == 1) {
		stamp(b, number, 1);
		attention(b, f, s, layer, position);
	} else {
		const struct step p = step_of(b, layer, kind, id);
		const uint32_t u = p.map->adapters * p.map->rank;

		stage(s, p.x, p.row, p.norm, p.map->in);
		stamp(b, number, 1);
		for (int down = u > 0; down >= 0; down--) {
			linear_out(f, &p, down, s);
			if (down) {
				grid_barrier(b->a.barrier, passed);
				stage_u(s, p.u, u);
			}
		}
	}
	stamp(b, number, 2);
	grid_barrier(b->a.barrier, passed);
	stamp(b, number, 3);
}

ENTRY void __launch_bounds__(DECODE_THREADS, 1) decode_tokens(const __grid_constant__ struct decode_tokens_args a)
{
	extern __shared__ float4 shared[];
	struct board *b = (struct board *)shared;
	uint32_t position = a.state->position, turn = 0, passed = 0, stopped = a.state->stopped;
	int32_t id = a.state->token;
	struct room s;
	struct feed f;

	if (stopped) {
		if (blockIdx.x == 0 && threadIdx.x == 0)
			a.state->made = 0;
		return;
	}
	copy_words(&b->a, &a, sizeof(a));
	copy_words(&b->layer[0], a.layers, sizeof(struct decode_layer));
	__syncthreads();
	if (threadIdx.x == 0)
		board_open(b);
	__syncthreads();
	s = room_of(shared + DECODE_BOARD / 16, b->u_max);
	feed_open(&f, rings_rows(&s), (char *)shared + b->a.ring, b->a.depth);
	f.board = b;
	f.order.turn = f.order.layer = 0;
	f.order.part = 0xffffffffu;
	feed_fill(&f);
	do {
		for (uint32_t layer = 0, kind = 0; layer <= b->a.layer_count;) {
			if (layer == b->a.layer_count) {
				copy_layer(b, 0); /* table of the next token's first layer; staging waits for it */
				if (threadIdx.x == 0 && turn + 1 < b->a.count) {
					b->ready.turn = turn + 1;
					b->ready.layer = 0;
				}
			}
			take_step(b, &f, &s, layer, kind, position, id, &passed);
			kind = kind == 4 || layer == b->a.layer_count ? 0 : kind + 1;
			layer += kind == 0;
		}
		id = choose(b, &s);
		stopped = stops(&b->a, id);
		if (blockIdx.x == 0 && threadIdx.x == 0)
			b->a.chosen[turn] = id;
		position++;
		turn++;
	} while (turn < b->a.count && !stopped && !b->infinite);
	copy_wait(0);
	if (blockIdx.x == 0 && threadIdx.x == 0) {
		const struct decode_state end = {id, position, turn, stopped, b->infinite ? turn : 0, {0, 0, 0}};

		*b->a.state = end;
	}
}
