/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Autoregressive generation of one sequence with a KV cache. On a GPU, greedy decode generates several tokens
 * per launch (model/gpu/decode.h).
 */
#ifndef MODEL_GENERATION_GENERATOR_H
#define MODEL_GENERATION_GENERATOR_H
#include <signal.h>
#include "model/model.h"
#include "model/generation/sampling.h"

enum { GENERATE_ROWS = 256, GENERATE_ROWS_GPU = 2048 }; /* rows of a prompt per pass */

struct generator;
/* Allocates the KV cache and room for passes in back->arena, which may be a plan. `positions`: limit of
 * prompt and text together, at most the model's. Owner: caller, generator_release; the arena's memory is
 * returned by its mark. */
enum status generator_create(struct generator **g, struct model *m, struct backend *back, int64_t positions,
			     struct error *err);
void generator_release(struct generator **g);
/* Appends tokens to the sequence. Returns the logits [vocab] after the last one, lent until the next call. */
enum status generator_feed(struct generator *g, const int32_t *ids, size_t count, const float **logits,
			   struct error *err);
/* Shortens the sequence to its first `rows` tokens. */
void generator_rewind(struct generator *g, int64_t rows);

struct generate_options {
	struct sampling sampling;
	int64_t tokens; /* limit of new tokens */
	/* Only token ids below this are generated; the model may have more rows than the tokenizer has ids.
	 */
	int64_t vocab;
	const int32_t *stop; /* ids that end the text; not passed to take() */
	size_t stops;
	bool logits;			     /* take() needs the logits; otherwise a GPU passes NULL */
	const volatile sig_atomic_t *cancel; /* when set, prefill ends with CANCELLED; may be NULL */
};
/* Number of tokens that arrive together, from one launch; 1: each arrives alone. */
uint64_t generate_at_once(const struct generator *g, const struct generate_options *options);
enum generate_end { GENERATE_STOPPED, GENERATE_FULL, GENERATE_ENDED_BY_CALLER };
/* Processes the prompt (at least 1 token), then generates. Each token is passed to take(arg, id, logits)
 * with the logits that it was chosen from; false ends the text. MISMATCH with the token's number if logits
 * have NaN or infinity. */
enum status generate(struct generator *g, const int32_t *prompt, size_t count,
		     const struct generate_options *options,
		     bool (*take)(void *arg, int32_t id, const float *logits), void *arg,
		     enum generate_end *end, struct error *err);
#endif
