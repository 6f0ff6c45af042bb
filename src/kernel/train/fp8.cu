/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernels of fp8.h. All are bound by memory. A thread has eight elements of a tile, so a group of 16 lanes has
 * a tile of a row, and finds its largest magnitude by shuffles. The code is C except for nvcc's keywords, so
 * tests/gpu/emulate.h can run it on a CPU. References: tests/gpu/ref_train_fp8.c.
 */
#include "kernel/train/fp8_square.cuh"

#define KEEP 2 /* vectors of a row per thread: train_row_threads */
#define WIDE_LANES (TILE / 16)

/* Quantizes a group's tile of a row. v: the lane's elements, rounded to BF16, 0 where there are none. `mine` is
 * false if the group has no tile; `left`: the row's elements from the lane's own on. */
static __device__ __forceinline__ void put_tile(const struct train_fp8_rows *q, const float v[8], uint32_t row,
						int64_t col, int64_t left, int mine)
{
	const struct factor f = factor_of(most_of_lanes(most_of8(v, 0), LANES));
	float scaled[8];

	if (!mine)
		return;
	if (threadIdx.x % LANES == 0)
		put_scale(q->scale + col / TILE * q->step + row, f.scale, q->overflows);
	if (left <= 0)
		return;
#pragma unroll
	for (int j = 0; j < 8; j++)
		scaled[j] = v[j] * f.inverse;
	*(uint2 *)(q->to + row * q->ld + col) = eight_e4m3(scaled);
}

/* A lane's place in a matrix: tile number `tile` of all rows' tiles. */
struct tile_place {
	uint32_t row;
	int64_t col, left; /* left <= 0: the lane has no columns */
	int mine;
};

static __device__ __forceinline__ struct tile_place place_of(uint64_t tile, uint32_t rows, uint32_t cols)
{
	const uint32_t per_row = (cols + TILE - 1) / TILE;
	struct tile_place p;

	p.mine = tile < (uint64_t)rows * per_row;
	p.row = (uint32_t)(tile / per_row);
	p.col = (int64_t)(tile - (uint64_t)p.row * per_row) * TILE + threadIdx.x % LANES * 8;
	p.left = p.mine ? (int64_t)cols - p.col : 0;
	return p;
}

/* First tile of the thread's group in a turn; a turn has two per group. All groups of a block have equally many turns,
 * because all lanes of a warp shuffle together. */
#define FOR_TURNS(base, rows, cols)                                                                                \
	for (uint64_t base = (uint64_t)blockIdx.x * (blockDim.x / LANES) * 2;                                      \
	     base < (uint64_t)(rows) * (((cols) + TILE - 1) / TILE);                                               \
	     base += (uint64_t)gridDim.x * (blockDim.x / LANES) * 2)
#define TILE_OF(base, i) ((base) + (i) * (blockDim.x / LANES) + threadIdx.x / LANES)

static __device__ __forceinline__ uint4 load_or_0(const uint16_t *p, int64_t left, int wide)
{
	return left > 0 ? load8(p, left, wide) : make_uint4(0, 0, 0, 0);
}

ENTRY void __launch_bounds__(TRAIN_THREADS)
	train_fp8_quantize(const __grid_constant__ struct train_fp8_quantize_args a)
{
	const int wide = wide16(a.x, a.ld_x * 2);

	FOR_TURNS(base, a.rows, a.cols)
	{
		struct tile_place p[2];
		uint4 x[2];

#pragma unroll
		for (int i = 0; i < 2; i++) {
			p[i] = place_of(TILE_OF(base, i), a.rows, a.cols);
			x[i] = load_or_0(a.x + p[i].row * a.ld_x + p[i].col, p[i].left, wide);
		}
#pragma unroll
		for (int i = 0; i < 2; i++) {
			float v[8];

			unpack8(v, x[i]);
			put_tile(&a.y, v, p[i].row, p[i].col, p[i].left, p[i].mine);
		}
	}
}

