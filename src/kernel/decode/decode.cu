/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernels of decode.h. References: tests/gpu/ref_decode.c.
 *
 * decode_token is one kernel for a token instead of a graph of some hundred kernels. A grid barrier replaces
 * the end of one kernel and the begin of the next. Each warp's ring of weights continues across it
 * (weight_ring.cuh), so the memory is never idle.
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
	const struct step step = {&a.map, a.x, a.residual, NULL, a.norm, a.out, a.u, a.eps, a.kind};
	struct feed f;

	feed_open(&f, rings_rows(&s), (char *)shared + a.ring, a.depth, 0);
	feed_part(&f, &r);
	feed_fill(&f);
	linear_stage(&s, &step, 1);
	if (a.map.adapters && !down)
		stage_u(&s, a.u, a.map.adapters * a.map.rank);
	linear_out(&f, &step, down, &s, 1);
}

ENTRY void __launch_bounds__(DECODE_THREADS, 1) decode_attend(const __grid_constant__ struct decode_attend_args a)
{
	extern __shared__ float4 shared[];
	const struct room s = room_of(shared, 0);

	(void)attend(&a, &s);
}

static __device__ uint32_t read_counter(const uint32_t *p)
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
		for (uint32_t polls = 0; (int32_t)(read_counter(counter) - target) < 0; polls++)
			if (polls == BARRIER_POLLS)
				__trap();
	}
	__syncthreads();
}

/* The last barrier: nobody waits, and the counter is 0 again after the launch. */
static __device__ void grid_end(uint32_t *counter, uint32_t passed)
{
	if (threadIdx.x == 0 && atomicAdd(counter, 1u) == passed + gridDim.x - 1)
		*counter = 0;
}

/* A block's state, in shared memory. */
struct board {
	struct decode_token_args a;
	struct decode_layer layer[2]; /* tables of two layers; layer l is at l % 2 */
	struct decode_map head;
	struct decode_attend_args attend;
	uint32_t ready; /* the last layer whose table is loaded; layer_count: the head */
	uint32_t u_max;
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
	if (++o.part == 8) {
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

	if (!b || f->order.layer == b->a.layer_count)
		return 0;
	o = order_next(f->order, b->a.layer_count);
	if (o.layer > b->ready)
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
static __device__ __forceinline__ struct step step_of(const struct board *b, uint32_t layer, uint32_t kind, const uint16_t *row)
{
	const struct decode_token_args *a = &b->a;
	const struct decode_layer *l = &b->layer[layer % 2];
	struct step s = {&l->qkv, a->x, NULL, NULL, l->norm1, a->qkv, a->u, a->heads.eps, DECODE_PLAIN};

	if (layer == a->layer_count) {
		s.map = &b->head;
		s.norm = a->norm;
		s.out = a->logits;
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
		s.row = row;
		if (blockIdx.x == 0)
			for (uint32_t i = threadIdx.x; i < a->hidden; i += DECODE_THREADS)
				a->x[i] = row ? bf16_at(row, i) : 0;
	}
	return s;
}

static __device__ __forceinline__ void attention(struct board *b, struct feed *f, const struct room *s, uint32_t layer)
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
	}
	__syncthreads();
	(void)attend(&b->attend, s);
	if (copies)
		((uint64_t *)&b->layer[(layer + 1) % 2])[threadIdx.x] = word;
	if (threadIdx.x == 0)
		b->ready = layer + 1; /* read only after the barrier */
	*f = b->feed[threadIdx.x / 32];
}

/* The token's row of the embedding; NULL: the id is not in the vocabulary. */
static __device__ const uint16_t *row_of_token(const struct decode_token_args *a)
{
	int32_t id = *a->token;

	if (id < 0)
		id = (uint32_t)(-1 - id) < a->places ? a->last[-1 - id] : -1;
	return (uint32_t)id < a->vocab ? a->embed + (uint64_t)id * a->hidden : NULL;
}

/* Called after the arguments and the first layer's table are copied. */
static __device__ void board_open(struct board *b)
{
	const struct decode_token_args *a = &b->a;
	const struct decode_attend_args attend = {a->qkv, a->cos_sin, NULL, NULL, NULL, a->page, a->o, a->part, a->arrived,
						  a->heads, (uint32_t)*a->position, a->page_bits};
	const struct decode_map head = {a->head, NULL, NULL, NULL, {NULL, NULL, NULL}, {0, 0, 0}, {0, 0, 0}, a->vocab, a->hidden,
					a->hidden, 0, 0, 0};
	const struct decode_map *maps = &b->layer[0].qkv;

	b->attend = attend;
	b->head = head;
	b->ready = 0;
	b->u_max = 0;
	for (int i = 0; i < 4; i++)
		if (maps[i].adapters * maps[i].rank > b->u_max)
			b->u_max = (maps[i].adapters * maps[i].rank + 3) / 4 * 4;
}

/* Runs one linear layer or attention. The caller synchronizes the grid. */
static __device__ __forceinline__ void take_step(struct board *b, struct feed *f, const struct room *s, uint32_t layer,
						 uint32_t kind, const uint16_t *row, uint32_t *passed, const int E4M3)
{
	const uint32_t number = 5 * layer + kind;

	stamp(b, number, 0);
	if (kind == 1) {
		stamp(b, number, 1);
		attention(b, f, s, layer);
	} else {
		const struct step p = step_of(b, layer, kind, row);
		const uint32_t u = p.map->adapters * p.map->rank;

		linear_stage(s, &p, E4M3);
		stamp(b, number, 1);
		for (int down = u > 0; down >= 0; down--) {
			linear_out(f, &p, down, s, E4M3);
			if (down) {
				grid_barrier(b->a.barrier, passed);
				stage_u(s, p.u, u);
			}
		}
	}
	stamp(b, number, 2);
}

static __device__ __forceinline__ void token_run(const struct decode_token_args *arguments, float4 *memory, const int E4M3)
{
	struct board *b = (struct board *)memory;
	const uint16_t *row = row_of_token(arguments);
	uint32_t passed = 0;
	struct room s;
	struct feed f;

	copy_words(&b->a, arguments, sizeof(*arguments));
	copy_words(&b->layer[0], arguments->layers, sizeof(struct decode_layer));
	__syncthreads();
	if (threadIdx.x == 0)
		board_open(b);
	__syncthreads();
	s = room_of(memory + DECODE_BOARD / 16, b->u_max);
	feed_open(&f, rings_rows(&s), (char *)memory + b->a.ring, b->a.depth, E4M3);
	f.board = b;
	f.order.layer = 0;
	f.order.part = 0xffffffffu;
	feed_fill(&f);
	for (uint32_t layer = 0, kind = 0;;) { /* one call of take_step: its code is long */
		take_step(b, &f, &s, layer, kind, row, &passed, E4M3);
		if (layer == b->a.layer_count)
			break;
		grid_barrier(b->a.barrier, &passed);
		stamp(b, 5 * layer + kind, 3);
		kind = kind == 4 ? 0 : kind + 1;
		layer += kind == 0;
	}
	stamp(b, 5 * b->a.layer_count, 3);
	grid_end(b->a.barrier, passed);
}

ENTRY void __launch_bounds__(DECODE_THREADS, 1) decode_token(const __grid_constant__ struct decode_token_args a)
{
	extern __shared__ float4 shared[];

	token_run(&a, shared, 0);
}

ENTRY void __launch_bounds__(DECODE_THREADS, 1) decode_token_e4m3(const __grid_constant__ struct decode_token_args a)
{
	extern __shared__ float4 shared[];

	token_run(&a, shared, 1);
}
