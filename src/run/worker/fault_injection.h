/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faults planted in one GPU, to test that assay finds them. ASSAY_TEST_PLANT=busy:2 creates memory traffic on
 * gpu2 while cases are timed. wrong:2 flips one bit of gpu2's input to a collective. late:2 makes gpu2's
 * training steps a tenth longer. Only with ASSAY_TEST=1; the journal's `open` line records the fault.
 */
#ifndef RUN_WORKER_FAULT_INJECTION_H
#define RUN_WORKER_FAULT_INJECTION_H
#include <stdbool.h>
#include <stdint.h>
#include "core/error.h"

struct gpu_device;
struct gpu_kernel;
struct gpu_stream;

enum fault_injection_kind {
	FAULT_INJECTION_NONE,
	FAULT_INJECTION_BUSY,
	FAULT_INJECTION_WRONG,
	FAULT_INJECTION_LATE
};
struct fault_injection {
	enum fault_injection_kind kind;
	unsigned gpu; /* index of the GPU on this machine */
};

/* Reads ASSAY_TEST_PLANT. BAD_INPUT: it is not valid, or ASSAY_TEST is not set. */
enum status fault_injection_asked(struct fault_injection *p, struct error *err);
/* Whether this fault is planted in this GPU. */
bool fault_injection_in(enum fault_injection_kind kind, unsigned gpu);

/* A load that keeps the device busy, on a stream of its own. */
struct fault_injection_busy;
/* *b is NULL if no such fault is planted in this GPU. The caller frees it with
 * fault_injection_busy_destroy(). */
enum status fault_injection_busy_create(struct fault_injection_busy **b, struct gpu_device *d, unsigned gpu,
					struct error *err);
/* Starts the load for 0.4 s. Does nothing if it is active, or if `b` is NULL. Not allowed during graph
 * capture. */
enum status fault_injection_busy_start(struct fault_injection_busy *b, struct error *err);
void fault_injection_busy_stop(struct fault_injection_busy *b);
void fault_injection_busy_destroy(struct fault_injection_busy **b);

/* Idle time at the start of a step. */
struct fault_injection_late {
	struct gpu_kernel *spin; /* lent by the device; NULL: no fault is planted in this GPU */
	uint64_t ns;		 /* set by the probe: FAULT_INJECTION_LATE_SHARE of its measured step time */
};
#define FAULT_INJECTION_LATE_SHARE 0.1
enum status fault_injection_late_find(struct fault_injection_late *l, struct gpu_device *d, unsigned gpu,
				      struct error *err);
/* Enqueues the idle time; nothing while `ns` is 0. */
enum status fault_injection_late_put(const struct fault_injection_late *l, struct gpu_stream *on,
				     struct error *err);
#endif
