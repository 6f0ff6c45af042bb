/* SPDX-License-Identifier: Apache-2.0 */
/* Bounds: the rates that physics allows, from the device's facts, or from this machine's own ceilings if the
 * facts are hidden. */
#ifndef JUDGE_BOUND_BOUND_H
#define JUDGE_BOUND_BOUND_H
#include "judge/case/context.h"

/* Share of the raw rate: docs/explanation/methods/bounds.md, "GPU to GPU". */
#define BOUND_NVLINK_DATA (16.0 / 17)
#define BOUND_SPREAD_STOP 0.05 /* half-width of the mean above which a figure cannot serve as a ceiling */
#define BOUND_CPU_SHARE 0.97   /* share of the requested CPU time; below it, other work took CPU time */

/* Fills the bound of a case; BOUND_NONE if there is none. docs/explanation/methods/bounds.md. */
void bound_of(const struct subject *s, struct bound *out);
/* The bound of the units that work on the subject's type, in FLOP/s; of device memory, in B/s. */
void bound_compute(const struct subject *s, struct bound *out);
void bound_memory(const struct subject *s, struct bound *out);
/* Tokens per second of a training run if its FLOP ran as fast as the large GEMM that it timed before its
 * first step. */
void bound_training(const struct subject *s, struct bound *out);
/* The limit of an attention. */
enum attention_limit { ATTENTION_BY_MATRIX, ATTENTION_BY_EXP, ATTENTION_BY_MEMORY };
/* Fills the lowest of three bounds in FLOP/s: matrix units, exponentials, device memory. Returns which it is.
 */
enum attention_limit bound_attention(const struct subject *s, struct bound *out);
/* FLOP per clock of the whole GPU for the subject's type: SMs x FLOP per SM and clock; 0: not known. */
double bound_flop_per_clock(const struct subject *s);
/* Returns the best figure of probe peak in the same run for this limit and target with the same number of
 * threads; *peak is its case. 0: no trustworthy one; *disturbed is then one that other work slowed down, or
 * NULL. */
double bound_ceiling(const struct judge_context *ctx, const struct record_case *c,
		     const struct record_case **peak, const struct record_case **disturbed);
/* Share of its ceiling that a CPU case reached in interleaved measurements: median and 95 % interval. */
struct interleaved_ratio {
	double ratio, low, high;
};
/* False: the case was not interleaved with its ceiling. */
bool bound_interleaved(const struct subject *s, struct interleaved_ratio *out);
/* True if this peak moves the same mix of reads and writes as the CPU memory case. Always true for cases that
 * memory does not limit. */
bool traffic_same(const struct record_case *c, const struct record_case *peak);
/* Bound of a collective of several GPUs from their links. It is higher for an all-reduce that the switch
 * adds, or may add if NCCL reports nothing. */
void bound_collective(const struct subject *s, struct bound *out);
/* True if the figure is above what the links alone allow, and the switch adds (NVLS) or may add. */
bool collective_above_link(const struct subject *s, const struct bound *b);
/* The bound that a share refers to: for a collective the links alone, whether or not a switch adds. */
double bound_of_links(const struct subject *s, const struct bound *b);
/* The unit of probe peak that a CPU memory case was interleaved with, if that moves another mix of reads and
 * writes than the case. Older journals always used reading. NULL: the same mix, or not interleaved. */
const char *traffic_of_ceiling(const struct record_case *c, char *buffer, size_t size);
/* Raw GT/s per lane; *encoding: share left by the encoding. 0: unknown generation. */
double bound_pcie_lane(int gen, double *encoding);
/* Bandwidth of one GPU's lanes in one direction, B/s; 0: not known. */
double bound_pcie_one_way(const struct gpu *g);
#endif
