/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/grammar/tokenizer_vocab.h"
#include <stdlib.h>
#include "text/generation_config.h"

/* Where the bytes of each id begin in one text. */
struct pieces {
	struct text text;
	size_t *begin; /* [count + 1] */
	struct grammar_token *token;
	int32_t count;
};

/* False: the vocabulary has no such id. */
static bool mark_end(const struct pieces *p, int32_t id)
{
	if (id < 0 || id >= p->count)
		return false;
	p->token[id].kind = GRAMMAR_TOKEN_END;
	return true;
}

/* False: no id ends a text. */
static bool fill(struct pieces *p, const struct tokenizer *t, const struct generation_config *config)
{
	bool end;

	for (int32_t id = 0; id < p->count; id++) {
		tokenizer_decode(t, &id, 1, false, &p->text);
		p->begin[id + 1] = p->text.size;
	}
	for (int32_t id = 0; id < p->count; id++)
		p->token[id] = (struct grammar_token){
			.bytes = text_str(&p->text) + p->begin[id],
			.size = p->begin[id + 1] - p->begin[id],
			.kind = p->begin[id + 1] > p->begin[id] ? GRAMMAR_TOKEN_TEXT : GRAMMAR_TOKEN_CONTROL};
	end = mark_end(p, tokenizer_eos(t));
	for (size_t i = 0; i < config->eos_count; i++)
		end |= mark_end(p, config->eos[i]);
	return end;
}

enum status grammar_vocab_of(struct grammar_vocab **out, const struct tokenizer *t, const char *model,
			     struct error *err)
{
	struct pieces p = {.count = tokenizer_size(t)};
	struct generation_config config;
	enum status st = generation_config_read(&config, model, err);

	*out = NULL;
	if (st)
		return st;
	p.begin = calloc((size_t)p.count + 1, sizeof(*p.begin));
	p.token = calloc((size_t)p.count, sizeof(*p.token));
	if (p.begin && p.token) {
		if (fill(&p, t, &config))
			st = grammar_vocab_create(out, p.token, (size_t)p.count, err);
	} else {
		st = error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				     "cannot allocate a vocabulary of %d tokens", p.count);
	}
	free(p.begin);
	free(p.token);
	text_release(&p.text);
	return st;
}
