/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gap between bound and figure as a chain of factors: R = B x product x residual. Each factor has a
 * signal of its own, never the rate of the case it explains; one without a signal stays in the residual and
 * is named. METHODS "Gap".
 */
#ifndef JUDGE_GAP_GAP_H
#define JUDGE_GAP_GAP_H
#include "judge/bound/bound.h"
#include "judge/case/context.h"

#define GAP_LOW 0.97 /* a residual inside: explained */
#define GAP_HIGH 1.03
#define GAP_ABOVE 1.005 /* a factor above wants a named reason */

/* Fills gap, unexplained, explained of a judgement that has figure and bound. */
void gap_of(struct judgement *out, const struct subject *s);

/* For the chains. NULL: no room, which drops the factor (16 are more than any chain has). */
struct factor *gap_add(struct judgement *out, const char *name, double value, double error,
		       const char *format, ...) __attribute__((format(printf, 5, 6)));
/* A part of another factor: shown, not multiplied. */
void gap_show(struct judgement *out, const char *name, double value, const char *signal);
/* A factor that has no signal here: in the residual, and named so. */
void gap_absent(struct judgement *out, const char *name, const char *why, ...)
	__attribute__((format(printf, 3, 4)));
/* The chains. True: every factor that the limit needs has its signal. */
bool gap_compute(struct judgement *out, const struct subject *s);
/* The factor "pipe" of the compute chain; *share: its value, 0 where it is absent. */
bool gap_pipe(struct judgement *out, const struct subject *s, double *share);
/* Its factor "useful" by counters: FLOP declared over FLOP executed. `by_tile`: what the tile says of it, or
 * 0. False: not counted, or contradicted. */
bool gap_useful_counted(struct judgement *out, const struct subject *s, double by_tile);
/* Its factor "clock": the SMs' over their maximum. True: by stamps. */
bool gap_clock(struct judgement *out, const struct subject *s);
bool gap_attention(struct judgement *out, const struct subject *s);
bool gap_memory(struct judgement *out, const struct subject *s);
/* The memory chain's factor "memory clock"; its value, or 0 where nothing tells it. */
double gap_memory_clock(struct judgement *out, const struct subject *s);
bool gap_link(struct judgement *out, const struct subject *s);
bool gap_p2p(struct judgement *out, const struct subject *s);
bool gap_cpu(struct judgement *out, const struct subject *s);
bool gap_collective(struct judgement *out, const struct subject *s);
/* A training run's; each part of a step by its seconds. False: its parts are not told. */
bool gap_training(struct judgement *out, const struct subject *s);
/* What a case that ran together with others reached of itself alone; what a copy from one NUMA node reached
 * of the best node's. Multiplied in the host link's chain where other windows of the run give both rates;
 * shown beside the chain where the case's own rate is one of them, and where the chain's own signals hold it.
 */
void gap_runs(struct judgement *out, const struct subject *s);
/* The same case on one thread, where this run holds one that is sound. */
bool gap_one_thread(const struct subject *s, struct subject *one);
#endif
