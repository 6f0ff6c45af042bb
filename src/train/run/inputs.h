/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a run's numbers follow from beside its configuration: the base model (its fingerprint), the
 * tokenizer's files and the files of rows (their SHA-256). A checkpoint keeps them, and a run goes on with
 * the same alone.
 */
#ifndef TRAIN_RUN_INPUTS_H
#define TRAIN_RUN_INPUTS_H
#include <jansson.h>
#include "model/files/weights.h"
#include "train/config/config.h"

#define INPUTS_SLOW_DISK 5e6 /* B/s: of a bad one, read or written */

/* Whether what the configuration names is there and fits, by headers and vocabulary alone; *shape: the
 * model's; *load_s: what reading model and rows may take on a very slow machine. UNAVAILABLE: a file cannot
 * be read; with LIBRARY_MISSING: this build has no tokenizers. */
enum status inputs_ready(const struct config *c, struct shape *shape, double *load_s, struct error *err);
/* A list of {"what","path","sum"}. `w`: the configuration's model. Owner: caller. */
enum status inputs_read(json_t **out, const struct config *c, const struct weights *w, struct error *err);
/* BAD_INPUT names the first of `now` that is not what it was in `begun`, and `run` that was begun with it. */
enum status inputs_check(const json_t *begun, const json_t *now, const char *run, struct error *err);
#endif
