/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checkpoints: the folders `checkpoint-STEP` of a run directory. A checkpoint exists in full or not at all:
 * it is written to a temporary folder, synced to disk, then renamed. Its manifest (checkpoint.json) has the
 * SHA-256 of every other file, and the name and range of each parameter. So a checkpoint can be loaded into a
 * flat vector with another order or division. One rank writes all of it, or several ranks write a shard each
 * (docs/explanation/design/checkpoints.md).
 */
#ifndef TRAIN_CHECKPOINT_CHECKPOINT_H
#define TRAIN_CHECKPOINT_CHECKPOINT_H
#include <jansson.h>
#include <limits.h>
#include "core/text/text.h"
#include "model/params.h"
#include "train/checkpoint/parts.h"
#include "train/checkpoint/shard.h"

/* What one of several ranks writes. */
struct checkpoint_part {
	unsigned rank, ranks;
	const struct shard *shard;
	const struct checkpoint_parts
		*parts;	    /* the shard is one of parts of tensors; NULL: of whole tensors */
	const char *folder; /* made by rank 0 (checkpoint_folder) */
};

struct checkpoint_source {
	const char *run; /* run directory; NULL on ranks other than 0 */
	uint64_t step;
	const struct params *params;	    /* its states are in host memory */
	const json_t *state;		    /* trainer_state.json; NULL on ranks other than 0 */
	const struct checkpoint_part *part; /* several ranks write; NULL: this one writes everything */
	/* Called first, on the writer's thread, to bring params to host memory. NULL: they are already
	 * there. */
	enum status (*take)(void *arg, struct error *err);
	/* Writes further files to the folder from these master parameters, on rank 0. NULL: none. */
	enum status (*more)(void *arg, const char *dir, const struct params *params, struct error *err);
	/* Called on the writer's thread when the checkpoint is on the disk. `run` is the writer's copy of
	 * the path. May be NULL. */
	enum status (*written)(void *arg, const char *run, uint64_t step, struct error *err);
	void *arg;
};

/* Replaces an existing checkpoint of the same step, which a resumed run can meet. A full disk is NO_RESOURCE
 * with DISK_FULL, and the earlier checkpoint stays. */
enum status checkpoint_write(const struct checkpoint_source *c, struct error *err);

/* -- several ranks -- */
/* Rank 0: makes the folder in which all ranks write, with an absolute path. `attempt`: a number in hex that
 * no other process uses. */
enum status checkpoint_folder(char out[PATH_MAX + 64], const char *run, uint64_t step, const char *attempt,
			      struct error *err);
/* Writes this rank's shard (*report: see shard_write; with parts of tensors also the number of the "part"),
 * and on rank 0 the state and further files. */
enum status checkpoint_write_part(const struct checkpoint_source *c, json_t **report, struct error *err);
/* Rank 0, once all ranks have written: checks the shards, and makes the folder a checkpoint. `reports`: an
 * array by rank. After an error the earlier checkpoint stands, and the folder is removed. */
enum status checkpoint_join(const struct checkpoint_source *c, const json_t *reports, struct error *err);

/* Removes all checkpoints except the newest `keep` (0: removes none) and the one of step `best` (0: none). */
void checkpoint_thin(const char *run, unsigned keep, uint64_t best);

struct checkpoint_found {
	char path[PATH_MAX + 64];
	uint64_t step;
	json_t *manifest;
	bool elsewhere; /* a shard is not there, but may be on another node's disk */
};
/* Finds the newest intact checkpoint. Damaged newer ones are renamed, and partly written folders are
 * removed. UNAVAILABLE: there is none. BAD_INPUT: the newest one lacks a shard; names its file and rank.
 * Owner: caller, checkpoint_found_release. */
enum status checkpoint_find(struct checkpoint_found *f, const char *run, struct text *note,
			    struct error *err);
