/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/eval/data.h"
#include <stdlib.h>
#include "core/file/file.h"
#include "core/file/mapped.h"
#include "core/json/read.h"
#include "core/text/utf8.h"

static const size_t text_most = (size_t)1 << 30;

/* The state of reading. */
struct reading {
	struct eval_data *d;
	const struct eval_data_ask *ask;
	struct tokenizer_worker *worker;
	const struct template *marked; /* a family's template, which marks trained parts; NULL: none */
	bool unopened;		       /* the error is of the tokenizer or template, and not of a row */
};

static enum status no_memory(struct error *err)
{
	return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "out of memory for the rows");
}

static enum status open_tokenizer(struct reading *r, struct error *err)
{
	enum status st;

	if (r->worker)
		return STATUS_OK;
	st = tokenizer_open(&r->d->tokenizer, r->ask->tokenizer, err);
	if (!st)
		st = tokenizer_worker_create(&r->worker, r->d->tokenizer, err);
	r->unopened = st;
	return st;
}

static enum status open_template(struct reading *r, struct error *err)
{
	static const char setting[] = "--chat-template";
	enum status st;

	if (r->d->template)
		return STATUS_OK;
	st = open_tokenizer(r, err);
	if (!st)
		st = template_open(&r->d->template, r->ask->template, setting, r->d->tokenizer, err);
	if (!st)
		st = call_grammar_open(&r->d->grammar, r->ask->grammar, r->d->template, r->d->tokenizer,
				       r->ask->tokenizer, err);
	r->unopened = st;
	if (!st && template_find(&r->marked, r->ask->template, setting, r->d->tokenizer, &(struct error){0}))
		r->marked = NULL;
	return st;
}

/* The error of a row, with its place. */
static enum status place_error(const struct reading *r, size_t line, enum status st, const struct error *why,
			       struct error *err)
{
	if (r->unopened)
		return error_set_cause(err, st, why->cause, "%s", why->text);
	return error_set_cause(err, st, why->cause, "%s:%zu: %s", r->ask->path, line, why->text);
}

/* Whether a token after the first is scored. */
static bool has_target(const struct eval_document *doc)
{
	for (size_t i = 1; i < doc->ids.count; i++)
		if (!doc->target || doc->target[i])
			return true;
	return false;
}

/* Takes the document, or releases one without anything to score. */
static void keep_document(struct eval_data *d, struct eval_document *doc)
{
	if (has_target(doc)) {
		d->documents[d->document_count++] = *doc;
	} else {
		token_list_release(&doc->ids);
		free(doc->target);
	}
	*doc = (struct eval_document){0};
}

static enum status read_text(struct reading *r, const char *text, size_t size, struct eval_document *doc,
			     struct error *err)
{
	enum status st = open_tokenizer(r, err);
	const int32_t bos = st ? -1 : tokenizer_bos(r->d->tokenizer);

	if (!st && bos >= 0)
		st = token_list_add(&doc->ids, &bos, 1, err);
	return st ? st : tokenizer_encode(r->worker, text, size, ADDED_NONE, &doc->ids, err);
}

static enum status read_ids(const json_t *ids, struct eval_document *doc, struct error *err)
{
	const json_t *item;
	enum status st = STATUS_OK;
	size_t i;

	if (!json_is_array(ids))
		return error_set(err, STATUS_BAD_INPUT, "input_ids is not an array of token ids");
	json_array_foreach(ids, i, item)
	{
		const json_int_t id = json_is_integer(item) ? json_integer_value(item) : -1;

		if (id < 0 || id > INT32_MAX)
			return error_set(err, STATUS_BAD_INPUT, "input_ids[%zu] is not a token id", i);
		st = token_list_add(&doc->ids, &(int32_t){(int32_t)id}, 1, err);
		if (st)
			return st;
	}
	return st;
}

static enum status encode_chat(struct reading *r, const struct template *t, const struct chat *chat,
			       struct template_tokens *out, struct error *err)
{
	const struct template_ask ask = {.setting = "--chat-template"};
	struct template_text text = {0};
	enum status st = template_render(t, chat, &ask, &text, err);

	if (!st)
		st = template_encode(r->worker, &text, out, err);
	template_text_release(&text);
	return st;
}

/* The question's prompt, and the grammar of its answer. */
static enum status encode_question(struct reading *r, struct eval_question *q, struct error *err)
{
	const struct template_ask ask = {.generation_prompt = true, .setting = "--chat-template"};
	const struct chat *chat = &q->task.prompt;
	struct template_tokens tokens = {0};
	struct template_text text = {0};
	enum status st = template_render(r->d->template, chat, &ask, &text, err);

