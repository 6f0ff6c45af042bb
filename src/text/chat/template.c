/* SPDX-License-Identifier: Apache-2.0 */
#include "text/chat/template.h"

#include <stdlib.h>
#include <string.h>
#include "core/file/file.h"
#include "core/input/opt.h"
#include "core/json/text.h"
#include "text/chat/template_internal.h"

/* In the order in which a Jinja text is compared with them: special ones first. */
static const struct template *const templates[] = {
	&template_llama31,	  &template_llama3,  &template_qwen3, &template_qwen25,
	&template_qwen3_instruct, &template_smollm2, &template_qwen2, &template_chatml,
};
enum { TEMPLATE_COUNT = sizeof(templates) / sizeof(templates[0]) };
const char *const template_names[] = {"auto",	 "chatml", "llama3",	     "llama3.1", "qwen2",
				      "qwen2.5", "qwen3",  "qwen3-instruct", "smollm2",	 NULL};

static bool is_known(const struct template *t, const char *jinja)
{
	for (const char *const *word = t->known; *word; word++)
		if (!strstr(jinja, *word))
			return false;
	for (const char *const *word = t->foreign; word && *word; word++)
		if (strstr(jinja, *word))
			return false;
	return true;
}

const struct template *template_recognize(const char *jinja)
{
	for (size_t i = 0; i < TEMPLATE_COUNT; i++)
		if (is_known(templates[i], jinja))
			return templates[i];
	return NULL;
}

static bool is_auto(const char *name)
{
	return !name || !strcmp(name, "auto");
}

static enum status find_by_name(const struct template **out, const char *name, const char *setting,
				struct error *err)
{
	const char *nearest;

	for (size_t i = 0; i < TEMPLATE_COUNT; i++) {
		*out = templates[i];
		if (!strcmp(name, templates[i]->name))
			return STATUS_OK;
	}
	nearest = opt_nearest(name, template_names, sizeof(template_names) / sizeof(template_names[0]) - 1);
	return error_set(err, STATUS_BAD_INPUT, "%s: \"%.60s\" is not a chat template%s%s%s", setting, name,
			 nearest ? "; did you mean " : "", nearest ? nearest : "", nearest ? "?" : "");
}

enum status template_find(const struct template **out, const char *name, const char *setting,
			  const struct tokenizer *t, struct error *err)
{
	const char *jinja;

	if (!is_auto(name))
		return find_by_name(out, name, setting, err);
	jinja = tokenizer_chat_template(t);
	*out = template_recognize(jinja);
	if (*out)
		return STATUS_OK;
	return error_set(err, STATUS_BAD_INPUT,
			 "the tokenizer's files have %s; choose one with %s, such as chatml or qwen2.5",
			 *jinja ? "an unknown chat template" : "no chat template", setting);
}

static enum status open_file(struct template **out, const char *path, const struct tokenizer *t,
			     struct error *err)
{
	char *text;
	size_t size;
	enum status st = file_read(&text, &size, path, JINJA_SOURCE_MAX, err);

	if (st)
		return st;
	if (strlen(text) != size)
		st = error_set(err, STATUS_BAD_INPUT, "%s: the template contains a NUL byte", path);
	if (!st)
		st = template_of_jinja(out, path, text, "", t, err);
	free(text);
	return st;
}

bool template_names_file(const char *name)
{
	static const char end[] = ".jinja";
	size_t size = strlen(name);

	return strchr(name, '/') || (size > strlen(end) && !strcmp(name + size - strlen(end), end));
}

enum status template_open(struct template **out, const char *name, const char *setting,
			  const struct tokenizer *t, struct error *err)
{
	const struct template *native;
	enum status st;

	*out = NULL;
	if (is_auto(name) && *tokenizer_chat_template(t))
		return template_of_jinja(out, "chat_template", tokenizer_chat_template(t),
					 tokenizer_tool_template(t), t, err);
	if (!is_auto(name) && template_names_file(name))
		return open_file(out, name, t, err);
	st = template_find(&native, name, setting, t, err);
	if (st)
		return st;
	*out = malloc(sizeof(**out));
	if (!*out)
		return error_set(err, STATUS_NO_RESOURCE, "a chat template");
	**out = *native;
	return STATUS_OK;
}

void template_close(struct template **t)
{
	if (!*t)
		return;
	jinja_destroy(&(*t)->jinja);
	jinja_destroy(&(*t)->jinja_tools);
	free((*t)->own_name);
	free((*t)->own_end);
	free(*t);
	*t = NULL;
}

const char *template_name(const struct template *t)
{
	return t->name;
}

const char *template_end(const struct template *t)
{
	return t->end;
}

bool template_has_tools(const struct template *t)
{
	return t->tools;
}

static void add_part(struct template_text *out, const char *text, size_t size, enum tokenizer_added added,
		     bool trained)
{
	struct template_part *last = out->count ? &out->parts[out->count - 1] : NULL, *grown;
	size_t room;

	if (!size || out->failed)
		return;
	text_add_bytes(&out->text, text, size);
	if (last && last->added == added && last->trained == trained) {
		last->end = out->text.size;
		return;
	}
	if (out->count == out->room) {
		room = out->room ? out->room * 2 : 16;
		grown = realloc(out->parts, room * sizeof(*grown));
		if (!grown) {
			out->failed = true;
			return;
		}
		out->parts = grown;
		out->room = room;
	}
	out->parts[out->count++] =
		(struct template_part){.end = out->text.size, .added = added, .trained = trained};
}

