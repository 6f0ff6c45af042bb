/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AdamW with small optimizer states in one pass: read, step in F32, write. Memory bandwidth is the bound.
 * Bytes of an element with a BF16 gradient (F32: 2 more): 8-bit moments 10.1 with weights in BF16, 14.1 with
 * their halves, 16.1 with F32 weights; BF16 moments 14, 18 and 20 likewise. References:
 * tests/gpu/ref_train_states.c.
 */
#include "kernel/philox.cuh"
#include "kernel/train/adamw_states.h"
#include "kernel/train/dynamic_map.h"
#include "kernel/train/vector8.cuh"

enum { ROUND_MOMENTS = 1, ROUND_WEIGHT = 2 }; /* ADAMW_ROUND_* of model/backend/ops.h */

static __device__ const float signed_map[DYNAMIC_CODES] = {DYNAMIC_SIGNED};
static __device__ const float unsigned_map[DYNAMIC_CODES] = {DYNAMIC_UNSIGNED};

/* A map in shared memory, with a number below and above all others, so that every code has neighbours. */
struct shared_map {
	float number[DYNAMIC_CODES + 2];
};

static __device__ void fill_map(shared_map &s, const float *map)
{
	for (int i = threadIdx.x; i < DYNAMIC_CODES; i += blockDim.x)
		s.number[i + 1] = map[i];
	if (threadIdx.x == 0) {
		s.number[0] = -INFINITY;
		s.number[DYNAMIC_CODES + 1] = INFINITY;
	}
}

/* The code of the number nearest to x, |x| <= 1; of two equally near ones the lower. The place within the
 * decade is computed; rounding leaves it at most one off. */
template <bool is_signed> static __device__ uint32_t code_of(const shared_map &map, float x)
{
	const float size = fabsf(x), log10 = __log2f(size) * 0.30103f;
	const int decade = max(0, min(DYNAMIC_DECADES - 1, (int)floorf(log10) + DYNAMIC_DECADES));
	const int parts = 1 << (is_signed ? decade : decade + 1);
	const float inverse = exp2f((float)(DYNAMIC_DECADES - 1 - decade) * 3.32192809f);
	const int place = parts + (int)((size * inverse - 0.1f) * ((float)parts * (1 / 0.9f)));
	int code = !is_signed ? place - 1 : x < 0 ? DYNAMIC_SIGNED_ZERO - place : DYNAMIC_SIGNED_ZERO + place;

	if (!(size < 1)) /* also if the block has an infinity */
		return x > 0 ? DYNAMIC_CODES - 1 : 0;
	code = max(0, min(DYNAMIC_CODES - 1, code));
	while (x > (map.number[code + 1] + map.number[code + 2]) * 0.5f)
		code++;
	while (x <= (map.number[code] + map.number[code + 1]) * 0.5f)
		code--;
	return (uint32_t)code;
}

/* NaN means that the step must be skipped. */
static __device__ float clip_of(const train_states_args &a)
{
	const double norm = sqrt(*a.norm_squares);

	if (!isfinite(norm))
		return __int_as_float(0x7fffffff);
	return a.max_norm > 0 && a.max_norm < norm + 1e-6 ? (float)(a.max_norm / (norm + 1e-6)) : 1.0f;
}

/* As train_adamw. */
static __device__ void step_eight(const train_states_args &a, float clip, const eight &g, eight &m, eight &v,
				  eight &w)
{
	const float keep = 1 - a.lr * a.decay, step = a.lr / a.correction1,
		    root = 1.0f / sqrtf(a.correction2);

#pragma unroll
	for (int j = 0; j < 8; j++) {
		const float d = g.v[j] * clip;

		m.v[j] = a.beta1 * m.v[j] + (1 - a.beta1) * d;
		v.v[j] = a.beta2 * v.v[j] + (1 - a.beta2) * d * d;
		w.v[j] = keep * w.v[j] - step * m.v[j] / (sqrtf(v.v[j]) * root + a.eps);
	}
}

struct words8 {
	uint32_t w[8];
};

/* Random words of eight elements of the flat vector from i on. */
static __device__ words8 random_words(const train_states_args &a, uint32_t use, uint64_t i)
{
	words8 out;

	if (i % 4 == 0) {
#pragma unroll
		for (int k = 0; k < 2; k++) {
			const uint64_t four = i / 4 + k;
			const uint4 q =
				philox4x32(a.seed, (uint32_t)four, (uint32_t)(four >> 32), a.step, use);

			out.w[4 * k] = q.x;
			out.w[4 * k + 1] = q.y;
			out.w[4 * k + 2] = q.z;
			out.w[4 * k + 3] = q.w;
		}
		return out;
	}
#pragma unroll
	for (int j = 0; j < 8; j++) {
		const uint64_t four = (i + j) / 4;
		const uint32_t at = (uint32_t)(i + j) % 4;
		const uint4 q = philox4x32(a.seed, (uint32_t)four, (uint32_t)(four >> 32), a.step, use);

		out.w[j] = at == 0 ? q.x : at == 1 ? q.y : at == 2 ? q.z : q.w;
	}
	return out;
}

