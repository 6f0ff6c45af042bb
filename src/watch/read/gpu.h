/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of the process that reads GPUs. Only that process may call NVML: a driver that hangs stops it. */
#ifndef WATCH_READ_GPU_H
#define WATCH_READ_GPU_H
#include "vendor/nvml.h"
#include "watch/read/out.h"
#include "watch/read/reader.h"

enum { GPU_PROCESSES_MAX = 64, GPU_XIDS_MAX = 32, GPU_SAMPLED = 6, GPU_WHY = 160 };

struct gpu_process {
	unsigned pid;
	uint32_t e;
	double memory; /* bytes; negative: not known */
	bool seen;
};
/* A sample ends one interval and begins the next. */
struct gpu_gpm {
	nvmlGpmSample_t sample[2]; /* NULL: there is no GPM, or it was not asked for yet */
	unsigned last;
	bool asked, began;
};
struct gpu_instance {
	nvmlDevice_t device;
	unsigned gi, ci;
	uint32_t e;
	bool seen;
	struct gpu_gpm gpm;
};
struct gpu_xid {
	unsigned number;
	uint32_t e;
	double count;
};

struct gpu {
	char pci[16], number[8]; /* number: the label gpu */
	bool granted;		 /* the driver lists it here; else it may belong to others */
	uint32_t e;
	nvmlDevice_t device;
	int power_status;	     /* the file of the kernel, which stays open; -1: closed */
	bool open;		     /* NVML gave a handle, and the entity's labels are complete */
	bool lost, asleep;	     /* said so */
	bool heard;		     /* it has answered once */
	uint64_t retry_ns;	     /* when a lost GPU is tried again */
	bool never[CATALOGUE_COUNT]; /* this device or driver does not have it */
	unsigned until_rare; /* SLOW readings until the next one with the RARE rows, 0: none before it */
	bool rare;	     /* the present reading includes the RARE rows */
	nvmlReturn_t gone;   /* a call's answer that says that the GPU is lost; 0: none */
	struct gpu_gpm gpm;
	/* Seconds in which each reason was seen, and when they were last looked at. */
	double sampled_s[GPU_SAMPLED];
	uint64_t reasons_ns;
	uint32_t link[NVML_LINKS_MAX]; /* OUT_NONE: not declared */
	unsigned links;
	bool links_asked;
	struct gpu_process process[GPU_PROCESSES_MAX];
	unsigned processes;
	unsigned long long process_seen_us;
	struct gpu_instance instance[METRIC_GPU_INSTANCES_MOST];
	unsigned instances, mig; /* mig: the mode that was seen last */
	struct gpu_xid xid[GPU_XIDS_MAX];
	unsigned xids;
	double xid_last;
	bool watched; /* registered for events */
};

struct gpu_xids {
	nvmlEventSet_t set; /* NULL: none */
	int log;	    /* the kernel log; -1: not readable */
	const char *since;  /* "boot", or "reader": from when Xids are counted */
	struct text line;
	bool begun; /* the log's first record has been seen */
	bool old;   /* records that were there at the start, and are not counted */
};

/* The least and the highest value that a row can have. */
struct gpu_limits {
	double raw; /* the unit of the driver's own number; 0: the row has no limits */
	double low, high;
};

struct gpu_reader {
	const struct reader_spec *spec;
	struct nvml nvml;
	bool opened, init;
	char driver[80];
	struct watch_out out;
	struct gpu gpu[READER_GPUS_MAX];
	unsigned count;
	uint64_t rounds; /* that have ended */
	struct gpu_xids xids;
	uint32_t self;
	struct gpu_limits limits[CATALOGUE_COUNT];
	char impossible[CATALOGUE_COUNT][GPU_WHY]; /* reasons of absent values; "": not needed yet */
	volatile char *at; /* shared with the node: PCI address of the GPU that is being read */
};

static inline bool gpu_is_lost(nvmlReturn_t ret)
{
	return ret == NVML_ERROR_GPU_IS_LOST || ret == NVML_ERROR_RESET_REQUIRED;
}
void gpu_limits_init(struct gpu_limits limits[CATALOGUE_COUNT]);
/* False for all ones, for a number that no device can have, and for NaN. */
bool gpu_value_is_possible(const struct gpu_reader *r, enum catalogue row, double value);
/* The reason for a value that is not possible; valid as long as `r`. */
const char *gpu_impossible(struct gpu_reader *r, enum catalogue row);
/* Sets a value of an entity. An impossible one is absent, with a reason. */
void gpu_set(struct gpu_reader *r, uint32_t e, enum catalogue row, double value);
/* Takes the result of a call: a value, a reason, or the loss of the GPU. */
void gpu_take(struct gpu_reader *r, struct gpu *g, enum catalogue row, nvmlReturn_t ret, double value);
void gpu_read_values(struct gpu_reader *r, struct gpu *g, bool slow);
void gpu_read_gpm(struct gpu_reader *r, struct gpu *g);
/* The same of an instance under MIG: shares of its own hardware units. */
void gpu_read_instance_gpm(struct gpu_reader *r, struct gpu *g, struct gpu_instance *in);
void gpu_close_gpm(const struct nvml *n, struct gpu_gpm *gpm);
void gpu_read_links(struct gpu_reader *r, struct gpu *g);
void gpu_read_processes(struct gpu_reader *r, struct gpu *g);
void gpu_read_instances(struct gpu_reader *r, struct gpu *g, bool slow);
void gpu_drop_instances(struct gpu_reader *r, struct gpu *g);
/* All that belongs to a GPU is gone. */
void gpu_drop_parts(struct gpu_reader *r, struct gpu *g);

void gpu_xids_open(struct gpu_reader *r);
void gpu_xids_watch(struct gpu_reader *r, struct gpu *g);
void gpu_xids_read(struct gpu_reader *r);
/* Sets the counts of one GPU, which do not need NVML. */
void gpu_xids_set(struct gpu_reader *r, struct gpu *g);
void gpu_xids_close(struct gpu_reader *r);
#endif