void template_own(struct template_writer *w, const char *text)
{
	add_part(w->out, text, strlen(text), ADDED_ALL, false);
}

void template_said(struct template_writer *w, const char *text, size_t size)
{
	add_part(w->out, text, size, w->ask->control ? ADDED_ALL : ADDED_NONE, false);
}

void template_answer(struct template_writer *w, const char *text, size_t size, bool own, bool trained)
{
	add_part(w->out, text, size, own || w->ask->control ? ADDED_ALL : ADDED_MARKUP, trained);
}

void template_add(struct template_writer *w, const char *text, size_t size, enum tokenizer_added added)
{
	add_part(w->out, text, size, added, false);
}

void template_json(struct template_writer *w, const json_t *value, unsigned indent)
{
	struct text json = {0};

	json_text_add(&json, value, indent);
	template_said(w, text_str(&json), json.size);
	w->out->failed |= json.failed;
	text_release(&json);
}

void template_arguments(struct template_writer *w, const struct chat_call *call, bool trained)
{
	struct text json = {0};

	if (json_is_string(call->arguments))
		text_add(&json, json_string_value(call->arguments));
	else
		json_text_add(&json, call->arguments, 0);
	template_answer(w, text_str(&json), json.size, false, trained);
	w->out->failed |= json.failed;
	text_release(&json);
}

static bool wants_tools(const struct chat *c)
{
	for (size_t i = 0; i < c->count; i++)
		if (c->messages[i].role == CHAT_TOOL || c->messages[i].call_count)
			return true;
	return c->tools != NULL;
}

/* Only Jinja's texts have a size. */
static enum status check_nulls(const struct template *t, const struct chat *c, struct error *err)
{
	for (size_t i = 0; i < c->count && !t->jinja; i++)
		if (strlen(c->messages[i].content) != c->messages[i].content_size)
			return error_set(
				err, STATUS_BAD_INPUT,
				"messages[%zu].content contains the character U+0000, which the chat "
				"template %s does not support",
				i, t->name);
	return STATUS_OK;
}

enum status template_render(const struct template *t, const struct chat *c, const struct template_ask *ask,
			    struct template_text *out, struct error *err)
{
	struct template_writer w = {.out = out, .ask = ask};
	enum status st;

	if (!t->tools && wants_tools(c))
		return error_set(
			err, STATUS_BAD_INPUT,
			"the chat template %s does not support tools; set %s to one that does (qwen2.5)",
			t->name, ask->setting ? ask->setting : "chat_template");
	st = check_nulls(t, c, err);
	if (!st)
		st = t->render(t, c, &w, err);
	if (!st && (out->failed || out->text.failed))
		st = error_set(err, STATUS_NO_RESOURCE, "a conversation of %zu messages", c->count);
	return st;
}

void template_text_release(struct template_text *t)
{
	text_release(&t->text);
	free(t->parts);
	*t = (struct template_text){0};
}

/* Encodes parts [first, last), which are either all trained or all untrained, as one text. */
static enum status encode_stretch(struct tokenizer_worker *w, const struct template_text *text, size_t first,
				  size_t last, struct template_tokens *out, struct error *err)
{
	size_t begin = first ? text->parts[first - 1].end : 0, before = out->ids.count;
	struct text_part *parts = malloc((last - first) * sizeof(*parts));
	uint8_t *trained;
	enum status st;

	if (!parts)
		return error_set(err, STATUS_NO_RESOURCE, "%zu parts of a text", last - first);
	for (size_t i = first; i < last; i++)
		parts[i - first] =
			(struct text_part){.end = text->parts[i].end - begin, .added = text->parts[i].added};
	st = tokenizer_encode_parts(w, text->text.data + begin, parts, last - first, &out->ids, err);
	free(parts);
	if (st || out->ids.count == before)
		return st;
	trained = realloc(out->trained, out->ids.count);
	if (!trained)
		return error_set(err, STATUS_NO_RESOURCE, "%zu tokens", out->ids.count);
	out->trained = trained;
	memset(trained + before, text->parts[first].trained, out->ids.count - before);
	if (text->parts[first].trained)
		out->trained_count += out->ids.count - before;
	return STATUS_OK;
}

enum status template_encode(struct tokenizer_worker *w, const struct template_text *text,
			    struct template_tokens *out, struct error *err)
{
	size_t first = 0, last;
	enum status st = STATUS_OK;

	for (; !st && first < text->count; first = last) {
		last = first + 1;
		while (last < text->count && text->parts[last].trained == text->parts[first].trained)
			last++;
		st = encode_stretch(w, text, first, last, out, err);
	}
	return st;
}

void template_tokens_release(struct template_tokens *t)
{
	token_list_release(&t->ids);
	free(t->trained);
	*t = (struct template_tokens){0};
}
