/* SPDX-License-Identifier: Apache-2.0 */
/* Layout of the ranks of a team case, as needed for the bound of traffic between them. Pure. */
#ifndef RUN_PLAN_RANK_LAYOUT_H
#define RUN_PLAN_RANK_LAYOUT_H
#include <jansson.h>

struct target;
struct plan_options;

/*
 * The layout of a target of launched ranks.
 * On one node: {"gpus": [PCI addresses, one per rank]}.
 * On several nodes: {"nodes": [{"nodes": number of nodes that are equal in the other fields, "ranks": ranks
 * per node, "gpus": GPUs of the machine, "next": ranks whose next rank is on another node, "network": B/s in
 * one direction through its ports, 0: unknown} ..]} (journal/figure/network_bound.h).
 * NULL: no such target, or ranks of one node without one GPU each. Caller decrefs.
 */
json_t *rank_layout_json(const struct target *t, const struct plan_options *wishes);
#endif