	if (!st)
		st = template_encode(r->worker, &text, &tokens, err);
	if (!st)
		st = call_grammar_source(&r->d->grammar, chat->tools, &text.text, &q->grammar, err);
	q->ids = tokens.ids;
	tokens.ids = (struct token_list){0};
	template_tokens_release(&tokens);
	template_text_release(&text);
	return st;
}

static enum status read_chat(struct reading *r, const struct chat *chat, struct eval_document *doc,
			     struct error *err)
{
	const struct template *t = r->marked ? r->marked : r->d->template;
	struct template_tokens tokens = {0};
	enum status st = encode_chat(r, t, chat, &tokens, err);

	if (!st) {
		doc->ids = tokens.ids;
		tokens.ids = (struct token_list){0};
		if (r->marked) {
			doc->target = tokens.trained;
			tokens.trained = NULL;
		}
	}
	template_tokens_release(&tokens);
	return st;
}

static bool expects_answer(const struct chat *chat)
{
	const bool spoke = chat->count && chat->messages[chat->count - 1].role == CHAT_ASSISTANT;

	return chat->tools && (spoke || json_object_get(chat->root, "ground_truth"));
}

static enum status read_question(struct reading *r, size_t row, struct error *err)
{
	struct eval_question *q = &r->d->questions[r->d->question_count];
	struct error why = {0};
	enum status st = answer_task_read(&q->task, &r->d->rows, row, ROWS_AUTO, err);

	if (st)
		return st;
	r->d->question_count++; /* from here on, it is released with the others */
	q->line = r->d->rows.place[row].line;
	st = encode_question(r, q, &why);
	return st ? place_error(r, q->line, st, &why, err) : STATUS_OK;
}

static enum status read_conversation(struct reading *r, size_t row, struct eval_document *doc,
				     struct error *err)
{
	struct error why = {0};
	struct chat chat;
	enum status st = rows_read(&r->d->rows, row, ROWS_AUTO, &chat, err);
	bool asks;

	if (st)
		return st;
	st = open_template(r, &why);
	if (!st)
		st = read_chat(r, &chat, doc, &why);
	if (st)
		place_error(r, r->d->rows.place[row].line, st, &why, err);
	asks = !st && r->ask->questions && expects_answer(&chat);
	chat_release(&chat);
	return asks ? read_question(r, row, err) : st;
}

static bool is_conversation(const json_t *row)
{
	return json_object_get(row, "messages") || json_object_get(row, "conversations") ||
	       json_object_get(row, "chat");
}

static enum status unknown_row(const json_t *row, struct error *err)
{
	if (json_object_get(row, "text"))
		return error_set(err, STATUS_BAD_INPUT, "\"text\" is not a text");
	return error_set(err, STATUS_BAD_INPUT,
			 "the row has none of \"text\", \"input_ids\", \"messages\", \"conversations\" and "
			 "\"chat\"");
}

/* Reads a row of "text" or "input_ids". *other: it is a conversation. */
static enum status read_plain(struct reading *r, const struct rows_place *at, struct eval_document *doc,
			      bool *other, struct error *err)
{
	struct json_wrong wrong;
	json_t *row = json_read(at->text, at->size, JSON_REJECT_DUPLICATES, &wrong);
	const json_t *text = json_object_get(row, "text"), *ids = json_object_get(row, "input_ids");
	enum status st = STATUS_OK;

	if (!row)
		st = error_set(err, STATUS_BAD_INPUT, "%s (column %d)", wrong.text, wrong.column);
	else if (json_is_string(text))
		st = read_text(r, json_string_value(text), json_string_length(text), doc, err);
	else if (ids)
		st = read_ids(ids, doc, err);
	else if (is_conversation(row))
		*other = true;
	else
		st = unknown_row(row, err);
	json_decref(row);
	return mapped_check(st, err);
}

static enum status read_row(struct reading *r, size_t row, struct error *err)
{
	const struct rows_place *at = &r->d->rows.place[row];
	struct eval_document doc = {.line = at->line};
	struct error why = {0};
	bool other = false;
	enum status st = read_plain(r, at, &doc, &other, &why);

	if (st)
		place_error(r, at->line, st, &why, err);
	else if (other)
		st = read_conversation(r, row, &doc, err);
	if (!st) {
		keep_document(r->d, &doc);
		return STATUS_OK;
	}
	token_list_release(&doc.ids);
	free(doc.target);
	return st;
}

