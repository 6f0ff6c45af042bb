/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CPU's loops, one table per instruction set. Arrays contain doubles and start on a 64-byte boundary. n
 * is a multiple of 8, or the odd rest of the last share. Arrays of one call do not overlap.
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
	/* nontemporal: all members are NULL if the instruction set has no such store */
	struct memory_stores regular, nontemporal;
};

/* The widest loops for these ISA bits; at most 256 bits if the data comes from memory. The portable loops if
 * none of the bits is set. Never NULL. */
const struct memory_loops *memory_loops_for(uint32_t isa_bits, bool from_memory);

double memory_gather(const double *a, const uint32_t *x, uint64_t n);

struct memory_node { /* one node per cache line */
	const struct memory_node *next;
	uint64_t place; /* position in the order of the walk */
	char rest[48];
};
_Static_assert(sizeof(struct memory_node) == 64, "a node is a line of 64 bytes");
const struct memory_node *memory_chase(const struct memory_node *p, unsigned hops);
#endif
