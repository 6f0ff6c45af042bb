/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Probe `dispatch`: the cost of giving a GPU work. One iteration is one launch of an empty kernel
 * (what=launch), or one replay of a graph of `nodes` empty kernels (what=graph). One message is one kernel.
 * The core never batches these iterations into a graph of its own.
 *
 * After timing, the probe measures once: the resolution of events, the gap that two consecutive events
 * insert, and how the device's timer, events and the host's clock agree over a spin of 50 ms
 * (docs/explanation/methods/gpu-memory-and-links.md, "Launches and timers"). The kernels compute nothing, so
 * verification only finds failed launches. tests/gpu tests the kernel itself.
 */
#include "core/clock.h"
#include "core/math/stats.h"
#include "gpu/device/gpu.h"
#include "kernel/timing/empty.h"
#include "kernel/timing/spin.h"
#include "run/probe.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define SPIN_NS 50000000u

enum { LAUNCH, GRAPH };
enum { EVENTS = 128 };

struct dispatch_opts {
	uint32_t what, nodes;
};

static const char *const whats[] = {"launch", "graph", NULL};

static const struct opt opt_rows[] = {
	OPT_ROW(struct dispatch_opts, what, .name = "what", .preset = "launch", .choices = whats,
		.help = "launch: one kernel launch per iteration; graph: one replay of a graph per iteration"),
	OPT_ROW(struct dispatch_opts, nodes, .name = "nodes", .preset = "100", .min = 1, .max = 10000,
		.help = "what=graph: kernels in the graph"),
};

/* name, unit, kind, better, help */
#define DISPATCH_FIELDS(X)                                                                                   \
	X(event_gap_ns, "ns", F64, -1,                                                                       \
	  "median time between two consecutive events with no work between them")                            \
	X(event_step_ns, "ns", F64, -1,                                                                      \
	  "smallest difference between two such times: the resolution of events")                            \
	X(timer_event_ratio, "", F64, 0, "time by events divided by time by the device's timer")             \
	X(timer_host_ratio, "", F64, 0, "time by the device's timer divided by time by the host's clock")
#define X(name, ...) FIELD_##name,
enum dispatch_field { DISPATCH_FIELDS(X) DISPATCH_FIELD_COUNT };
#undef X
static const struct field fields[] = {DISPATCH_FIELDS(FIELD_ROW)};

struct dispatch {
	struct dispatch_opts opts;
	struct gpu_device *device;
	struct gpu_stream *stream;
	const struct clock *clock;
	struct gpu_kernel *empty, *spin;
	struct gpu_graph *graph;
	struct gpu_event *event[EVENTS];
	struct gpu_stamps *stamps;
};

static struct work work(const struct machine *m, const struct target *t, const void *opts)
{
	const struct dispatch_opts *o = opts;

	(void)m, (void)t;
	return (struct work){.messages = o->what == GRAPH ? o->nodes : 1, .limit = "latency"};
}

static enum status launch(struct dispatch *s, struct error *err)
{
	return gpu_launch_1d(s->empty, s->stream, 1, 32, 0, &(struct empty_args){0}, err);
}

static enum status capture(struct dispatch *s, struct error *err)
{
	enum status st = gpu_capture_begin(s->stream, err), ended;

	if (st)
		return st;
	for (uint32_t i = 0; i < s->opts.nodes && !st; i++)
		st = launch(s, err);
	ended = gpu_capture_end(s->stream, &s->graph, err);
	return st ? st : ended;
}

static enum status prepare(void *state, const struct bench *b, const void *opts, struct error *err)
{
	struct dispatch *s = state;
	const struct dispatch_opts *o = opts;
	enum status st;

	*s = (struct dispatch){.opts = *o, .device = b->device, .stream = b->stream[0], .clock = b->clock};
	st = gpu_kernel(s->device, &s->empty, "empty", "empty", err);
	if (!st)
		st = gpu_kernel(s->device, &s->spin, "spin", "spin", err);
	for (unsigned i = 0; i < EVENTS && !st; i++)
		st = gpu_event_create(s->device, &s->event[i], err);
	if (!st)
		st = gpu_stamps_create(s->device, &s->stamps, err);
	if (!st && o->what == GRAPH)
		st = capture(s, err);
	return st;
}

static enum status enqueue(void *state, uint64_t i, struct error *err)
{
	struct dispatch *s = state;

	(void)i;
	return s->graph ? gpu_graph_launch(s->graph, s->stream, err) : launch(s, err);
}

