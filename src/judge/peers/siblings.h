/* SPDX-License-Identifier: Apache-2.0 */
/* Finds one faulty GPU among equal ones: compares each GPU with the others that did the same work in this
 * run. */
#ifndef JUDGE_PEERS_SIBLINGS_H
#define JUDGE_PEERS_SIBLINGS_H
#include "judge/case/context.h"

enum { SIBLINGS_MIN = 4 };
/* A GPU is flagged beyond max(2 %, 3 MAD). It fails beyond 5 %, or if a repeat shows the deviation again, or
 * if heat is the reason. */
#define SIBLINGS_FLAG 0.02
#define SIBLINGS_FAIL 0.05
/* Deviations at which a GPU is flagged and fails, for one kind of figure. */
struct siblings_limit {
	double flag, fail;
};
/* Latencies differ more between healthy GPUs. Those that involve the host (a launch, a graph replay, a read
 * across PCIe) differed by up to 24 % on one host, pointer chases by 5 %. `limit` and `probe` are those of
 * the case. */
struct siblings_limit siblings_limit_of(const char *probe, const char *limit);

/* Relative deviation of x[i] from the median of the others. *limit: max(2 %, 3 MAD of the others / their
 * median). Returns 0 for fewer than two others or a median that is not positive. */
double siblings_deviation(const double *x, size_t count, size_t i, double *limit);

/* True if another case with the same work on the same target deviates again, by more than `limit` from the
 * median to its slower side. */
bool siblings_confirm(const struct judge_context *ctx, const struct subject *s, double median, double limit,
		      bool slower);
/* Passes a case that agrees with its siblings, if nothing else judges it. */
void siblings_pass(struct judgement *out, const struct subject *s, double off, size_t others);

/* Judges all cases of the record. A burst of compute is compared at the clock that each GPU held, because
 * within 50 ms the power regulator has not settled on a clock. `out` is in the record's order, with each case
 * already judged by itself. */
void siblings_judge(struct judgement *out, const struct judge_context *ctx);
#endif
