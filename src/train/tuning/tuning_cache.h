/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one GPU's run chose by time, for other runs of this user: under which key it is kept
 * (core/file/user_cache.h), what of it is worth keeping, and what of a kept text is believed.
 */
#ifndef TRAIN_TUNING_TUNING_CACHE_H
#define TRAIN_TUNING_TUNING_CACHE_H
#include <jansson.h>
#include "core/text/text.h"
#include "model/shape/shape.h"
#include "train/config/config.h"

/* The folder of the cache. */
#define TUNING_CACHE_FOLDER "choices"

/* All that a choice by time hangs on, its own sizes apart. */
struct tuning_cache_key {
	const char *card;	      /* "NVIDIA H100 80GB HBM3", as CUDA calls it */
	const char *driver;	      /* "580.159.04" */
	const char *mig;	      /* "off"; else the profile or "on" */
	const char *gemm, *attention; /* "cuBLASLt 13.1.1"; "cuDNN 9.14.0" or "own" */
	const char *build, *shape;    /* of this program; tuning_cache_shape */
	double power_limit_w;	      /* 0: not told */
	unsigned sms;		      /* of the card, or of its part */
};

/* One line. NULL: no memory. Owner: caller, free(). */
char *tuning_cache_key_text(const struct tuning_cache_key *k);
/* Model, adapters and micro-batch of a run, as keys have them. */
void tuning_cache_shape(struct text *out, const struct shape *s, const struct config *c);
/* The choices of a kept text, as tuning_choices_recall takes them. NULL with a reason: it is not taken, none
 * of it: no JSON, a name or number that no choice has, or more than there may be. Owner: caller. (Fuzzed.) */
json_t *tuning_cache_parse(const char *text, struct error *err);
/* What is to be kept now: `kept` (NULL: nothing is) with what `chosen`, as tuning_choices_json wrote it,
 * timed itself. NULL: that is nothing. Owner: caller, free(). */
char *tuning_cache_merge(const json_t *kept, const json_t *chosen);
#endif
