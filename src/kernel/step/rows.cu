/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of rows.h. References: tests/gpu/ref_step_rows.c. */
#include "kernel/step/device.cuh"
#include "kernel/step/rows.h"

ENTRY void __launch_bounds__(STEP_THREADS) step_embed(const __grid_constant__ struct step_embed_args a)
{
	const uint32_t vectors = (a.cols + 7) / 8;
	const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x, row = i / vectors;
	const int64_t col = (int64_t)(i - row * vectors) * 8;
	uint4 q = make_uint4(0, 0, 0, 0);
	int32_t id = 0;

	let_next_begin();
	if (row < a.rows)
		id = a.token[row];
	wait_for_earlier();
	if (row >= a.rows)
		return;
	if (id < 0)
		id = (uint32_t)(-1 - id) < a.places ? a.last[-1 - id] : -1;
	if ((uint32_t)id < a.vocab)
		q = load8(a.table + id * a.ld_table + col, a.cols - col, wide16(a.table, a.ld_table * 2));
	store8(a.x + row * a.ld_x + col, q, a.cols - col, wide16(a.x, a.ld_x * 2));
}

static __device__ __forceinline__ void store_e4m3(const float v[8], uint8_t *p, int64_t left, float inverse)
{
	uint32_t w[2] = {0, 0};

#pragma unroll
	for (int j = 0; j < 8; j++)
		w[j / 4] |= to_e4m3(v[j] * inverse) << j % 4 * 8;
	if (left >= 8 && (uint64_t)p % 8 == 0) {
		*(uint2 *)p = make_uint2(w[0], w[1]);
		return;
	}
#pragma unroll
	for (int j = 0; j < 8; j++)
		if (j < left)
			p[j] = (uint8_t)(w[j / 4] >> j % 4 * 8);
}

/* The largest magnitude of v and `most`. */
static __device__ __forceinline__ float largest8(const float v[8], float most)
{
#pragma unroll
	for (int j = 0; j < 8; j++)
		most = fmaxf(most, fabsf(v[j]));
	return most;
}

/* What a row's numbers are multiplied with before they become E4M3, and in thread 0 the row's scale. */
static __device__ __forceinline__ float e4m3_factor(float most, float *scale)
{
	if (threadIdx.x == 0)
		*scale = most > 0 ? most / 448.0f : 1.0f;
	return most > 0 ? 448.0f / most : 1.0f;
}

#define NORM_KEEP 2 /* vectors of a row per thread: step_norm_threads */

ENTRY void __launch_bounds__(1024, 1) step_rmsnorm(const __grid_constant__ struct step_norm_args a)
{
	const uint16_t *x = a.x + blockIdx.x * a.ld_x;
	uint16_t *y = a.y + blockIdx.x * a.ld_y;
	uint4 w[NORM_KEEP], kept[NORM_KEEP];
	float sum = 0, most = 0, rstd, by;

	let_next_begin();
#pragma unroll
	for (int i = 0; i < NORM_KEEP; i++) {
		const int64_t col = (int64_t)(i * blockDim.x + threadIdx.x) * 8;

		w[i] = load8(a.w + col, a.cols - col, wide16(a.w, 0));
	}
	wait_for_earlier();
#pragma unroll
	for (int i = 0; i < NORM_KEEP; i++) {
		const int64_t col = (int64_t)(i * blockDim.x + threadIdx.x) * 8;

		kept[i] = load8(x + col, a.cols - col, wide16(a.x, a.ld_x * 2));
	}
#pragma unroll
	for (int i = 0; i < NORM_KEEP; i++) {
		float v[8];

		unpack8(v, kept[i]);
#pragma unroll
		for (int j = 0; j < 8; j++)
			sum += v[j] * v[j];
	}
	sum = block_sum_f32(sum, (float *)shared);
	rstd = 1.0f / sqrtf(sum * (1.0f / (float)a.cols) + a.eps);
	if (threadIdx.x == 0 && a.rstd)
		a.rstd[blockIdx.x * a.ld_rstd] = rstd;
#pragma unroll
	for (int i = 0; i < NORM_KEEP; i++) {
		const int64_t col = (int64_t)(i * blockDim.x + threadIdx.x) * 8;
		float v[8], weight[8];

		if (col >= a.cols)
			continue;
		unpack8(v, kept[i]);
		unpack8(weight, w[i]);
#pragma unroll
		for (int j = 0; j < 8; j++)
			v[j] = weight[j] * rounded(v[j] * rstd);
		kept[i] = pack8(v);
		store8(y + col, kept[i], a.cols - col, wide16(a.y, a.ld_y * 2));
		unpack8(v, kept[i]);
		most = largest8(v, most);
	}
	if (!a.y_e4m3)
		return;
	by = e4m3_factor(block_largest(most, (float *)shared + 32), a.scale + blockIdx.x);
#pragma unroll
	for (int i = 0; i < NORM_KEEP; i++) {
		const int64_t col = (int64_t)(i * blockDim.x + threadIdx.x) * 8;
		float v[8];

		unpack8(v, kept[i]);
		if (col < a.cols)
			store_e4m3(v, a.y_e4m3 + blockIdx.x * a.ld_e4m3 + col, a.cols - col, by);
	}
}

