/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bound of a GPU collective on several nodes, from the rate of their network ports:
 * docs/explanation/methods/collectives.md, "Between nodes". The plan's `layout` of the case says which ranks
 * are on which node. No side effects.
 */
#ifndef JOURNAL_FIGURE_NETWORK_BOUND_H
#define JOURNAL_FIGURE_NETWORK_BOUND_H
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

enum { NETWORK_BOUND_KINDS = 16 };

/* A number of equal nodes. */
struct network_bound_kind {
	unsigned nodes, ranks; /* ranks: on each node */
	unsigned gpus;	       /* on each node, also those without a rank; 0: not known */
	unsigned next;	       /* ranks of a node whose next rank is on another node */
	double network;	       /* B/s one way, all ports of one node together; 0: not known */
};
struct network_bound {
	unsigned nodes, ranks;
	struct network_bound_kind kind[NETWORK_BOUND_KINDS];
	size_t kinds;
};

/* The algorithm: rings; the one that moves the least data; reduction in the network. */
enum network_bound_way { NETWORK_BOUND_RING, NETWORK_BOUND_LEAST, NETWORK_BOUND_ADDS };

/* Reads the `layout` of a CASE object (NULL: it has none). False: the case is not on several nodes, or has
 * more than NETWORK_BOUND_KINDS kinds. */
bool network_bound_read(struct network_bound *out, const json_t *layout);
/* Bus bandwidth in B/s that the ports allow for `op`, such as "allreduce"; 0: not known. */
double network_bound_of(const struct network_bound *b, const char *op, enum network_bound_way way);
/* The same for rings, with the ranks' share of the ports if a node has more GPUs than ranks. Shares of the
 * bound refer to this value. 0: not known. */
double network_bound_usual(const struct network_bound *b, const char *op);
/* The lowest port rate of a node in B/s; 0: not known. */
double network_bound_rate(const struct network_bound *b);
#endif
