/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checkpoints: the folders `checkpoint-STEP` of a run directory. A checkpoint exists in full or not at all:
 * it is written to a temporary folder, synced to disk, then renamed. Its manifest (checkpoint.json) has the
 * SHA-256 of every other file, and the name and range of each parameter. So a checkpoint can be loaded into a
 * flat vector with another order or division.
 */
#ifndef TRAIN_CHECKPOINT_CHECKPOINT_H
#define TRAIN_CHECKPOINT_CHECKPOINT_H
#include <jansson.h>
#include <limits.h>
#include "core/text/text.h"
#include "model/params.h"

struct checkpoint_source {
	const char *run; /* run directory */
	uint64_t step;
	const struct params *params; /* its states are in host memory */
	const json_t *state;	     /* trainer_state.json */
	/* Called first, on the writer's thread, to bring params to host memory. NULL: they are already
	 * there. */
	enum status (*take)(void *arg, struct error *err);
	/* Writes further files to the folder from these master parameters. NULL: none. */
	enum status (*more)(void *arg, const char *dir, const struct params *params, struct error *err);
	/* Called on the writer's thread when the checkpoint is on the disk. `run` is the writer's copy of
	 * the path. May be NULL. */
	enum status (*written)(void *arg, const char *run, uint64_t step, struct error *err);
	void *arg;
};

/* Replaces an existing checkpoint of the same step, which a resumed run can meet. A full disk is NO_RESOURCE
 * with DISK_FULL, and the earlier checkpoint stays. */
enum status checkpoint_write(const struct checkpoint_source *c, struct error *err);
/* Removes all checkpoints except the newest `keep` (0: removes none) and the one of step `best` (0: none). */
void checkpoint_thin(const char *run, unsigned keep, uint64_t best);

struct checkpoint_found {
	char path[PATH_MAX + 64];
	uint64_t step;
	json_t *manifest;
};
/* Finds the newest intact checkpoint. Damaged newer ones are renamed, and partly written folders are
 * removed. UNAVAILABLE: there is none. Owner: caller, checkpoint_found_release. */
enum status checkpoint_find(struct checkpoint_found *f, const char *run, struct text *note,
			    struct error *err);
/* Opens the checkpoint of one step. A damaged one is renamed to NAME.damaged and reported in a line of
 * *note. */
enum status checkpoint_open(struct checkpoint_found *f, const char *run, uint64_t step, struct text *note,
			    struct error *err);
void checkpoint_found_release(struct checkpoint_found *f);
/* Fills the states of every parameter by name. BAD_INPUT if one is missing or has another size, if the
 * checkpoint has a parameter that is not in *p, or if its states have another format. */
enum status checkpoint_load(const struct checkpoint_found *f, struct params *p, struct error *err);
/* Reads trainer_state.json. Owner: caller. */
enum status checkpoint_state(const struct checkpoint_found *f, json_t **state, struct error *err);

/*
 * A thread that writes checkpoints while the next step's passes run. On a CPU it reads the parameters
 * themselves, because a copy would cost 12 bytes per parameter: they may change only after
 * checkpoint_writer_wait. If source.take fetches them from a device, they may change after
 * checkpoint_writer_taken.
 */
struct checkpoint_writer;
enum status checkpoint_writer_create(struct checkpoint_writer **w, unsigned keep, struct error *err);
/* Starts to write and returns. It first waits for an unfinished previous checkpoint and returns its error.
 * `best`: the step that is never removed. c->params is lent until the end of writing; c->state is copied. */
enum status checkpoint_writer_begin(struct checkpoint_writer *w, const struct checkpoint_source *c,
				    uint64_t best, struct error *err);
/* Waits for the last checkpoint and returns its error. */
enum status checkpoint_writer_wait(struct checkpoint_writer *w, struct error *err);
/* Waits until the last checkpoint has fetched its parameters. It reports no error; checkpoint_writer_wait
 * does. */
void checkpoint_writer_taken(struct checkpoint_writer *w);
void checkpoint_writer_free(struct checkpoint_writer *w); /* waits for the last checkpoint; NULL-safe */
#endif