static __device__ __forceinline__ float silu(float x)
{
	return x * __fdividef(1.0f, 1.0f + __expf(-x)); /* 0 if the exponential exceeds 2^126 */
}

ENTRY void __launch_bounds__(STEP_THREADS) step_swiglu(const __grid_constant__ struct step_swiglu_args a)
{
	const uint32_t vectors = (a.ffn + 7) / 8;
	const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x, row = i / vectors;
	const int64_t col = (int64_t)(i - row * vectors) * 8, left = a.ffn - col;
	const uint16_t *gate = a.gate_up + row * a.ld_gate_up + col;
	const int wide = wide16(a.gate_up, a.ld_gate_up * 2);
	float g[8], u[8];
	uint4 gates, ups;

	let_next_begin();
	wait_for_earlier();
	if (row >= a.rows)
		return;
	gates = load8(gate, left, wide);
	ups = load8(gate + a.ffn, left, wide && a.ffn % 8 == 0);
	unpack8(g, gates);
	unpack8(u, ups);
#pragma unroll
	for (int j = 0; j < 8; j++)
		g[j] = silu(g[j]) * u[j];
	store8(a.h + row * a.ld_h + col, pack8(g), left, wide16(a.h, a.ld_h * 2));
}

/* -- rows whose numbers are all requested at once -- */

/* A thread's `count` vectors of a row; beyond its end zeros. */
static __device__ __forceinline__ void load_row(uint4 *q, const uint16_t *row, int64_t cols, int wide, const int count)
{
	if (wide && cols % 8 == 0) {
#pragma unroll
		for (int i = 0; i < count; i++) {
			const int64_t col = (int64_t)(i * blockDim.x + threadIdx.x) * 8;

			q[i] = col < cols ? *(const uint4 *)(row + col) : make_uint4(0, 0, 0, 0);
		}
		return;
	}
#pragma unroll
	for (int i = 0; i < count; i++) {
		const int64_t col = (int64_t)(i * blockDim.x + threadIdx.x) * 8;

		q[i] = load8(row + col, cols - col, wide);
	}
}

/* The thread's vectors of a row of BF16 to E4M3. `most`: the largest magnitude of those of the thread. */
static __device__ __forceinline__ void store_row_e4m3(const uint4 *q, float most, uint8_t *row, int64_t cols, int wide, float *scale,
						      const int count)
{
	const float by = e4m3_factor(block_largest(most, (float *)shared), scale);

#pragma unroll
	for (int i = 0; i < count; i++) {
		const int64_t col = (int64_t)(i * blockDim.x + threadIdx.x) * 8;
		float v[8];

		if (col >= cols)
			continue;
		unpack8(v, q[i]);
		if (wide)
			*(uint2 *)(row + col) = make_uint2(to_e4m3_pair(v[0] * by, v[1] * by) | to_e4m3_pair(v[2] * by, v[3] * by) << 16,
							   to_e4m3_pair(v[4] * by, v[5] * by) | to_e4m3_pair(v[6] * by, v[7] * by) << 16);
		else
			store_e4m3(v, row + col, cols - col, by);
	}
}

