/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rank_pattern and alpha_pattern of adapter_config.json: numbers for modules whose name a pattern matches. A
 * pattern is a regular expression for the end of the name, from a dot or the beginning on: "q_proj",
 * "layers.3.mlp.up_proj", "layers\.(0|1)\..*". The first match counts, as in PEFT.
 */
#ifndef MODEL_FILES_PEFT_PATTERN_H
#define MODEL_FILES_PEFT_PATTERN_H
#include "core/json/file.h"

struct peft_patterns;
/* Reads the map `key`. Absent, null or empty: no patterns. UNSUPPORTED: an expression outside of the subset
 * that has the same meaning in POSIX. BAD_INPUT: not a map of numbers above 0. Owner: caller,
 * peft_patterns_free. */
enum status peft_patterns_read(struct peft_patterns **out, const struct json_keys *config, const char *key);
void peft_patterns_free(struct peft_patterns **patterns); /* NULL-safe */
/* The number for a module ("model.layers.0.self_attn.q_proj"), or `otherwise`. patterns may be NULL. */
double peft_patterns_find(const struct peft_patterns *patterns, const char *module, double otherwise);
#endif
