/* SPDX-License-Identifier: Apache-2.0 */
/* The texts of messages: random words of exact length, and rows of a dataset. */
#include "load/content/internal.h"

/* Corrections of a length, and how many of them keep the text: with some texts no number of words is right.
 */
enum { ROUNDS_MOST = 32, ROUNDS_OF_TEXT = 4 };
static const uint64_t next_text = 0x9e3779b97f4a7c15u;

static struct load_words_place place_of(const struct load_worker *w, uint64_t id, enum load_words_use use)
{
	return (struct load_words_place){.key = w->c->key, .id = id, .use = use};
}

/* Adds words, after a blank if the message has words already. */
static void add_words(struct load_worker *w, uint64_t id, enum load_words_use use, uint32_t count)
{
	const struct load_words_place place = place_of(w, id, use);

	load_words_add(&w->c->words, &w->message, &place, count, !w->message.size);
}

/* Blocks of a trace, as far as `count` words reach; the rest is text of the request itself. */
static void add_blocks(struct load_worker *w, const struct load_request *r, uint64_t source, uint32_t count)
{
	for (uint32_t i = 0; i < r->block_count && count; i++) {
		uint32_t part = count < LOAD_BLOCK_TOKENS ? count : LOAD_BLOCK_TOKENS;

		add_words(w, r->blocks[i], WORDS_BLOCK, part);
		count -= part;
	}
	if (count)
		add_words(w, source, WORDS_TEXT, count);
}

/* The text of a message with this many words besides the shared prefix. */
static void compose(struct load_worker *w, const struct load_request *r, uint64_t source, uint32_t count)
{
	w->message.size = 0;
	if (r->prefix_tokens)
		add_words(w, r->prefix, WORDS_PREFIX, r->prefix_tokens);
	add_blocks(w, r, source, count);
}

static enum status check_memory(const struct load_worker *w, struct error *err)
{
	return w->message.failed ? error_set(err, STATUS_NO_RESOURCE, "the text of a request") : STATUS_OK;
}

static enum status too_short(const struct load_request *r, uint32_t template, struct error *err)
{
	return error_set(
		err, STATUS_BAD_INPUT,
		"a prompt of %u tokens is impossible: the chat template alone has %u, and the message "
		"needs at least 1",
		r->prompt_tokens, template);
}

/* Counts the tokens of a message as it stands in its conversation. */
typedef enum status counter(struct load_worker *w, void *arg, uint32_t *tokens, struct error *err);

/* Changes the number of words until the message has `wanted` tokens. */
static enum status correct(struct load_worker *w, const struct load_request *r, int64_t words,
			   uint32_t wanted, counter *count, void *arg, struct error *err)
{
	uint32_t tokens = 0;
	enum status st = STATUS_OK;

	for (int round = 0; !st && words > 0 && round < ROUNDS_MOST; round++) {
		compose(w, r, r->source + next_text * (uint64_t)(round / ROUNDS_OF_TEXT), (uint32_t)words);
		st = check_memory(w, err);
		if (!st)
			st = count(w, arg, &tokens, err);
		if (st || tokens == wanted)
			return st;
		words += (int64_t)wanted - tokens;
	}
	return st ? st
		  : error_set(
			    err, STATUS_BAD_INPUT,
			    "no prompt of exactly %u tokens was found with this tokenizer and chat template; the "
			    "last one tried had %u",
			    wanted, tokens);
}

static enum status count_first(struct load_worker *w, void *arg, uint32_t *tokens, struct error *err)
{
	(void)arg;
	return count_message(w, text_str(&w->message), w->message.size, tokens, err);
}

enum status message_first(struct load_worker *w, const struct load_request *r, struct load_asked *asked,
			  struct error *err)
{
	const struct load_content *c = w->c;

	*asked = (struct load_asked){r->prefix_tokens + r->prompt_tokens, r->output_tokens};
	if (r->prompt_tokens <= c->first_tokens)
		return too_short(r, c->first_tokens, err);
	if (!c->additive)
		return correct(w, r, r->prompt_tokens - c->first_tokens, asked->prompt_tokens, count_first,
			       NULL, err);
	compose(w, r, r->source, r->prompt_tokens - c->first_tokens);
	return check_memory(w, err);
}

/* A later message in its dialogue. */
struct later {
	struct load_dialogue *d;
	uint32_t before; /* tokens of the earlier messages */
};

static enum status count_later_chat(struct load_worker *w, struct later *l, uint32_t *tokens,
				    struct error *err)
{
	enum status st = dialogue_add(l->d, "user", text_str(&w->message), w->message.size, err);

