/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the measuring loop times: the same phases (run/timing/phases.h) stand on a CPU meter (monotonic clock),
 * a GPU meter (event pairs, many batches in flight) and a fake one (tests). A meter runs the engine's enqueue
 * and tells how long it took; it knows no phase, no statistics and never decides when to stop.
 *
 * The loop's calls, always on one thread, the one that prepared the engine:
 *
 *   once                                     cold
 *   ramp                                     ramp
 *   begin, sample.., [drain,] end            burst, settle, sustained, search: a window
 *   begin, {sample, drain, select}.., end    pairs: the loop selects a variant only when nothing is in flight
 *   begin, singles.., end                    single: a window of iterations timed one by one
 *   begin, counted.., end                    counted: iterations under hardware counters, not timed
 *
 * A sample is `batch` iterations timed as one; its result is appended to the window when it is known, which
 * may be many calls later: a GPU meter keeps up to `depth` samples in flight, so that the device never waits
 * for the host. Samples are appended in the order they were enqueued, and each carries its batch.
 *
 * Errors: whatever enqueue says is passed on unchanged. After an error the loop calls nothing but destroy.
 * destroy is called before engine->release and waits for nothing that could hang beyond the worker's limit:
 * the supervisor kills.
 */
#ifndef RUN_METER_METER_H
#define RUN_METER_METER_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/clock.h"
#include "core/error.h"
#include "run/probe.h"

/* Shortest sample: events resolve 0.5 us and insert 1-2 us, so 1 ms keeps both below 0.3 %. */
#define METER_SAMPLE_NS 1000000u
/* Singles of one call. Each is a launch and an event: twice as many stay below the 1024 that a driver takes
 * before a launch waits for the device. */
#define METER_SINGLES 256u

struct sample {
	double ns;	/* one iteration: time of the batch / batch */
	double end_ns;	/* when it ended, on the window's own axis: device or host time since the window's
			   begin; grows */
	uint64_t batch; /* iterations in it, as asked */
	bool starved;	/* a single one on a device that had run dry before it came: its time holds the host's
			 */
};

/* Several ranks: what each timed in a window, ns an iteration. */
struct rank_times {
	unsigned ranks;
	size_t count;	   /* samples of each */
	double *const *ns; /* by rank, `count` each */
};

/* How they differ: METHODS, "Several ranks". */
struct rank_spread {
	unsigned ranks;			  /* 0: one rank */
	double ns_min, ns_median, ns_max; /* of the ranks' means */
	unsigned shortest, longest;
	bool single; /* samples of one iteration each: who waited for whom */
	double wait_share, skew_ns;
	int late; /* -1: none */
};

/* One stretch of samples. The loop owns it, zeroes it, lends `sample`; the meter appends and fills the rest.
 */
struct window {
	bool stamp; /* in: the held clock is wanted; a meter without one ignores it */
	bool check; /* in: engine->enqueue_check after every enqueue, inside the sample (stress) */
	struct sample *sample;
	size_t count,
		room; /* the meter never allocates inside a window: with count == room it appends no more */

	/* Filled by begin and end. Host CLOCK_MONOTONIC (meter->clock), for telemetry: nothing of this window
	 * ran outside. */
	uint64_t t0_ns, t1_ns;
	/* GPU: held SM clock by stamps on every SM: cycles / ns between just before the first and just after
	 * the last sample. CPU: dependent adds on the calling thread right after the last sample; no spread.
	 */
	bool has_clock;
	double clock_hz, clock_spread_share; /* mean over SMs; (largest - smallest) / mean */
	/* In: what the PCIe link holds is wanted, read once while samples are in flight. Absent is not zero.
	 */
	bool link;
	bool has_link;
	unsigned link_gen, link_width;
	/* In: what crosses the device's NVLinks is wanted, read before the first and after the last sample.
	 * Absent is not zero. */
	bool nvlink;
	bool has_nvlink, has_nvlink_errors;
	struct nvlink_bytes { /* by the device's counters: payload, and raw with the protocol around it */
		uint64_t tx, rx, raw_tx, raw_rx;
	} nvlink_bytes;
	uint64_t nvlink_errors; /* replay, recovery and CRC errors */
	char nvlink_place[96];	/* "gpu3 link 7: 12" */
	/* CPU time that the engine's threads used between t0 and t1: contamination check. */
	bool has_cpu_time;
	uint64_t cpu_time_ns;
	/* CPU: time that the host gave to others while we wanted it, summed over the CPUs, in clock ticks of
	 * 10 ms. */
	bool has_steal;
	uint64_t steal_ns;
	/* Singles: what the mark between two of them takes by itself, an event or a look at the clock. */
	bool has_mark;
	double mark_ns;
	/* Several ranks: the samples above are those of the slowest. */
	struct rank_spread ranks;
};

