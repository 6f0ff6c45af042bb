/* SPDX-License-Identifier: Apache-2.0 */
#include "load/content/content.h"

#include "core/math/fnv1a.h"
#include "load/content/internal.h"

static enum status find_words(struct load_content *c, struct error *err)
{
	struct tokenizer_worker *worker = NULL;
	enum status st;

	if (!c->tokenizer) {
		load_words_common(&c->words);
		return STATUS_OK;
	}
	st = tokenizer_worker_create(&worker, c->tokenizer, err);
	if (!st)
		st = load_words_find(&c->words, c->tokenizer, worker, err);
	tokenizer_worker_destroy(&worker);
	return st;
}

static enum status open_text(struct load_content *c, const struct load_content_spec *spec, struct error *err)
{
	enum status st;

	if (!spec->tokenizer)
		return STATUS_OK;
	st = tokenizer_open(&c->tokenizer, spec->tokenizer, err);
	if (!st && !spec->completion)
		st = template_open(&c->template, spec->chat_template, "--chat-template", c->tokenizer, err);
	return st;
}

/* The first prompt is looked for, so that a dataset without any is refused before the run. */
static enum status open_dataset(struct load_content *c, const char *path, struct error *err)
{
	struct load_asked asked = {0};
	struct load_dialogue *d = NULL;
	struct load_worker *w = NULL;
	const struct load_request r = {0};
	enum status st = dataset_open(&c->dataset, path, err);

	if (!st)
		st = load_worker_create(&w, c, err);
	if (!st)
		st = load_dialogue_create(&d, err);
	if (!st)
		st = message_of_row(w, &r, 0, d, &asked, err);
	load_dialogue_destroy(&d);
	load_worker_destroy(&w);
	return st;
}

static enum status open_parts(struct load_content *c, const struct load_content_spec *spec, struct error *err)
{
	enum status st = body_tail(c, spec, err);

	c->completion = spec->completion;
	c->uncounted = spec->uncounted;
	c->dataset_tokens = spec->dataset_tokens;
	c->salted = spec->salt != NULL;
	c->key = c->salted ? fnv1a_add(FNV1A_BEGIN, spec->salt, strlen(spec->salt)) : 0;
	if (!st)
		st = open_text(c, spec, err);
	if (!st)
		st = find_words(c, err);
	if (!st)
		st = template_measure(c, err);
	if (!st && spec->dataset)
		st = open_dataset(c, spec->dataset, err);
	return st;
}

enum status load_content_open(struct load_content **out, const struct load_content_spec *spec,
			      struct error *err)
{
	struct load_content *c = calloc(1, sizeof(*c));
	enum status st;

	*out = NULL;
	if (!c)
		return error_set(err, STATUS_NO_RESOURCE, "the contents of requests");
	st = open_parts(c, spec, err);
	if (st)
		load_content_close(&c);
	*out = c;
	return st;
}

void load_content_close(struct load_content **c)
{
	if (*c) {
		dataset_close(&(*c)->dataset);
		template_close(&(*c)->template); /* it uses the tokenizer */
		tokenizer_close(&(*c)->tokenizer);
		json_decref((*c)->kwargs);
		text_release(&(*c)->tail);
		free(*c);
	}
	*c = NULL;
}

bool load_content_exact(const struct load_content *c)
{
	return c->tokenizer != NULL;
}

uint64_t load_content_rows(const struct load_content *c)
{
	return c->dataset ? dataset_rows(c->dataset) : 0;
}

uint32_t load_content_template_tokens(const struct load_content *c)
{
	return c->first_tokens;
}

uint32_t load_content_shared_tokens(const struct load_content *c)
{
	return c->shared_tokens;
}

enum status load_content_check(const struct load_content *c, struct load_plan *p, uint64_t *raised,
			       struct error *err)
{
	*raised = 0;
	for (size_t i = 0; !c->dataset && i < p->count; i++) {
		struct load_request *r = &p->request[i];
		uint32_t template = r->turn ? c->later_tokens : c->first_tokens;

		if (r->prompt_tokens > template)
			continue;
		if (!p->trace)
			return error_set(
				err, STATUS_BAD_INPUT,
				"a prompt of %u tokens is impossible: the model's chat template alone has "
				"%u; the least length is %u",
				r->prompt_tokens, template, template + 1);
		r->prompt_tokens = template + 1;
		++*raised;
	}
	return STATUS_OK;
}

enum status load_worker_create(struct load_worker **out, const struct load_content *c, struct error *err)
{
	struct load_worker *w = calloc(1, sizeof(*w));
	enum status st = STATUS_OK;

	*out = NULL;
	if (!w)
		return error_set(err, STATUS_NO_RESOURCE, "a worker for the contents of requests");
	w->c = c;
	if (c->tokenizer)
		st = tokenizer_worker_create(&w->tokens, c->tokenizer, err);
	if (st)
		load_worker_destroy(&w);
	*out = w;
	return st;
}

void load_worker_destroy(struct load_worker **w)
{
	if (*w) {
		tokenizer_worker_destroy(&(*w)->tokens);
		token_list_release(&(*w)->ids);
		template_tokens_release(&(*w)->chat);
		text_release(&(*w)->message);
		free(*w);
	}
	*w = NULL;
}

/* A message of a conversation that goes on: its text becomes part of the dialogue. */
static enum status add_to_dialogue(struct load_worker *w, const struct load_request *r,
				   struct load_dialogue *d, struct load_asked *asked, struct error *err)
{
	enum status st;

	if (r->turn) {
		st = message_later(w, r, d, asked, err);
	} else {
		st = dialogue_begin(d, NULL, err);
		if (!st)
			st = message_first(w, r, asked, err);
	}
	return st ? st : dialogue_add(d, "user", text_str(&w->message), w->message.size, err);
}

static enum status body_in_dialogue(struct load_worker *w, const struct load_request *r, uint64_t index,
				    struct load_dialogue *d, struct text *body, struct load_asked *asked,
				    struct error *err)
{
	enum status st = w->c->dataset ? message_of_row(w, r, index, d, asked, err)
				       : add_to_dialogue(w, r, d, asked, err);

	return st ? st : body_of_dialogue(w, d, asked, body, err);
}

enum status load_worker_body(struct load_worker *w, const struct load_request *r, uint64_t index,
			     struct load_dialogue *d, struct text *body, struct load_asked *asked,
			     struct error *err)
{
	struct load_dialogue *own = NULL;
	enum status st;

	*asked = (struct load_asked){0};
	if (r->turn && (!d || !d->messages))
		return error_set(err, STATUS_BUG, "a later turn without its conversation");
	if (d)
		return body_in_dialogue(w, r, index, d, body, asked, err);
	if (w->c->dataset) {
		st = load_dialogue_create(&own, err);
		if (!st)
			st = body_in_dialogue(w, r, index, own, body, asked, err);
		load_dialogue_destroy(&own);
		return st;
	}
	st = message_first(w, r, asked, err);
	if (st)
		return st;
	body_of_message(w, asked, body);
	return body->failed ? error_set(err, STATUS_NO_RESOURCE, "the body of a request") : STATUS_OK;
}

int64_t load_worker_count(struct load_worker *w, const char *text, size_t size)
{
	struct error ignored = {0};
	uint32_t tokens;

	return w->tokens && !w->c->uncounted && !count_text(w, text, size, &tokens, &ignored)
		       ? (int64_t)tokens
		       : -1;
}
