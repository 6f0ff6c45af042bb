/* SPDX-License-Identifier: Apache-2.0 */
/* The phases of a timed case, on any meter. Rules and formulas: docs/explanation/methods/measuring.md,
 * "Phases". */
#ifndef RUN_TIMING_PHASES_H
#define RUN_TIMING_PHASES_H
#include "run/worker/measure.h"
#include "run/meter/meter.h"

/* clang-format off */
#define PHASE_RAMP_NS 300000000u       /* longest low-power spin */
#define PHASE_BURST_NS 50000000u
#define PHASE_SETTLE_BLOCK_S 0.5
#define PHASE_SETTLE_BLOCKS 4          /* number of blocks whose slope is checked */
#define PHASE_SETTLE_SLOPE 0.005       /* share per second */
#define PHASE_SETTLE_LIMIT_S 10.0
#define PHASE_CAPPED_NS 1000000000u    /* held at the power limit for this time: the case counts as settled */
/* share of the limit; if the mean power is lower, another limit is active */
#define PHASE_CAPPED_SHARE 0.97
#define PHASE_CAPPED_MIN_S 6.0         /* two periods of the power limiter's oscillation, about 3 s each */
#define PHASE_SUSTAINED_MIN_S 1.0
#define PHASE_SUSTAINED_MAX_S 10.0
#define PHASE_HALF_WIDTH 0.005
#define PHASE_BATCHES 20
#define PHASE_PAIRS 16                 /* pairs of the search; at least PHASE_PAIRS_MIN if they are slow */
#define PHASE_PAIRS_MIN 10
/* turns of a CPU case with its ceiling; the median's interval is then the two extremes */
#define PHASE_TURNS 6
#define PHASE_TURNS_MOST 12            /* most turns, with repeated disturbed ones */
#define PHASE_TURN_CEILING_S 0.03      /* one window of the ceiling */
#define PHASE_TURN_AGREE 0.05          /* largest difference of the two ceiling windows around a turn */
/* most windows of a point whose pace the host determines, while other work disturbs it */
#define PHASE_BURST_MOST 3
/* from this iteration time on, the 1 to 2 us that an event inserts do not matter */
#define PHASE_SINGLE_FROM_NS 100e3
#define PHASE_SINGLE_MOST 512          /* most iterations timed one by one */
#define PHASE_SINGLE_S 0.1             /* most time for them */
/* if a larger share of them waited for the launch, they show the host's delay */
#define PHASE_SINGLE_STARVED 0.1
#define PHASE_COUNTED_NS 30e6          /* time of the iterations under counters, per pass */
/* shortest requested window for which the counters are worth a third of a second */
#define PHASE_COUNTED_FROM_S 2.0
#define PHASE_COUNTED_LEAST 3          /* fewest iterations under counters, if one takes longer */
/* the subtracted short range has this many times fewer iterations; it has the cost of begin and end */
#define PHASE_COUNTED_HEAD 16
#define PHASE_WIDE 0.05                /* half-width of the mean that indicates a disturbance */
/* share of the requested CPU time; a lower share means that other work took it */
#define PHASE_CPU_SHARE 0.97
/* clang-format on */

/* State of one case during its timing. */
struct timing {
	const struct bench_case *c;
	const struct measure *w;
	struct rank_case *part; /* NULL: for the ceiling of an interleaved measurement */
	struct meter *meter;
	struct work work;
	unsigned threads;    /* threads of the engine; 0: it runs on a device */
	const char *variant; /* the selected variant; NULL: the engine has no variants */
	uint64_t batch;	     /* iterations per sample, found in the ramp phase and constant after it */
	double iteration_ns; /* from the last window */
	bool settled;
	unsigned repeats;      /* repeated burst windows */
	bool capped;	       /* held at the power limit when the settle phase ended */
	double listing_s;      /* time for the engine's list of variants; part of the search's time limit */
	bool single;	       /* iteration_ns_p50 and the other percentiles are already reported */
	struct sample *sample; /* lent to one window after the other */
	size_t room;
};

/* Allocates the array of samples; timing_release() frees it. */
enum status timing_init(struct timing *t, struct error *err);
void timing_release(struct timing *t);

