/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Meters time iterations for the measuring loop. The same phases (run/timing/phases.h) use a CPU meter
 * (monotonic clock), a GPU meter (event pairs, many batches in flight) and a fake one (tests). A meter calls
 * the engine's enqueue and measures its time. It knows no phase and no statistics, and it never decides when
 * to stop.
 *
 * The loop's calls, always on the thread that prepared the engine:
 *
 *   once				     cold
 *   ramp				     ramp
 *   begin, sample.., [drain,] end	    burst, settle, sustained, search: a window
 *   begin, {sample, drain, select}.., end    pairs: the loop selects a variant only when nothing is in flight
 *   begin, singles.., end		    single: a window of iterations timed one by one
 *   begin, counted.., end		    counted: iterations under hardware counters, not timed
 *
 * A sample is `batch` iterations timed as one. Its result is appended to the window when it is known, which
 * may be many calls later. A GPU meter keeps up to `depth` samples in flight, so that the device never waits
 * for the host. Samples are appended in the order in which they were enqueued, and each carries its batch.
 *
 * Errors: an error of enqueue is passed on unchanged. After an error the loop calls only destroy. destroy is
 * called before engine->release. It waits for nothing that could hang beyond the worker's limit, because the
 * supervisor then kills the worker.
 */
#ifndef RUN_METER_METER_H
#define RUN_METER_METER_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/clock.h"
#include "core/error.h"
#include "run/probe.h"

/* Shortest sample. Events have a resolution of 0.5 us and insert 1 to 2 us, so 1 ms keeps both below 0.3 %.
 */
#define METER_SAMPLE_NS 1000000u
/* Largest number of single iterations per call. Each is a launch and an event. The driver accepts 1024 of
 * these before a launch waits for the device. */
#define METER_SINGLES 256u

struct sample {
	double ns;	/* one iteration: time of the batch / batch */
	double end_ns;	/* end of the sample, in device or host time since the window's begin; grows */
	uint64_t batch; /* number of iterations */
	/* a single iteration that began on an idle device, so its time includes the host's delay */
	bool starved;
};

/* Times that several ranks measured in a window, in ns per iteration. */
struct rank_times {
	unsigned ranks;
	size_t count;	   /* samples of each rank */
	double *const *ns; /* by rank, `count` each */
};

/* Differences between the ranks: docs/explanation/methods/measuring.md, "Several ranks". */
struct rank_spread {
	unsigned ranks;			  /* 0: one rank */
	double ns_min, ns_median, ns_max; /* of the means of the ranks */
	unsigned shortest, longest;
	bool single; /* samples are single iterations, so they show which rank waited for which */
	double wait_share, skew_ns;
	int late; /* -1: none */
};

/* A window: a row of samples. The loop owns and zeroes it and lends `sample`; the meter appends samples and
 * fills in the rest. */
struct window {
	bool stamp; /* in: the SM clock during the window is wanted; a meter without one ignores this */
	bool check; /* in: engine->enqueue_check after every enqueue, inside the sample (stress) */
	struct sample *sample;
	size_t count,
		room; /* the meter never allocates inside a window; if count == room, it appends no more */

	/* begin and end fill these in. Host CLOCK_MONOTONIC (meter->clock), for telemetry. No work of this
	 * window ran outside this interval. */
	uint64_t t0_ns, t1_ns;
	/* GPU: SM clock from stamps on every SM: cycles / ns between just before the first and just after the
	 * last sample. CPU: dependent adds on the calling thread right after the last sample; no spread. */
	bool has_clock;
	double clock_hz, clock_spread_share; /* mean over SMs; (largest - smallest) / mean */
	/* In: the state of the PCIe link is wanted, read once while samples are in flight. Absent is not
	 * zero. */
	bool link;
	bool has_link;
	unsigned link_gen, link_width;
	/* In: NVLink traffic of the device is wanted, read before the first and after the last sample. Absent
	 * is not zero. */
	bool nvlink;
	bool has_nvlink, has_nvlink_errors;
	struct nvlink_bytes { /* from the device's counters: payload, and raw bytes including the protocol */
		uint64_t tx, rx, raw_tx, raw_rx;
	} nvlink_bytes;
	uint64_t nvlink_errors; /* replay, recovery and CRC errors */
	char nvlink_place[96];	/* "gpu3 link 7: 12" */
	/* CPU time of the engine's threads between t0 and t1, to detect other work. */
	bool has_cpu_time;
	uint64_t cpu_time_ns;
	/* CPU: time that the host gave to other guests while this one wanted to run, summed over the CPUs, in
	 * clock ticks of 10 ms. */
	bool has_steal;
	uint64_t steal_ns;
	/* Single iterations: time of the mark between two of them, an event or a read of the clock. */
	bool has_mark;
	double mark_ns;
	/* Several ranks: the samples above are those of the slowest rank. */
	struct rank_spread ranks;
};

