/* SPDX-License-Identifier: Apache-2.0 */
/* The folders that lib_open looks in, in the order of vendor/lib.h. Nothing is executed: Python's folders are
 * found by following `python3` on PATH to its prefix. */
#ifndef VENDOR_LIB_PATH_H
#define VENDOR_LIB_PATH_H
#include <stddef.h>

enum { LIB_DIRS_MAX = 256 };

struct lib_dirs {
	char *dir[LIB_DIRS_MAX]; /* existing folders, each once */
	size_t count;
};

/* CUDA toolkit folders, then, where `wheel` is not NULL, the wheel's folder below every site-packages that
 * can be found; with a wheel below "nvidia/" its siblings (nvidia / any / lib) as well. Owner: caller,
 * lib_dirs_release. */
void lib_dirs_find(struct lib_dirs *d, const char *wheel);
void lib_dirs_release(struct lib_dirs *d);
#endif
