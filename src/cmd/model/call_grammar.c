/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/model/call_grammar.h"
#include "engine/grammar/source.h"
#include "engine/grammar/tokenizer_vocab.h"

const char *const call_grammar_words[] = {"none", "auto", "required", NULL};

enum status call_grammar_open(struct call_grammar *g, enum call_grammar_mode mode, const struct template *t,
			      const struct tokenizer *tokenizer, const char *model, struct error *err)
{
	enum status st;

	*g = (struct call_grammar){.mode = mode};
	if (mode == CALL_GRAMMAR_NONE)
		return STATUS_OK;
	g->form = call_form_of(t);
	if (g->form == CALL_FORM_NONE)
		return error_set(err, STATUS_BAD_INPUT,
				 "--grammar %s: the chat template %s has no tool calls; choose one that has, "
				 "such as --chat-template qwen2.5",
				 call_grammar_words[mode], template_name(t));
	g->thinks_first = thought_comes_first(t);
	st = grammar_vocab_of(&g->vocab, tokenizer, model, err);
	if (!st && !g->vocab)
		st = error_set(err, STATUS_BAD_INPUT,
			       "--grammar %s: neither the tokenizer nor generation_config.json names a token "
			       "that ends a text, so no grammar could end",
			       call_grammar_words[mode]);
	return st;
}

void call_grammar_close(struct call_grammar *g)
{
	grammar_vocab_destroy(&g->vocab);
}

/* Puts the text behind a thought that may come first. */
static void begin_with_thought(char **source, bool open)
{
	char *longer = *source ? grammar_source_after_thought(*source, open) : NULL;

	free(*source);
	*source = longer;
}

enum status call_grammar_source(const struct call_grammar *g, const json_t *tools, const struct text *prompt,
				char **source, struct error *err)
{
	const struct grammar_tool_calls calls = {.format = call_form_name(g->form),
						 .tools = tools,
						 .mode = call_grammar_words[g->mode],
						 .parallel = true};
	const enum thought thought = thought_at_end(prompt, g->thinks_first);
	json_t *object;

	*source = NULL;
	if (g->mode == CALL_GRAMMAR_REQUIRED && !tools)
		return error_set(
			err, STATUS_BAD_INPUT,
			"--grammar required: there are no tools, so no call can be made; add \"tools\", or "
			"choose --grammar auto");
	if (g->mode == CALL_GRAMMAR_NONE || !tools)
		return STATUS_OK;
	object = grammar_source_tool_calls(&calls);
	*source = object ? json_dumps(object, JSON_COMPACT) : NULL;
	json_decref(object);
	if (thought != THOUGHT_NONE)
		begin_with_thought(source, thought == THOUGHT_OPEN);
	return *source ? STATUS_OK
		       : error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
					 "out of memory for a grammar");
}
