/* SPDX-License-Identifier: Apache-2.0 */
/* The sampler process: ticks at 50 Hz until a request to stop, or until the reader is gone. */
#include <fcntl.h>
#include <sys/socket.h>
#include "telemetry/sample.h"

enum { CHANNEL_FD = 3, TICK_MS = 20, FLUSH_MS = 200, GPUS_MAX = 64 };

struct sampler {
	struct nvml nvml;
	struct sample_gpu gpu[GPUS_MAX];
	unsigned gpus;
	struct sample_events events;
	struct sample_host host;
	bool with_host;
	struct batch batch;
	uint64_t lost_told;
};

/* Opens NVML and the named GPUs; skips missing ones with a warning. */
static enum status open_gpus(struct sampler *s, char **pci, unsigned count, const struct log *log,
			     struct error *err)
{
	const struct clock *clock = clock_monotonic();
	struct lib_fact fact = {0};
	enum status st;
	nvmlReturn_t ret;
	unsigned i;

	st = lib_open(&s->nvml, &nvml_lib, NULL, &fact, err);
	lib_fact_release(&fact);
	if (st)
		return st;
	ret = s->nvml.init();
	if (ret)
		return nvml_error(&s->nvml, ret, "nvmlInit_v2", err);
	for (i = 0; i < count && s->gpus < GPUS_MAX; i++) {
		nvmlDevice_t device;

		ret = s->nvml.by_pci(pci[i], &device);
		if (ret) {
			log_warn(log, LOG_TOPIC_RUN, "no telemetry of GPU %s: %s", pci[i],
				 s->nvml.error_string(ret));
			continue;
		}
		snprintf(s->batch.name[s->gpus], BATCH_SOURCE_SIZE, "gpu:%s", pci[i]);
		sample_gpu_init(&s->gpu[s->gpus], &s->nvml, device, s->gpus, clock_now_ns(clock));
		s->gpu[s->gpus].log = log;
		s->gpus++;
	}
	sample_events_init(&s->events, &s->nvml, s->gpu, s->gpus, &s->batch, clock);
	return STATUS_OK;
}

static void tick(struct sampler *s, const struct clock *clock)
{
	unsigned i;

	for (i = 0; i < s->gpus; i++)
		sample_gpu_tick(&s->gpu[i], &s->batch, clock);
	sample_events_tick(&s->events, s->gpu, s->gpus, &s->batch, clock);
	if (s->with_host)
		sample_host_tick(&s->host, &s->batch, clock);
	if (s->batch.lost_lines > s->lost_told) {
		s->lost_told = s->batch.lost_lines;
		batch_add(&s->batch, s->batch.sources - 1, TELEMETRY_lost_lines, clock_now_ns(clock),
			  (double)s->lost_told);
	}
}

/* Handles the supervisor's messages that a window begins. */
static void heed(struct sampler *s, const struct clock *clock)
{
	char requests[64];

	if (recv(CHANNEL_FD, requests, sizeof(requests), MSG_DONTWAIT) <= 0)
		return;
	for (unsigned i = 0; i < s->gpus; i++)
		sample_gpu_align(&s->gpu[i], clock_now_ns(clock));
}

static void loop(struct sampler *s, const volatile sig_atomic_t *stop, const struct clock *clock)
{
	uint64_t next = clock_now_ns(clock), flush = next + FLUSH_MS * 1000000u, now;

	while (!*stop && !s->batch.closed) {
		heed(s, clock);
		tick(s, clock);
		now = clock_now_ns(clock);
		if (now >= flush) {
			batch_flush(&s->batch);
			flush = now + FLUSH_MS * 1000000u;
		}
		next += TICK_MS * 1000000u;
		if (next <= now)
			next = now + TICK_MS * 1000000u; /* a call took long: continue from now */
		clock_sleep_ns(clock, next - now);
	}
	s->events.due_ns = 0; /* poll once more for a last Xid event */
	sample_events_tick(&s->events, s->gpu, s->gpus, &s->batch, clock);
	batch_flush(&s->batch);
}

int sampler_main(int argc, char **argv, const volatile sig_atomic_t *stop, const struct log *log)
{
	const struct clock *clock = clock_monotonic();
	bool with_host = argc > 0 && !strcmp(argv[0], "host");
	unsigned count = (unsigned)(argc - with_host), i;
	struct error err = {0};
	struct sampler *s = calloc(1, sizeof(*s));
	int flags = fcntl(CHANNEL_FD, F_GETFL), code = 1;

	if (!s || flags < 0 || fcntl(CHANNEL_FD, F_SETFL, flags | O_NONBLOCK) ||
	    batch_init(&s->batch, CHANNEL_FD, count + 1, &err)) {
		log_warn(log, LOG_TOPIC_RUN, "no telemetry: %s",
			 err.status ? err.text : "descriptor 3 is closed");
		free(s);
		return code;
	}
	s->with_host = with_host;
	snprintf(s->batch.name[count], BATCH_SOURCE_SIZE, "host");
	if (with_host)
		sample_host_init(&s->host, "", count, clock_now_ns(clock));
	if (count && open_gpus(s, argv + with_host, count, log, &err))
		log_warn(log, LOG_TOPIC_RUN, "no telemetry of GPUs: %s", err.text);
	if (s->gpus || with_host) {
		loop(s, stop, clock);
		code = 0;
	}
	for (i = 0; i < s->gpus; i++)
		sample_gpu_release(&s->gpu[i]);
	sample_events_release(&s->events);
	if (with_host)
		sample_host_release(&s->host);
	batch_release(&s->batch);
	free(s);
	return code;
}