ENTRY void __launch_bounds__(1024, 1) train_fp8_rmsnorm(const __grid_constant__ struct train_fp8_norm_args a)
{
	const uint32_t row = blockIdx.x;
	const int wide_x = wide16(a.x, a.ld_x * 2), wide_y = wide16(a.y, a.ld_y * 2), wide_w = wide16(a.w, 0);
	uint4 kept[KEEP];
	float sum = 0, rstd;

#pragma unroll
	for (int i = 0; i < KEEP; i++) {
		const int64_t col = (int64_t)(i * blockDim.x + threadIdx.x) * 8;

		kept[i] = load_or_0(a.x + row * a.ld_x + col, a.cols - col, wide_x);
	}
#pragma unroll
	for (int i = 0; i < KEEP; i++) {
		float v[8];

		unpack8(v, kept[i]);
#pragma unroll
		for (int j = 0; j < 8; j++)
			sum += v[j] * v[j];
	}
	sum = block_sum_f32(sum, (float *)shared);
	rstd = 1.0f / sqrtf(sum * (1.0f / (float)a.cols) + a.eps);
	if (threadIdx.x == 0)
		a.rstd[row * a.ld_rstd] = rstd;
#pragma unroll
	for (int i = 0; i < KEEP; i++) {
		const int64_t col = (int64_t)(i * blockDim.x + threadIdx.x) * 8, left = a.cols - col;
		float v[8], w[8];

		unpack8(v, kept[i]);
		unpack8(w, load_or_0(a.w + col, left, wide_w));
#pragma unroll
		for (int j = 0; j < 8; j++)
			v[j] = j < left ? rounded(w[j] * rounded(v[j] * rstd)) : 0;
		if (left > 0)
			store8(a.y + row * a.ld_y + col, pack8(v), left, wide_y);
		put_tile(&a.q, v, row, col, left, col / TILE * TILE < a.cols);
	}
}

static __device__ __forceinline__ float sigmoid_of(float x)
{
	return __fdividef(1.0f, 1.0f + __expf(-x)); /* as in rows.cu */
}

ENTRY void __launch_bounds__(TRAIN_THREADS) train_fp8_swiglu(const __grid_constant__ struct train_fp8_swiglu_args a)
{
	const int wide = wide16(a.gate_up, a.ld_gate_up * 2), wide_up = wide && a.ffn % 8 == 0;
	const int wide_h = wide16(a.h, a.ld_h * 2);

	FOR_TURNS(base, a.rows, a.ffn)
	{
		struct tile_place p[2];
		uint4 gates[2], ups[2];

#pragma unroll
		for (int i = 0; i < 2; i++) {
			const uint16_t *gate;

			p[i] = place_of(TILE_OF(base, i), a.rows, a.ffn);
			gate = a.gate_up + p[i].row * a.ld_gate_up + p[i].col;
			gates[i] = load_or_0(gate, p[i].left, wide);
			ups[i] = load_or_0(gate + a.ffn, p[i].left, wide_up);
		}
#pragma unroll
		for (int i = 0; i < 2; i++) {
			float g[8], u[8];

			unpack8(g, gates[i]);
			unpack8(u, ups[i]);
#pragma unroll
			for (int j = 0; j < 8; j++)
				g[j] = rounded(g[j] * sigmoid_of(g[j]) * u[j]);
			if (p[i].left > 0 && a.h)
				store8(a.h + p[i].row * a.ld_h + p[i].col, pack8(g), p[i].left, wide_h);
			put_tile(&a.q, g, p[i].row, p[i].col, p[i].left, p[i].mine);
		}
	}
}

ENTRY void __launch_bounds__(TRAIN_THREADS)
	train_fp8_swiglu_bwd(const __grid_constant__ struct train_fp8_swiglu_args a)
{
	const int wide = wide16(a.gate_up, a.ld_gate_up * 2), wide_h = wide16(a.h, a.ld_h * 2);
	const int wide_again = wide16(a.h_again, a.ld_h_again * 2);

	FOR_TURNS(base, a.rows, a.ffn)
	{
		struct tile_place p[2];
		uint4 gates[2], ups[2], dhs[2];

#pragma unroll
		for (int i = 0; i < 2; i++) {
			const uint16_t *gate;

			p[i] = place_of(TILE_OF(base, i), a.rows, a.ffn);
			gate = a.gate_up + p[i].row * a.ld_gate_up + p[i].col;
			gates[i] = load_or_0(gate, p[i].left, wide);
			ups[i] = load_or_0(gate + a.ffn, p[i].left, wide);
			dhs[i] = load_or_0(a.h + p[i].row * a.ld_h + p[i].col, p[i].left, wide_h);
		}
#pragma unroll
		for (int i = 0; i < 2; i++) {
			uint16_t *gate = a.gate_up + p[i].row * a.ld_gate_up + p[i].col;
			float g[8], u[8], dh[8], h[8];

			unpack8(g, gates[i]);
			unpack8(u, ups[i]);
			unpack8(dh, dhs[i]);
#pragma unroll
			for (int j = 0; j < 8; j++) {
				const float s = sigmoid_of(g[j]), silu = g[j] * s;

				h[j] = silu * u[j];
				g[j] = rounded(dh[j] * u[j] * (s + silu * (1.0f - s)));
				u[j] = rounded(dh[j] * silu);
			}
			if (p[i].left > 0) {
				store8(gate, pack8(g), p[i].left, wide);
				store8(gate + a.ffn, pack8(u), p[i].left, wide);
			}
			if (p[i].left > 0 && a.h_again)
				store8(a.h_again + p[i].row * a.ld_h_again + p[i].col, pack8(h), p[i].left,
				       wide_again);
			put_tile(&a.q, g, p[i].row, p[i].col, p[i].left, p[i].mine);
			put_tile(&a.q, u, p[i].row, p[i].col + a.ffn, p[i].left, p[i].mine);
		}
	}
}

