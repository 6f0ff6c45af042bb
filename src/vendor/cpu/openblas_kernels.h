/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpenBLAS' sets of kernels. A library built for many CPUs selects a set when it is loaded, by the model of
 * the CPU. A CPU that it does not know gets an older set. OPENBLAS_CORETYPE selects another one.
 */
#ifndef VENDOR_CPU_OPENBLAS_KERNELS_H
#define VENDOR_CPU_OPENBLAS_KERNELS_H

#define BLAS_KERNELS_VARIABLE "OPENBLAS_CORETYPE"

/* Instructions that a set needs. */
enum blas_need {
	BLAS_NEED_AVX2 = 1,
	BLAS_NEED_FMA = 2,
	BLAS_NEED_AVX512 = 4,
	BLAS_NEED_AVX512_BF16 = 8,
	BLAS_NEED_AMX_BF16 = 16
};

struct blas_kernels {
	const char *name; /* the name in the variable and in openblas_get_corename */
	unsigned needs;	  /* BLAS_NEED_* */
	unsigned bits;	  /* width of its vectors */
};

/* The sets that are worth trying on a current CPU, the most likely first. A NULL name ends the array. */
extern const struct blas_kernels blas_kernels[];

/* The CPU's instructions as BLAS_NEED_* bits, read from the CPU itself. 0 if it is not an x86 CPU. */
unsigned blas_cpu_has(void);
/* Whether a CPU with these instructions can run the set. */
static inline int blas_kernels_fit(const struct blas_kernels *k, unsigned has)
{
	return (k->needs & has) == k->needs;
}
/* Vector width in bits of the set with this openblas_get_corename; 0 if the name is not known. */
unsigned blas_kernels_bits(const char *name);
/* Vector width in bits of the widest set in the table that the CPU can run; 0 if it can run none. */
unsigned blas_kernels_bits_most(unsigned has);
#endif
