/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The contents of requests: the JSON body of a planned request. With the model's tokenizer the server counts
 * exactly the planned number of prompt tokens, chat template included. Without it a token is taken for a
 * word, so lengths are approximate.
 *
 * The text of a request is, in this order: the shared prefix, the salt, the text itself. Synthetic text is
 * random words. They depend on the salt, so a cache that another run has filled does not help, and requests
 * have no beginning in common but the template's and the shared prefix. Texts of a dataset get salt words of
 * fixed length before them. Blocks of a trace with the same id have the same text within a run.
 */
#ifndef LOAD_CONTENT_CONTENT_H
#define LOAD_CONTENT_CONTENT_H
#include "core/text/text.h"
#include "load/plan/plan.h"

struct load_content_spec {
	const char
		*tokenizer; /* a model's folder, tokenizer.json or GGUF file; NULL: lengths are approximate */
	const char *chat_template; /* name or file of a template; NULL: the model's own */
	bool completion;	   /* /v1/completions; otherwise /v1/chat/completions */
	const char *dataset;	   /* file of rows, or bfcl-eval's folder; NULL: synthetic text */
	uint32_t dataset_tokens; /* prompts that have more tokens together with their answer are left out; 0:
				    none */
	const char *salt;	 /* any text, new in each run; NULL: none, so that caches work */
	const char *model;	 /* as the server names it */
	bool uncounted; /* answers are not counted: a model with random weights makes tokens without text */
	bool stream, usage;	     /* usage: of streams, asked for by stream_options */
	bool max_completion_tokens;  /* chat: this name instead of max_tokens */
	bool ignore_eos, min_tokens; /* both are extensions: the answer has exactly the planned length */
	double temperature;	     /* NAN: not sent */
	int64_t seed;		     /* of the server's sampling; below 0: not sent */
	const char *extra;	     /* a JSON object whose members replace ours; NULL: none */
};

struct load_content; /* immutable; threads share it */
/* BAD_INPUT: an unknown template, a dataset without prompts, an extra member that the plan decides.
 * UNSUPPORTED: the tokenizer. Owner: caller, load_content_close. */
enum status load_content_open(struct load_content **out, const struct load_content_spec *spec,
			      struct error *err);
void load_content_close(struct load_content **c); /* NULL-safe; sets NULL */
/* Prompts have exactly the planned number of tokens. */
bool load_content_exact(const struct load_content *c);
/* For load_plan_spec. 0: no dataset. */
uint64_t load_content_rows(const struct load_content *c);
/* Tokens of the chat template with which every prompt begins, whatever the salt. Servers may have them
 * cached. */
uint32_t load_content_shared_tokens(const struct load_content *c);
/* For tests: tokens of the chat template around a first message. */
uint32_t load_content_template_tokens(const struct load_content *c);
/*
 * Checks that every prompt of the plan is long enough for the template and a word. Prompts of a trace that
 * are shorter are made longer, and counted in *raised. BAD_INPUT names the least length for others.
 */
enum status load_content_check(const struct load_content *c, struct load_plan *p, uint64_t *raised,
			       struct error *err);

struct load_worker; /* workspace of one thread */
enum status load_worker_create(struct load_worker **out, const struct load_content *c, struct error *err);
void load_worker_destroy(struct load_worker **w); /* NULL-safe; sets NULL */

/* The messages of a session so far. Used by one thread at a time. */
struct load_dialogue;
enum status load_dialogue_create(struct load_dialogue **out, struct error *err);
void load_dialogue_destroy(struct load_dialogue **d); /* NULL-safe; sets NULL */
/* Adds the server's answer to the last request. Call it before the next turn. An answer that failed may be
 * "". BAD_INPUT: not UTF-8. */
enum status load_dialogue_answer(struct load_dialogue *d, const char *text, size_t size, struct error *err);

/* What a request asks for. */
struct load_asked {
	uint32_t prompt_tokens; /* of the whole prompt, earlier messages and template included */
	uint32_t output_tokens;
};
/*
 * Appends the body of a request, and adds its message to the dialogue; turn 0 empties it first. `index`: of
 * the request in the plan. `d` may be NULL for conversations of one turn. A later turn makes the prompt
 * longer by exactly r->prompt_tokens, compared with the earlier messages as the template renders them.
 * BAD_INPUT: the length is impossible, or a bad row of the dataset with its file and line.
 */
enum status load_worker_body(struct load_worker *w, const struct load_request *r, uint64_t index,
			     struct load_dialogue *d, struct text *body, struct load_asked *asked,
			     struct error *err);
/* Tokens of an answer's text, which is NUL-terminated after `size` bytes; -1 without a tokenizer, or if the
 * text cannot be counted, or the spec says `uncounted`. */
int64_t load_worker_count(struct load_worker *w, const char *text, size_t size);
#endif
