/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CPU's loops, one table an instruction set. Arrays of doubles, each on a 64-byte boundary; n is a
 * multiple of 8 or the last share's odd rest; arrays of one call do not overlap.
 */
#ifndef PROBE_MEMORY_CPU_LOOPS_H
#define PROBE_MEMORY_CPU_LOOPS_H
#include <stdbool.h>
#include <stdint.h>
#include "probe/memory/memory.h"

struct memory_stores {					/* loops that store; q is MEMORY_FACTOR */
	void (*write)(double *a, double q, uint64_t n); /* a = q */
	void (*copy)(double *restrict c, const double *restrict a, uint64_t n);		   /* c = a */
	void (*scale)(double *restrict b, const double *restrict c, double q, uint64_t n); /* b = q c */
	void (*add)(double *restrict c, const double *restrict a, const double *restrict b, uint64_t n);
	void (*triad)(double *restrict a, const double *restrict b, const double *restrict c, double q,
		      uint64_t n);
};

struct memory_loops {
	const char *isa;
	uint32_t isa_bits; /* CPU_ISA_* bits it needs */
	double (*read)(const double *a, uint64_t n);
	double (*dot)(const double *a, const double *b, uint64_t n);
	struct memory_stores regular, nontemporal; /* nontemporal: all NULL where the ISA has no such store */
};

/* The widest that these ISA bits allow, 256 bits at most for what comes from memory; the portable one where
 * they allow none. Never NULL. */
const struct memory_loops *memory_loops_for(uint32_t isa_bits, bool from_memory);

double memory_gather(const double *a, const uint32_t *x, uint64_t n);

struct memory_node { /* one a cache line */
	const struct memory_node *next;
	uint64_t place; /* in the order of the walk */
	char rest[48];
};
_Static_assert(sizeof(struct memory_node) == 64, "a node is a line of 64 bytes");
const struct memory_node *memory_chase(const struct memory_node *p, unsigned hops);
#endif
