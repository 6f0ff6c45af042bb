/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The number type of the CPU's operations: float in the program. The same sources are compiled again with
 * double for tests, which compare gradients with central differences.
 */
#ifndef MODEL_CPU_REAL_H
#define MODEL_CPU_REAL_H
#include <math.h>
#include "model/cpu/internal.h"

#ifdef MODEL_REAL_F64
typedef double real;
#define REAL_DTYPE DTYPE_F64
#define cpu_zero cpu_zero_f64
#define cpu_gemm cpu_gemm_f64
#define cpu_embed cpu_embed_f64
#define cpu_embed_bwd cpu_embed_bwd_f64
#define cpu_embed_part cpu_embed_part_f64
#define cpu_embed_part_bwd cpu_embed_part_bwd_f64
#define cpu_loss_part cpu_loss_part_f64
#define cpu_loss_join cpu_loss_join_f64
#define cpu_rmsnorm cpu_rmsnorm_f64
#define cpu_rmsnorm_bwd cpu_rmsnorm_bwd_f64
#define cpu_head_norm_rope cpu_head_norm_rope_f64
#define cpu_head_norm_rope_bwd cpu_head_norm_rope_bwd_f64
#define cpu_attention cpu_attention_f64
#define cpu_attention_bwd cpu_attention_bwd_f64
#define cpu_norm_row cpu_norm_row_f64
#define cpu_rotate cpu_rotate_f64
#define cpu_paged_embed cpu_paged_embed_f64
#define cpu_paged_rope cpu_paged_rope_f64
#define cpu_paged_attention cpu_paged_attention_f64
#define cpu_adapter_mask cpu_adapter_mask_f64
#define cpu_adapter_scale cpu_adapter_scale_f64
#define cpu_sample cpu_sample_f64
#define cpu_swiglu cpu_swiglu_f64
#define cpu_swiglu_bwd cpu_swiglu_bwd_f64
#define cpu_cross_entropy cpu_cross_entropy_f64
#define cpu_rows_copy cpu_rows_copy_f64
#define cpu_dropout cpu_dropout_f64
#define cpu_convert cpu_convert_f64
#define cpu_column_sum cpu_column_sum_f64
#define cpu_reduce cpu_reduce_f64
#define cpu_adamw cpu_adamw_f64
#define cpu_product cpu_product_f64
#define cpu_ops cpu_ops_f64
#else
typedef float real;
#define REAL_DTYPE DTYPE_F32
#endif

/* Compiles a loop for several vector widths; the right one is selected when the program starts. That happens
 * before TSan is ready for the selecting code, so TSan builds do without. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__)
#define VECTOR __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define VECTOR
#endif

static inline real *real_row(struct mat m, int64_t row)
{
	return (real *)m.data + row * m.ld;
}

#ifdef MODEL_REAL_F64
static inline double real_exp(double x)
{
	return exp(x);
}
#else
/* exp with an error of at most 2 units in the last place. It has no branches, so that loops can be
 * vectorized. Below -87 the result stays near the smallest normal number. Coefficients: Cephes expf. */
static inline float real_exp(float x)
{
	static const float whole = 0x1.8p23f; /* adding it leaves the nearest integer in the last bits */
	float z, r, p;
	uint32_t bits, zero;

	x = x < -87.0f ? -87.0f : x;
	x = x > 88.0f ? 88.0f : x;
	z = x * 1.44269504088896341f + whole; /* no integer conversion, so that NaN in x gives NaN in p */
	memcpy(&bits, &z, sizeof(bits));
	memcpy(&zero, &whole, sizeof(zero));
	z = z - whole;
	r = x - z * 0.693359375f;
	r = r - z * -2.12194440e-4f;
	p = 1.9875691500e-4f;
	p = p * r + 1.3981999507e-3f;
	p = p * r + 8.3334519073e-3f;
	p = p * r + 4.1665795894e-2f;
	p = p * r + 1.6666665459e-1f;
	p = p * r + 5.0000001201e-1f;
	p = p * r * r + r + 1.0f;
	bits = (bits - zero + 127) << 23;
	memcpy(&z, &bits, sizeof(z));
	return p * z;
}
#endif

/* Entries of the table, one file per subject. */
extern __typeof__(*((struct ops *)0)->zero) cpu_zero;
extern __typeof__(*((struct ops *)0)->gemm) cpu_gemm;
extern __typeof__(*((struct ops *)0)->embed) cpu_embed;
extern __typeof__(*((struct ops *)0)->embed_bwd) cpu_embed_bwd;
extern __typeof__(*((struct ops *)0)->embed_part) cpu_embed_part;
extern __typeof__(*((struct ops *)0)->embed_part_bwd) cpu_embed_part_bwd;
extern __typeof__(*((struct ops *)0)->loss_part) cpu_loss_part;
extern __typeof__(*((struct ops *)0)->loss_join) cpu_loss_join;
extern __typeof__(*((struct ops *)0)->rmsnorm) cpu_rmsnorm;
extern __typeof__(*((struct ops *)0)->rmsnorm_bwd) cpu_rmsnorm_bwd;
extern __typeof__(*((struct ops *)0)->head_norm_rope) cpu_head_norm_rope;
extern __typeof__(*((struct ops *)0)->head_norm_rope_bwd) cpu_head_norm_rope_bwd;
extern __typeof__(*((struct ops *)0)->attention) cpu_attention;
extern __typeof__(*((struct ops *)0)->attention_bwd) cpu_attention_bwd;
extern __typeof__(*((struct ops *)0)->paged_embed) cpu_paged_embed;
extern __typeof__(*((struct ops *)0)->paged_rope) cpu_paged_rope;
extern __typeof__(*((struct ops *)0)->paged_attention) cpu_paged_attention;
extern __typeof__(*((struct ops *)0)->adapter_mask) cpu_adapter_mask;
extern __typeof__(*((struct ops *)0)->adapter_scale) cpu_adapter_scale;
extern __typeof__(*((struct ops *)0)->sample) cpu_sample;
extern __typeof__(*((struct ops *)0)->swiglu) cpu_swiglu;
extern __typeof__(*((struct ops *)0)->swiglu_bwd) cpu_swiglu_bwd;
extern __typeof__(*((struct ops *)0)->cross_entropy) cpu_cross_entropy;
extern __typeof__(*((struct ops *)0)->rows_copy) cpu_rows_copy;
extern __typeof__(*((struct ops *)0)->dropout) cpu_dropout;
extern __typeof__(*((struct ops *)0)->convert) cpu_convert;
extern __typeof__(*((struct ops *)0)->column_sum) cpu_column_sum;
extern __typeof__(*((struct ops *)0)->reduce) cpu_reduce;
extern __typeof__(*((struct ops *)0)->adamw) cpu_adamw;

/* RMSNorm of one row: y = x * rstd * w; returns rstd. y may be x. */
real cpu_norm_row(const real *x, const real *restrict w, real *y, int64_t n, real eps);
/* RoPE of one head. Pairs one element of each half: (a, b) becomes (a c - b s, b c + a s). sign -1 turns
 * back. */
void cpu_rotate(real *restrict x, const real *restrict cos_sin, int64_t half, real sign);

/* z = alpha op(x) op(y) + beta z on the calling thread, by OpenBLAS or by loops. m, n, k: sizes after op. */
struct product {
	const real *x, *y;
	real *z;
	int64_t m, n, k, ldx, ldy, ldz;
	bool tx, ty;
	real alpha, beta;
};
void cpu_product(const struct cpu *cpu, const struct product *p);
extern const struct ops cpu_ops;
#endif
