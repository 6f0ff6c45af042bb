/* SPDX-License-Identifier: Apache-2.0 */
/* The defaults for sampling that a model's generation_config.json gives. */
#ifndef TEXT_GENERATION_CONFIG_H
#define TEXT_GENERATION_CONFIG_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/error.h"

enum { GENERATION_EOS_MAX = 64 };

/* Numbers that the file does not give are NAN, integers -1. */
struct generation_config {
	int32_t eos[GENERATION_EOS_MAX]; /* tokens that end a text */
	size_t eos_count;
	int32_t bos, pad;
	double temperature, top_p, min_p, repetition_penalty;
	int64_t top_k, max_new_tokens;
	bool greedy; /* do_sample is false: temperature and the limits of sampling are not used */
};

/*
 * Reads generation_config.json of a model folder. If there is no such file, or `model` is a file (GGUF),
 * nothing is given. BAD_INPUT names file and key: a value of another type or beyond its range.
 */
enum status generation_config_read(struct generation_config *out, const char *model, struct error *err);
#endif