/* `count` vectors of gate and of up per thread, in `kept` and `up`. */
static __device__ __forceinline__ void swiglu_row(const struct step_swiglu_args *a, uint4 *kept, uint4 *up, const int count)
{
	const uint16_t *gate = a->gate_up + blockIdx.x * a->ld_gate_up;
	const int wide = wide16(a->gate_up, a->ld_gate_up * 2), wide_h = wide16(a->h, a->ld_h * 2);
	float most = 0;

	let_next_begin();
	wait_for_earlier();
	load_row(kept, gate, a->ffn, wide, count);
	load_row(up, gate + a->ffn, a->ffn, wide && a->ffn % 8 == 0, count);
#pragma unroll
	for (int i = 0; i < count; i++) {
		const int64_t col = (int64_t)(i * blockDim.x + threadIdx.x) * 8, left = a->ffn - col;
		float g[8], u[8];

		if (left <= 0)
			continue;
		unpack8(g, kept[i]);
		unpack8(u, up[i]);
#pragma unroll
		for (int j = 0; j < 8; j++)
			g[j] = silu(g[j]) * u[j];
		kept[i] = pack8(g);
		store8(a->h + blockIdx.x * a->ld_h + col, kept[i], left, wide_h);
		unpack8(g, kept[i]);
		most = largest8(g, most);
	}
	store_row_e4m3(kept, most, a->h_e4m3 + blockIdx.x * a->ld_e4m3, a->ffn,
		       ((uint64_t)a->h_e4m3 | (uint64_t)a->ld_e4m3 | a->ffn) % 8 == 0, a->scale + blockIdx.x, count);
}

#define SWIGLU_E4M3(NAME, MOST, THREADS, BLOCKS)                                                                               \
	ENTRY void __launch_bounds__(THREADS, BLOCKS) NAME(const __grid_constant__ struct step_swiglu_args a)                 \
	{                                                                                                                      \
		uint4 kept[(MOST) / 8 / (THREADS)], up[(MOST) / 8 / (THREADS)];                                                \
                                                                                                                               \
		swiglu_row(&a, kept, up, (MOST) / 8 / (THREADS));                                                               \
	}

SWIGLU_E4M3(step_swiglu_e4m3, STEP_FFN_MAX, STEP_FFN_THREADS, 2)
SWIGLU_E4M3(step_swiglu_e4m3_wide, STEP_FFN_WIDE_MAX, STEP_FFN_WIDE_THREADS, 1)

#define QUANTIZE_KEEP (STEP_QUANTIZE_MAX / 8 / STEP_QUANTIZE_THREADS) /* vectors of a row per thread */

ENTRY void __launch_bounds__(STEP_QUANTIZE_THREADS, 2) step_quantize(const __grid_constant__ struct step_quantize_args a)
{
	uint4 kept[QUANTIZE_KEEP];
	float most = 0;

	let_next_begin();
	wait_for_earlier();
#pragma unroll
	for (int i = 0; i < QUANTIZE_KEEP; i++) {
		const uint32_t col = (i * blockDim.x + threadIdx.x) * 8;

		kept[i] = col < a.cols ? *(const uint4 *)(a.x + blockIdx.x * a.ld_x + col) : make_uint4(0, 0, 0, 0);
	}
#pragma unroll
	for (int i = 0; i < QUANTIZE_KEEP; i++) {
		float v[8];

		unpack8(v, kept[i]);
		most = largest8(v, most);
	}
	store_row_e4m3(kept, most, a.y_e4m3 + blockIdx.x * a.ld_e4m3, a.cols, 1, a.scale + blockIdx.x, QUANTIZE_KEEP);
}

/* A lane's numbers of a head: eight of the first half and their partners in the second half. */
struct head {
	float a[8], b[8];
	int64_t at;   /* first number of the lane within a half */
	int64_t left; /* numbers of the half from there on */
};

