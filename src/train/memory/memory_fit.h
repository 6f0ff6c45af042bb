/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fits a configuration into the available memory: finds the micro-batch and the recompute level, and lists
 * what each setting would save. Each candidate is planned in full; nothing is extrapolated from another plan.
 */
#ifndef TRAIN_MEMORY_MEMORY_FIT_H
#define TRAIN_MEMORY_MEMORY_FIT_H
#include "core/text/text.h"
#include "train/memory/process_memory.h"

struct memory_fit {
	const struct shape *shape;
	unsigned threads;
	uint64_t available; /* bytes; 0: unknown, so everything fits */
	uint64_t leave;	    /* bytes of `available` that always stay free (GPU_LEAVE_BYTES) */
	uint64_t host;	    /* bytes of free host memory in addition to a GPU's memory; 0: unknown */
	/* true: this is about the host's part of a GPU run, and `available` is host memory */
	bool of_host;
};
/* A plan above this many bytes is refused: `available` minus `leave`. */
uint64_t memory_fit_most(const struct memory_fit *f);
/* The target for choices: 90 % of `available`, but at most memory_fit_most. */
uint64_t memory_fit_room(const struct memory_fit *f);
/* The same limits, for the host memory of a GPU run. */
struct memory_fit memory_fit_of_host(const struct memory_fit *f);

/*
 * Decides the settings that the configuration leaves open, and writes the values found into *c.
 *
 * training: auto_find_batch_size: the largest micro-batch whose plan fits memory_fit_room, or 1 if none fits.
 * Candidates are the divisors of the rows of a step (per_device_train_batch_size x
 * gradient_accumulation_steps), which stays the same. The evaluation's micro-batch is at most as large.
 *
 * recompute: auto: the lowest level that fits the room together with the micro-batch found for it. If none
 * does: `full` if it fits into memory_fit_most, else `none`.
 */
void memory_fit_settle(struct config *c, const struct memory_fit *f);

struct memory_fit_knob {
	char setting[160]; /* as text for the configuration file */
	uint64_t bytes;	   /* size of the plan with it */
	bool fits;	   /* the plan fits memory_fit_room */
};
enum { MEMORY_FIT_KNOBS = 15 };
/* Lists the settings that would make the plan smaller, each on its own, at the largest value that fits or
 * else at its smallest value. Settings that change least of what the model learns come first. If none fits
 * alone, the last entry combines those for memory. Returns the number of entries. */
size_t memory_fit_knobs(struct memory_fit_knob knobs[MEMORY_FIT_KNOBS], const struct config *c,
			const struct memory_fit *f, const struct memory_plan *planned);
/* NO_RESOURCE if the plan needs more than is available, on the device or on the host of a GPU run. The error
 * names the plan's largest rows and the settings to change. */
enum status memory_fit_check(const struct config *c, const struct memory_fit *f,
			     const struct memory_plan *planned, struct error *err);
#endif
