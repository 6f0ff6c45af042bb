/* SPDX-License-Identifier: Apache-2.0 */
/* Counts tokens as a server does, and measures what a chat template adds. */
#include "load/content/internal.h"

enum { TRIES = 64, LONG_TRY = 500 };

static enum status encode(struct load_worker *w, const char *text, size_t size, enum tokenizer_added added,
			  struct error *err)
{
	w->ids.count = 0;
	return tokenizer_encode(w->tokens, text, size, added, &w->ids, err);
}

enum status count_text(struct load_worker *w, const char *text, size_t size, uint32_t *tokens,
		       struct error *err)
{
	enum status st = STATUS_OK;

	if (w->tokens)
		st = encode(w, text, size, ADDED_MARKUP, err);
	*tokens = w->tokens ? (uint32_t)w->ids.count
			    : (uint32_t)((size + BYTES_PER_TOKEN - 1) / BYTES_PER_TOKEN);
	return st;
}

enum status count_prompt(struct load_worker *w, const char *text, size_t size, uint32_t *tokens,
			 struct error *err)
{
	int32_t bos;
	enum status st;

	if (!w->tokens)
		return count_text(w, text, size, tokens, err);
	st = encode(w, text, size, ADDED_ALL, err);
	bos = tokenizer_bos(w->c->tokenizer);
	*tokens = (uint32_t)w->ids.count + (bos >= 0 && !(w->ids.count && w->ids.id[0] == bos));
	return st;
}

static enum status count_chat(struct load_worker *w, const struct chat *chat, bool generation_prompt,
			      uint32_t *tokens, struct error *err)
{
	const json_t *kwargs = w->c->kwargs;
	const struct template_ask ask = {.generation_prompt = generation_prompt,
					 .no_thinking =
						 json_is_false(json_object_get(kwargs, "enable_thinking")),
					 .variables = kwargs,
					 .setting = "--chat-template"};
	struct template_text text = {0};
	enum status st = template_render(w->c->template, chat, &ask, &text, err);

	w->chat.ids.count = w->chat.trained_count = 0;
	if (!st)
		st = template_encode(w->tokens, &text, &w->chat, err);
	*tokens = (uint32_t)w->chat.ids.count;
	template_text_release(&text);
	return st;
}

/* Without a template: the bytes of all texts. */
static uint32_t estimate(const json_t *messages, const json_t *tools)
{
	char *json = tools ? json_dumps(tools, JSON_COMPACT) : NULL;
	size_t bytes = json ? strlen(json) : 0, i;
	const json_t *message;

	json_array_foreach(messages, i, message) bytes +=
		json_string_length(json_object_get(message, "content"));
	free(json);
	return (uint32_t)((bytes + BYTES_PER_TOKEN - 1) / BYTES_PER_TOKEN);
}

enum status count_messages(struct load_worker *w, json_t *messages, json_t *tools, bool generation_prompt,
			   uint32_t *tokens, struct error *err)
{
	struct chat chat;
	enum status st;

	*tokens = 0;
	if (!w->tokens) {
		*tokens = estimate(messages, tools);
		return STATUS_OK;
	}
	st = chat_read(&chat, json_pack("{sO sO*}", "messages", messages, "tools", tools), err);
	if (st)
		return st;
	st = count_chat(w, &chat, generation_prompt, tokens, err);
	chat_release(&chat);
	return st;
}

enum status count_message(struct load_worker *w, const char *text, size_t size, uint32_t *tokens,
			  struct error *err)
{
	json_t *messages;
	enum status st;

	if (w->c->completion || !w->tokens)
		return count_prompt(w, text, size, tokens, err);
	messages = json_pack("[{ss ss%}]", "role", "user", "content", text, size);
	if (!messages)
		return error_set(err, STATUS_NO_RESOURCE, "a message");
	st = count_messages(w, messages, NULL, true, tokens, err);
	json_decref(messages);
	return st;
}

/* Tokens that two prompts have in common at their beginning. */
static size_t common_beginning(const struct token_list *a, const struct token_list *b)
{
	size_t count = a->count < b->count ? a->count : b->count, i = 0;

	while (i < count && a->id[i] == b->id[i])
		i++;
	return i;
}

