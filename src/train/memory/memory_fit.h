/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Into how much memory a configuration fits: the micro-batch that does, and what each setting would give.
 * Everything is planned anew with the setting turned; nothing is estimated from the plan before.
 */
#ifndef TRAIN_MEMORY_MEMORY_FIT_H
#define TRAIN_MEMORY_MEMORY_FIT_H
#include "core/text/text.h"
#include "train/memory/process_memory.h"

struct memory_fit {
	const struct shape *shape;
	unsigned threads;
	uint64_t available; /* bytes; 0: unknown, everything fits */
	uint64_t leave;	    /* of them, left alone whatever is asked for (GPU_LEAVE_BYTES) */
	uint64_t host;	    /* bytes of the host's memory beside a GPU; 0: unknown */
	bool of_host;	    /* what is looked at is the host's part, and `available` is the host's */
};
/* Beyond it a plan is refused: all that is available, but what is left alone. */
uint64_t memory_fit_most(const struct memory_fit *f);
/* What is planned into: 90 % of what is available, and never beyond memory_fit_most. */
uint64_t memory_fit_room(const struct memory_fit *f);
/* What of a plan is held against it. */
uint64_t memory_fit_bytes(const struct memory_fit *f, const struct memory_plan *m);
/* The same, of the host's memory beside a GPU. */
struct memory_fit memory_fit_of_host(const struct memory_fit *f);

/*
 * What the configuration leaves to the plan, and nothing else; afterwards it says what was found.
 * training: auto_find_batch_size: the largest micro-batch whose plan fits the room, among those that divide
 * the step (per_device_train_batch_size x gradient_accumulation_steps, which stays); 1 where none fits.
 * Evaluation has no larger one. recompute: auto: the least that fits the room, with the micro-batch found for
 * it; all of a layer where that fits without the room's tenth; none where nothing fits.
 */
void memory_fit_settle(struct config *c, const struct memory_fit *f);

struct memory_fit_knob {
	char setting[160]; /* as it would stand in the configuration */
	uint64_t bytes;	   /* as it would be planned */
	bool fits;	   /* the room */
};
enum { MEMORY_FIT_KNOBS = 7 };
/* The settings that would make `planned` smaller, those first that change least of what is learned; each by
 * itself, at the largest value that fits, or else at its least. The last takes all of memory's together where
 * none fits alone. Returns how many. */
size_t memory_fit_knobs(struct memory_fit_knob knobs[MEMORY_FIT_KNOBS], const struct config *c,
			const struct memory_fit *f, const struct memory_plan *planned);
/* NO_RESOURCE where the plan is more than what is available, on the device or beside it on the host: its
 * largest rows, and the settings to turn. */
enum status memory_fit_check(const struct config *c, const struct memory_fit *f,
			     const struct memory_plan *planned, struct error *err);
#endif