/* Opens the checkpoint of one step. A damaged one is renamed to NAME.damaged and reported in a line of
 * *note. One that lacks a shard keeps its name and sets f->elsewhere. */
enum status checkpoint_open(struct checkpoint_found *f, const char *run, uint64_t step, struct text *note,
			    struct error *err);
/* Opens a checkpoint that this run has just written, or that another rank has found intact. It reads the
 * manifest and compares no checksums. */
enum status checkpoint_reopen(struct checkpoint_found *f, const char *path, uint64_t step, struct error *err);
void checkpoint_found_release(struct checkpoint_found *f);
/* Fills the states of every parameter by name; a state of *p without memory is left out. BAD_INPUT if one is
 * missing or has another size, if the checkpoint has a parameter that is not in *p, or if its states have
 * another format. */
enum status checkpoint_load(const struct checkpoint_found *f, struct params *p, struct error *err);
/* The same for a range of the vector; *p needs only the table and the types of its states. */
enum status checkpoint_load_shard(const struct checkpoint_found *f, const struct params *p,
				  const struct shard *s, struct error *err);
/* The same for a range of the vector of this rank's parts of tensors. */
enum status checkpoint_load_part(const struct checkpoint_found *f, const struct checkpoint_parts *parts,
				 const struct shard *s, struct error *err);
/* Master weights of elements [first, first + count) of a parameter in F32. *p needs only the table and the
 * types of its states. */
enum status checkpoint_weights(const struct checkpoint_found *f, const struct params *p,
			       const struct param *param, size_t first, size_t count, float *out,
			       struct error *err);
/* Only the checks of checkpoint_load, from the manifest. The states of *p need no memory. */
enum status checkpoint_fits(const struct checkpoint_found *f, const struct params *p, struct error *err);
/* Reads trainer_state.json. Owner: caller. */
enum status checkpoint_state(const struct checkpoint_found *f, json_t **state, struct error *err);

/*
 * A thread that writes checkpoints while the next step's passes run. If source.take copies the parameters,
 * they may change after checkpoint_writer_taken. Otherwise, on a CPU with one rank, the thread reads the
 * parameters themselves, because a copy would cost 12 bytes per parameter: they may change only after
 * checkpoint_writer_wait.
 */
struct checkpoint_writer;
enum status checkpoint_writer_create(struct checkpoint_writer **w, unsigned keep, struct error *err);
/* Starts to write and returns. It first waits for an unfinished previous checkpoint and returns its error.
 * `best`: the step that is never removed. c->params, c->part->shard and c->part->parts are lent until the end
 * of writing; the rest is copied. With c->part, checkpoint_writer_join must follow. */
enum status checkpoint_writer_begin(struct checkpoint_writer *w, const struct checkpoint_source *c,
				    uint64_t best, struct error *err);
/* Whether the thread has nothing left to write. Does not wait. */
bool checkpoint_writer_idle(struct checkpoint_writer *w);
/* Several ranks: waits for this rank's shard. *report: of shard_write; owner: caller. */
enum status checkpoint_writer_report(struct checkpoint_writer *w, json_t **report, struct error *err);
/* Rank 0: starts to make a checkpoint of all ranks' shards, as checkpoint_join, and returns. Takes ownership
 * of `reports`. */
enum status checkpoint_writer_join(struct checkpoint_writer *w, json_t *reports, struct error *err);
/* Waits for the last checkpoint and returns its error. */
enum status checkpoint_writer_wait(struct checkpoint_writer *w, struct error *err);
/* Waits until the last checkpoint has copied its parameters. It reports no error; checkpoint_writer_wait
 * does. */
void checkpoint_writer_taken(struct checkpoint_writer *w);
/* The same until the thread has nothing left to write, on several ranks of this rank's shard. */
void checkpoint_writer_written(struct checkpoint_writer *w);
void checkpoint_writer_free(struct checkpoint_writer *w); /* waits for the last checkpoint; NULL-safe */
#endif