/* Each phase function emits its phase, its samples and its result. */
enum status phase_cold(struct timing *t, struct error *err);
/* Ramp: a spin, then the search for the batch, at least METER_SAMPLE_NS per sample. */
enum status phase_ramp(struct timing *t, struct error *err);
enum status phase_burst(struct timing *t, struct error *err);
enum status phase_settle(struct timing *t, struct error *err);
enum status phase_sustained(struct timing *t, struct error *err);

/* Runs single iterations after the judged window, for their percentiles. It does nothing if the window's
 * samples were already single iterations. It applies to traffic of several ranks, to short copies of a pair,
 * and to headline cases with iterations of PHASE_SINGLE_FROM_NS or more. The values go to the judged phase.
 */
enum status phase_single(struct timing *t, struct error *err);
/* Whether the case may have this phase regardless of its iteration time; for the plan's time estimate. */
bool phase_single_several(const struct target *t, const struct work *w);

/* Runs some iterations of the first variant again under hardware counters, after all timed phases. It applies
 * if the probe requests it and the counters can be read. The values, or the reason for their absence, go to
 * the judged phase. */
enum status phase_counted(struct timing *t, struct error *err);
/* Whether the case may have this phase; for planning. */
bool phase_counted_may(const struct bench_case *c);

/* For CPU cases instead of settle and sustained: interleaved measurement with the probe's ceiling
 * (docs/explanation/design/interleave.md). */
bool phase_interleave_applies(const struct bench_case *c, const struct machine *m);
enum status phase_interleave(struct timing *t, const struct bench *b, struct error *err);

/* Time limit for listing and timing a case's variants: its own limit, or half of limit_ms; 0: none. */
double timing_search_s(const struct bench_case *c);
/* Verifies and briefly times every variant. Then it compares the fastest with the first in ABBA pairs: result
 * "best". */
enum status phase_search(struct timing *t, unsigned variants, struct error *err);

/* Functions for the phases: */
/* Share of its threads' CPU time that a CPU quota allows; 1: no quota. */
double timing_granted(const struct timing *t);
/* Finds the smallest batch whose sample is long enough, by running it. */
enum status timing_batch(struct timing *t, struct error *err);
/* Runs a window of at least this time and number of samples. It emits nothing. */
enum status timing_run(struct timing *t, struct window *w, double seconds, unsigned samples,
		       struct error *err);
enum status timing_at(const struct timing *t, const char *phase, struct error *err);
enum status timing_phase(const struct timing *t, const char *phase, uint64_t t0_ns, uint64_t t1_ns,
			 struct error *err);
enum status timing_samples(const struct timing *t, const char *phase, const struct window *w,
			   struct error *err);
enum status timing_result(const struct timing *t, const char *phase, const struct result *r,
			  struct error *err);
/* Writes how the ranks' times of a finished window differ. */
void timing_rank_values(const struct window *w, struct result *r);
/* Writes which rank waited for which, from single iterations. */
void timing_wait_values(const struct window *w, struct result *r);
/* Writes times, rates, clock and CPU share of a finished window. */
void timing_values(const struct timing *t, const struct window *w, struct result *r);
/* Writes percentiles of single iterations, if `phase` is the judged phase and the window's samples are single
 * iterations. */
void timing_single_values(struct timing *t, const char *phase, const struct window *w, struct result *r);
/* Mean over the window's samples [from, to), in ns per iteration; 0: no samples. */
double window_mean_ns(const struct window *w, size_t from, size_t to);
/* An empty window that uses the case's array of samples. */
struct window timing_window(const struct timing *t);
/* Selects the links that a judged window reads: the host link of one GPU, or NVLinks if several GPUs take
 * part. */
void timing_wants_links(const struct timing *t, struct window *w);
bool timing_stopped(const struct timing *t);
/* The judged phase. Later measurements that belong to it report under its name. */
const char *timing_judged(const struct timing *t);
enum status timing_cancelled(struct error *err);
/* Verifies the results. A mismatch is emitted in result "once", and *err names it. */
enum status timing_verify(const struct timing *t, struct error *err);
#endif