ENTRY void __launch_bounds__(TRAIN_THREADS)
	train_fp8_weights(const __grid_constant__ struct train_fp8_weights_args a)
{
	const struct weights_tile t = weights_tile_of(&a.q);
	const int wide = wide16(a.w, a.ld_w * 2);
	uint4 kept[TURNS_OF(LANES)];

#pragma unroll
	for (int i = 0; i < TURNS_OF(LANES); i++) {
		const int64_t row = weights_row(&t, i);

		kept[i] = load_or_0(a.w + row * a.ld_w + t.col, row < a.q.rows ? t.left : 0, wide);
	}
	put_weights(&a.q, &t, kept);
}

ENTRY void __launch_bounds__(TRAIN_THREADS)
	train_fp8_transpose(const __grid_constant__ struct train_fp8_transpose_args a)
{
	const uint32_t per_row = (a.cols + TILE - 1) / TILE, down = blockIdx.x / per_row;
	const uint32_t across = blockIdx.x - down * per_row;
	const int64_t row0 = (int64_t)down * TILE, col0 = (int64_t)across * TILE;
	const int column = threadIdx.x % WIDE_LANES * 16;
	const int64_t left = a.cols - col0 - column;
	uint8_t *turned = (uint8_t *)shared + TRAIN_FP8_TURNED_AT;
	uint4 kept[TURNS_OF(WIDE_LANES)];

#pragma unroll
	for (int i = 0; i < TURNS_OF(WIDE_LANES); i++) {
		const int64_t row = row0 + i * ROWS_OF(WIDE_LANES) + threadIdx.x / WIDE_LANES;

		kept[i] = make_uint4(0, 0, 0, 0);
		if (row < a.rows && left > 0)
			kept[i] = *(const uint4 *)(a.from + row * a.ld_from + col0 + column);
	}
#pragma unroll
	for (int i = 0; i < TURNS_OF(WIDE_LANES); i++) {
		const int row = i * ROWS_OF(WIDE_LANES) + threadIdx.x / WIDE_LANES;

		turn8(turned, column, row, make_uint2(kept[i].x, kept[i].y));
		turn8(turned, column + 8, row, make_uint2(kept[i].z, kept[i].w));
	}
	if (threadIdx.x == 0)
		a.scale_to[across * a.step_to + down] = a.scale[down * a.step + across];
	__syncthreads();
	put_turned(turned, a.to + col0 * a.ld_to + row0, a.ld_to, TILE, a.cols - col0, a.rows - row0);
}

ENTRY void __launch_bounds__(TRAIN_THREADS)
	train_fp8_columns(const __grid_constant__ struct train_fp8_columns_args a)
{
	const struct square t = square_of(a.rows, a.cols);
	const int wide = wide16(a.x, a.ld_x * 2);
	uint4 kept[TURNS_OF(LANES)];

#pragma unroll
	for (int i = 0; i < TURNS_OF(LANES); i++) {
		const int64_t row = t.row0 + square_row(i);

		kept[i] = load_or_0(a.x + row * a.ld_x + t.col, row < a.rows ? t.left : 0, wide);
	}
	if (a.q.to) {
#pragma unroll
		for (int i = 0; i < TURNS_OF(LANES); i++)
			put_square_row(&a.q, &t, i, kept[i]);
	}
	put_square_columns(&a.y, &t, kept);
}

