/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The small kernels of a step that generates text: embedding, norm, RoPE with the cache's write, SwiGLU. They
 * are made for few rows (1 .. some hundred), where a kernel lasts about as long as its launch. Each may be
 * launched early (gpu_launch_early): it waits for the kernel before it only when it needs that kernel's
 * results. Activations and weights are BF16, matrices are row-major, ld is in
 * elements. A null address means that the operand is absent. rows * cols / 8 < 2^32.
 */
#ifndef KERNEL_STEP_ROWS_H
#define KERNEL_STEP_ROWS_H
#include "kernel/paged/scale.h"

enum {
	STEP_THREADS = 256,
	STEP_ROPE_THREADS = 128,
	STEP_NORM_COLS_MAX = 16384,
	STEP_HEAD_DIM_MAX = 256,
	STEP_NORM_SHARED = 256, /* bytes of shared memory of step_rmsnorm and of step_swiglu_e4m3 and _wide */
	/* Of step_swiglu_e4m3: threads, so that two blocks share an SM, and most columns. */
	STEP_FFN_THREADS = 512,
	STEP_FFN_MAX = 5 * 8 * STEP_FFN_THREADS,
	STEP_FFN_WIDE_THREADS = 1024,
	STEP_FFN_WIDE_MAX = 4 * 8 * STEP_FFN_WIDE_THREADS,
	/* Of step_quantize: most threads, so that two blocks share an SM, and most columns. */
	STEP_QUANTIZE_THREADS = 640,
	STEP_QUANTIZE_MAX = 4 * 8 * STEP_QUANTIZE_THREADS,
};

/* step_embed: x[t] = table[id], with id = token[t], or last[-1 - token[t]] if token[t] is below 0. An id
 * outside 0 .. vocab - 1 gives a row of zeros. Grid: step_blocks(rows, cols) of STEP_THREADS. */
struct step_embed_args {
	DEVICE_PTR(const int32_t) token;  /* (rows) */
	DEVICE_PTR(const int32_t) last;	  /* (places) */
	DEVICE_PTR(const uint16_t) table; /* (vocab, cols), ld_table */
	DEVICE_PTR(uint16_t) x;		  /* (rows, cols), ld_x */
	int64_t ld_table, ld_x;
	uint32_t rows, cols, vocab, places;
};
static_assert(sizeof(struct step_embed_args) == 64, "layout shared with nvcc");

/* step_rmsnorm: y = bf16(w * bf16(x * rstd)), rstd = 1 / sqrt(mean(x^2) + eps), with the bits of
 * train_rmsnorm without `add`. y may be x. With y_e4m3, also y's rows in E4M3: scale[t] = largest magnitude /
 * 448, 1 for a row of zeros, and element = e4m3(number * (448 / largest magnitude)). cols <=
 * STEP_NORM_COLS_MAX. Reads w before it waits. Grid: rows blocks of step_norm_threads(cols). */
struct step_norm_args {
	DEVICE_PTR(const uint16_t) x; /* (rows, cols), ld_x */
	DEVICE_PTR(const uint16_t) w; /* (cols) */
	DEVICE_PTR(uint16_t) y;	      /* (rows, cols), ld_y */
	DEVICE_PTR(float) rstd;	      /* (rows), ld_rstd; 0: absent */
	int64_t ld_x, ld_y, ld_rstd;
	uint32_t rows, cols;
	float eps;
	uint32_t reserved;
	DEVICE_PTR(uint8_t) y_e4m3; /* (rows, cols), ld_e4m3; 0: absent */
	DEVICE_PTR(float) scale;    /* (rows) */
	int64_t ld_e4m3;
};
static_assert(sizeof(struct step_norm_args) == 96, "layout shared with nvcc");

/* step_swiglu: h = bf16(silu(gate) * up), the bits of train_swiglu. Grid: step_blocks(rows, ffn) of
 * STEP_THREADS. step_swiglu_e4m3: the same and h's rows in E4M3, as step_rmsnorm writes y's. ffn <=
 * STEP_FFN_MAX. Grid: rows blocks of STEP_FFN_THREADS. step_swiglu_e4m3_wide: the same with
 * STEP_FFN_WIDE_MAX and STEP_FFN_WIDE_THREADS. A thread requests all that it reads before it writes. */
struct step_swiglu_args {
	DEVICE_PTR(const uint16_t) gate_up; /* (rows, 2 ffn), ld_gate_up: gate, then up */
	DEVICE_PTR(uint16_t) h;		    /* (rows, ffn), ld_h */
	int64_t ld_gate_up, ld_h;
	uint32_t rows, ffn;
	DEVICE_PTR(uint8_t) h_e4m3; /* (rows, ffn), ld_e4m3 */
	DEVICE_PTR(float) scale;    /* (rows) */
	int64_t ld_e4m3;
};
static_assert(sizeof(struct step_swiglu_args) == 64, "layout shared with nvcc");

/*
 * step_rope: of each row of qkv, heads of q are normalized (if q_norm is present) and rotated in place. Heads
 * of k are normalized (k_norm) and rotated, and go with the heads of v to row slot[t] of the cache. qkv keeps
 * its k and v. Norm and rotation are those of train_head_rope.
 * The cache's row is 2 kv_heads head_dim elements: keys of all heads, then values. BF16; or, if `scale` is
 * present, E4M3: scale = largest magnitude / 448 of the head's numbers after their rounding to BF16, element
 * = e4m3(number * (448 / largest magnitude)). A head of zeros has scale 0, and one with a NaN has scale NaN.
 * head_dim: a multiple of 16, at most STEP_HEAD_DIM_MAX. Grid: step_rope_blocks() of STEP_ROPE_THREADS.
 */
