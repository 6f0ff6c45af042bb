/* SPDX-License-Identifier: Apache-2.0 */
/* One lemon among alike: each GPU against the others that did the same work in this run. */
#ifndef JUDGE_PEERS_SIBLINGS_H
#define JUDGE_PEERS_SIBLINGS_H
#include "judge/case/context.h"

enum { SIBLINGS_MIN = 4 };
/* Flagged beyond max(2 %, 3 MAD); a fail beyond 5 %, where a repeat shows it again, or where heat is named.
 */
#define SIBLINGS_FLAG 0.02
#define SIBLINGS_FAIL 0.05
/* Flagged and failing from there on, by what is compared. */
struct siblings_limit {
	double flag, fail;
};
/* Latencies differ more between healthy GPUs: those in which the host has a part (a launch, a replay, a read
 * across PCIe) were up to 24 % apart on one host, pointer chases 5 %. `limit`, `probe`: the case's. */
struct siblings_limit siblings_limit_of(const char *probe, const char *limit);

/* Deviation of x[i] from the median of the others, share of it; *limit: max(2 %, 3 MAD of the others over
 * it). 0 for fewer than 2 others or a median that is not positive. */
double siblings_deviation(const double *x, size_t count, size_t i, double *limit);

/* The same case on the same target elsewhere in the run, as far off again: beyond `limit` of the median, on
 * its slower side. */
bool siblings_seen_again(const struct judge_context *ctx, const struct subject *s, double median,
			 double limit, bool slower);
/* What is like its siblings passes where nothing else judges it. */
void siblings_pass(struct judgement *out, const struct subject *s, double off, size_t others);

/* Over every case of the record; a burst of compute is held against the others at the clock that each held:
 * in 50 ms the power regulator has not found its clock. `out` in the record's order, judged so far each by
 * itself. */
void siblings_judge(struct judgement *out, const struct judge_context *ctx);
#endif
