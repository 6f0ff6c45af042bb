/* SPDX-License-Identifier: Apache-2.0 */
/* An engine on the CPU with a tiny model, requests for it, and what each request was told. */
#ifndef TESTS_UNIT_ENGINE_BED_H
#define TESTS_UNIT_ENGINE_BED_H
#include "test.h"
#include <math.h>
#include "engine/engine.h"
#include "engine/grammar/grammar.h"
#include "engine_prompts.h"
#include "must.h"

enum { BED_TOKENS = 128, BED_PAGE = 16, BED_VOCAB = 40, FEW = 24 };

/* What a request was told. */
struct heard {
	int begun, ends;
	int32_t tokens, scored;
	int32_t token[BED_TOKENS], prompt[BED_TOKENS];
	float logprob[BED_TOKENS], prompt_logprob[BED_TOKENS];
	struct engine_event first, last; /* the first token, the END */
	struct engine_event *score;	 /* room for the prompt's scores; NULL: they are not kept */
};

/* Options of an engine with the model tests/data/model/NAME, in `path` [512]. */
static inline struct engine_options bed_options(char *path, const char *name)
{
	snprintf(path, 512, "%s/tests/data/model/%s", SOURCE_DIR, name);
	return (struct engine_options){.load = {.device = LOAD_CPU,
						.model = path,
						.positions = PROMPT_MOST + PROMPT_ANSWER,
						.sequences = 8,
						.page_tokens = BED_PAGE,
						.penalties = true}};
}

static inline struct engine *bed_engine(const struct engine_options *o)
{
	struct engine *e;
	struct error err = {0};

	must(engine_create(&e, o, &err), &err);
	return e;
}

/* A greedy request. */
static inline struct engine_request bed_request(uint64_t id, const int32_t *prompt, size_t count,
						int64_t tokens)
{
	return (struct engine_request){.id = id,
				       .client = id,
				       .adapter = -1,
				       .prompt = prompt,
				       .prompt_count = count,
				       .max_tokens = tokens,
				       .sampling = {.top_p = 1, .repetition = 1},
				       .logprobs = -1,
				       .prompt_logprobs = -1};
}

/* Id 0 ends the text, ids 1 to 26 are letters, and the others are control tokens. */
static inline struct grammar_vocab *bed_vocab(void)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz";
	struct grammar_token token[BED_VOCAB];
	struct grammar_vocab *vocab;
	struct error err = {0};

	for (int i = 0; i < BED_VOCAB; i++)
		token[i] = i >= 1 && i <= 26 ? (struct grammar_token){.bytes = letters + i - 1, .size = 1}
					     : (struct grammar_token){.kind = i ? GRAMMAR_TOKEN_CONTROL
										: GRAMMAR_TOKEN_END};
	must(grammar_vocab_create(&vocab, token, BED_VOCAB, &err), &err);
	return vocab;
}

static inline void bed_submit(struct engine *e, const struct engine_request *r)
{
	struct error err = {0};

	must(engine_submit(e, r, &err), &err);
}

static inline void bed_cancel(struct engine *e, uint64_t id)
{
	struct error err = {0};

	must(engine_cancel(e, id, &err), &err);
}

static inline void bed_hear(struct heard *h, const struct engine_event *event)
{
	assert_int_equal(h->ends, 0); /* nothing comes after the end */
	switch (event->kind) {
	case ENGINE_EVENT_BEGUN:
		assert_int_equal(h->begun++, 0);
		break;
	case ENGINE_EVENT_TOKEN:
		assert_int_equal(h->begun, 1);
		assert_in_range(h->tokens, 0, BED_TOKENS - 1);
		if (!h->tokens)
			h->first = *event;
		h->logprob[h->tokens] = event->logprob;
		h->token[h->tokens++] = event->token;
		break;
	case ENGINE_EVENT_PROMPT:
		assert_int_equal(h->tokens, 0);
		assert_in_range(h->scored, 0, BED_TOKENS - 1);
		if (h->score)
			h->score[h->scored] = *event;
		h->prompt_logprob[h->scored] = event->logprob;
		h->prompt[h->scored++] = event->token;
		break;
	default:
		h->ends++;
		h->last = *event;
	}
}

/* Hands each new event to the request that it belongs to; ids are 1 .. count. */
static inline void bed_listen(struct engine *e, struct heard *h, size_t count)
{
	const struct engine_event *event;
	const size_t events = engine_events(e, &event);

	for (size_t i = 0; i < events; i++) {
		assert_in_range(event[i].id, 1, count);
		bed_hear(&h[event[i].id - 1], &event[i]);
	}
}

/* One step. True: there was nothing to do. */
static inline bool bed_step(struct engine *e, struct heard *h, size_t count)
{
	struct error err = {0};
	bool idle;

	must(engine_step(e, &idle, &err), &err);
	bed_listen(e, h, count);
	return idle;
}

/* Nothing runs or waits, no page is lost, and the engine's tables agree. */
static inline void bed_is_clean(const struct engine *e)
{
	const struct engine_facts f = engine_facts(e);
	struct error err = {0};

	must(engine_check(e, &err), &err);
	assert_int_equal(f.running, 0);
	assert_int_equal(f.waiting, 0);
	assert_int_equal(f.pages_used, 0);
}

/* Steps until requests 1 .. count have ended. Each must end once. */
static inline void bed_run(struct engine *e, struct heard *h, size_t count)
{
	size_t ended = 0;

	for (int steps = 0; ended < count; steps++) {
		assert_in_range(steps, 0, 1000000);
		bed_step(e, h, count);
		ended = 0;
		for (size_t i = 0; i < count; i++)
			ended += (size_t)h[i].ends;
	}
	while (!bed_step(e, h, count) ||
	       engine_facts(e).waiting) /* a cancelled grammar is compiled to its end */
		;
	bed_is_clean(e);
}

/* An engine and the requests 1 .. FEW. */
struct bed {
	struct engine *e;
	struct grammar_vocab *vocab;
	struct heard h[FEW];
	char path[512];
	struct engine_options o;
};

/* An engine of `sequences` places; 0: 8. */
static inline void bed_open(struct bed *b, int64_t sequences)
{
	*b = (struct bed){0};
	b->vocab = bed_vocab();
	b->o = bed_options(b->path, "llama");
	b->o.vocab = b->vocab;
	if (sequences)
		b->o.load.sequences = sequences;
	b->e = bed_engine(&b->o);
}

static inline void bed_close(struct bed *b)
{
	bed_is_clean(b->e);
	engine_destroy(&b->e);
	grammar_vocab_destroy(&b->vocab);
}

static inline void ask(struct bed *b, const struct engine_request *r)
{
	b->h[r->id - 1] = (struct heard){.score = b->h[r->id - 1].score};
	bed_submit(b->e, r);
}

/* The text of one request that is alone. */
static inline struct heard *answer(struct bed *b, const struct engine_request *r)
{
	ask(b, r);
	while (!b->h[r->id - 1].ends || !bed_step(b->e, b->h, FEW))
		bed_step(b->e, b->h, FEW);
	return &b->h[r->id - 1];
}

static inline void step(struct bed *b)
{
	bed_step(b->e, b->h, FEW);
}
#endif
