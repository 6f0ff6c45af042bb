/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fault planted in one GPU, to prove that it is found: ASSAY_TEST_PLANT=busy:2 keeps gpu2 at memory traffic
 * of its own while cases are timed, wrong:2 turns a bit of what gpu2 puts into a collective, late:2 makes its
 * training steps a tenth longer. Only with ASSAY_TEST=1; the journal's `open` says so.
 */
#ifndef RUN_PLANT_H
#define RUN_PLANT_H
#include <stdbool.h>
#include <stdint.h>
#include "core/error.h"

struct gpu_device;
struct gpu_kernel;
struct gpu_stream;

enum plant_kind { PLANT_NONE, PLANT_BUSY, PLANT_WRONG, PLANT_LATE };
struct plant {
	enum plant_kind kind;
	unsigned gpu; /* its number on the machine */
};

/* BAD_INPUT: no such words, or no test. */
enum status plant_asked(struct plant *p, struct error *err);
/* Is this fault planted in this GPU? */
bool plant_in(enum plant_kind kind, unsigned gpu);

/* Keeps the device busy on a stream of its own. */
struct plant_busy;
/* NULL in *b where none is planted in this GPU. Owner: caller, plant_busy_destroy. */
enum status plant_busy_create(struct plant_busy **b, struct gpu_device *d, unsigned gpu, struct error *err);
/* For the next 0.4 s; nothing where it runs, and for NULL. Never while a graph is captured. */
enum status plant_busy_start(struct plant_busy *b, struct error *err);
void plant_busy_stop(struct plant_busy *b);
void plant_busy_destroy(struct plant_busy **b);

/* Idle time that a step begins with. */
struct plant_late {
	struct gpu_kernel *spin; /* lent by the device; NULL: none is planted in this GPU */
	uint64_t ns;		 /* the probe's: PLANT_LATE_SHARE of what it measured a step at */
};
#define PLANT_LATE_SHARE 0.1
enum status plant_late_find(struct plant_late *l, struct gpu_device *d, unsigned gpu, struct error *err);
/* Nothing while `ns` is 0. */
enum status plant_late_put(const struct plant_late *l, struct gpu_stream *on, struct error *err);
#endif
