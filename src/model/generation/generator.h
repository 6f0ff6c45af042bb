/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text a token at a time, with keys and values of what came before kept. One document. On a GPU several
 * tokens are made by a launch where each is the likeliest (model/gpu/decode.h).
 */
#ifndef MODEL_GENERATION_GENERATOR_H
#define MODEL_GENERATION_GENERATOR_H
#include <signal.h>
#include "model/model.h"
#include "model/generation/sampling.h"

enum { GENERATE_ROWS = 256, GENERATE_ROWS_GPU = 2048 }; /* of a prompt at once */

struct generator;
/* Cache and room for passes in back->arena (which may plan); `positions` tokens in all, at most the model's.
 * Owner: caller, generator_release; its places go back by the arena's mark. */
enum status generator_create(struct generator **g, struct model *m, struct backend *back, int64_t positions,
			     struct error *err);
void generator_release(struct generator **g);
/* Appends tokens to the document; logits [vocab] of what follows the last, lent until the next call. */
enum status generator_feed(struct generator *g, const int32_t *ids, size_t count, const float **logits,
			   struct error *err);
/* The document is its first `rows` tokens again. */
void generator_rewind(struct generator *g, int64_t rows);

struct generate_options {
	struct sampling sampling;
	int64_t tokens;	     /* most to make */
	int64_t vocab;	     /* ids below it may be made: the tokenizer's, where the model has more rows */
	const int32_t *stop; /* ids that end the text; they are not handed on */
	size_t stops;
	bool logits; /* take() wants them; else a GPU gives it NULL */
	const volatile sig_atomic_t
		*cancel; /* set: a prompt being read ends it with CANCELLED; may be NULL */
};
/* Tokens that come together, of a launch; 1: each by itself. */
uint64_t generate_at_once(const struct generator *g, const struct generate_options *options);
enum generate_end { GENERATE_STOPPED, GENERATE_FULL, GENERATE_ENDED_BY_CALLER };
/* Feeds the prompt (1 token or more), then makes tokens: each goes to take(arg, id, logits) with the logits
 * that it was chosen from, which ends the text by false. MISMATCH with the token's number where logits are
 * NaN or infinite. */
enum status generate(struct generator *g, const int32_t *prompt, size_t count,
		     const struct generate_options *options,
		     bool (*take)(void *arg, int32_t id, const float *logits), void *arg,
		     enum generate_end *end, struct error *err);
#endif