/* Adds 16 random bits below the last place that stays, so that the mean of the result is f. */
static __device__ uint32_t rounded_stochastically(float f, uint32_t random)
{
	return isnan(f) ? f32_bf16(f) : (__float_as_uint(f) + (random & 0xffffu)) >> 16;
}

static __device__ void store_stochastically(uint16_t *to, const eight &e, const words8 &random, int shift,
					    int64_t left, bool wide)
{
	uint32_t q[4];

#pragma unroll
	for (int k = 0; k < 4; k++)
		q[k] = rounded_stochastically(e.v[2 * k], random.w[2 * k] >> shift) |
		       rounded_stochastically(e.v[2 * k + 1], random.w[2 * k + 1] >> shift) << 16;
	put8(to, make_uint4(q[0], q[1], q[2], q[3]), left, wide);
}

/* Whether operands can be read 16 bytes at a time. Codes are read eight bytes at a time. */
struct wides {
	bool g, m, w;
};

static __device__ wides wides_of(const train_states_args &a)
{
	const uint64_t moments = a.moments == TRAIN_MOMENTS_CODES ? 8 : 16;

	return wides{(uint64_t)a.g % 16 == 0, ((uint64_t)a.m | (uint64_t)a.v) % moments == 0,
		     ((uint64_t)a.w | (uint64_t)a.rest) % 16 == 0};
}

static __device__ eight load_gradient(const train_states_args &a, uint64_t at, int64_t left, bool wide)
{
	return a.g_bf16 ? load8((const uint16_t *)a.g + at, left, wide)
			: load8((const float *)a.g + at, left, wide);
}

static __device__ eight load_weight(const train_states_args &a, uint64_t at, int64_t left, bool wide)
{
	eight e;

	if (a.weight == TRAIN_WEIGHT_F32)
		return load8((const float *)a.w + at, left, wide);
	e = load8((const uint16_t *)a.w + at, left, wide);
	if (a.weight == TRAIN_WEIGHT_SPLIT) {
		const uint4 rest = raw8((const uint16_t *)a.rest + at, left, wide);
		const uint32_t low[4] = {rest.x, rest.y, rest.z, rest.w};

#pragma unroll
		for (int j = 0; j < 8; j++)
			e.v[j] = __uint_as_float(__float_as_uint(e.v[j]) +
						 (uint32_t)(int32_t)(int16_t)(low[j / 2] >> j % 2 * 16));
	}
	return e;
}

static __device__ void store_weight(const train_states_args &a, uint64_t at, const eight &w, int64_t left,
				    bool wide)
{
	if (a.weight == TRAIN_WEIGHT_F32) {
		store8((float *)a.w + at, w, left, wide);
	} else if (a.weight == TRAIN_WEIGHT_BF16) {
		store_stochastically((uint16_t *)a.w + at, w, random_words(a, ROUND_WEIGHT, a.first + at), 0,
				     left, wide);
	} else {
		uint32_t high[4], low[4];

#pragma unroll
		for (int k = 0; k < 4; k++) {
			const uint32_t x = __float_as_uint(w.v[2 * k]), y = __float_as_uint(w.v[2 * k + 1]);

			high[k] = (x + 0x8000u) >> 16 | ((y + 0x8000u) & 0xffff0000u);
			low[k] = (x & 0xffffu) | y << 16;
		}
		put8((uint16_t *)a.w + at, make_uint4(high[0], high[1], high[2], high[3]), left, wide);
		put8((uint16_t *)a.rest + at, make_uint4(low[0], low[1], low[2], low[3]), left, wide);
	}
}

extern "C" __global__ void train_adamw_states(train_states_args a)
{
	const uint64_t piece = (uint64_t)blockDim.x * 8;
	const float clip = clip_of(a);
	const wides wide = wides_of(a);

	if (isnan(clip))
		return;
	for (uint64_t first = blockIdx.x * piece; first < a.count; first += gridDim.x * piece) {
		const uint64_t at = first + threadIdx.x * 8;
		const int64_t left = (int64_t)(a.count - at);
		const bool bf16 = a.moments == TRAIN_MOMENTS_BF16;

		if (at >= a.count)
			continue;
		const eight g = load_gradient(a, at, left, wide.g);
		eight m = bf16 ? load8((const uint16_t *)a.m + at, left, wide.m)
			       : load8((const float *)a.m + at, left, wide.m);
		eight v = bf16 ? load8((const uint16_t *)a.v + at, left, wide.m)
			       : load8((const float *)a.v + at, left, wide.m);
		eight w = load_weight(a, at, left, wide.w);

		step_eight(a, clip, g, m, v, w);
		if (bf16) {
			const words8 random = random_words(a, ROUND_MOMENTS, a.first + at);

			store_stochastically((uint16_t *)a.m + at, m, random, 0, left, wide.m);
			store_stochastically((uint16_t *)a.v + at, v, random, 16, left, wide.m);
		} else {
			store8((float *)a.m + at, m, left, wide.m);
			store8((float *)a.v + at, v, left, wide.m);
		}
		store_weight(a, at, w, left, wide.w);
	}
}