	if (st)
		return st;
	st = count_messages(w, l->d->messages, l->d->tools, true, tokens, err);
	json_array_remove(l->d->messages, json_array_size(l->d->messages) - 1);
	return st;
}

static enum status count_later_text(struct load_worker *w, struct later *l, uint32_t *tokens,
				    struct error *err)
{
	size_t before = l->d->prompt.size;
	enum status st = dialogue_add(l->d, "user", text_str(&w->message), w->message.size, err);

	if (!st)
		st = count_prompt(w, text_str(&l->d->prompt), l->d->prompt.size, tokens, err);
	l->d->prompt.size = before;
	return st;
}

static enum status count_later(struct load_worker *w, void *arg, uint32_t *tokens, struct error *err)
{
	return w->c->completion ? count_later_text(w, arg, tokens, err)
				: count_later_chat(w, arg, tokens, err);
}

enum status message_later(struct load_worker *w, const struct load_request *r, struct load_dialogue *d,
			  struct load_asked *asked, struct error *err)
{
	struct later l = {.d = d};
	uint32_t template = w->c->later_tokens;
	enum status st;

	if (w->c->completion)
		st = count_prompt(w, text_str(&d->prompt), d->prompt.size, &l.before, err);
	else
		st = count_messages(w, d->messages, d->tools, false, &l.before, err);
	if (st)
		return st;
	*asked = (struct load_asked){l.before + r->prompt_tokens, r->output_tokens};
	if (r->prompt_tokens <= template)
		return too_short(r, template, err);
	if (w->tokens)
		return correct(w, r, r->prompt_tokens - template, asked->prompt_tokens, count_later, &l, err);
	compose(w, r, r->source, r->prompt_tokens);
	return check_memory(w, err);
}

static enum status fits(void *arg, const char *prompt, const char *answer, bool *accepted, struct error *err)
{
	struct load_worker *w = arg;
	uint32_t asked = 0, answered = 0;
	enum status st = count_text(w, prompt, strlen(prompt), &asked, err);

	if (!st)
		st = count_text(w, answer, strlen(answer), &answered, err);
	*accepted = (uint64_t)asked + answered <= w->c->dataset_tokens;
	return st;
}

/* Puts the shared prefix and the salt before the first message of a row. */
static void add_row_text(struct load_worker *w, const struct load_request *r, uint64_t index,
			 const char *text)
{
	w->message.size = 0;
	if (r->turn == 0 && r->prefix_tokens)
		add_words(w, r->prefix, WORDS_PREFIX, r->prefix_tokens);
	if (r->turn == 0 && w->c->salted)
		add_words(w, index, WORDS_SALT, (uint32_t)load_words_for_salt(&w->c->words));
	text_add(&w->message, w->message.size ? "\n" : "");
	text_add(&w->message, text);
}

/* Adds the row's messages of this turn to the dialogue. A system's text comes first, and then has the salt.
 */
static enum status add_row(struct load_worker *w, const struct load_request *r, uint64_t index,
			   struct load_dialogue *d, const struct dataset_prompt *row, struct error *err)
{
	bool system = r->turn == 0 && row->system;
	enum status st = STATUS_OK;

	if (r->turn == 0)
		st = dialogue_begin(d, row->chat.tools, err);
	add_row_text(w, r, index, system ? row->system : row->user);
	if (!st)
		st = check_memory(w, err);
	if (!st)
		st = dialogue_add(d, system ? "system" : "user", w->message.data, w->message.size, err);
	if (!st && system)
		st = dialogue_add(d, "user", row->user, strlen(row->user), err);
	return st;
}

enum status message_of_row(struct load_worker *w, const struct load_request *r, uint64_t index,
			   struct load_dialogue *d, struct load_asked *asked, struct error *err)
{
	const struct load_content *c = w->c;
	struct dataset_prompt row;
	enum status st =
		dataset_find(c->dataset, r->source, r->turn, c->dataset_tokens ? fits : NULL, w, &row, err);

	if (st)
		return st;
	st = add_row(w, r, index, d, &row, err);
	if (!st)
		st = count_text(w, text_str(&row.answer), row.answer.size, &asked->output_tokens, err);
	if (!st && c->completion)
		st = count_prompt(w, text_str(&d->prompt), d->prompt.size, &asked->prompt_tokens, err);
	else if (!st)
		st = count_messages(w, d->messages, d->tools, true, &asked->prompt_tokens, err);
	if (!asked->output_tokens)
		asked->output_tokens = 1;
	dataset_prompt_release(&row);
	return st;
}
