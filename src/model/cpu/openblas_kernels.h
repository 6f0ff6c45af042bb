/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Selects OpenBLAS's kernels for GEMMs on the CPU. OpenBLAS selects kernels by CPU model when it is loaded,
 * and uses old ones for a model that it does not know. If its kernels use narrower vectors than this CPU has,
 * assay times the others in separate processes. The fastest is named in OPENBLAS_CORETYPE before the library
 * is loaded.
 */
#ifndef MODEL_CPU_OPENBLAS_KERNELS_H
#define MODEL_CPU_OPENBLAS_KERNELS_H
#include <signal.h>
#include <stdbool.h>
#include "core/error.h"

/* Minimum gain, reached in both of two comparisons, to use other kernels. */
#define CPU_KERNELS_GAIN 1.3

struct cpu_kernels {
	char chosen[32]; /* the library's own choice; "": there is no library, or it does not say */
	char used[32];	 /* used from now on */
	bool measured;	 /* other kernels were timed */
	bool cached;	 /* `used` comes from an earlier process, not from timing now */
	double gain;	 /* rate of `used` / rate of `chosen`; 0: it is the library's own choice */
	double took_s;
};

/* Cache of what earlier processes found, by library ("/usr/lib/libopenblas.so.0") and by the library's own
 * choice. */
struct cpu_kernels_memory {
	/* False: no entry. */
	bool (*find)(void *arg, const char *library, const char *chosen, char name[32], double *gain);
	void (*keep)(void *arg, const char *library, const char *chosen, const char *name, double gain);
	void *arg;
};

/*
 * Sets OPENBLAS_CORETYPE in this process's environment if other kernels are faster. Must run before the
 * library is loaded and before other threads start. If the user has set the variable, nothing is done.
 * `kept`: the kernels of an earlier part of the same work, used again if this CPU supports them; NULL: none.
 * `memory`: the cache, asked before anything is timed; NULL: none. `stop`: as in process_run.
 */
void cpu_kernels_settle(struct cpu_kernels *out, const char *kept, const struct cpu_kernels_memory *memory,
			const volatile sig_atomic_t *stop);
/* One line for users; "" if nothing was changed. */
void cpu_kernels_text(const struct cpu_kernels *k, char *out, size_t size);
/* Main function of a trial process, `assay __kernels [time]`. Prints "NAME RATE LIBRARY" on stdout, with
 * rate 0 without `time`. Returns its exit code. */
int cpu_kernels_main(bool timed);
#endif