static __device__ __forceinline__ void load_head(struct head *h, const uint16_t *p, uint32_t half, int wide)
{
	unpack8(h->a, h->left > 0 ? load8(p + h->at, h->left, wide) : make_uint4(0, 0, 0, 0));
	unpack8(h->b, h->left > 0 ? load8(p + half + h->at, h->left, wide) : make_uint4(0, 0, 0, 0));
}

static __device__ __forceinline__ void store_head(const struct head *h, uint16_t *p, uint32_t half, int wide)
{
	if (h->left <= 0)
		return;
	store8(p + h->at, pack8(h->a), h->left, wide);
	store8(p + half + h->at, pack8(h->b), h->left, wide);
}

static __device__ __forceinline__ void norm_head(struct head *h, const struct head *w, float rstd)
{
#pragma unroll
	for (int j = 0; j < 8; j++) {
		h->a[j] = w->a[j] * rounded(h->a[j] * rstd);
		h->b[j] = w->b[j] * rounded(h->b[j] * rstd);
	}
}

static __device__ __forceinline__ float head_squares(const struct head *h)
{
	float sum = 0;

#pragma unroll
	for (int j = 0; j < 8; j++)
		sum += h->a[j] * h->a[j] + h->b[j] * h->b[j];
	return sum;
}

static __device__ __forceinline__ void angles8(float v[8], const float *p, int64_t left, int wide)
{
	if (wide && left >= 8) {
		const float4 x = ((const float4 *)p)[0], y = ((const float4 *)p)[1];

		v[0] = x.x, v[1] = x.y, v[2] = x.z, v[3] = x.w;
		v[4] = y.x, v[5] = y.y, v[6] = y.z, v[7] = y.w;
		return;
	}
#pragma unroll
	for (int j = 0; j < 8; j++)
		v[j] = j < left ? p[j] : 0;
}

/* Cosines and sines of a lane's numbers. */
struct angles {
	float c[8], s[8];
};

/* (a, b) = (a c - b s, b c + a s), rounded to BF16. */
static __device__ __forceinline__ void rotate_head(struct head *h, const struct angles *g)
{
#pragma unroll
	for (int j = 0; j < 8; j++) {
		const float x = h->a[j], y = h->b[j];

		h->a[j] = rounded(x * g->c[j] - y * g->s[j]);
		h->b[j] = rounded(y * g->c[j] + x * g->s[j]);
	}
}

/* The larger one; NaN if either is. */
static __device__ __forceinline__ float larger(float x, float y)
{
	return y <= x || x != x ? x : y;
}

/* All lanes of the warp call it; `mine` is false if the group has no head. */
static __device__ __forceinline__ void put_e4m3(const struct step_rope_args *a, const struct head *h, int64_t slot,
						uint32_t which, unsigned lanes, int mine)
{
	const uint32_t half = a->head_dim / 2;
	uint8_t *to = (uint8_t *)a->kv + slot * a->ld_kv + (int64_t)which * a->head_dim;
	float most = 0, inverse;

#pragma unroll
	for (int j = 0; j < 8; j++)
		most = larger(most, larger(fabsf(h->a[j]), fabsf(h->b[j])));
	for (unsigned offset = lanes / 2; offset; offset /= 2)
		most = larger(most, lane_f32(most, (threadIdx.x % 32) ^ offset));
	inverse = most == 0 ? 0 : 448.0f / most;
	if (!mine)
		return;
	if (h->at == 0)
		a->scale[paged_scale_at((uint64_t)slot, which, (uint64_t)a->ld_scale, a->page_bits)] = most / 448.0f;
	if (h->left > 0) {
		store_e4m3(h->a, to + h->at, h->left, inverse);
		store_e4m3(h->b, to + half + h->at, h->left, inverse);
	}
}

