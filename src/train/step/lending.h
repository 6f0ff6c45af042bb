/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the gradient lends its memory to the passes of a run, and how much of it a pass has
 * (model/storage/lent.h). The plan finds the sizes: it makes a step without numbers and without limits.
 */
#ifndef TRAIN_STEP_LENDING_H
#define TRAIN_STEP_LENDING_H
#include "model/model.h"
#include "train/config/config.h"

/* Bytes of a pass. Saved matrices lie behind all others. */
struct pass_room {
	size_t scratch, saved;
	size_t kind[MEM_KINDS]; /* of scratch */
};

struct lending {
	bool on;	 /* if not, the rest is 0 */
	size_t lead;	 /* bytes in front of the gradient */
	size_t elements; /* a training pass overwrites so many of the gradient (struct lent) */
	size_t shared;	 /* bytes of the larger pass that lie in the gradient's memory */
	struct pass_room trained, evaluated;
	/* The back end's arena: within a pass it has that pass's scratch, and between passes all of lead and
	 * gradient. */
	struct arena room;
	struct arena saved;
	size_t rest;	 /* size of `room` between passes */
	unsigned micros; /* micro-batches of this step so far */
};

/* Whether all weights are trained, with one micro-batch of a rank in each step. A tied head writes the
 * embedding's gradient first, so that works only if ranks divide the gradient. `m` has its table of
 * parameters. */
bool lending_is_possible(const struct config *c, const struct model *m);
/* After model_place and saved_create: back->arena becomes l->room. */
void lending_begin(struct lending *l, struct model *m, struct backend *back, struct saved *saved);
/* Begin and end of a pass. */
void lending_pass(struct lending *l, const struct pass_room *pass);
void lending_rest(struct lending *l);
/* Before a training pass, also one without rows. BUG: it is the step's second one. */
enum status lending_micro(struct lending *l, struct error *err);

/* While planning: the peaks since the last call. */
struct pass_room lending_peaks(struct lending *l);
/* While planning, at the end: sets the sizes and counts the lead in `a`, which has all but the passes. `load`
 * and `update`: peaks before the first step, and of the optimizer, which needs the gradient. */
enum status lending_settle(struct lending *l, const struct params *p, size_t load, size_t update,
			   struct arena *a, struct error *err);
/* After it: divides the lead, which is scratch in the arena's kinds, among the kinds of the larger pass. The
 * part of it that lies in the gradient's memory is left out, saved matrices first. */
void lending_kinds(const struct lending *l, uint64_t kind[MEM_KINDS]);
#endif