/* Keeps the first prompt, and notes how much of its beginning all others have too. */
static enum status note_shared(struct load_worker *w, struct load_content *c, struct token_list *first,
			       struct error *err)
{
	const struct token_list *ids = c->completion ? &w->ids : &w->chat.ids;
	size_t common;

	if (!first->count) {
		c->shared_tokens = (uint32_t)ids->count;
		return token_list_add(first, ids->id, ids->count, err);
	}
	common = common_beginning(first, ids);
	if (common < c->shared_tokens)
		c->shared_tokens = (uint32_t)common;
	return STATUS_OK;
}

/* Counts one message, which is the first if *first is empty. */
static enum status measure_message(struct load_worker *w, struct load_content *c, uint64_t id, size_t length,
				   struct token_list *first, struct error *err)
{
	const struct load_words_place place = {.id = id, .use = WORDS_PROOF, .key = 1};
	uint32_t tokens;
	enum status st;

	w->message.size = 0;
	load_words_add(&c->words, &w->message, &place, length, true);
	st = count_message(w, text_str(&w->message), w->message.size, &tokens, err);
	if (st)
		return st;
	if (!first->count)
		c->first_tokens = tokens > length ? tokens - (uint32_t)length : 0;
	c->additive = c->additive && tokens == c->first_tokens + length;
	return note_shared(w, c, first, err);
}

/* Counts messages of several lengths, and notes whether the template always adds the same. */
static enum status measure_first(struct load_worker *w, struct load_content *c, struct error *err)
{
	struct token_list first = {0};
	enum status st = STATUS_OK;

	c->additive = c->words.proven;
	for (size_t i = 0; !st && i < TRIES; i++)
		st = measure_message(w, c, i, i == 1 ? LONG_TRY : TRIES - i, &first, err);
	token_list_release(&first);
	return st;
}

/* Tokens of a conversation that has one message already, and of it with a second message. Both are in
 * w->message. */
static enum status count_both(struct load_worker *w, uint32_t *before, uint32_t *after, struct error *err)
{
	const char *text = text_str(&w->message);
	json_t *messages = json_pack("[{ss ss}{ss ss}]", "role", "user", "content", text, "role", "assistant",
				     "content", text);
	enum status st;

	if (!messages)
		return error_set(err, STATUS_NO_RESOURCE, "a conversation");
	st = count_messages(w, messages, NULL, false, before, err);
	json_array_append_new(messages, json_pack("{ss ss}", "role", "user", "content", text));
	if (!st)
		st = count_messages(w, messages, NULL, true, after, err);
	json_decref(messages);
	return st;
}

static enum status count_both_texts(struct load_worker *w, uint32_t *before, uint32_t *after,
				    struct error *err)
{
	struct text both = {0};
	enum status st = count_prompt(w, text_str(&w->message), w->message.size, before, err);

	text_addf(&both, "%s %s", text_str(&w->message), text_str(&w->message));
	if (!st)
		st = count_prompt(w, text_str(&both), both.size, after, err);
	text_release(&both);
	return st;
}

static enum status measure_later(struct load_worker *w, struct load_content *c, struct error *err)
{
	const struct load_words_place place = {.use = WORDS_PROOF, .key = 2};
	const size_t length = 64;
	uint32_t before, after;
	enum status st;

	w->message.size = 0;
	load_words_add(&c->words, &w->message, &place, length, true);
	st = c->completion ? count_both_texts(w, &before, &after, err) : count_both(w, &before, &after, err);
	if (!st)
		c->later_tokens = after > before + length ? after - before - (uint32_t)length : 0;
	return st;
}

enum status template_measure(struct load_content *c, struct error *err)
{
	struct load_worker *w;
	enum status st;

	if (!c->tokenizer) {
		c->additive = true;
		return STATUS_OK;
	}
	st = load_worker_create(&w, c, err);
	if (!st)
		st = measure_first(w, c, err);
	if (!st)
		st = measure_later(w, c, err);
	load_worker_destroy(&w);
	return st;
}
