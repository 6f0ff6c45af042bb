/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fault planted in one GPU, to prove that it is found: ASSAY_TEST_PLANT=busy:2 keeps gpu2 at memory traffic
 * of its own while cases are timed, wrong:2 turns a bit of what gpu2 puts into a collective, late:2 makes its
 * training steps a tenth longer. Only with ASSAY_TEST=1; the journal's `open` says so.
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
	unsigned gpu; /* its number on the machine */
};

/* BAD_INPUT: no such words, or no test. */
enum status fault_injection_asked(struct fault_injection *p, struct error *err);
/* Is this fault planted in this GPU? */
bool fault_injection_in(enum fault_injection_kind kind, unsigned gpu);

/* Keeps the device busy on a stream of its own. */
struct fault_injection_busy;
/* NULL in *b where none is planted in this GPU. Owner: caller, fault_injection_busy_destroy. */
enum status fault_injection_busy_create(struct fault_injection_busy **b, struct gpu_device *d, unsigned gpu,
					struct error *err);
/* For the next 0.4 s; nothing where it runs, and for NULL. Never while a graph is captured. */
enum status fault_injection_busy_start(struct fault_injection_busy *b, struct error *err);
void fault_injection_busy_stop(struct fault_injection_busy *b);
void fault_injection_busy_destroy(struct fault_injection_busy **b);

/* Idle time that a step begins with. */
struct fault_injection_late {
	struct gpu_kernel *spin; /* lent by the device; NULL: none is planted in this GPU */
	uint64_t ns;		 /* the probe's: FAULT_INJECTION_LATE_SHARE of what it measured a step at */
};
#define FAULT_INJECTION_LATE_SHARE 0.1
enum status fault_injection_late_find(struct fault_injection_late *l, struct gpu_device *d, unsigned gpu,
				      struct error *err);
/* Nothing while `ns` is 0. */
enum status fault_injection_late_put(const struct fault_injection_late *l, struct gpu_stream *on,
				     struct error *err);
#endif
