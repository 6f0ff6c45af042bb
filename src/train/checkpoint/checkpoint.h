/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checkpoints: folders `checkpoint-STEP` of a run directory. One is there whole or not at all: it is written
 * beside, brought to the disk, then renamed. Its manifest (checkpoint.json) has the SHA-256 of every other
 * file, and each parameter by name and range, so that it loads where the flat vector is ordered or divided
 * otherwise.
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
	const struct params *params; /* table; master, m and v in host memory, F32 */
	const json_t *state;	     /* trainer_state.json */
	/* The writer's thread brings params there, first of all; NULL: they are there. */
	enum status (*take)(void *arg, struct error *err);
	/* Further files of the folder from these master parameters; NULL: none. */
	enum status (*more)(void *arg, const char *dir, const struct params *params, struct error *err);
	/* The writer's thread says so when it is on the disk in `run`, which is the writer's own copy; NULL:
	 * nobody is told. */
	enum status (*written)(void *arg, const char *run, uint64_t step, struct error *err);
	void *arg;
};

/* One that is there already (a run that went back) is replaced. A full disk is NO_RESOURCE with DISK_FULL;
 * what was there before stays. */
enum status checkpoint_write(const struct checkpoint_source *c, struct error *err);
/* Takes away all but the newest `keep` (0: all stay) and that of step `best` (0: none). */
void checkpoint_thin(const char *run, unsigned keep, uint64_t best);

struct checkpoint_found {
	char path[PATH_MAX + 64];
	uint64_t step;
	json_t *manifest;
};
/* The newest that is whole; newer ones that are not are put aside. What was left half written is removed.
 * UNAVAILABLE: there is none. Owner: caller, checkpoint_found_release. */
enum status checkpoint_find(struct checkpoint_found *f, const char *run, struct text *note,
			    struct error *err);
/* That of one step. One that is not whole is renamed to NAME.damaged and told in a line of *note. */
enum status checkpoint_open(struct checkpoint_found *f, const char *run, uint64_t step, struct text *note,
			    struct error *err);
void checkpoint_found_release(struct checkpoint_found *f);
/* Fills master, m and v of every parameter by name; BAD_INPUT where one is missing or of another size, or the
 * checkpoint has one more. */
enum status checkpoint_load(const struct checkpoint_found *f, struct params *p, struct error *err);
/* trainer_state.json. Owner: caller. */
enum status checkpoint_state(const struct checkpoint_found *f, json_t **state, struct error *err);

/*
 * One thread that writes while the passes of the next step run. On a CPU it reads the parameters themselves:
 * a copy of them all would be 12 bytes each. So they change after checkpoint_writer_wait alone; where it
 * takes them from a device (source.take), after checkpoint_writer_taken.
 */
struct checkpoint_writer;
enum status checkpoint_writer_create(struct checkpoint_writer **w, unsigned keep, struct error *err);
/* Begins and returns; waits where the one before is still being written, and tells of its failure. `best`:
 * which step stays in any case. c->params is lent until then, c->state copied. */
enum status checkpoint_writer_begin(struct checkpoint_writer *w, const struct checkpoint_source *c,
				    uint64_t best, struct error *err);
/* Waits for the last one. */
enum status checkpoint_writer_wait(struct checkpoint_writer *w, struct error *err);
/* Until the last one has its parameters; how that went, checkpoint_writer_wait says. */
void checkpoint_writer_taken(struct checkpoint_writer *w);
void checkpoint_writer_free(struct checkpoint_writer *w); /* waits; NULL-safe */
#endif
