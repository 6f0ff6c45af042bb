/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the network ports of nodes allow a collective of GPUs on several of them: METHODS, "Collectives",
 * Bounds between nodes. Pure; the case's `layout` in the plan tells who stands where.
 */
#ifndef JOURNAL_FIGURE_NETWORK_BOUND_H
#define JOURNAL_FIGURE_NETWORK_BOUND_H
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

enum { NETWORK_BOUND_KINDS = 16 };

/* So many nodes that are alike. */
struct network_bound_kind {
	unsigned nodes, ranks; /* ranks: of each */
	unsigned gpus;	       /* that each has, a rank's or not; 0: not known */
	unsigned next;	       /* of its ranks, whose next one stands on another node */
	double network;	       /* B/s one way, all ports of one together; 0: not known */
};
struct network_bound {
	unsigned nodes, ranks;
	struct network_bound_kind kind[NETWORK_BOUND_KINDS];
	size_t kinds;
};

/* How the data goes: in rings; in whatever way moves least; added up by the network on its way. */
enum network_bound_way { NETWORK_BOUND_RING, NETWORK_BOUND_LEAST, NETWORK_BOUND_ADDS };

/* Of the `layout` of a CASE object (NULL: it has none). False: not on several nodes, or of more kinds than
 * there is room for. */
bool network_bound_read(struct network_bound *out, const json_t *layout);
/* Bus bandwidth that the ports allow, B/s: of "allreduce" ..; 0: not known. */
double network_bound_of(const struct network_bound *b, const char *op, enum network_bound_way way);
/* The same by rings, of the ports that are these ranks' share where a node has more GPUs than ranks: what
 * shares are of. 0: not known. */
double network_bound_usual(const struct network_bound *b, const char *op);
/* The least rate of a node's ports; 0: not known. */
double network_bound_rate(const struct network_bound *b);
#endif
