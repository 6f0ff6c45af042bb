/* SPDX-License-Identifier: Apache-2.0 */
/* The fatbins built from src/kernel/list, compiled into the program. Empty where it was built without nvcc.
 */
#ifndef KERNEL_FATBIN_H
#define KERNEL_FATBIN_H
#include <stddef.h>

struct kernel_fatbin {
	const char *name;	   /* the file's name without .cu */
	const unsigned char *data; /* 64-byte aligned */
	size_t size;
	const char *architectures; /* "sm_80 sm_90 sm_100 compute_80": as built */
};

/* Lent, static. NULL: no such file, or built without kernels. */
const struct kernel_fatbin *kernel_fatbin_find(const char *name);
/* In list order; NULL past the last. */
const struct kernel_fatbin *kernel_fatbin_at(size_t index);
#endif
