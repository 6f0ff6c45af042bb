/* SPDX-License-Identifier: Apache-2.0 */
/* The manifest of a checkpoint, checkpoint.json: parameters, shards, and the checksums of all files of the
 * folder. */
#ifndef TRAIN_CHECKPOINT_MANIFEST_H
#define TRAIN_CHECKPOINT_MANIFEST_H
#include <jansson.h>
#include "model/params.h"
#include "train/checkpoint/parts.h"

#define CHECKPOINT_MANIFEST "checkpoint.json"
#define CHECKPOINT_STATE "trainer_state.json"
#define CHECKPOINT_OPTIMIZER "optimizer.bin"
/* The schema of F32 states is 1. States in other formats have schema 2, shards schema 3, and shards of parts
 * of tensors schema 4; earlier versions refuse them. */
enum {
	CHECKPOINT_SCHEMA = 1,
	CHECKPOINT_SCHEMA_STATES = 2,
	CHECKPOINT_SCHEMA_SHARDS = 3,
	CHECKPOINT_SCHEMA_PARTS = 4
};

/* Makes a manifest for the files in `dir`, with the states of one rank. Owner: caller. */
enum status manifest_make(json_t **out, const char *dir, uint64_t step, const struct params *p,
			  struct error *err);
/* The same for the shards of several ranks: `reports` is an array by rank (checkpoint_write_part). `parts`
 * NULL: they are of whole tensors, of *p. Waits a few seconds for a file that another node wrote. UNAVAILABLE
 * names a shard that is not there, BAD_INPUT one of another size or a gap between the ranges, with its rank.
 */
enum status manifest_join(json_t **out, const char *dir, uint64_t step, const struct params *p,
			  const struct checkpoint_parts *parts, const json_t *reports, struct error *err);
/* Parses a manifest and checks its form. Opens no other file. Owner: caller. (Fuzzed.) */
enum status manifest_parse(json_t **out, const char *path, const char *text, size_t size, struct error *err);
/* A state of a checkpoint (enum params_state) and its elements. False: the checkpoint has none. */
struct manifest_state {
	enum dtype dtype;
	uint64_t count;
};
bool manifest_state(struct manifest_state *out, const json_t *manifest, enum params_state which);
/* Elements [first, first + count) of a state, which begin at byte `offset` of `file`. A piece that is zeroed
 * but for `part` comes before the first one. False: there are no more. */
struct manifest_piece {
	const char *file; /* lent */
	uint64_t first, count, offset;
	size_t part, next; /* part: of tensors (manifest_parts.h); 0 if there are none */
};
bool manifest_next(struct manifest_piece *piece, const json_t *manifest, enum params_state which);
/* Format of the states, for messages: moments and master weights. Lent. */
const char *manifest_moments(const json_t *manifest);
const char *manifest_master(const json_t *manifest);
/* Reads the manifest of `dir`. Owner: caller. */
enum status manifest_read(json_t **out, const char *dir, struct error *err);
/* UNAVAILABLE: a shard of several ranks is not there; names its file and rank. */
enum status manifest_check_shards(const json_t *manifest, const char *dir, struct error *err);
/* Compares every file with its checksum, and shards first with their size. BAD_INPUT names the file, and
 * the rank that wrote it. */
enum status manifest_check_sums(const json_t *manifest, const char *dir, struct error *err);
#endif
