/* SPDX-License-Identifier: Apache-2.0 */
/* The fatbins built from src/kernel/list, compiled into the program. Empty where it was built without nvcc.
 */
#ifndef KERNEL_FATBIN_H
#define KERNEL_FATBIN_H
#include <stdbool.h>
#include <stddef.h>

struct kernel_fatbin {
	const char *name;	   /* the file's name without .cu */
	const unsigned char *data; /* 64-byte aligned */
	size_t size;
	const char *architectures; /* "sm_80 sm_90 sm_100 compute_80": as built */
	const char *ran;	   /* of the list's, those whose code a real device has run: "sm_90" */
};

/* Lent, static. NULL: no such file, or built without kernels. */
const struct kernel_fatbin *kernel_fatbin_find(const char *name);
/* In list order; NULL past the last. */
const struct kernel_fatbin *kernel_fatbin_at(size_t index);
/* A real device of this compute capability (90) has run the file's code. */
bool kernel_fatbin_ran(const struct kernel_fatbin *f, unsigned cc);
#endif
