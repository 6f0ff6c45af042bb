/* SPDX-License-Identifier: Apache-2.0 */
/* The manifest of a checkpoint, checkpoint.json: parameters, shards, and the checksums of all files of the
 * folder. */
#ifndef TRAIN_CHECKPOINT_MANIFEST_H
#define TRAIN_CHECKPOINT_MANIFEST_H
#include <jansson.h>
#include "model/params.h"

#define CHECKPOINT_MANIFEST "checkpoint.json"
#define CHECKPOINT_STATE "trainer_state.json"
#define CHECKPOINT_OPTIMIZER "optimizer.bin"
/* The schema of F32 states is 1. States in other formats have schema 2, which earlier versions refuse. */
enum { CHECKPOINT_SCHEMA = 1, CHECKPOINT_SCHEMA_STATES = 2, CHECKPOINT_FILES_MAX = 64 };

/* Makes a manifest for the files in `dir`. Owner: caller. */
enum status manifest_make(json_t **out, const char *dir, uint64_t step, const struct params *p,
			  struct error *err);
/* Parses a manifest and checks its form. Opens no other file. Owner: caller. (Fuzzed.) */
enum status manifest_parse(json_t **out, const char *path, const char *text, size_t size, struct error *err);
/* A state of a checkpoint (enum params_state): where it begins in optimizer.bin, and its elements. False: the
 * checkpoint has none. */
struct manifest_state {
	enum dtype dtype;
	uint64_t offset, count;
};
bool manifest_state(struct manifest_state *out, const json_t *manifest, enum params_state which);
/* Format of the states, for messages: moments and master weights. Lent. */
const char *manifest_moments(const json_t *manifest);
const char *manifest_master(const json_t *manifest);
/* Reads the manifest of `dir` and compares every file with its checksum. Owner: caller. */
enum status manifest_check(json_t **out, const char *dir, struct error *err);
#endif
