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

/* A counter or state of a GPU that two readings in a row tell differently. */
struct health_change {
	char pci[16], name[40];
	uint64_t t0_ns, t1_ns; /* the readings */
	double before, now;
	bool state;   /* it may come and go; else it only grows, and less than before is a reset */
	bool missing; /* it was told at t0 and not in the GPU's last reading, at t1: whether it changed is not
			 known */
	bool interrupted; /* the run stood still in between */
	char parts[128];  /* the parts that grew and by how much, "link 3: 12"; "": none */
};

/* A GPU for which NVML stopped to answer, and what CUDA said when it was asked. */
struct health_silence {
	char pci[16];
	uint64_t t_ns;
	char nvml[96];
	enum health_cuda { CUDA_NOT_ASKED, CUDA_ANSWERS, CUDA_FAILS } cuda;
	char why[96];  /* CUDA failed, or could not be asked; "": not told */
	bool lost;     /* NVML itself says that the GPU is lost, or no longer finds it */
	bool mismatch; /* driver and libraries are of different releases */
};

/* A signal of the sampler that the GPU told before any case, or a counter that two readings in a row told. */
struct health_supply {
	char pci[16], signal[40];
};

struct health { /* valid when zeroed and after health_release */
	struct health_change *change;
	struct health_silence *silence;
	struct health_supply *supply;
	size_t change_count, silence_count, supply_count;
	json_t *last; /* by address: each value that was told last; while a journal is read */
};

/* Takes the body of a `health` line and ignores any part that has the wrong form. NO_RESOURCE: no memory. */
enum status health_read(struct health *h, const json_t *body, uint64_t shift_ns, struct error *err);
/* Behind the journal's last line: values that the last reading of a GPU lacks are `missing` changes. */
enum status health_finish(struct health *h, struct error *err);
/* A resumed run: what comes next is held against what was before, unless the machine was started anew. */
void health_resumed(struct health *h, bool rebooted);
/* All of `from` joins, by `axis` of each time; `from` is empty then. Several ranks of a node may read one
 * GPU: what another of them saw of a change in the same time is told once. */
enum status health_join(struct health *h, struct health *from, uint64_t axis(const void *arg, uint64_t t_ns),
			const void *arg, struct error *err);
bool health_supplied(const struct health *h, const char *pci, const char *signal);
void health_release(struct health *h);
#endif
