/* SPDX-License-Identifier: Apache-2.0 */
/* The phases of a timed case on any meter. Rules and figures: docs/explanation/methods, "Phases". */
#ifndef RUN_TIMING_PHASES_H
#define RUN_TIMING_PHASES_H
#include "run/worker/measure.h"
#include "run/meter/meter.h"

/* clang-format off */
#define PHASE_RAMP_NS 300000000u       /* low-power spin at most */
#define PHASE_BURST_NS 50000000u
#define PHASE_SETTLE_BLOCK_S 0.5
#define PHASE_SETTLE_BLOCKS 4          /* blocks whose slope is looked at */
#define PHASE_SETTLE_SLOPE 0.005       /* share a second */
#define PHASE_SETTLE_LIMIT_S 10.0
#define PHASE_CAPPED_NS 1000000000u    /* held down by the power limit for so long: as settled as it gets */
#define PHASE_CAPPED_SHARE 0.97         /* of the limit: mean power below it is another limit's work */
#define PHASE_CAPPED_MIN_S 6.0         /* the cap swings with a period of about 3 s: two of them */
#define PHASE_SUSTAINED_MIN_S 1.0
#define PHASE_SUSTAINED_MAX_S 10.0
#define PHASE_HALF_WIDTH 0.005
#define PHASE_BATCHES 20
#define PHASE_PAIRS 16                 /* of the search; at least PHASE_PAIRS_MIN when they are slow */
#define PHASE_PAIRS_MIN 10
#define PHASE_TURNS 6                  /* of a CPU case with its ceiling: the median's interval is then the extremes */
#define PHASE_TURNS_MOST 12            /* disturbed ones are taken again */
#define PHASE_TURN_CEILING_S 0.03      /* a window of the ceiling */
#define PHASE_TURN_AGREE 0.05          /* the two ceilings around a turn */
#define PHASE_BURST_MOST 3             /* windows of a point that the host paces, while other work disturbs it */
#define PHASE_SINGLE_FROM_NS 100e3     /* from here on the 1 to 2 us that an event inserts do not tell */
#define PHASE_SINGLE_MOST 512          /* iterations timed one by one */
#define PHASE_SINGLE_S 0.1             /* and no longer than that in all */
#define PHASE_SINGLE_STARVED 0.1       /* share of them that waited for their launch: beyond it they tell of the hosts */
#define PHASE_COUNTED_NS 30e6          /* of iterations under counters, a pass */
#define PHASE_COUNTED_FROM_S 2.0       /* a wished window that is worth the third of a second that counters take */
#define PHASE_COUNTED_LEAST 3          /* of them, where one takes longer */
#define PHASE_COUNTED_HEAD 16          /* a range of so many times fewer is taken off: what begins and ends a range */
#define PHASE_WIDE 0.05                /* half-width of the mean that says so */
#define PHASE_CPU_SHARE 0.97           /* of the CPU time asked for, below which other work took it */
/* clang-format on */

/* One case while it is timed. */
struct timing {
	const struct bench_case *c;
	const struct measure *w;
	struct rank_case *part; /* NULL: of the ceiling in turns */
	struct meter *meter;
	struct work work;
	unsigned threads;    /* that the engine works with; 0: a device */
	const char *variant; /* the one selected; NULL: the engine has one way only */
	uint64_t batch;	     /* iterations a sample, found in ramp, the same from then on */
	double iteration_ns; /* as the last window saw it */
	bool settled;
	unsigned repeats;      /* windows of burst taken again */
	bool capped;	       /* by the power limit, as settle ended */
	double listing_s;      /* that the engine's list of variants took, of the search's budget */
	bool single;	       /* iteration_ns_p50 and the others are told */
	struct sample *sample; /* lent to windows one after the other */
	size_t room;
};

/* Room for samples; timing_release frees it. */
enum status timing_init(struct timing *t, struct error *err);
void timing_release(struct timing *t);

