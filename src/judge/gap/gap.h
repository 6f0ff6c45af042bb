/* SPDX-License-Identifier: Apache-2.0 */
/* The gap between bound and figure as a product of factors: R = B x product x residual. Each factor has a
 * signal of its own, never the rate that it explains. A factor without a signal stays in the residual and is
 * named. docs/explanation/methods/gap.md, "Gap". */
#ifndef JUDGE_GAP_GAP_H
#define JUDGE_GAP_GAP_H
#include "judge/bound/bound.h"
#include "judge/case/context.h"

#define GAP_LOW 0.97 /* a residual from GAP_LOW to GAP_HIGH counts as explained */
#define GAP_HIGH 1.03
#define GAP_ABOVE 1.005 /* a factor above this needs a named reason */

/* Fills gap, unexplained and explained of a judgement that has a figure and a bound. */
void gap_of(struct judgement *out, const struct subject *s);

/* For the functions below. NULL: the list is full and the factor is dropped; no gap has more than 16 factors.
 */
struct factor *gap_add(struct judgement *out, const char *name, double value, double error,
		       const char *format, ...) __attribute__((format(printf, 5, 6)));
/* Adds a part of another factor: shown, not multiplied. */
void gap_show(struct judgement *out, const char *name, double value, const char *signal);
/* Adds a factor without a signal here: it stays in the residual, and `why` gives the reason. */
void gap_absent(struct judgement *out, const char *name, const char *why, ...)
	__attribute__((format(printf, 3, 4)));
/* Each fills in the factors of one kind of work. True: every factor that the limit needs has its signal. */
bool gap_compute(struct judgement *out, const struct subject *s);
/* Adds the compute factor "pipe". *share: its value, or 0 if it is absent. */
bool gap_pipe(struct judgement *out, const struct subject *s, double *share);
/* Adds the compute factor "useful" from counters: FLOP declared over FLOP executed. `by_tile`: the value that
 * the tile size gives, or 0. False: not counted, or contradicted by the tile. */
bool gap_useful_counted(struct judgement *out, const struct subject *s, double by_tile);
/* Adds the compute factor "clock": the SM clock over its maximum. True: the clock was measured, not read from
 * NVML. */
bool gap_clock(struct judgement *out, const struct subject *s);
bool gap_attention(struct judgement *out, const struct subject *s);
bool gap_memory(struct judgement *out, const struct subject *s);
/* Adds the memory factor "memory clock". Returns its value, or 0 if the clock is not known. */
double gap_memory_clock(struct judgement *out, const struct subject *s);
bool gap_link(struct judgement *out, const struct subject *s);
bool gap_p2p(struct judgement *out, const struct subject *s);
bool gap_cpu(struct judgement *out, const struct subject *s);
bool gap_collective(struct judgement *out, const struct subject *s);
/* The factors of a training run: each part of a step by its time. False: the journal does not have the parts.
 */
bool gap_training(struct judgement *out, const struct subject *s);
/* Adds two ratios. "siblings": the figure of a case that ran together with others over that of the same case
 * alone. "numa": a copy from one NUMA node over a copy from the best node. They are multiplied for host
 * links, if other windows of the run give both rates. They are only shown if the case's own rate is one of
 * the two, or if the case's own signals already contain them. */
void gap_runs(struct judgement *out, const struct subject *s);
/* Finds a usable case of this run that did the same work on one thread. False: there is none. */
bool gap_one_thread(const struct subject *s, struct subject *one);
#endif
