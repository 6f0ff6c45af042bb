/* SPDX-License-Identifier: Apache-2.0 */
/* assay __tracks EVERY_NS PCI..: samples hardware counters of these GPUs over time and writes telemetry
 * lines to descriptor 3 until nobody reads. It is a separate process, because it has a CUDA context on
 * each GPU and a driver may hang. */
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include "cmd/command.h"
#include "core/clock.h"
#include "core/text/text.h"
#include "counter/counter.h"
#include "gpu/device/gpu.h"
#include "run/supervisor/lines.h"

enum { CHANNEL = 3, GPUS_MAX = 64, TURN_MS = 100, ROOM = 4096 };

struct tracked {
	const char *pci;
	struct gpu_device *device;
	struct counter_sampling *sampling;
	/* Upper limit of our clock minus the GPU's clock: each reading happens after the samples that it
	 * reads. */
	int64_t offset_ns;
	bool placed;
};

struct tracking {
	const struct log *log;
	struct tracked gpu[GPUS_MAX];
	unsigned gpus;
	struct counter_sample sample[ROOM];
	bool lost_told;
};

static enum status open_one(struct tracked *g, uint64_t every_ns, struct error *err)
{
	enum status st = gpu_open(&g->device, g->pci, err);

	if (!st)
		st = counter_sampling_open(&g->sampling, g->device, every_ns, ROOM, err);
	if (!st)
		st = counter_sampling_start(g->sampling, err);
	if (st) {
		counter_sampling_close(&g->sampling);
		gpu_close(&g->device);
	}
	return st;
}

/* {"source":"gpu:0000:1b:00.0","signal":"pm_sm_active_share","kind":"gauge","at":[..],"v":[..]} */
static void add_line(struct text *out, const struct tracked *g, unsigned row, const struct counter_sample *s,
		     size_t count)
{
	bool first = true;

	text_addf(out, "{\"source\":\"gpu:%s\",\"signal\":\"pm_%s\",\"kind\":\"gauge\",\"at\":[", g->pci,
		  counter_sampled_rows[row].name);
	for (size_t i = 0; i < count; i++)
		if (isfinite(s[i].value[row])) {
			text_addf(out, "%s%lld", first ? "" : ",",
				  (long long)((int64_t)s[i].end_ns + g->offset_ns));
			first = false;
		}
	text_add(out, "],\"v\":[");
	first = true;
	for (size_t i = 0; i < count; i++)
		if (isfinite(s[i].value[row])) {
			text_addf(out, "%s%.6g", first ? "" : ",", s[i].value[row]);
			first = false;
		}
	text_add(out, "]}\n");
}

static enum status read_one(struct tracking *t, struct tracked *g, struct text *out, struct error *err)
{
	size_t count = 0;
	bool lost = false;
	enum status st = counter_sampling_read(g->sampling, t->sample, ROOM, &count, &lost, err);
	int64_t offset;

	if (st || !count)
		return st;
	offset = (int64_t)clock_now_ns(clock_monotonic()) - (int64_t)t->sample[count - 1].end_ns;
	if (!g->placed || offset < g->offset_ns)
		g->offset_ns = offset;
	g->placed = true;
	if (lost && !t->lost_told)
		log_warn(t->log, LOG_TOPIC_RUN,
			 "counters of GPU %s: samples are missing; use a longer --tracks-every", g->pci);
	t->lost_told |= lost;
	for (unsigned row = 0; row < COUNTER_SAMPLED_COUNT; row++)
		if (counter_sampling_has(g->sampling, (enum counter_sampled)row))
			add_line(out, g, row, t->sample, count);
	return STATUS_OK;
}

/* Reads all GPUs once. False if nobody reads our lines any more, or no GPU can be read. */
static bool turn(struct tracking *t)
{
	struct text out = {0};
	struct error err = {0};
	unsigned alive = 0;
	bool heard;

	for (unsigned i = 0; i < t->gpus; i++) {
		struct tracked *g = &t->gpu[i];

		if (g->sampling && read_one(t, g, &out, &err)) {
			log_warn(t->log, LOG_TOPIC_RUN, "counters of GPU %s: sampling ended: %s", g->pci,
				 err.text);
			counter_sampling_close(&g->sampling);
		}
		alive += g->sampling != NULL;
	}
	heard = !out.failed && (!out.size || !lines_write(CHANNEL, out.data, out.size, &err));
	text_release(&out);
	return heard && alive;
}

/* Waits one interval. True if the reader wants no more lines or is gone. */
static bool told_to_end(void)
{
	struct pollfd in = {.fd = CHANNEL, .events = POLLIN | POLLRDHUP};

	return poll(&in, 1, TURN_MS) > 0;
}

static void close_all(struct tracking *t)
{
	for (unsigned i = 0; i < t->gpus; i++) {
		counter_sampling_close(&t->gpu[i].sampling);
		gpu_close(&t->gpu[i].device);
	}
}

static void open_all(struct tracking *t, uint64_t every_ns, char **pci, int count)
{
	struct error err = {0};

	for (int i = 0; i < count && t->gpus < GPUS_MAX; i++) {
		struct tracked *g = &t->gpu[t->gpus];

		*g = (struct tracked){.pci = pci[i]};
		if (open_one(g, every_ns, &err))
			log_warn(t->log, LOG_TOPIC_RUN,
				 "GPU %s: no sampled hardware counters, GPM telemetry continues: %s", pci[i],
				 err.text);
		else
			t->gpus++;
	}
}

static int run_raw(const struct command_context *c, int argc, char **argv)
{
	struct tracking *t = calloc(1, sizeof(*t));
	char *end;
	unsigned long long every_ns = argc > 1 ? strtoull(argv[0], &end, 10) : 0;
	int code = EXIT_FAILED;

	if (t && every_ns) {
		t->log = c->log;
		open_all(t, every_ns, argv + 1, argc - 1);
		code = t->gpus ? EXIT_PASS : EXIT_FAILED;
	}
	while (t && t->gpus && !*c->stop && turn(t) && !told_to_end())
		;
	if (t && t->gpus)
		turn(t); /* read the samples since the last turn */
	if (t)
		close_all(t);
	free(t);
	return code;
}

const struct command command_tracks = {
	.name = "__tracks",
	.summary = "write sampled hardware counters to descriptor 3",
	.hidden = true,
	.raw = true,
	.run_raw = run_raw,
};