/* A group of lanes has one head of q, k or v. */
ENTRY void __launch_bounds__(STEP_ROPE_THREADS, 6) step_rope(const __grid_constant__ struct step_rope_args a)
{
	const unsigned lanes = a.lanes, groups = STEP_ROPE_THREADS / lanes;
	const uint32_t all = a.heads + 2 * a.kv_heads, half = a.head_dim / 2;
	const uint32_t n = blockIdx.x * groups + threadIdx.x / lanes;
	const int mine = n < a.rows * all;
	const uint32_t row = mine ? n / all : 0, which = mine ? n - row * all : 0;
	const int is_q = which < a.heads, turns = which < a.heads + a.kv_heads;
	const uint16_t *norm = is_q ? a.q_norm : a.k_norm;
	uint16_t *x = a.qkv + row * a.ld_qkv + (int64_t)which * a.head_dim;
	const int wide = wide16(a.qkv, a.ld_qkv * 2) && half % 8 == 0;
	struct angles angles;
	struct head h, w;
	int64_t slot;

	h.at = (int64_t)(threadIdx.x % lanes) * 8;
	h.left = (int64_t)half - h.at;
	w.at = h.at;
	w.left = h.left;
	let_next_begin();
	if (norm && turns)
		load_head(&w, norm, half, wide16(norm, 0) && half % 8 == 0);
	slot = a.slot[row];
	if (turns) {
		const float *from = a.cos_sin + a.position[row] * a.ld_cos_sin + h.at;
		const int wide_angles = wide16(a.cos_sin, a.ld_cos_sin * 4) && half % 4 == 0;

		angles8(angles.c, from, h.left, wide_angles);
		angles8(angles.s, from + half, h.left, wide_angles);
	}
	wait_for_earlier();
	load_head(&h, x, half, wide);
	if (a.q_norm || a.k_norm) {
		const float rstd = 1.0f / sqrtf(group_sum(head_squares(&h), lanes) / (float)a.head_dim + a.eps);

		if (norm && turns)
			norm_head(&h, &w, rstd);
	}
	if (turns)
		rotate_head(&h, &angles);
	if (a.scale)
		put_e4m3(&a, &h, slot, is_q ? 0 : which - a.heads, lanes, mine && !is_q);
	if (mine && is_q)
		store_head(&h, x, half, wide);
	else if (mine && !a.scale)
		store_head(&h, (uint16_t *)a.kv + slot * a.ld_kv + (int64_t)(which - a.heads) * a.head_dim, half,
			   wide16(a.kv, a.ld_kv * 2) && half % 8 == 0);
}

ENTRY void __launch_bounds__(STEP_THREADS) step_adapter_mask(const __grid_constant__ struct step_mask_args a)
{
	const uint32_t vectors = (a.cols + 7) / 8;
	const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x, row = i / vectors;
	const uint32_t col = (i - row * vectors) * 8;

	let_next_begin();
	wait_for_earlier();
	if (row < a.rows && (int32_t)(col % a.period / a.rank) != a.adapter[row])
		*(uint4 *)(a.u + row * a.ld_u + col) = make_uint4(0, 0, 0, 0);
}

/* v += eight numbers of BF16. */
static __device__ __forceinline__ void add8(float v[8], const uint16_t *p, int64_t left, int wide)
{
	float w[8];

	unpack8(w, load8(p, left, wide));
#pragma unroll
	for (int j = 0; j < 8; j++)
		v[j] += w[j];
}

ENTRY void __launch_bounds__(STEP_THREADS) step_adapter_scale(const __grid_constant__ struct step_scale_args a)
{
	const uint32_t vectors = (a.cols + 7) / 8;
	const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x, row = i / vectors;
	const int64_t col = (int64_t)(i - row * vectors) * 8, left = a.cols - col;
	const int wide = wide16(a.y, a.ld_y * 2);
	uint16_t *y = a.y + row * a.ld_y + col;
	int32_t adapter;
	float v[8];

	let_next_begin();
	wait_for_earlier();
	if (row >= a.rows)
		return;
	adapter = a.adapter ? a.adapter[row] : 0;
	unpack8(v, load8(y, left, wide));
#pragma unroll
	for (int j = 0; j < 8; j++)
		if (adapter >= 0 && j < left)
			v[j] *= a.ratio[adapter * a.ld_ratio + col + j];
	if (a.bias)
		add8(v, a.bias + col, left, wide16(a.bias, 0));
	if (a.residual)
		add8(v, a.residual + row * a.ld_residual + col, left, wide16(a.residual, a.ld_residual * 2));
	store8(y, pack8(v), left, wide);
}
