/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the figures of a judged run with the node's own history, and adds them to it.
 * docs/explanation/design/health.md, "Baseline". */
#ifndef CMD_HEALTH_BASELINE_H
#define CMD_HEALTH_BASELINE_H
#include "cmd/health/state.h"

#define BASELINE_LEAST 0.03   /* a figure within this share of the median is never reported */
enum { BASELINE_ENOUGH = 3 }; /* figures from which on a new one is judged */

/* Returns by which share `value` is worse than the figures so far: positive is worse, for a time too. *limit
 * is the share that counts as a change. False: there are too few figures. */
bool baseline_worse(const struct baseline_figure *f, double value, double *worse, double *limit);
/* Judges each sound figure of one GPU. A figure below history adds a failure to `finding`. Other figures go
 * to baselines that are not full. *figures is the number of figures, *judged the number of those with enough
 * history. NO_RESOURCE: out of memory. */
enum status baseline_take(struct health_state *s, struct health_finding *finding, const struct judged *j,
			  size_t *figures, size_t *judged, struct error *err);
#endif
