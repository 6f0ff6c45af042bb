/* SPDX-License-Identifier: Apache-2.0 */
/* From a record's case to its verdict; siblings, gap and advice come after, each in its own file. */
#ifndef JUDGE_CASE_VERDICT_H
#define JUDGE_CASE_VERDICT_H
#include "judge/bound/bound.h"
#include "judge/case/context.h"

/* Limits of method; METHODS "Verdicts" says why these. */
#define VERDICT_OTHERS_STOP                                                                                  \
	0.25		    /* CPU time that other work here took: half of what one equal competitor takes */
#define VERDICT_ABOVE 1.01  /* of a device bound: boost above the clock NVML calls maximum was 0.75 % */
#define VERDICT_BOOST 1.015 /* most that a stamped clock above that maximum excuses */
#define VERDICT_FAIL_SHARE 0.75	 /* of a band's low end */
#define VERDICT_SPREAD_WARN 0.02 /* half-width of the mean, share of it */
#define VERDICT_STANDS 0.005	 /* half-width at which the mean says what it is, settled or not */
#define VERDICT_SPREAD_STOP 0.05
#define VERDICT_HELD 0.97   /* of the window under the power regulator: throughout */
#define VERDICT_HELD_S 1.0  /* and so long: settled */
#define VERDICT_SWING_S 6.0 /* two periods of the power regulator's swing */
#define VERDICT_GAP_S 1.0   /* longest silence of the sampler inside a window */

/* The whole judgement of one case but siblings, gap and advice. */
void verdict_of(struct judgement *out, const struct subject *s);

/* What has no reference: `measured` where the plan asks for a figure alone and there is one, else `unknown`.
 */
void verdict_unreferenced(struct judgement *out, const struct subject *s, const char *why);
/* Why nothing judges it: of a case without band, ceiling and rule, whose bound is known already. */
void verdict_unjudged(const struct judgement *out, const struct subject *s, char *text, size_t size);
/* Which kind of band its figure is held against. */
enum band_slot verdict_slot(const struct subject *s);
/* All that is known of what it should reach, by this band (NULL: none fits) and a bound that is known
 * already; what counts where it is no band goes into the judgement's `least`. */
struct expected_known verdict_known(struct judgement *out, const struct subject *s, const struct band_row *b);
/* Its figure against that. */
void verdict_fallback(struct judgement *out, const struct subject *s);
/* True where how the case ended decides alone. */
bool verdict_ending(struct judgement *out, const struct subject *s);
/* Wrong data, heat, brakes, Xids, other work on the device: what no good figure outweighs. */
void verdict_conditions(struct judgement *out, const struct subject *s);
/* A CPU's figure against this machine's own instrument: timed in turns with it, else the best of the run. */
void verdict_ceiling(struct judgement *out, const struct subject *s);
/* The reason of a case that passes by it; `figure` as text. */
void verdict_ceiling_passed(struct judgement *out, const struct subject *s, const char *figure);
/* CPU time that its threads did not get: an open case, or a condition of the machine that is named. */
void verdict_cpu_time(struct judgement *out, const struct subject *s);
/* A clock that is low under load for no reason that the GPU tells. */
void verdict_clock_locked(struct judgement *out, const struct subject *s);
/* The band that judges it, into the judgement. */
void verdict_band(struct judgement *out, const struct subject *s, const struct band_row *b);
/* Settled, and scattered within limits. */
void verdict_steadiness(struct judgement *out, const struct subject *s);
/* Rules over the case's fields. The number that looked at one; *judging: those of them that suffice to judge
 * a timed case. */
unsigned verdict_rules(struct judgement *out, const struct subject *s, unsigned *judging);
/* A reading's decisive fields that are not there: unknown, or a skip where the device lacks what they tell.
 * True: one that the device has was not read. */
bool verdict_decisive(struct judgement *out, const struct subject *s);
void verdict_reading(struct judgement *out, const struct subject *s);
/* Last of all: the values that came as no finite number are named in the reason; no verdict hangs on them. */
void verdict_left_out(struct judgement *out, const struct subject *s);
#endif
