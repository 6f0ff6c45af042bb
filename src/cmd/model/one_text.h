/* SPDX-License-Identifier: Apache-2.0 */
/* Generates one text at a time with the engine, for `assay generate`. */
#ifndef CMD_MODEL_ONE_TEXT_H
#define CMD_MODEL_ONE_TEXT_H
#include <signal.h>
#include "data/function_calls/answers.h"
#include "engine/engine.h"

struct one_text {
	struct engine_sampling sampling;
	int64_t tokens;	     /* limit of new tokens */
	const int32_t *stop; /* ids that end the text and are not passed to take() */
	size_t stops;
	const char *grammar;		     /* its source; NULL: any text */
	bool logprobs;			     /* take() gets log probabilities; otherwise 0 */
	const volatile sig_atomic_t *cancel; /* when set, prefill ends with CANCELLED */
};
/* Sets what a model needs for `sequences` texts at once, each of at most `positions` tokens with its prompt,
 * of ids below `vocab`. */
void one_text_room(struct load_options *o, int64_t positions, int64_t sequences, int64_t vocab);
/* A request for one_text; ids below 0 in `stop` are left out. `stop_room` has room for o->stops ids. */
struct engine_request one_text_request(const struct one_text *o, const int32_t *prompt, size_t count,
				       int32_t *stop_room);
/* Generates a text. Each token is passed to take(arg, id, logprob) with the natural logarithm of its
 * probability; false ends the text. *stopped: the text ended by one of `stop`. MISMATCH if logits have NaN or
 * infinity, BAD_INPUT if the engine refuses the request. */
enum status one_text(struct engine *e, const struct one_text *o, const int32_t *prompt, size_t count,
		     bool (*take)(void *arg, int32_t id, float logprob), void *arg, bool *stopped,
		     struct error *err);
/* The error that an end with REFUSED or FAILED means for a user of the command line. */
enum status one_text_error(const struct engine_event *end, struct error *err);
/* Waits while an engine without work compiles a grammar. */
void one_text_wait(const struct engine *e, bool idle);
/* How the answer to a row ended. REFUSED: its grammar was. Any other refusal is an error, one_text_error. */
enum answer_end one_text_end(const struct engine_event *end);
bool one_text_stops(const struct one_text *o, int32_t id);
/* An error of a step, with the GPU's name. */
enum status one_text_step_error(struct engine *e, enum status st, const struct error *why, struct error *err);
#endif
