/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/prompt.h"

#include "text/chat/tool_call.h"

enum { ENDS_MOST = 32 };

struct prompter {
	struct tokenizer *tokenizer;
	struct template *template; /* NULL: no_template says why */
	struct error no_template;
	enum call_form calls;
	struct generation_config defaults;
	int32_t ends[ENDS_MOST];
	size_t end_count;
	bool thinks;	   /* the vocabulary has marks of thoughts */
	bool thinks_first; /* an answer usually begins with a thought */
};

struct prompter_worker {
	const struct prompter *p;
	struct tokenizer_worker *tokens;
};

static void add_end(struct prompter *p, int32_t id)
{
	if (id < 0 || id >= tokenizer_size(p->tokenizer) || p->end_count == ENDS_MOST)
		return;
	for (size_t i = 0; i < p->end_count; i++)
		if (p->ends[i] == id)
			return;
	p->ends[p->end_count++] = id;
}

static void note_template(struct prompter *p)
{
	const char *end;

	for (size_t i = 0; i < p->defaults.eos_count; i++)
		add_end(p, p->defaults.eos[i]);
	add_end(p, tokenizer_eos(p->tokenizer));
	p->thinks = tokenizer_added(p->tokenizer, "</think>") >= 0;
	if (!p->template)
		return;
	end = template_end(p->template);
	if (end && *end)
		add_end(p, tokenizer_added(p->tokenizer, end));
	p->calls = call_form_of(p->template);
	p->thinks_first = thought_comes_first(p->template);
	p->thinks |= p->thinks_first;
}

enum status prompter_open(struct prompter **out, const char *path, const char *template, struct error *err)
{
	struct prompter *p = calloc(1, sizeof(*p));
	enum status st;

	*out = NULL;
	if (!p)
		return error_set(err, STATUS_NO_RESOURCE, "the text side of a model");
	st = tokenizer_open(&p->tokenizer, path, err);
	if (!st)
		st = generation_config_read(&p->defaults, path, err);
	if (!st && template_open(&p->template, template, "--chat-template", p->tokenizer, &p->no_template) &&
	    (p->no_template.status != STATUS_BAD_INPUT || (template && strcmp(template, "auto") != 0)))
		st = error_set(err, p->no_template.status, "%s", p->no_template.text);
	if (st) {
		prompter_close(&p);
		return st;
	}
	note_template(p);
	*out = p;
	return STATUS_OK;
}

void prompter_close(struct prompter **p)
{
	if (*p) {
		template_close(&(*p)->template); /* it uses the tokenizer */
		tokenizer_close(&(*p)->tokenizer);
		free(*p);
	}
	*p = NULL;
}

const struct generation_config *prompter_defaults(const struct prompter *p)
{
	return &p->defaults;
}

const int32_t *prompter_ends(const struct prompter *p, size_t *count)
{
	*count = p->end_count;
	return p->ends;
}

int32_t prompter_size(const struct prompter *p)
{
	return tokenizer_size(p->tokenizer);
}

enum status prompter_worker_create(struct prompter_worker **out, const struct prompter *p, struct error *err)
{
	struct prompter_worker *w = calloc(1, sizeof(*w));
	enum status st;

	*out = NULL;
	if (!w)
		return error_set(err, STATUS_NO_RESOURCE, "a worker of the tokenizer");
	w->p = p;
	st = tokenizer_worker_create(&w->tokens, p->tokenizer, err);
	if (st)
		free(w);
	else
		*out = w;
	return st;
}

void prompter_worker_destroy(struct prompter_worker **w)
{
	if (*w) {
		tokenizer_worker_destroy(&(*w)->tokens);
		free(*w);
	}
	*w = NULL;
}

/* Moves a list to its new owner. */
static void hand_over(struct prompt_ids *out, struct token_list *list)
{
	*out = (struct prompt_ids){.ids = list->id, .count = list->count};
	*list = (struct token_list){0};
}

static enum status encode_chat(struct prompter_worker *w, const struct template_text *text,
			       struct prompt_ids *out, struct error *err)
{
	struct template_tokens tokens = {0};
	enum status st = template_encode(w->tokens, text, &tokens, err);

	if (!st)
		hand_over(out, &tokens.ids);
	template_tokens_release(&tokens);
	return st;
}

enum status prompter_chat(struct prompter_worker *w, json_t *root, const struct prompt_ask *ask,
			  struct prompt_ids *out, enum thought *thought, struct error *err)
{
	const json_t *think = json_object_get(ask->kwargs, "enable_thinking");
	const struct template_ask how = {.generation_prompt = ask->generation_prompt,
					 .no_thinking = json_is_false(think),
					 .variables = ask->kwargs,
					 .setting = "--chat-template"};
	struct template_text text = {0};
	struct chat chat;
	enum status st;

	if (!w->p->template) {
		json_decref(root);
		return error_set(err, STATUS_UNSUPPORTED, "%s", w->p->no_template.text);
	}
	st = chat_read(&chat, root, err);
	if (st)
		return st;
	st = template_render(w->p->template, &chat, &how, &text, err);
	if (!st)
		*thought = thought_at_end(&text.text, w->p->thinks_first);
	if (!st)
		st = encode_chat(w, &text, out, err);
	template_text_release(&text);
	chat_release(&chat);
	return st;
}

enum status prompter_text(struct prompter_worker *w, const char *text, size_t size, bool special,
			  struct prompt_ids *out, struct error *err)
{
	struct token_list list = {0};
	int32_t bos = special ? tokenizer_bos(w->p->tokenizer) : -1;
	enum status st = tokenizer_encode(w->tokens, text, size, ADDED_ALL, &list, err);
	int32_t *ids;

	if (!st && bos >= 0 && (!list.count || list.id[0] != bos)) {
		ids = malloc((list.count + 1) * sizeof(*ids));
		if (ids && list.count)
			memcpy(ids + 1, list.id, list.count * sizeof(*ids));
		if (ids) {
			ids[0] = bos;
			*out = (struct prompt_ids){.ids = ids, .count = list.count + 1};
		} else {
			st = error_set(err, STATUS_NO_RESOURCE, "a prompt of %zu tokens", list.count);
		}
	} else if (!st) {
		hand_over(out, &list);
	}
	token_list_release(&list);
	return st;
}

void prompter_decode(const struct prompter *p, int32_t id, bool control, struct text *out)
{
	tokenizer_decode(p->tokenizer, &id, 1, control, out);
}

enum call_form prompter_calls(const struct prompter *p)
{
	return p->calls;
}

bool prompter_read_call(const struct prompter *p, const char *text, size_t size, char **name,
			struct text *arguments)
{
	bool marked = prompter_calls(p) == CALL_FORM_MARKED, found;
	struct tool_calls calls = {0};
	struct text whole = {0};
	struct error err = {0};
	char *json;

	text_add(&whole, marked ? "<tool_call>" : "");
	text_add_bytes(&whole, text, size);
	text_add(&whole, marked ? "</tool_call>" : "");
	found = p->template && !whole.failed &&
		!tool_calls_read(&calls, p->template, text_str(&whole), &err) && calls.count == 1 &&
		!calls.broken;
	json = found ? json_dumps(calls.calls[0].arguments, 0) : NULL;
	if (json) {
		*name = calls.calls[0].name;
		calls.calls[0].name = NULL;
		text_add(arguments, json);
	}
	free(json);
	tool_calls_release(&calls);
	text_release(&whole);
	return json != NULL;
}

bool prompter_thinks(const struct prompter *p)
{
	return p->thinks;
}
