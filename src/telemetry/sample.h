/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the sampler process: readings of one tick, and the lines that carry them. */
#ifndef TELEMETRY_SAMPLE_H
#define TELEMETRY_SAMPLE_H
#include "core/log.h"
#include "core/text/text.h"
#include "telemetry/telemetry.h"
#include "vendor/nvml.h"

const struct telemetry_signal *telemetry_signal_at(enum telemetry_signal_id id);

/* Readings wait here, one list a source and signal, until they become a line. Nothing here blocks. */
enum { BATCH_READINGS = 32, BATCH_QUEUE_BYTES = 1 << 20, BATCH_SOURCE_SIZE = 40 };

struct batch_list {
	unsigned count;
	uint64_t t_ns[BATCH_READINGS];
	double value[BATCH_READINGS];
};

struct batch {
	int fd; /* non-blocking */
	unsigned sources;
	char (*name)[BATCH_SOURCE_SIZE];
	struct batch_list (*list)[TELEMETRY_SIGNAL_COUNT];
	struct text queue; /* whole lines; the first may be partly sent */
	size_t sent, queue_max;
	uint64_t lost_lines;
	bool closed; /* nobody reads any more */
};

enum status batch_init(struct batch *b, int fd, unsigned sources, struct error *err);
void batch_release(struct batch *b);
/* A value that is no finite number is dropped. */
void batch_add(struct batch *b, unsigned source, enum telemetry_signal_id id, uint64_t t_ns, double value);
/* Turns what waits into lines and writes what the pipe takes; the oldest lines go when the queue is full. */
void batch_flush(struct batch *b);

/* When each signal of one source is read next; a signal that the device lacks is never read again. */
struct schedule {
	uint64_t due_ns[TELEMETRY_SIGNAL_COUNT]; /* UINT64_MAX: never */
};

void schedule_init(struct schedule *s, uint64_t now_ns, unsigned source);
/* True once a period; ticks that were missed are not made up for. */
bool schedule_due(struct schedule *s, enum telemetry_signal_id id, uint64_t now_ns);
void schedule_never(struct schedule *s, enum telemetry_signal_id id);
_Static_assert(TELEMETRY_SIGNAL_COUNT <= 32, "sample_gpu.by_call and .impossible hold 32 signals");

/* One GPU by NVML. */
struct sample_gpu {
	const struct nvml *nvml;
	nvmlDevice_t device;
	unsigned source;
	const struct log *log;			   /* NULL: says nothing */
	bool lost;				   /* it answers no more: left alone */
	uint64_t heard_ns[TELEMETRY_SIGNAL_COUNT]; /* last answer of calls; 0: there was none */
	unsigned told;				   /* bit a signal: that it stopped to come was told */
	unsigned by_call;    /* bit a signal: there is no field, the call of its own is used */
	unsigned impossible; /* bit a signal: it answered what no device can have, and that was said */
	struct schedule schedule;
	nvmlGpmSample_t gpm[2]; /* NULL: no GPM */
	unsigned gpm_last;	/* the buffer that holds the end of the last interval */
	bool gpm_began;
};

void sample_gpu_init(struct sample_gpu *g, const struct nvml *nvml, nvmlDevice_t device, unsigned source,
		     uint64_t now_ns);
void sample_gpu_release(struct sample_gpu *g);
/* The GPM interval that runs now ends SERIES_GPM_ASK_NS from now, and the others follow at their period. */
void sample_gpu_align(struct sample_gpu *g, uint64_t now_ns);
void sample_gpu_tick(struct sample_gpu *g, struct batch *b, const struct clock *clock);

/* Xid events of all GPUs, by one event set that is never waited for. */
struct sample_events {
	const struct nvml *nvml;
	nvmlEventSet_t set; /* NULL: no events */
	uint64_t due_ns;
};

/* Asks NVML for the Xid events of `count` GPUs. One that it refuses gets a reading `xid_unwatched` in `b`,
 * and a warning. */
void sample_events_init(struct sample_events *e, const struct nvml *nvml, const struct sample_gpu *gpus,
			unsigned count, struct batch *b, const struct clock *clock);
void sample_events_release(struct sample_events *e);
void sample_events_tick(struct sample_events *e, const struct sample_gpu *gpus, unsigned count,
			struct batch *b, const struct clock *clock);

/* The host: /proc/stat and RAPL below `root` ("" live; a folder in tests). */
enum { RAPL_PACKAGES = 16 };
struct sample_host {
	unsigned source, packages;
	int stat_fd, energy_fd[RAPL_PACKAGES]; /* -1: not there */
	double energy_last[RAPL_PACKAGES], energy_range[RAPL_PACKAGES], energy_uj;
	double busy, total; /* /proc/stat, last */
	bool began, energy_began;
	struct schedule schedule;
};

void sample_host_init(struct sample_host *h, const char *root, unsigned source, uint64_t now_ns);
void sample_host_release(struct sample_host *h);
void sample_host_tick(struct sample_host *h, struct batch *b, const struct clock *clock);
#endif
