/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention backward for any GPU from sm_80 on, and the first and last launch of every backward pass.
 *
 *   backward_begin_TYPE_dD, backward_end_TYPE_dD
 *   backward_keys_TYPE_dD     a block has 64 keys, 16 per warp, and takes 64 queries of a head at a time
 *   backward_queries_TYPE_dD  a block has 64 queries, 16 per warp, and takes 64 keys at a time
 *
 * Launch: begin (blocks of 128 rows, heads, batch), end (tiles, heads, batch), the others (blocks, heads,
 * batch) with 128 threads. Accumulators of scores have this warp's keys or queries as rows, so they are the
 * left factor of the next GEMM without a change. Reference: tests/gpu/ref_attention_backward.c.
 */
#include "kernel/attention/backward/place.cuh"
#include "kernel/mma_sync_tile.cuh"

enum { TILE = ATTENTION_BACKWARD_TILE, PAD = ATTENTION_BACKWARD_PAD };

/* -- begin and end -- */

static __device__ __forceinline__ float product(__half, uint32_t x, uint32_t y)
{
	const float2 a = __half22float2(*(const __half2 *)&x), b = __half22float2(*(const __half2 *)&y);

	return a.x * b.x + a.y * b.y;
}

static __device__ __forceinline__ float product(__nv_bfloat16, uint32_t x, uint32_t y)
{
	const float2 a = __bfloat1622float2(*(const __nv_bfloat162 *)&x), b = __bfloat1622float2(*(const __nv_bfloat162 *)&y);

	return a.x * b.x + a.y * b.y;
}

/* A row has D / 8 lanes with 8 elements each. */
template <typename T, int D> static __device__ void begin(const attention_backward_args &a)
{
	enum { LANES = D / 8, ROWS = ATTENTION_BACKWARD_THREADS / LANES };
	const int head = blockIdx.y, first = blockIdx.x * PAD, lane = threadIdx.x % LANES;
	const backward_place p = backward_find(a, blockIdx.z);
	const int64_t at = backward_at(a.o_step, p.batch, head, p.q_row), to = (int64_t)head * a.rows + p.padded;

	if (first >= p.q_len)
		return;
	for (int row = first + threadIdx.x / LANES; row < first + PAD; row += ROWS) {
		const bool there = row < p.q_len;
		uint4 x = {}, y = {};
		float sum, lse;

		if (there) {
			x = *(const uint4 *)((const T *)a.o + at + row * a.o_step.row + lane * 8);
			y = *(const uint4 *)((const T *)a.d_o + at + row * a.o_step.row + lane * 8);
		}
		sum = product(T(), x.x, y.x) + product(T(), x.y, y.y) + product(T(), x.z, y.z) + product(T(), x.w, y.w);
#pragma unroll
		for (int d = LANES / 2; d; d /= 2)
			sum += __shfl_xor_sync(~0u, sum, d);
		if (lane)
			continue;
		lse = there ? a.lse[((int64_t)p.sequence * a.heads + head) * a.q_len + row] : -INFINITY;
		a.lse2[to + row] = lse == -INFINITY ? INFINITY : lse * 1.44269504089f;
		a.sums[to + row] = lse == -INFINITY ? 0.f : sum * a.scale;
	}
	if (!a.sum_q)
		return;
	for (int i = threadIdx.x; i < PAD * D / 4; i += ATTENTION_BACKWARD_THREADS)
		((float4 *)(a.sum_q + (to + first) * D))[i] = float4{};
}

/*
 * A tile of sum_q holds 8 x 128 x 4 floats for each of two warpgroups: for i and thread t the 4 values that
 * the thread has in columns 8 i .. 8 i + 7 of its 64 x 64. With tiles of 64 queries the second warpgroup has
 * columns 64 .. 127. With tiles of 128 it has rows 64 .. 127.
 */
