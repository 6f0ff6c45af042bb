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
enum { CHECKPOINT_SCHEMA = 1, CHECKPOINT_FILES_MAX = 64 };

/* Makes a manifest for the files in `dir`. Owner: caller. */
enum status manifest_make(json_t **out, const char *dir, uint64_t step, const struct params *p,
			  struct error *err);
/* Parses a manifest and checks its form. Opens no other file. Owner: caller. (Fuzzed.) */
enum status manifest_parse(json_t **out, const char *path, const char *text, size_t size, struct error *err);
/* Reads the manifest of `dir` and compares every file with its checksum. Owner: caller. */
enum status manifest_check(json_t **out, const char *dir, struct error *err);
#endif
