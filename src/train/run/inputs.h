/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inputs that determine a run's results together with its configuration: the base model (its
 * fingerprint),
 * the tokenizer's files and the row files (their SHA-256). Checkpoints record them, and a run is only resumed
 * with the same inputs.
 */
#ifndef TRAIN_RUN_INPUTS_H
#define TRAIN_RUN_INPUTS_H
#include <jansson.h>
#include "model/files/weights.h"
#include "train/config/config.h"

#define INPUTS_SLOW_DISK 5e6 /* B/s of a slow disk, reading or writing */

/* Checks that everything the configuration names exists and fits together. It reads only headers and the
 * vocabulary. *shape: the model's. *load_s: time to read model and rows on a very slow machine. UNAVAILABLE:
 * a file cannot be read; with LIBRARY_MISSING: this build has no tokenizers. */
enum status inputs_ready(const struct config *c, struct shape *shape, double *load_s, struct error *err);
/* Returns a list of {"what","path","sum"}. `w`: the configuration's model. Owner: caller. */
enum status inputs_read(json_t **out, const struct config *c, const struct weights *w, struct error *err);
/* The entry of such a list with the same kind and path as `like`; NULL: none. */
const json_t *inputs_find(const json_t *list, const json_t *like);
/* BAD_INPUT names the first input of `now` that differs from `begun`, and the run directory `run`. */
enum status inputs_check(const json_t *begun, const json_t *now, const char *run, struct error *err);
#endif