template <typename T, int D> static __device__ void end(const attention_backward_args &a)
{
	enum { QUERIES = ATTENTION_BACKWARD_QUERIES(D), STEP_OF_ROW = D + 8 };
	__shared__ __align__(16) T rows[QUERIES * STEP_OF_ROW];
	const int head = blockIdx.y, first = blockIdx.x * QUERIES, group = threadIdx.x / 128, thread = threadIdx.x % 128;
	const backward_place p = backward_find(a, blockIdx.z);
	const int64_t to = backward_at(a.q_step, p.batch, head, p.q_row);
	const int row = (QUERIES == 128 ? group * 64 : 0) + thread / 32 * 16 + thread % 32 / 4;
	const int column = (QUERIES == 128 ? 0 : group * 64) + thread % 4 * 2;

	if (first >= p.q_len)
		return;
	const float4 *from = (const float4 *)(a.sum_q + ((int64_t)head * a.rows + p.padded + first) * D) + group * 8 * 128;

#pragma unroll
	for (int i = 0; i < 8; i++) {
		const float4 x = from[i * 128 + thread];

		*(uint32_t *)(rows + row * STEP_OF_ROW + column + 8 * i) = pair(T(), x.x, x.y);
		*(uint32_t *)(rows + (row + 8) * STEP_OF_ROW + column + 8 * i) = pair(T(), x.z, x.w);
	}
	__syncthreads();
	for (int i = threadIdx.x; i < QUERIES * D / 8; i += ATTENTION_BACKWARD_THREADS) {
		const int r = i / (D / 8), c = i % (D / 8) * 8;

		if (first + r < p.q_len)
			*(uint4 *)((T *)a.d_q + to + (first + r) * a.q_step.row + c) =
				*(const uint4 *)(rows + r * STEP_OF_ROW + c);
	}
}

/* -- GEMMs of tiles; a warp has 16 rows of the left factor -- */

/* s = x y^T: rows of y become columns of s. */
template <typename T, int D>
static __device__ __forceinline__ void across_rows(float (&s)[TILE / 8][4], uint32_t x, uint32_t y, unsigned warp,
						   unsigned lane)
{
	uint32_t left[4], b[4];

#pragma unroll
	for (int i = 0; i < D / 16; i++) {
		matrix<false>(left, tile_at<D>(x, warp * 16 + lane % 16, 2 * i + lane / 16));
#pragma unroll
		for (int n = 0; n < TILE / 16; n++) {
			matrix<false>(b, tile_at<D>(y, n * 16 + lane / 16 * 8 + lane % 8, 2 * i + lane / 8 % 2));
			step(T(), s[2 * n], left, b[0], b[1]);
			step(T(), s[2 * n + 1], left, b[2], b[3]);
		}
	}
}

/* c += s y, with s rounded to 16 bits. */
template <typename T, int D>
static __device__ __forceinline__ void add_product(float (&c)[D / 8][4], const float (&s)[TILE / 8][4], uint32_t y,
						   unsigned lane)
{
	uint32_t b[4];

#pragma unroll
	for (int n = 0; n < TILE / 16; n++) {
		const uint32_t left[4] = {pair(T(), s[2 * n][0], s[2 * n][1]), pair(T(), s[2 * n][2], s[2 * n][3]),
					  pair(T(), s[2 * n + 1][0], s[2 * n + 1][1]),
					  pair(T(), s[2 * n + 1][2], s[2 * n + 1][3])};

#pragma unroll
		for (int i = 0; i < D / 16; i++) {
			matrix<true>(b, tile_at<D>(y, n * 16 + lane % 16, 2 * i + lane / 16));
			step(T(), c[2 * i], left, b[0], b[1]);
			step(T(), c[2 * i + 1], left, b[2], b[3]);
		}
	}
}

/* Stores this warp's 16 rows of a gradient, as far as they are below `count`. */
template <typename T, int D>
static __device__ __forceinline__ void rows_store(T *to, int64_t step, const float (&c)[D / 8][4], int row, int count,
						  unsigned lane)
{
#pragma unroll
	for (int r = 0; r < 2; r++) {
		if (row + 8 * r >= count)
			continue;
#pragma unroll
		for (int i = 0; i < D / 8; i++)
			*(uint32_t *)(to + (row + 8 * r) * step + i * 8 + lane % 4 * 2) =
				pair(T(), c[i][2 * r], c[i][2 * r + 1]);
	}
}

/* -- dK and dV -- */

/* Replaces scores by probabilities. Rows of s are keys, columns are queries from `column` on. low and high
 * are the first and last query that sees this row's key. */
