/* SPDX-License-Identifier: Apache-2.0 */
/* Where the ranks of a team's case stand, as far as a bound of what moves between them asks. Pure. */
#ifndef RUN_PLAN_RANK_LAYOUT_H
#define RUN_PLAN_RANK_LAYOUT_H
#include <jansson.h>

struct target;
struct plan_wishes;

/*
 * Of a target of launched ranks. On one node: {"gpus": [PCI addresses, one a rank]}. On several: {"nodes":
 * [{"nodes": so many that are alike in what follows, "ranks": of each, "gpus": of the machine, "next": ranks
 * whose next one stands on another node, "network": B/s one way by its ports, 0 not known} ..]}
 * (journal/figure/network_bound.h). NULL: no such target, or ranks of one node without a GPU each. Caller
 * decrefs.
 */
json_t *rank_layout_json(const struct target *t, const struct plan_wishes *wishes);
#endif
