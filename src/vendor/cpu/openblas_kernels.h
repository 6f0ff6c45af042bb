/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpenBLAS' sets of kernels. A library that was built for many CPUs chooses one when it is loaded, by the
 * model of the CPU. A CPU that it does not know gets an older set. OPENBLAS_CORETYPE names another one.
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
	const char *name; /* as the variable and openblas_get_corename have it */
	unsigned needs;	  /* BLAS_NEED_* */
	unsigned bits;	  /* of its vectors */
};

/* The sets that are worth trying on a CPU of today, the likeliest first; a NULL name ends. */
extern const struct blas_kernels blas_kernels[];

/* The CPU's instructions as BLAS_NEED_* bits, read from the CPU itself. 0 if it is no x86. */
unsigned blas_cpu_has(void);
/* True where a CPU with these instructions can run it. */
static inline int blas_kernels_fit(const struct blas_kernels *k, unsigned has)
{
	return (k->needs & has) == k->needs;
}
/* Width of the vectors of the set that openblas_get_corename names: 0 where the name is not known. */
unsigned blas_kernels_bits(const char *name);
/* Width of the widest set in the table that such a CPU can run; 0: it can run none. */
unsigned blas_kernels_bits_most(unsigned has);
#endif
