/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which of OpenBLAS' kernels the CPU's products are done by. The library chooses when it is loaded, by the
 * CPU's model, and chooses old kernels for a model that it does not know. If it chose narrower vectors than
 * this CPU has, its other kernels are timed in processes of their own, and the fastest is named in
 * OPENBLAS_CORETYPE before the library is loaded here.
 */
#ifndef MODEL_CPU_OPENBLAS_KERNELS_H
#define MODEL_CPU_OPENBLAS_KERNELS_H
#include <signal.h>
#include <stdbool.h>
#include "core/error.h"

/* What faster kernels have to gain, in both of two looks, before they are taken. */
#define CPU_KERNELS_GAIN 1.3

struct cpu_kernels {
	char chosen[32]; /* by the library; "": there is none, or it does not say */
	char used[32];	 /* from now on */
	bool measured;	 /* others were timed */
	bool cached;	 /* not now, but by an earlier process: `used` is what it found */
	double gain;	 /* of `used` over `chosen`; 0: it is the library's own choice */
	double took_s;
};

/* What earlier processes found, by the library that they found it for ("/usr/lib/libopenblas.so.0") and what
 * that had chosen. */
struct cpu_kernels_memory {
	/* False: nothing is known. */
	bool (*find)(void *arg, const char *library, const char *chosen, char name[32], double *gain);
	void (*keep)(void *arg, const char *library, const char *chosen, const char *name, double gain);
	void *arg;
};

/*
 * Sets OPENBLAS_CORETYPE in this process's environment where that is faster; before the library is loaded
 * here, and before there are threads. Where the variable is set already it is the user's, and nothing is
 * done. `kept`: what an earlier part of the same work used, which is used again if this CPU can run it; NULL:
 * none. `memory`: of other processes' work, asked before anything is timed; NULL: none. `stop`: as
 * process_run has it.
 */
void cpu_kernels_settle(struct cpu_kernels *out, const char *kept, const struct cpu_kernels_memory *memory,
			const volatile sig_atomic_t *stop);
/* One line for people; "" where nothing was changed. */
void cpu_kernels_text(const struct cpu_kernels *k, char *out, size_t size);
/* The process that looks, `assay __kernels [time]`: "NAME RATE LIBRARY" on stdout, rate 0 without `time`. Its
 * exit code. */
int cpu_kernels_main(bool timed);
#endif