struct step_rope_args {
	DEVICE_PTR(uint16_t) qkv;	    /* (rows, (heads + 2 kv_heads) head_dim), ld_qkv */
	DEVICE_PTR(const int32_t) position; /* (rows) */
	DEVICE_PTR(const int32_t) slot;	    /* (rows) */
	DEVICE_PTR(const float) cos_sin;    /* (positions, head_dim), ld_cos_sin: cosines, then sines */
	DEVICE_PTR(const uint16_t) q_norm;  /* (head_dim) */
	DEVICE_PTR(const uint16_t) k_norm;  /* (head_dim) */
	DEVICE_PTR(void) kv;		    /* (slots, 2 kv_heads head_dim), ld_kv */
	DEVICE_PTR(float) scale;	    /* paged_scale_at; 0: the cache is BF16 */
	int64_t ld_qkv, ld_cos_sin, ld_kv, ld_scale;
	uint32_t rows, heads, kv_heads, head_dim;
	float eps;
	uint32_t lanes;	    /* step_head_lanes(head_dim) */
	uint32_t page_bits; /* a page has 1 << page_bits slots */
	uint32_t reserved;
};
static_assert(sizeof(struct step_rope_args) == 128, "layout shared with nvcc");

/* step_adapter_mask: sets u[t][c] to 0 unless c % period / rank is the row's adapter. rank and ld_u are
 * multiples of 8, and u begins at 16 bytes. Grid: step_blocks(rows, cols) of STEP_THREADS. */
struct step_mask_args {
	DEVICE_PTR(const int32_t) adapter; /* (rows); -1: none */
	DEVICE_PTR(uint16_t) u;		   /* (rows, cols), ld_u */
	int64_t ld_u;
	uint32_t rows, cols, period, rank;
};
static_assert(sizeof(struct step_mask_args) == 40, "layout shared with nvcc");

/* step_adapter_scale: y = bf16(ratio[adapter[t]] * y + bias + residual), summed in that order in F32. A row
 * without an adapter has the ratio 1. Grid: step_blocks(rows, cols) of STEP_THREADS. */
struct step_scale_args {
	DEVICE_PTR(const int32_t) adapter;   /* (rows); -1: none. 0: every row has adapter 0 */
	DEVICE_PTR(const float) ratio;	     /* (adapters, cols), ld_ratio */
	DEVICE_PTR(const uint16_t) bias;     /* (cols); 0: absent */
	DEVICE_PTR(const uint16_t) residual; /* (rows, cols), ld_residual; 0: absent */
	DEVICE_PTR(uint16_t) y;		     /* (rows, cols), ld_y */
	int64_t ld_ratio, ld_residual, ld_y;
	uint32_t rows, cols;
};
static_assert(sizeof(struct step_scale_args) == 72, "layout shared with nvcc");

/* step_quantize: rows in E4M3, as step_rmsnorm writes y's. cols <= STEP_QUANTIZE_MAX. cols, ld_x and ld_e4m3
 * are multiples of 8, x begins at 16 bytes and y_e4m3 at 8. Grid: rows blocks of step_quantize_threads(cols).
 */
struct step_quantize_args {
	DEVICE_PTR(const uint16_t) x; /* (rows, cols), ld_x */
	DEVICE_PTR(uint8_t) y_e4m3;   /* (rows, cols), ld_e4m3 */
	DEVICE_PTR(float) scale;      /* (rows) */
	int64_t ld_x, ld_e4m3;
	uint32_t rows, cols;
};
static_assert(sizeof(struct step_quantize_args) == 48, "layout shared with nvcc");

/* One vector of eight elements per thread. */
static inline unsigned step_blocks(uint64_t rows, uint64_t cols)
{
	return (unsigned)((rows * ((cols + 7) / 8) + STEP_THREADS - 1) / STEP_THREADS);
}

/* Two vectors per thread, whole warps: train_row_threads, because the order of a sum depends on it. */
static inline unsigned step_norm_threads(uint64_t cols)
{
	return (unsigned)((cols + 16 * 32 - 1) / (16 * 32) * 32);
}

/* As few vectors per thread as STEP_QUANTIZE_THREADS allow, whole warps. */
static inline unsigned step_quantize_threads(uint64_t cols)
{
	const uint64_t vectors = (cols + 7) / 8,
		       each = (vectors + STEP_QUANTIZE_THREADS - 1) / STEP_QUANTIZE_THREADS;

	return (unsigned)(((vectors + each - 1) / each + 31) / 32 * 32);
}

/* Lanes of a head: 16 numbers each, a power of two. */
static inline unsigned step_head_lanes(unsigned head_dim)
{
	unsigned lanes = 1;

	while (lanes * 16 < head_dim)
		lanes *= 2;
	return lanes;
}

static inline unsigned step_rope_blocks(uint64_t rows, unsigned heads, unsigned kv_heads, unsigned head_dim)
{
	const unsigned groups = STEP_ROPE_THREADS / step_head_lanes(head_dim);

	return (unsigned)((rows * (heads + 2 * kv_heads) + groups - 1) / groups);
}
#endif
