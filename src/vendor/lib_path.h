/* SPDX-License-Identifier: Apache-2.0 */
/* The folders that lib_open searches, in the order that vendor/lib.h gives. Nothing is executed: Python's
 * folders are found by following `python3` on PATH to its prefix. */
#ifndef VENDOR_LIB_PATH_H
#define VENDOR_LIB_PATH_H
#include <stddef.h>

enum { LIB_DIRS_MAX = 256 };

struct lib_dirs {
	char *dir[LIB_DIRS_MAX]; /* existing folders, without duplicates */
	size_t count;
};

/* Finds the folders of the CUDA toolkit. If `wheel` is not NULL, the wheel's folder below every site-packages
 * that can be found follows. For a wheel below "nvidia/" its siblings (nvidia / any / lib) follow too. Owner:
 * caller, lib_dirs_release. */
void lib_dirs_find(struct lib_dirs *d, const char *wheel);
void lib_dirs_release(struct lib_dirs *d);
#endif
