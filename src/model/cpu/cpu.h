/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU as back end: F32 throughout, products by OpenBLAS where it is there, by loops of our own else. */
#ifndef MODEL_CPU_CPU_H
#define MODEL_CPU_CPU_H
#include "model/backend/ops.h"

/* As many as this process may use, 32 at most: for cpu_options and plans alike. */
unsigned cpu_backend_threads(void);

struct cpu_options {
	unsigned threads; /* 0: as many as the process may use */
	bool own_gemm;	  /* no OpenBLAS even where it is there */
};
/* Owner: caller, cpu_backend_release; the arena is the caller's. */
enum status cpu_backend_create(struct backend *back, const struct cpu_options *options, struct arena *arena,
			       struct error *err);
void cpu_backend_release(struct backend *back);
/* Before the first product: whether its library finds the address space that it needs. */
enum status cpu_backend_check_room(const struct backend *back, struct error *err);
/* "OpenBLAS 0.3.21 .." or "own". */
const char *cpu_backend_gemm(const struct backend *back);
#endif