static __device__ uint2 load_codes(const uint8_t *p, int64_t left, bool wide)
{
	uint32_t q[2] = {0, 0};

	if (wide && left >= 8)
		return *(const uint2 *)p;
#pragma unroll
	for (int j = 0; j < 8; j++)
		if (j < left)
			q[j / 4] |= (uint32_t)p[j] << j % 4 * 8;
	return make_uint2(q[0], q[1]);
}

static __device__ eight numbers_of(uint2 codes, const shared_map &map, float scale)
{
	eight e;

#pragma unroll
	for (int j = 0; j < 8; j++)
		e.v[j] = map.number[((j < 4 ? codes.x : codes.y) >> j % 4 * 8 & 0xff) + 1] * scale;
	return e;
}

/* The largest magnitude of the warp's block, or the largest finite number. A block of subnormal numbers
 * becomes zero, since their inverse overflows. */
static __device__ float scale_of(const eight &e, int64_t left)
{
	float most = 0;

#pragma unroll
	for (int j = 0; j < 8; j++)
		most = j < left ? fmaxf(most, fabsf(e.v[j])) : most;
#pragma unroll
	for (int offset = 16; offset; offset /= 2)
		most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, offset));
	return most < 1.17549435e-38f ? 0 : fminf(most, 3.40282347e38f);
}

template <bool is_signed>
static __device__ void store_codes(uint8_t *p, const eight &e, const shared_map &map, float scale,
				   int64_t left, bool wide)
{
	const float inverse = scale > 0 ? 1 / scale : 0;
	uint32_t q[2] = {0, 0};

#pragma unroll
	for (int j = 0; j < 8; j++)
		q[j / 4] |= code_of<is_signed>(map, e.v[j] * inverse) << j % 4 * 8;
	if (wide && left >= 8) {
		*(uint2 *)p = make_uint2(q[0], q[1]);
		return;
	}
#pragma unroll
	for (int j = 0; j < 8; j++)
		if (j < left)
			p[j] = (uint8_t)(q[j / 4] >> j % 4 * 8);
}

extern "C" __global__ void __launch_bounds__(TRAIN_THREADS) train_adamw_8bit(train_states_args a)
{
	__shared__ shared_map maps[2];
	const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
	const uint64_t blocks = (a.count + TRAIN_STATES_BLOCK - 1) / TRAIN_STATES_BLOCK;
	const float clip = clip_of(a);
	const wides wide = wides_of(a);

	fill_map(maps[0], signed_map);
	fill_map(maps[1], unsigned_map);
	__syncthreads();
	if (isnan(clip))
		return;
	for (uint64_t block = (uint64_t)blockIdx.x * warps + warp; block < blocks;
	     block += (uint64_t)gridDim.x * warps) {
		const uint64_t at = block * TRAIN_STATES_BLOCK + lane * 8;
		const int64_t left = at < a.count ? (int64_t)(a.count - at) : 0;
		uint8_t *const m_codes = (uint8_t *)a.m + at, *const v_codes = (uint8_t *)a.v + at;
		const uint2 m_old = load_codes(m_codes, left, wide.m),
			    v_old = load_codes(v_codes, left, wide.m);
		const eight g = load_gradient(a, at, left, wide.g);
		eight w = load_weight(a, at, left, wide.w);
		eight m = numbers_of(m_old, maps[0], a.m_scale[block]),
		      v = numbers_of(v_old, maps[1], a.v_scale[block]);
		float m_scale, v_scale;

		step_eight(a, clip, g, m, v, w);
		m_scale = scale_of(m, left);
		v_scale = scale_of(v, left);
		store_codes<true>(m_codes, m, maps[0], m_scale, left, wide.m);
		store_codes<false>(v_codes, v, maps[1], v_scale, left, wide.m);
		store_weight(a, at, w, left, wide.w);
		if (lane == 0) { /* after every lane has read the old ones, which scale_of waits for */
			a.m_scale[block] = m_scale;
			a.v_scale[block] = v_scale;
		}
	}
}
