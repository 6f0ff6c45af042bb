/* SPDX-License-Identifier: Apache-2.0 */
/* The fatbins built from src/kernel/list, compiled into the program. A program built without nvcc has
 * none. */
#ifndef KERNEL_FATBIN_H
#define KERNEL_FATBIN_H
#include <stdbool.h>
#include <stddef.h>

struct kernel_fatbin {
	const char *name;	   /* first column of src/kernel/list */
	const unsigned char *data; /* 64-byte aligned; the fatbin, or the fatbin as zstd (gpu_file_code) */
	size_t size;
	const char *architectures; /* the architectures built: "sm_80 sm_90 sm_100 compute_80" */
	const char *ran;	   /* those of them that ran on a real device: "sm_90" */
};

/* Returns the fatbin of this name, or NULL if there is none or the program was built without kernels. The
 * result is static: do not free it. */
const struct kernel_fatbin *kernel_fatbin_find(const char *name);
/* Returns fatbin `index` in the order of src/kernel/list; NULL past the last one. */
const struct kernel_fatbin *kernel_fatbin_at(size_t index);
/* Whether a real device of this compute capability (90 for sm_90) has run the file's code. */
bool kernel_fatbin_ran(const struct kernel_fatbin *f, unsigned cc);
#endif