static __device__ __forceinline__ void shares(float (&s)[TILE / 8][4], const float *lse2, float scale_log2,
					      const int (&low)[2], const int (&high)[2], int column, unsigned lane)
{
#pragma unroll
	for (int i = 0; i < TILE / 8; i++)
#pragma unroll
		for (int e = 0; e < 4; e++) {
			const int c = i * 8 + lane % 4 * 2 + e % 2;
			const bool kept = column + c >= low[e / 2] && column + c <= high[e / 2];

			s[i][e] = kept ? exp2f(s[i][e] * scale_log2 - lse2[c]) : 0.f;
		}
}

template <typename T, int D> static __device__ void keys(const attention_backward_args &a)
{
	extern __shared__ __align__(128) unsigned char backward_shared[];
	const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
	const uint32_t k_tile = (uint32_t)__cvta_generic_to_shared(backward_shared), v_tile = k_tile + TILE * D * 2;
	const uint32_t q_tile = v_tile + TILE * D * 2, o_tile = q_tile + TILE * D * 2;
	float *lse2 = (float *)(backward_shared + 4 * TILE * D * 2), *sums = lse2 + TILE;
	const int first = blockIdx.x * TILE, kv_head = blockIdx.y, group = a.heads / a.kv_heads;
	const backward_place p = backward_find(a, blockIdx.z);
	const int64_t k = backward_at(a.k_step, p.batch, kv_head, p.kv_row), v = backward_at(a.v_step, p.batch, kv_head, p.kv_row);
	const float scale_log2 = a.scale * 1.44269504089f;
	float d_k[D / 8][4] = {}, d_v[D / 8][4] = {};
	const int row = first + warp * 16 + lane / 4;
	int low[2], high[2];

	if (first >= p.kv_len)
		return;
	const backward_range range = queries_of(a, p, first, TILE, TILE);

#pragma unroll
	for (int r = 0; r < 2; r++) {
		low[r] = row + 8 * r < p.kv_len ? row + 8 * r - p.shift - a.right : INT32_MAX;
		high[r] = row + 8 * r - p.shift + a.left;
	}
	tile_load<T, D>(k_tile, (const T *)a.k + k, a.k_step.row, first, p.kv_len);
	tile_load<T, D>(v_tile, (const T *)a.v + v, a.v_step.row, first, p.kv_len);
	for (int head = kv_head * group; head < (kv_head + 1) * group; head++) {
		const T *q = (const T *)a.q + backward_at(a.q_step, p.batch, head, p.q_row);
		const T *d_o = (const T *)a.d_o + backward_at(a.o_step, p.batch, head, p.q_row);

		for (int t = range.from; t < range.to; t++) {
			float s[TILE / 8][4] = {}, d_p[TILE / 8][4] = {};

			__syncthreads(); /* no warp reads the previous tiles any more */
			tile_load<T, D>(q_tile, q, a.q_step.row, t * TILE, p.q_len);
			tile_load<T, D>(o_tile, d_o, a.o_step.row, t * TILE, p.q_len);
			if (threadIdx.x < TILE)
				lse2[threadIdx.x] = a.lse2[(int64_t)head * a.rows + p.padded + t * TILE + threadIdx.x];
			else
				sums[threadIdx.x - TILE] =
					a.sums[(int64_t)head * a.rows + p.padded + t * TILE + threadIdx.x - TILE];
			tile_wait<0>();
			across_rows<T, D>(s, k_tile, q_tile, warp, lane);
			shares(s, lse2, scale_log2, low, high, t * TILE, lane);
			add_product<T, D>(d_v, s, o_tile, lane);
			across_rows<T, D>(d_p, v_tile, o_tile, warp, lane);
#pragma unroll
			for (int i = 0; i < TILE / 8; i++)
#pragma unroll
				for (int e = 0; e < 4; e++)
					s[i][e] *= d_p[i][e] * a.scale - sums[i * 8 + lane % 4 * 2 + e % 2];
			add_product<T, D>(d_k, s, q_tile, lane);
		}
	}
	rows_store<T, D>((T *)a.d_k + k, a.k_step.row, d_k, row, p.kv_len, lane);
	rows_store<T, D>((T *)a.d_v + v, a.v_step.row, d_v, row, p.kv_len, lane);
}

/* -- dQ -- */