static enum status verify(void *state, struct wrong *wrong, struct error *err)
{
	struct dispatch *s = state;

	*wrong = (struct wrong){0};
	return gpu_stream_wait(s->stream, err); /* reports a failed launch */
}

static enum status event_facts(struct dispatch *s, struct result *out, struct error *err)
{
	double gap[EVENTS - 1], step = 0;
	enum status st = STATUS_OK;

	for (unsigned i = 0; i < EVENTS && !st; i++)
		st = gpu_event_record(s->event[i], s->stream, err);
	if (!st)
		st = gpu_stream_wait(s->stream, err);
	for (unsigned i = 0; i + 1 < EVENTS && !st; i++)
		st = gpu_event_elapsed_ns(s->event[i], s->event[i + 1], &gap[i], err);
	if (st)
		return st;
	stats_sort(gap, COUNT(gap));
	for (unsigned i = 0; i + 1 < COUNT(gap); i++) {
		double difference = gap[i + 1] - gap[i];

		if (difference > 1 &&
		    (step <= 0 || difference < step)) /* events are floats in ms: below 1 ns is rounding */
			step = difference;
	}
	result_f64(out, &fields[FIELD_event_gap_ns], stats_median(gap, COUNT(gap)));
	if (step > 0)
		result_f64(out, &fields[FIELD_event_step_ns], step);
	return STATUS_OK;
}

static enum status timer_facts(struct dispatch *s, struct result *out, struct error *err)
{
	struct gpu_clock clock;
	double event_ns = 0;
	uint64_t host_ns;
	enum status st = gpu_stream_wait(s->stream, err);

	host_ns = clock_now_ns(s->clock);
	if (!st)
		st = gpu_stamps_enqueue(s->stamps, 0, s->stream, err);
	if (!st)
		st = gpu_event_record(s->event[0], s->stream, err);
	if (!st)
		st = gpu_launch_1d(s->spin, s->stream, 1, 32, 0, &(struct spin_args){SPIN_NS}, err);
	if (!st)
		st = gpu_event_record(s->event[1], s->stream, err);
	if (!st)
		st = gpu_stamps_enqueue(s->stamps, 1, s->stream, err);
	if (!st)
		st = gpu_stream_wait(s->stream, err);
	host_ns = clock_now_ns(s->clock) - host_ns;
	if (!st)
		st = gpu_stamps_read(s->stamps, &clock, err);
	if (st == STATUS_UNAVAILABLE) { /* other work occupies the SMs */
		error_clear(err);
		return STATUS_OK;
	}
	if (!st)
		st = gpu_event_elapsed_ns(s->event[0], s->event[1], &event_ns, err);
	if (st)
		return st;
	result_f64(out, &fields[FIELD_timer_event_ratio], event_ns / clock.ns);
	if (host_ns)
		result_f64(out, &fields[FIELD_timer_host_ratio], clock.ns / (double)host_ns);
	return STATUS_OK;
}

static enum status finish(void *state, struct result *out, struct error *err)
{
	enum status st = event_facts(state, out, err);

	return st ? st : timer_facts(state, out, err);
}

static void release(void *state)
{
	struct dispatch *s = state;

	gpu_graph_destroy(&s->graph);
	gpu_stamps_destroy(&s->stamps);
	for (unsigned i = 0; i < EVENTS; i++)
		gpu_event_destroy(&s->event[i]);
	*s = (struct dispatch){0};
}

static const struct engine own_engine = {
	.name = "own",
	.libs = "cuda",
	.targets = TARGET_GPU,
	.streams = 1,
	.plain = true,
	.state_size = sizeof(struct dispatch),
	.prepare = prepare,
	.enqueue = enqueue,
	.release = release,
};

/* The timer's records take less than 1 MiB. */
static void need(const struct machine *m, const struct target *t, const void *opts, struct need *out)
{
	(void)m, (void)t, (void)opts;
	out->device_bytes = 1 << 20;
}

static const struct engine *const engines[] = {&own_engine, NULL};

const struct probe probe_dispatch = {
	.name = "dispatch",
	.summary = "cost of a kernel launch and of a graph replay, and agreement of the device's timers",
	.kind = PROBE_TIMED,
	.opts = {opt_rows, COUNT(opt_rows), sizeof(struct dispatch_opts)},
	.fields = fields,
	.field_count = DISPATCH_FIELD_COUNT,
	.engines = engines,
	.work = work,
	.need = need,
	.verify = verify,
	.finish = finish,
};