/* What the device holds now, for the settle phase. Absent is not zero. */
struct meter_state {
	bool has_clock, has_power, has_capped;
	double clock_hz, power_w;
	bool capped;	/* the reason bit of the power limit is set; also under current limits, so look at the
			   power */
	double limit_w; /* the power limit; 0: not known */
};

struct meter;

/* Before iterations that are counted, and behind them. */
typedef void meter_mark(void *arg, bool before);

struct meter_ops {
	const char *name; /* "cpu", "gpu", "fake" */
	bool in_row;	  /* until drain a sample begins where the one before it ended */
	/* One iteration from an idle device: host time from before enqueue until its work is done. Nothing is
	 * in flight before and after. */
	enum status (*once)(struct meter *m, double *ns, struct error *err);
	/* Brings the clock up at low power: spins until it is >= 0.97 of its maximum or limit_ns has passed;
	 * *reached says which. Does not call the engine. */
	enum status (*ramp)(struct meter *m, uint64_t limit_ns, bool *reached, struct error *err);
	/* Opens the window. Nothing is in flight. `w` stays lent until end. GPU: stamp 0 is enqueued here. */
	enum status (*begin)(struct meter *m, struct window *w, struct error *err);
	/* Enqueues `batch` (>= 1) iterations as one sample, calling engine->enqueue(state, m->next++) for
	 * each (or replaying a graph captured from as many: then m->next += batch, and buffers must rotate
	 * inside it as they would outside). Appends what has become known. Returns at once while fewer than
	 * `depth` samples are in flight, else waits for the oldest. A CPU meter appends this very sample
	 * before it returns. */
	enum status (*sample)(struct meter *m, uint64_t batch, struct error *err);
	/* `count` iterations (1 to METER_SINGLES) in a row, run as `sample` would, each a sample of its own.
	 * Nothing is in flight before and after. A window has samples or singles. */
	enum status (*singles)(struct meter *m, uint64_t count, struct error *err);
	/* Optional, GPU: `count` iterations in a row, run as `sample` would, with `mark` called before and
	 * behind them while nothing is in flight; nothing is timed or appended. NULL: no counters there. */
	enum status (*counted)(struct meter *m, uint64_t count, meter_mark *mark, void *arg,
			       struct error *err);
	/* Waits until nothing is in flight; all samples are appended. The window stays open. */
	enum status (*drain)(struct meter *m, struct error *err);
	/* Drain, stamp 1, facts into the window, t1. Closes it. */
	enum status (*end)(struct meter *m, struct error *err);
	/* Optional. Reads the device without disturbing the window (an NVML field call, a stamp); called at
	 * most every 100 ms while a window is open, and never in windows of iterations under 20 us. NULL:
	 * settling is judged by rate alone. */
	enum status (*state)(struct meter *m, struct meter_state *out, struct error *err);
	/* Frees the meter, NULL-safe members; accepts any half-built one. */
	void (*destroy)(struct meter *m);
};

/* First member of each kind's own struct. */
struct meter {
	const struct meter_ops *ops;
	const struct engine *engine;
	void *state; /* the engine's, prepared */
	const struct bench *bench;
	const struct clock *clock;
	uint64_t next;	/* the number that the next enqueue gets; grows over all windows, so buffers rotate on
			 */
	unsigned depth; /* samples in flight at most; 1 on a CPU. Only so many samples come late */
	struct window *window; /* open one, or NULL */
};

/* What a meter is made from; all lent for its life. The engine is prepared. */
struct meter_spec {
	const struct engine *engine;
	void *state;
	const void *opts; /* the probe's, for engine->launch */
	const struct bench
		*bench; /* bench->device and bench->stream[0] are a GPU meter's device and stream */
	const struct clock *clock;
	struct team_board *board; /* this rank's line: where a call of NVML stands; NULL: nobody looks */
};

/* Of a closed window. `single`: each sample is one iteration. */
struct rank_spread rank_spread_of(const struct rank_times *t, bool single);
/*
 * Samples `from` on, which each rank timed in a row: each lasts from when the last rank had done the one
 * before to when the last rank has done it, so that they add up to what all of them took. The ranks' maxima
 * would add up to more: who is late in one is early in the next.
 */
void rank_row_samples(const struct rank_times *t, size_t from, struct sample *sample);

/* Owner: caller, meter_destroy. */
enum status meter_cpu_create(struct meter **m, const struct meter_spec *spec, struct error *err);
enum status meter_gpu_create(struct meter **m, const struct meter_spec *spec, struct error *err);
static inline void meter_destroy(struct meter **m)
{
	if (*m)
		(*m)->ops->destroy(*m);
	*m = NULL;
}
/* For meters: appends one sample; drops it silently where the window is full. */
static inline void window_add(struct window *w, double ns_batch, double end_ns, uint64_t batch)
{
	if (w->count < w->room)
		w->sample[w->count++] =
			(struct sample){.ns = ns_batch / (double)batch, .end_ns = end_ns, .batch = batch};
}
#endif