template <typename T, int D> static __device__ void queries(const attention_backward_args &a)
{
	extern __shared__ __align__(128) unsigned char backward_shared[];
	const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
	const uint32_t k_tile = (uint32_t)__cvta_generic_to_shared(backward_shared), v_tile = k_tile + TILE * D * 2;
	const uint32_t q_tile = v_tile + TILE * D * 2, o_tile = q_tile + TILE * D * 2;
	const int first = (gridDim.x - 1 - blockIdx.x) * TILE, head = blockIdx.y, kv_head = head / (int)(a.heads / a.kv_heads);
	const backward_place p = backward_find(a, blockIdx.z);
	const int64_t q = backward_at(a.q_step, p.batch, head, p.q_row);
	const T *k = (const T *)a.k + backward_at(a.k_step, p.batch, kv_head, p.kv_row);
	const T *v = (const T *)a.v + backward_at(a.v_step, p.batch, kv_head, p.kv_row);
	const float scale_log2 = a.scale * 1.44269504089f;
	const int row = first + warp * 16 + lane / 4;
	const int64_t numbers = (int64_t)head * a.rows + p.padded + row;
	float d_q[D / 8][4] = {}, lse2[2], sum[2];
	int low[2], high[2];

	if (first >= p.q_len)
		return;
	const backward_range range = keys_of(a, p, first, TILE, TILE);

#pragma unroll
	for (int r = 0; r < 2; r++) {
		lse2[r] = a.lse2[numbers + 8 * r];
		sum[r] = a.sums[numbers + 8 * r];
		low[r] = row + 8 * r + p.shift - a.left;
		high[r] = min(row + 8 * r + p.shift + a.right, p.kv_len - 1);
	}
	tile_load<T, D>(q_tile, (const T *)a.q + q, a.q_step.row, first, p.q_len);
	tile_load<T, D>(o_tile, (const T *)a.d_o + backward_at(a.o_step, p.batch, head, p.q_row), a.o_step.row, first, p.q_len);
	for (int t = range.from; t < range.to; t++) {
		float s[TILE / 8][4] = {}, d_p[TILE / 8][4] = {};

		__syncthreads();
		tile_load<T, D>(k_tile, k, a.k_step.row, t * TILE, p.kv_len);
		tile_load<T, D>(v_tile, v, a.v_step.row, t * TILE, p.kv_len);
		tile_wait<0>();
		across_rows<T, D>(s, q_tile, k_tile, warp, lane);
		across_rows<T, D>(d_p, o_tile, v_tile, warp, lane);
#pragma unroll
		for (int i = 0; i < TILE / 8; i++)
#pragma unroll
			for (int e = 0; e < 4; e++) {
				const int r = e / 2, c = t * TILE + i * 8 + lane % 4 * 2 + e % 2;
				const bool kept = c >= low[r] && c <= high[r];

				s[i][e] = kept ? exp2f(s[i][e] * scale_log2 - lse2[r]) * (d_p[i][e] * a.scale - sum[r]) : 0.f;
			}
		add_product<T, D>(d_q, s, k_tile, lane);
	}
	tile_wait<0>(); /* needed even if no key was seen */
	rows_store<T, D>((T *)a.d_q + q, a.q_step.row, d_q, row, p.q_len, lane);
}

#define ENTRY(KIND, THREADS, NAME, T, D)                                                                               \
	extern "C" __global__ void __launch_bounds__(THREADS) backward_##KIND##_##NAME##_d##D(attention_backward_args a) \
	{                                                                                                              \
		KIND<T, D>(a);                                                                                         \
	}
#define ENTRIES(NAME, T, D)                                                                                            \
	ENTRY(begin, ATTENTION_BACKWARD_THREADS, NAME, T, D)                                                           \
	ENTRY(end, ATTENTION_BACKWARD_THREADS, NAME, T, D)                                                             \
	ENTRY(keys, TILE_THREADS, NAME, T, D)                                                                          \
	ENTRY(queries, TILE_THREADS, NAME, T, D)
ENTRIES(fp16, __half, 64)
ENTRIES(fp16, __half, 128)
ENTRIES(bf16, __nv_bfloat16, 64)
ENTRIES(bf16, __nv_bfloat16, 128)
