/* SPDX-License-Identifier: Apache-2.0 */
/* All rows of a set as token ids, made by every CPU at once, and kept in a file where one is asked for. */
#ifndef TRAIN_DATA_TOKENISED_H
#define TRAIN_DATA_TOKENISED_H
#include "core/log.h"
#include "core/input/opt.h"
#include "model/chat/template.h"
#include "train/data/rows.h"

enum { TOKENISED_TRAINED = 1 << 30 }; /* beside an id: the loss is taken where it is to be foretold */

struct tokenised_ask {
	struct opt_words files;
	enum rows_format format;
	const struct tokenizer *tokenizer;
	const char *tokenizer_path; /* its file: part of what a kept file is known by */
	const struct template *template;
	const char *template_setting,
		*length_setting; /* what template and length_max are called, for messages */
	bool control;		 /* texts of people may yield control ids */
	bool truncate;		 /* rows over length_max are cut, else dropped */
	uint64_t length_max;	 /* tokens */
	uint64_t rows_max;	 /* so many of those that are kept, a sample; 0: all */
	uint64_t bad_max;	 /* rows that may be wrong */
	const char *cache_dir;	 /* NULL: nothing is kept */
	const struct log *log;	 /* each bad row, and what was dropped */
};

struct tokenised {
	int32_t *token;	 /* ids, with TOKENISED_TRAINED */
	uint64_t *begin; /* [rows + 1] */
	uint64_t rows, tokens, targets;
	uint64_t dropped, truncated, bad, untrained; /* over length_max; wrong; without a target */
	uint64_t bytes;				     /* of text that was read; 0: taken from the kept file */
	double seconds; /* that it took to make ids of them, on all CPUs; to read and keep files apart */
};

/*
 * A row is kept when it has a target and fits. BAD_INPUT: more than bad_max wrong rows (the first is named
 * with file and line), no rows, none with a target. Owner: caller, tokenised_release.
 */
enum status tokenised_read(struct tokenised *t, const struct tokenised_ask *ask, struct error *err);
void tokenised_release(struct tokenised *t);

/* Every row of a file before any is dropped: what a kept file holds (train/data/tokenised_cache.c). */
struct tokenised_set {
	int32_t *token;
	uint64_t *begin; /* [rows + 1] */
	uint64_t rows;
};
/* Path of the kept file: by the sums of all that its contents follow from. */
enum status tokenised_cache_path(char *path, size_t size, const struct tokenised_ask *ask, const char *file,
				 struct error *err);
/* False: it is not there, not ours alone, not whole, or has an id that is none of the `vocabulary`'s; all but
 * the first is told. */
bool tokenised_cache_read(struct tokenised_set *set, const char *path, int32_t vocabulary,
			  const struct log *log);
/* The same of a file's bytes. Owner: caller, free() both arrays. */
bool tokenised_cache_parse(struct tokenised_set *set, const char *data, size_t size, int32_t vocabulary);
enum status tokenised_cache_write(const struct tokenised_set *set, const char *path, struct error *err);
#endif