/* Current state of the device, for the settle phase. Absent is not zero. */
struct meter_state {
	bool has_clock, has_power, has_capped;
	double clock_hz, power_w;
	/* the reason bit of the power limit is set; current limits set it too, so check the power */
	bool capped;
	double limit_w; /* the power limit; 0: unknown */
};

struct meter;

/* Called before and after iterations under hardware counters. */
typedef void meter_mark(void *arg, bool before);

struct meter_ops {
	const char *name; /* "cpu", "gpu", "fake" */
	bool in_row;	  /* until drain, a sample begins where the previous one ended */
	/* One iteration from an idle device: host time from before enqueue until its work is done. Nothing is
	 * in flight before and after. */
	enum status (*once)(struct meter *m, double *ns, struct error *err);
	/* Raises the clock at low power: spins until it is >= 0.97 of its maximum, or limit_ns has passed;
	 * *reached tells which. Does not call the engine. */
	enum status (*ramp)(struct meter *m, uint64_t limit_ns, bool *reached, struct error *err);
	/* Opens the window. Nothing is in flight. `w` stays lent until end. GPU: stamp 0 is enqueued here. */
	enum status (*begin)(struct meter *m, struct window *w, struct error *err);
	/* Enqueues `batch` (>= 1) iterations as one sample. It calls engine->enqueue(state, m->next++) for
	 * each, or replays a graph captured from as many. Then m->next += batch, and buffers must rotate
	 * inside the graph as they would outside. Appends the samples that are known by now. Returns at once
	 * while fewer than `depth` samples are in flight; otherwise waits for the oldest. A CPU meter appends
	 * this sample before it returns. */
	enum status (*sample)(struct meter *m, uint64_t batch, struct error *err);
	/* Runs `count` iterations (1 to METER_SINGLES) in a row, as `sample` would. Each is a sample of its
	 * own. Nothing is in flight before and after. A window has either samples or single iterations. */
	enum status (*singles)(struct meter *m, uint64_t count, struct error *err);
	/* Optional, GPU: runs `count` iterations in a row, as `sample` would. `mark` is called before and
	 * after them while nothing is in flight. Nothing is timed or appended. NULL: no hardware counters. */
	enum status (*counted)(struct meter *m, uint64_t count, meter_mark *mark, void *arg,
			       struct error *err);
	/* Waits until nothing is in flight; all samples are appended. The window stays open. */
	enum status (*drain)(struct meter *m, struct error *err);
	/* Drains, enqueues stamp 1, fills in the window and t1, and closes it. */
	enum status (*end)(struct meter *m, struct error *err);
	/* Optional. Reads the device without disturbing the window (an NVML field call, a stamp). Called at
	 * most every 100 ms while a window is open, and never in windows of iterations below 20 us. NULL:
	 * settling is judged by rate only. */
	enum status (*state)(struct meter *m, struct meter_state *out, struct error *err);
	/* Frees the meter; accepts a partly created one, whose members may be NULL. */
	void (*destroy)(struct meter *m);
};

/* First member of each meter's own struct. */
struct meter {
	const struct meter_ops *ops;
	const struct engine *engine;
	void *state; /* the engine's, prepared */
	const struct bench *bench;
	const struct clock *clock;
	/* index of the next enqueue; grows over all windows, so that buffers continue to rotate */
	uint64_t next;
	/* largest number of samples in flight; 1 on a CPU. At most this many samples arrive late */
	unsigned depth;
	struct window *window; /* the open window, or NULL */
};

/* Parts of a meter; all are lent for its life. The engine is prepared. */
struct meter_spec {
	const struct engine *engine;
	void *state;
	const void *opts; /* the probe's, for engine->launch */
	const struct bench
		*bench; /* bench->device and bench->stream[0] are the device and stream of a GPU meter */
	const struct clock *clock;
	struct team_board *board; /* this rank's line, which shows the current NVML call; NULL: no board */
};

/* Spread of a finished window. `single`: each sample is one iteration. */
struct rank_spread rank_spread_of(const struct rank_times *t, bool single);
/*
 * Sets the samples from index `from` on, which each rank timed in a row. A sample lasts from the time when
 * the last rank had done the previous one to the time when the last rank has done it. So the samples add up
 * to the time of all ranks. The maxima of the ranks' times would add up to more, because a rank that is late
 * in one sample is early in the next.
 */
void rank_row_samples(const struct rank_times *t, size_t from, struct sample *sample);

/* The caller frees a meter with meter_destroy(). */
enum status meter_cpu_create(struct meter **m, const struct meter_spec *spec, struct error *err);
enum status meter_gpu_create(struct meter **m, const struct meter_spec *spec, struct error *err);
static inline void meter_destroy(struct meter **m)
{
	if (*m)
		(*m)->ops->destroy(*m);
	*m = NULL;
}
/* For meters: appends one sample; drops it silently if the window is full. */
static inline void window_add(struct window *w, double ns_batch, double end_ns, uint64_t batch)
{
	if (w->count < w->room)
		w->sample[w->count++] =
			(struct sample){.ns = ns_batch / (double)batch, .end_ns = end_ns, .batch = batch};
}
#endif