/* Each emits its phase, its samples and its result. */
enum status phase_cold(struct timing *t, struct error *err);
/* Ramp: spin, then the batch: at least METER_SAMPLE_NS a sample. */
enum status phase_ramp(struct timing *t, struct error *err);
enum status phase_burst(struct timing *t, struct error *err);
enum status phase_settle(struct timing *t, struct error *err);
enum status phase_sustained(struct timing *t, struct error *err);

/* After the judged window: a stretch of single iterations for their percentiles, where the window's samples
 * were batches: samples of one are those percentiles already. For what several ranks move, for short copies
 * of a pair, and for what leads and takes PHASE_SINGLE_FROM_NS. Values go to the judged window's. */
enum status phase_single(struct timing *t, struct error *err);
/* May the case have such a stretch whatever its iterations take? For the plan's time. */
bool phase_single_several(const struct target *t, const struct work *w);

/* Behind all that is timed of the first variant: some iterations once more under hardware counters, where the
 * probe says so and they may be read. Values go to the judged window's; else why not. */
enum status phase_counted(struct timing *t, struct error *err);
/* May the case have such iterations? For the plan. */
bool phase_counted_may(const struct bench_case *c);

/* For CPU cases instead of settle and sustained: turns with the ceiling that the probe names
 * (docs/explanation/design/interleave.md). */
bool phase_interleave_applies(const struct bench_case *c, const struct machine *m);
enum status phase_interleave(struct timing *t, const struct bench *b, struct error *err);

/* What listing and timing a case's variants may take: its own budget, else half of its limit; 0: no end. */
double timing_search_s(const struct bench_case *c);
/* Times every variant briefly, each verified before, then the fastest against the first in ABBA pairs: result
 * "best". */
enum status phase_search(struct timing *t, unsigned variants, struct error *err);

/* For the above: */
/* Share of its threads' CPU time that a quota grants; 1 without one. */
double timing_granted(const struct timing *t);
/* The least batch whose sample is long enough, found by running it. */
enum status timing_batch(struct timing *t, struct error *err);
/* A window of at least so long and so many samples; nothing is emitted. */
enum status timing_run(struct timing *t, struct window *w, double seconds, unsigned samples,
		       struct error *err);
enum status timing_at(const struct timing *t, const char *phase, struct error *err);
enum status timing_phase(const struct timing *t, const char *phase, uint64_t t0_ns, uint64_t t1_ns,
			 struct error *err);
enum status timing_samples(const struct timing *t, const char *phase, const struct window *w,
			   struct error *err);
enum status timing_result(const struct timing *t, const char *phase, const struct result *r,
			  struct error *err);
/* Several ranks: how their times of a closed window differ. */
void timing_rank_values(const struct window *w, struct result *r);
/* Of single iterations: who waited for whom. */
void timing_wait_values(const struct window *w, struct result *r);
/* Times, rates, clock and CPU share of a closed window into r. */
void timing_values(const struct timing *t, const struct window *w, struct result *r);
/* Percentiles of single iterations into r, where `phase` is the judged one and the window's samples are such.
 */
void timing_single_values(struct timing *t, const char *phase, const struct window *w, struct result *r);
/* Means of the window's samples, ns an iteration; 0 where it has none. */
double window_mean_ns(const struct window *w, size_t from, size_t to);
/* An empty window on the case's samples. */
struct window timing_window(const struct timing *t);
/* Which links a judged window looks at: the host's of one GPU, NVLinks where several take part. */
void timing_wants_links(const struct timing *t, struct window *w);
bool timing_stopped(const struct timing *t);
/* Which phase is judged: what belongs to it and is taken behind it is told with it. */
const char *timing_judged(const struct timing *t);
enum status timing_cancelled(struct error *err);
/* Verifies; a mismatch is emitted in result "once" and named in *err. */
enum status timing_verify(const struct timing *t, struct error *err);
#endif
