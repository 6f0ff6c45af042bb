/* SPDX-License-Identifier: Apache-2.0 */
/* GEMMs in FP8 on a CPU (fp8.c). */
#ifndef MODEL_CPU_FP8_H
#define MODEL_CPU_FP8_H
#include "model/backend/ops.h"
#include "model/tensor/fp8.h"

static inline bool cpu_takes_fp8(const struct gemm *g)
{
	return g->fp8 || fp8_is_weight(&g->b);
}
/* A GEMM that cpu_takes_fp8: quantizes its operands, or reads E4M3, and multiplies in F32. */
enum status cpu_gemm_fp8(struct backend *back, const struct gemm *g, struct error *err);
/* A GEMM of numbers in F32 (gemm.c). Its cost is not counted. */
enum status cpu_gemm_numbers(struct backend *back, const struct gemm *g, struct error *err);
extern __typeof__(*((struct ops *)0)->quantize_e4m3) cpu_quantize_e4m3;
/* The same without cost. */
enum status cpu_fp8_weights(struct backend *back, const struct mat *from, const struct mat *to,
			    const struct mat *transposed, int32_t *overflows, struct error *err);
/* The transposed bytes and scales of a weight in E4M3. */
void cpu_fp8_transpose(struct backend *back, const struct mat *from, const struct mat *to);
#endif