static enum status make_room(struct eval_data *d, size_t rows, struct error *err)
{
	d->documents = calloc(rows, sizeof(*d->documents));
	d->questions = calloc(rows, sizeof(*d->questions));
	return d->documents && d->questions ? STATUS_OK : no_memory(err);
}

static enum status read_rows(struct reading *r, struct error *err)
{
	struct eval_data *d = r->d;
	enum status st = rows_open(&d->rows, r->ask->path, err);
	size_t count;

	if (st)
		return st;
	count = r->ask->rows_max && r->ask->rows_max < d->rows.count ? r->ask->rows_max : d->rows.count;
	st = make_room(d, count, err);
	for (size_t i = 0; !st && i < count; i++)
		st = read_row(r, i, err);
	return st;
}

static enum status read_one_text(struct reading *r, const char *text, size_t size, struct error *err)
{
	struct eval_document doc = {.line = 1};
	struct error why = {0};
	enum status st = make_room(r->d, 1, err);

	if (st)
		return st;
	st = read_text(r, text, size, &doc, &why);
	if (st)
		place_error(r, 1, st, &why, err);
	keep_document(r->d, &doc);
	return st;
}

/* Rows begin with a bracket; everything else is plain text. */
static bool are_rows(const char *text, size_t size)
{
	utf8_skip_bom(&text, &size);
	while (size && json_is_blank(*text)) {
		text++;
		size--;
	}
	return size && (*text == '{' || *text == '[');
}

static enum status read_file(struct reading *r, struct error *err)
{
	size_t size;
	char *text;
	enum status st = file_read(&text, &size, r->ask->path, text_most, err);

	if (st)
		return st;
	if (are_rows(text, size)) {
		free(text);
		return read_rows(r, err);
	}
	st = read_one_text(r, text, size, err);
	free(text);
	return st;
}

enum status eval_data_read(struct eval_data *d, const struct eval_data_ask *ask, struct error *err)
{
	struct reading r = {.d = d, .ask = ask};
	enum status st;

	*d = (struct eval_data){.path = ask->path};
	st = read_file(&r, err);
	tokenizer_worker_destroy(&r.worker);
	if (!st && !d->document_count && !d->question_count)
		st = error_set(err, STATUS_BAD_INPUT,
			       "%s: there is nothing to measure: a document needs at least two tokens, and "
			       "a question needs tools and an expected answer",
			       ask->path);
	return st;
}

void eval_data_release(struct eval_data *d)
{
	for (size_t i = 0; i < d->document_count; i++) {
		token_list_release(&d->documents[i].ids);
		free(d->documents[i].target);
	}
	for (size_t i = 0; i < d->question_count; i++) {
		token_list_release(&d->questions[i].ids);
		free(d->questions[i].grammar);
		answer_task_release(&d->questions[i].task);
	}
	free(d->documents);
	free(d->questions);
	rows_release(&d->rows);
	call_grammar_close(&d->grammar);
	template_close(&d->template);
	tokenizer_close(&d->tokenizer);
	*d = (struct eval_data){0};
}

static bool same(const struct token_list *a, const struct token_list *b)
{
	return a->count == b->count && !memcmp(a->id, b->id, a->count * sizeof(*a->id));
}

static enum status differs(const struct eval_data *d, size_t line, struct error *err)
{
	return error_set(
		err, STATUS_BAD_INPUT,
		"%s:%zu: the two models' tokenizers or chat templates give different tokens, so "
		"their perplexities cannot be compared; if they should be equal, set --tokenizer and "
		"--chat-template",
		d->rows.path ? d->rows.path : "the text", line);
}

enum status eval_data_compare(const struct eval_data *a, const struct eval_data *b, struct error *err)
{
	const size_t documents =
			     a->document_count < b->document_count ? a->document_count : b->document_count,
		     questions =
			     a->question_count < b->question_count ? a->question_count : b->question_count;

	for (size_t i = 0; i < documents; i++)
		if (!same(&a->documents[i].ids, &b->documents[i].ids))
			return differs(a, a->documents[i].line, err);
	for (size_t i = 0; i < questions; i++)
		if (!same(&a->questions[i].ids, &b->questions[i].ids))
			return differs(a, a->questions[i].line, err);
	if (a->document_count != b->document_count || a->question_count != b->question_count)
		return differs(a, 1, err);
	return STATUS_OK;
}
