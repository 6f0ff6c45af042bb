/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fault planted in one GPU, to prove that it is found: ASSAY_TEST_PLANT=busy:2 keeps gpu2 at memory traffic
 * of its own while cases are timed, wrong:2 turns a bit of what gpu2 puts into a collective. Only with
 * ASSAY_TEST=1; the journal's `open` says so.
 */
#ifndef RUN_PLANT_H
#define RUN_PLANT_H
#include <stdbool.h>
#include "core/error.h"

struct gpu_device;

enum plant_kind { PLANT_NONE, PLANT_BUSY, PLANT_WRONG };
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
#endif
