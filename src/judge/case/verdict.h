/* SPDX-License-Identifier: Apache-2.0 */
/* From a case of the record to its verdict. Siblings, gap and advice follow, each in its own file. */
#ifndef JUDGE_CASE_VERDICT_H
#define JUDGE_CASE_VERDICT_H
#include "judge/bound/bound.h"
#include "judge/case/context.h"

/* Limits of the method. docs/explanation/methods/verdicts.md gives the reasons. */
/* Share of CPU time that other work took. One equal competitor takes twice this share. */
#define VERDICT_OTHERS_STOP 0.25
/* Highest share of a device bound. A boost above the clock that NVML calls maximum reached 0.75 %. */
#define VERDICT_ABOVE 1.01
/* Highest measured clock over that maximum that excuses a figure above the bound. */
#define VERDICT_BOOST 1.015
#define VERDICT_FAIL_SHARE 0.75	 /* share of the low end of the range */
#define VERDICT_SPREAD_WARN 0.02 /* half-width of the mean, as a share of the mean */
#define VERDICT_STANDS 0.005 /* at this half-width the mean is usable even if the window had not settled */
#define VERDICT_SPREAD_STOP 0.05
/* Share of the window under the power regulator that counts as the whole window. */
#define VERDICT_HELD 0.97
#define VERDICT_HELD_S 1.0  /* shortest such window that counts as settled */
#define VERDICT_SWING_S 6.0 /* two periods of the power regulator's swing */
#define VERDICT_GAP_S 1.0   /* longest gap between samples inside a window */

/* Judges one case completely, except for siblings, gap and advice. */
void verdict_of(struct judgement *out, const struct subject *s);

/* The verdict of a case without a reference: `measured` if the plan only wants a figure and there is one,
 * else `unknown`. */
void verdict_unreferenced(struct judgement *out, const struct subject *s, const char *why);
/* Writes why nothing judges a case that has no range, ceiling or rule. Its bound must be known already. */
void verdict_unjudged(const struct judgement *out, const struct subject *s, char *text, size_t size);
/* The kind of range that the figure is compared with. */
enum band_slot verdict_slot(const struct subject *s);
/* Everything known about what the case should reach, from this range (NULL: none fits) and the bound, which
 * must be known already. A reference other than a range is stored in the judgement's `least`. */
struct expected_known verdict_known(struct judgement *out, const struct subject *s, const struct band_row *b);
/* Compares the figure with that reference. */
void verdict_fallback(struct judgement *out, const struct subject *s);
/* True if how the case ended decides the verdict alone. */
bool verdict_ending(struct judgement *out, const struct subject *s);
/* Judges wrong data, heat, power brakes, Xids and other work on the device. No good figure outweighs them. */
void verdict_conditions(struct judgement *out, const struct subject *s);
/* Compares a CPU's figure with this machine's own ceiling: the one interleaved with the case, else the best
 * of the run. */
void verdict_ceiling(struct judgement *out, const struct subject *s);
/* Writes the reason of a case that passes by its ceiling; `figure` is the figure as text. */
void verdict_ceiling_passed(struct judgement *out, const struct subject *s, const char *figure);
/* Judges CPU time that the threads did not get: the case becomes untrusted, or the cause is only named. */
void verdict_cpu_time(struct judgement *out, const struct subject *s);
/* Judges a clock that is low under load although the GPU reports no reason. */
void verdict_clock_locked(struct judgement *out, const struct subject *s);
/* Stores the range that judges the case in the judgement. */
void verdict_band(struct judgement *out, const struct subject *s, const struct band_row *b);
/* Judges whether the window had settled and scattered within limits. */
void verdict_steadiness(struct judgement *out, const struct subject *s);
/* Applies the rules over the case's fields. Returns the number of rules that had their field. *judging: those
 * of them that suffice to judge a timed case. */
unsigned verdict_rules(struct judgement *out, const struct subject *s, unsigned *judging);
/* Judges missing decisive fields of a reading: unknown, or skip if the device lacks the feature. True: the
 * device has a field that was not read. */
bool verdict_decisive(struct judgement *out, const struct subject *s);
void verdict_reading(struct judgement *out, const struct subject *s);
/* Judges a load test. */
void verdict_load(struct judgement *out, const struct subject *s);
/* Whether a set of limits of a load test (a member of "slo") was met, by the interval of its share. */
enum slo_state { SLO_MET, SLO_MISSED, SLO_UNDECIDED };
enum slo_state slo_state_of(const json_t *set);
/* Describes the result of a sweep, without a full stop. The text has the rates, the number of requests that
 * they rest on, and the rate that is met with confidence. */
void sweep_words(char *out, size_t size, const json_t *values);
/* Called last: names in the reason the values that were not finite numbers. They change no verdict. */
void verdict_left_out(struct judgement *out, const struct subject *s);
#endif
