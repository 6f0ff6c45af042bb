/* SPDX-License-Identifier: Apache-2.0 */
/* All rows of a set as token ids. All CPUs tokenize, and the result is cached in a file on request. */
#ifndef TRAIN_DATA_TOKENISED_H
#define TRAIN_DATA_TOKENISED_H
#include "core/log.h"
#include "core/input/opt.h"
#include "model/backend/comm.h"
#include "text/chat/template.h"
#include "data/rows/rows.h"

enum { TOKENISED_TRAINED = 1 << 30 }; /* flag in a token id: the loss includes the prediction of this token */

struct tokenised_ask {
	struct opt_words files;
	enum rows_format format;
	const struct tokenizer *tokenizer;
	const char *tokenizer_path; /* the tokenizer's file; part of the cache key */
	const struct template *template;
	const char *template_setting,
		*length_setting; /* names of the settings for template and length_max, for messages */
	bool control;		 /* texts of users may contain control tokens */
	bool truncate;		 /* rows over length_max are truncated, else dropped */
	uint64_t length_max;	 /* tokens */
	uint64_t rows_max;	 /* size of a random sample of the usable rows; 0: all */
	uint64_t bad_max;	 /* number of invalid rows that are allowed */
	const char *cache_dir;	 /* NULL: no cache */
	const struct log *log;	 /* for warnings about invalid and dropped rows */
};

struct tokenised {
	int32_t *token;	 /* ids, with the flag TOKENISED_TRAINED */
	uint64_t *begin; /* [rows + 1] */
	uint64_t rows, tokens, targets;
	/* Over length_max: dropped, truncated; invalid; without a target. */
	uint64_t dropped, truncated, bad, untrained;
	/* Size of the text read; 0: all ids came from the cache. */
	uint64_t bytes;
	double seconds; /* time of tokenizing on all CPUs, without reading and writing files */
};

/*
 * Reads and tokenizes the rows. A row is used if it has a target and fits. BAD_INPUT: more than bad_max
 * invalid rows (the error names file and line), no rows, or none with a target. Owner: caller,
 * tokenised_release.
 */
enum status tokenised_read(struct tokenised *t, const struct tokenised_ask *ask, struct error *err);
/* The same on several ranks: rank 0 reads and tokenizes, and the others receive its ids. All ranks call it,
 * and an error of one is returned on all. c NULL: one rank. */
enum status tokenised_share(struct tokenised *t, const struct tokenised_ask *ask, struct comm *c,
			    struct error *err);
void tokenised_release(struct tokenised *t);

/* Every row of a file, before any is dropped: the contents of a cache file (train/data/tokenised_cache.c). */
struct tokenised_set {
	int32_t *token;
	uint64_t *begin; /* [rows + 1] */
	uint64_t rows;
};
/* Path of the cache file, made from the checksums of everything that determines its contents. */
enum status tokenised_cache_path(char *path, size_t size, const struct tokenised_ask *ask, const char *file,
				 struct error *err);
/* Returns false if the file is missing, writable by others, damaged, or has an id outside `vocabulary`; logs
 * a warning except for a missing file. */
bool tokenised_cache_read(struct tokenised_set *set, const char *path, int32_t vocabulary,
			  const struct log *log);
/* The same for the bytes of a file. Owner: caller, free() both arrays. */
bool tokenised_cache_parse(struct tokenised_set *set, const char *data, size_t size, int32_t vocabulary);
enum status tokenised_cache_write(const struct tokenised_set *set, const char *path, struct error *err);
#endif
