/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cache of tuning choices, which lets runs of one user share what each has timed on a GPU: the key of an
 * entry (core/file/user_cache.h), the choices worth caching, and the checks of a cached text.
 */
#ifndef TRAIN_TUNING_TUNING_CACHE_H
#define TRAIN_TUNING_TUNING_CACHE_H
#include <jansson.h>
#include "core/text/text.h"
#include "model/shape/shape.h"
#include "train/config/config.h"

/* Folder of this cache. */
#define TUNING_CACHE_FOLDER "choices"

/* Everything that a tuning choice depends on, except the sizes of the GEMM itself. */
struct tuning_cache_key {
	const char *card;	      /* "NVIDIA H100 80GB HBM3", CUDA's name */
	const char *driver;	      /* "580.159.04" */
	const char *mig;	      /* "off", a profile, or "on" */
	const char *gemm, *attention; /* "cuBLASLt 13.1.1"; "cuDNN 9.14.0" or "own" */
	const char *build, *shape;    /* fingerprint of this program's build; text of tuning_cache_shape */
	double power_limit_w;	      /* 0: unknown */
	unsigned sms;		      /* multiprocessors of the GPU or of its MIG instance */
};

/* The key as one line. NULL: no memory. Owner: caller, free(). */
char *tuning_cache_key_text(const struct tuning_cache_key *k);
/* Appends model, adapters and micro-batch of a run, in the form that keys contain. */
void tuning_cache_shape(struct text *out, const struct shape *s, const struct config *c);
/* Parses a cached text into choices for tuning_choices_recall. NULL with an error rejects the whole text: it
 * is not JSON, has an unknown name or number, or too many entries. Owner: caller. (Fuzzed.) */
json_t *tuning_cache_parse(const char *text, struct error *err);
/* The text to cache now: `kept` (NULL: no entry yet) merged with those choices in `chosen` (from
 * tuning_choices_json) that this run timed itself. NULL: nothing new. Owner: caller, free(). */
char *tuning_cache_merge(const json_t *kept, const json_t *chosen);
#endif