/* The gradient of gate, of up, and h, of eight elements each. */
static __device__ __forceinline__ void swiglu_bwd8(uint4 *gate, uint4 *up, uint4 *dh)
{
	float g[8], u[8], d[8];

	unpack8(g, *gate);
	unpack8(u, *up);
	unpack8(d, *dh);
#pragma unroll
	for (int j = 0; j < 8; j++) {
		const float s = sigmoid_of(g[j]), silu = g[j] * s, x = d[j];

		d[j] = silu * u[j];
		g[j] = x * u[j] * (s + silu * (1.0f - s));
		u[j] = x * silu;
	}
	*gate = pack8(g);
	*up = pack8(u);
	*dh = pack8(d);
}

/* The gradient of gate stays in registers until its columns are quantized. That of up and h wait in shared
 * memory, where each thread reads only what it wrote itself. */
ENTRY void __launch_bounds__(TRAIN_THREADS, 2)
	train_fp8_swiglu_bwd_columns(const __grid_constant__ struct train_fp8_swiglu_columns_args a)
{
	struct square t = square_of(a.rows, a.ffn);
	const int wide = wide16(a.gate_up, a.ld_gate_up * 2), wide_dh = wide16(a.dh, a.ld_dh * 2);
	uint4 *up_kept = (uint4 *)((uint8_t *)shared + TRAIN_FP8_SQUARE_SHARED) + threadIdx.x;
	uint4 *h_kept = up_kept + TURNS_OF(LANES) * TRAIN_THREADS;
	struct square of_up;
	uint4 kept[TURNS_OF(LANES)];

	t.cols = 2 * (int64_t)a.ffn;
	of_up = t;
	of_up.col0 += a.ffn;
	of_up.col += a.ffn;
#pragma unroll
	for (int i = 0; i < TURNS_OF(LANES); i += 2) {
		uint4 up[2], dh[2];

#pragma unroll
		for (int k = 0; k < 2; k++) {
			const int64_t row = t.row0 + square_row(i + k), left = row < a.rows ? t.left : 0;
			const uint16_t *gate = a.gate_up + row * a.ld_gate_up + t.col;

			kept[i + k] = load_or_0(gate, left, wide);
			up[k] = load_or_0(gate + a.ffn, left, wide);
			dh[k] = load_or_0(a.dh + row * a.ld_dh + t.col, left, wide_dh);
		}
#pragma unroll
		for (int k = 0; k < 2; k++) {
			swiglu_bwd8(&kept[i + k], &up[k], &dh[k]);
			put_square_row(&a.q, &t, i + k, kept[i + k]);
			put_square_row(&a.q, &of_up, i + k, up[k]);
			up_kept[(i + k) * TRAIN_THREADS] = up[k];
			h_kept[(i + k) * TRAIN_THREADS] = dh[k];
		}
	}
	put_square_columns(&a.y, &t, kept);
#pragma unroll
	for (int i = 0; i < TURNS_OF(LANES); i++)
		kept[i] = up_kept[i * TRAIN_THREADS];
	put_square_columns(&a.y, &of_up, kept);
#pragma unroll
	for (int i = 0; i < TURNS_OF(LANES); i++)
		kept[i] = h_kept[i * TRAIN_THREADS];
	put_square_columns(&a.again, &t, kept);
}

ENTRY void __launch_bounds__(TRAIN_THREADS) train_fp8_add_bias(const __grid_constant__ struct train_fp8_bias_args a)
{
	const int wide = wide16(a.y, a.ld_y * 2), wide_bias = wide16(a.bias, 0);

	FOR_TURNS(base, a.rows, a.cols)
	{
		struct tile_place p[2];
		uint4 y[2], bias[2];

#pragma unroll
		for (int i = 0; i < 2; i++) {
			p[i] = place_of(TILE_OF(base, i), a.rows, a.cols);
			y[i] = load_or_0(a.y + p[i].row * a.ld_y + p[i].col, p[i].left, wide);
			bias[i] = load_or_0(a.bias + p[i].col, p[i].left, wide_bias);
		}
#pragma unroll
		for (int i = 0; i < 2; i++) {
			float v[8], w[8];

			unpack8(v, y[i]);
			unpack8(w, bias[i]);
#pragma unroll
			for (int j = 0; j < 8; j++)
				v[j] += w[j];
			if (p[i].left > 0)
				store8(a.y + p[i].row * a.ld_y + p[i].col, pack8(v), p[i].left, wide);
		}
	}
}
