/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes on the GPUs during a run. Each `health` line of a journal is one reading of counters by a helper
 * process. Here each reading is compared with the one before. Times are on the record's axis.
 */
#ifndef JOURNAL_RECORD_HEALTH_H
#define JOURNAL_RECORD_HEALTH_H
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/error.h"

/* A counter or state of a GPU that differs between two consecutive readings. */
struct health_change {
	char pci[16], name[40];
	uint64_t t0_ns, t1_ns; /* the readings */
	double before, now;
	bool state;	  /* it may rise and fall; false: a counter, which falls only by a reset */
	bool missing;	  /* read at t0, absent from the GPU's last reading at t1: a change is not known */
	bool interrupted; /* the run was interrupted in between */
	char parts[128];  /* the parts that grew and by how much, "link 3: 12"; "": none */
};

/* A GPU for which NVML stopped answering, and CUDA's answer to a query. */
struct health_silence {
	char pci[16];
	uint64_t t_ns;
	char nvml[96];
	enum health_cuda { CUDA_NOT_ASKED, CUDA_ANSWERS, CUDA_FAILS } cuda;
	char why[96];  /* why CUDA failed or could not be queried; "": not known */
	bool lost;     /* NVML itself says that the GPU is lost, or no longer finds it */
	bool mismatch; /* driver and libraries are from different releases */
};

/* A sampler signal that the GPU reported before any case, or a counter that two consecutive readings have. */
struct health_supply {
	char pci[16], signal[40];
};

struct health { /* valid when zeroed and after health_release */
	struct health_change *change;
	struct health_silence *silence;
	struct health_supply *supply;
	size_t change_count, silence_count, supply_count;
	json_t *last; /* by PCI address: the last value of each counter and state; used while a journal is
			 read */
};

/* Takes the body of a `health` line and ignores any part that has the wrong form. NO_RESOURCE: no memory. */
enum status health_read(struct health *h, const json_t *body, uint64_t shift_ns, struct error *err);
/* Call after the journal's last line. Values that are absent from a GPU's last reading become `missing`
 * changes. */
enum status health_finish(struct health *h, struct error *err);
/* Call at a resumed run: the next reading is compared with the one before, unless the machine was rebooted.
 */
void health_resumed(struct health *h, bool rebooted);
/* Moves all of `from` into `h`, with `axis` applied to each time; `from` is empty afterwards. Several ranks
 * of a node may read one GPU: a change that two of them saw in the same time is stored once. */
enum status health_join(struct health *h, struct health *from, uint64_t axis(const void *arg, uint64_t t_ns),
			const void *arg, struct error *err);
bool health_supplied(const struct health *h, const char *pci, const char *signal);
void health_release(struct health *h);
#endif
