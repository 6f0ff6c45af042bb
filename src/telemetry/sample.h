/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of the sampler process: the readings of one tick, and the lines that carry them. */
#ifndef TELEMETRY_SAMPLE_H
#define TELEMETRY_SAMPLE_H
#include "core/log.h"
#include "core/text/text.h"
#include "telemetry/telemetry.h"
#include "vendor/nvml.h"

const struct telemetry_signal *telemetry_signal_at(enum telemetry_signal_id id);

/* Readings wait in one list for each source and signal until they become a line. None of these functions
 * blocks. */
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
	struct text queue; /* complete lines; the first may be partly sent */
	size_t sent, queue_max;
	uint64_t lost_lines;
	bool closed; /* the reader is gone */
};

enum status batch_init(struct batch *b, int fd, unsigned sources, struct error *err);
void batch_release(struct batch *b);
/* Adds a reading; ignores NaN and infinity. */
void batch_add(struct batch *b, unsigned source, enum telemetry_signal_id id, uint64_t t_ns, double value);
/* Turns waiting readings into lines and writes as much as the pipe takes. If the queue is full, the oldest
 * lines are dropped. */
void batch_flush(struct batch *b);

/* The next reading time of each signal of one source. A signal that the device lacks is never read again. */
struct schedule {
	uint64_t due_ns[TELEMETRY_SIGNAL_COUNT]; /* UINT64_MAX: never */
};

void schedule_init(struct schedule *s, uint64_t now_ns, unsigned source);
/* True once per period; missed ticks are not repeated. */
bool schedule_due(struct schedule *s, enum telemetry_signal_id id, uint64_t now_ns);
void schedule_never(struct schedule *s, enum telemetry_signal_id id);
_Static_assert(TELEMETRY_SIGNAL_COUNT <= 32, "sample_gpu.by_call and .impossible hold 32 signals");

/* Samples one GPU by NVML. */
struct sample_gpu {
	const struct nvml *nvml;
	nvmlDevice_t device;
	unsigned source;
	const struct log *log;			   /* NULL: no warnings */
	bool lost;				   /* NVML reports it lost: not read any more */
	uint64_t heard_ns[TELEMETRY_SIGNAL_COUNT]; /* time of the last reading; 0: none */
	/* One bit for each signal. */
	unsigned told;	     /* reported that the signal stopped */
	unsigned by_call;    /* no field for it: a call of its own is used */
	unsigned impossible; /* warned that it gave an impossible value */
	struct schedule schedule;
	nvmlGpmSample_t gpm[2]; /* NULL: no GPM */
	unsigned gpm_last;	/* index of the buffer that holds the end of the last interval */
	bool gpm_began;
};

void sample_gpu_init(struct sample_gpu *g, const struct nvml *nvml, nvmlDevice_t device, unsigned source,
		     uint64_t now_ns);
void sample_gpu_release(struct sample_gpu *g);
/* Ends the current GPM interval SERIES_GPM_ASK_NS from now; the next ones follow at their period. */
void sample_gpu_align(struct sample_gpu *g, uint64_t now_ns);
void sample_gpu_tick(struct sample_gpu *g, struct batch *b, const struct clock *clock);

/* Xid events of all GPUs, from one NVML event set that is polled without waiting. */
struct sample_events {
	const struct nvml *nvml;
	nvmlEventSet_t set; /* NULL: no events */
	uint64_t due_ns;
};

/* Registers `count` GPUs for Xid events. If NVML refuses one, adds a reading `xid_unwatched` to `b` and logs
 * a warning. */
void sample_events_init(struct sample_events *e, const struct nvml *nvml, const struct sample_gpu *gpus,
			unsigned count, struct batch *b, const struct clock *clock);
void sample_events_release(struct sample_events *e);
void sample_events_tick(struct sample_events *e, const struct sample_gpu *gpus, unsigned count,
			struct batch *b, const struct clock *clock);

/* Samples the host: /proc/stat and RAPL below `root` ("" for this machine; tests use a folder). */
enum { RAPL_ZONES = 16 };
/* The sum of the energy counters of several RAPL zones. */
struct sample_rapl {
	unsigned zones;
	int fd[RAPL_ZONES];
	double last[RAPL_ZONES], range[RAPL_ZONES], sum_uj;
	bool began;
	bool refused; /* there is a counter, and this user may not read it */
};
/* Opens the counters of all packages and, unless `dram` is NULL, of the memory outside them. Both are zeroed
 * by the caller. On most machines only root can read them, and a virtual machine mostly has none. */
void sample_rapl_open(struct sample_rapl *packages, struct sample_rapl *dram, const char *root);
/* Adds to sum_uj what the zones counted since the last call. False: a zone cannot be read, or it wrapped and
 * its range is not known. */
bool sample_rapl_read(struct sample_rapl *r);
void sample_rapl_close(const struct sample_rapl *r);

struct sample_host {
	unsigned source;
	int stat_fd;  /* -1: not available */
	int meter_fd; /* the node's power meter; -1: not available */
	struct sample_rapl packages, dram;
	double busy, total; /* last values of /proc/stat */
	bool began;
	struct schedule schedule;
};

void sample_host_init(struct sample_host *h, const char *root, unsigned source, uint64_t now_ns);
void sample_host_release(struct sample_host *h);
void sample_host_tick(struct sample_host *h, struct batch *b, const struct clock *clock);
#endif
