/* SPDX-License-Identifier: Apache-2.0 */
/* What physics allows: from the device's facts, or from this machine's own instruments where facts are
 * hidden. */
#ifndef JUDGE_BOUND_BOUND_H
#define JUDGE_BOUND_BOUND_H
#include "judge/case/context.h"

#define BOUND_NVLINK_DATA (16.0 / 17) /* of the raw rate: METHODS, "GPU to GPU" */
#define BOUND_SPREAD_STOP 0.05	      /* half-width of the mean beyond which a figure is no instrument */
#define BOUND_CPU_SHARE 0.97	      /* of the CPU time asked for, below which others took it */

/* from BOUND_NONE where nothing tells. METHODS "Bounds". */
void bound_of(const struct subject *s, struct bound *out);
/* Of the units that do the subject's type, FLOP/s; of device memory, B/s. */
void bound_compute(const struct subject *s, struct bound *out);
void bound_memory(const struct subject *s, struct bound *out);
/* A training run's tokens a second were its FLOP done as fast as the large product that it timed before its
 * first step. */
void bound_training(const struct subject *s, struct bound *out);
/* What limits an attention. */
enum attention_limit { ATTENTION_BY_MATRIX, ATTENTION_BY_EXP, ATTENTION_BY_MEMORY };
/* The lowest of the matrix units', the exponentials' and device memory's bound, in FLOP/s. */
enum attention_limit bound_attention(const struct subject *s, struct bound *out);
/* SMs x FLOP an SM and clock of the subject's type: FLOP a clock; 0: not known. */
double bound_flop_per_clock(const struct subject *s);
/*
 * The best figure that probe peak of the same run gave for this limit on this target with as many threads,
 * with its case. 0: none that can be trusted; *disturbed then names one that other work slowed, or is NULL.
 */
double bound_ceiling(const struct judge_context *ctx, const struct record_case *c,
		     const struct record_case **peak, const struct record_case **disturbed);
/* Share of its ceiling that a CPU case reached in turns with it: median and 95 % interval. */
struct interleaved_ratio {
	double ratio, low, high;
};
/* False: it was not timed in turns. */
bool bound_interleaved(const struct subject *s, struct interleaved_ratio *out);
/* Is this peak's traffic that of the CPU memory case? True for what is not limited by memory. */
bool traffic_same(const struct record_case *c, const struct record_case *peak);
/* A collective of several GPUs: their links; an all-reduce that the switch adds, or may where NCCL
 * tells nothing of it, is allowed more. */
void bound_collective(const struct subject *s, struct bound *out);
/* It is faster than the links alone allow, and the switch adds (NVLS), or may: NCCL does not tell. */
bool collective_above_link(const struct subject *s, const struct bound *b);
/* What a share of the bound is of: for a collective the links alone, whatever a switch adds. */
double bound_of_links(const struct subject *s, const struct bound *b);
/* The unit of probe peak that a CPU memory case took turns with where that moves other traffic than the case:
 * older journals have reading beside everything. NULL: the same, or no turns. */
const char *traffic_beside(const struct record_case *c, char *buffer, size_t size);
/* Raw GT/s a lane and the share its encoding leaves. 0: no such generation. */
double bound_pcie_lane(int gen, double *encoding);
/* Lanes of one GPU one way, B/s; 0: not told. */
double bound_pcie_one_way(const struct gpu *g);
#endif
