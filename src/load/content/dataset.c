/* SPDX-License-Identifier: Apache-2.0 */
#include "load/content/dataset.h"

#include <sys/stat.h>
#include "core/json/text.h"
#include "data/function_calls/bfcl.h"
#include "data/rows/rows.h"

struct dataset {
	struct rows rows;
	char *lines; /* of bfcl's folder: its rows, one JSON value a line */
};

/* Writes the rows of bfcl's folder as lines, so that threads read them like a file. */
static enum status open_bfcl(struct dataset *d, const char *folder, struct error *err)
{
	struct text lines = {0};
	json_t *rows = NULL, *row;
	enum status st = bfcl_read(&rows, folder, err);
	size_t i;

	if (st)
		return st;
	json_array_foreach(rows, i, row)
	{
		json_text_add(&lines, row, 0);
		text_add(&lines, "\n");
	}
	json_decref(rows);
	if (lines.failed) {
		text_release(&lines);
		return error_set(err, STATUS_NO_RESOURCE, "%s", folder);
	}
	d->lines = lines.data;
	return rows_scan(&d->rows, folder, lines.data, lines.size, err);
}

enum status dataset_open(struct dataset **out, const char *path, struct error *err)
{
	struct dataset *d = calloc(1, sizeof(*d));
	struct stat info;
	enum status st;

	*out = NULL;
	if (!d)
		return error_set(err, STATUS_NO_RESOURCE, "%s", path);
	if (!stat(path, &info) && S_ISDIR(info.st_mode))
		st = open_bfcl(d, path, err);
	else
		st = rows_open(&d->rows, path, err);
	if (st)
		dataset_close(&d);
	*out = d;
	return st;
}

void dataset_close(struct dataset **d)
{
	if (*d) {
		rows_release(&(*d)->rows);
		free((*d)->lines);
		free(*d);
	}
	*d = NULL;
}

uint64_t dataset_rows(const struct dataset *d)
{
	return d->rows.count;
}

static void add_calls(struct text *out, const struct chat_message *m)
{
	for (size_t i = 0; i < m->call_count; i++) {
		const json_t *arguments = m->calls[i].arguments;

		text_addf(out, "{\"name\": \"%s\", \"arguments\": ", m->calls[i].name);
		if (json_is_string(arguments))
			text_add(out, json_string_value(arguments));
		else
			json_text_add(out, arguments, 0);
		text_add(out, "}");
	}
}

/* Whether message i is a user's, with an answer after it, which goes to out->answer. */
static bool has_answer(struct dataset_prompt *out, size_t i)
{
	const struct chat_message *m = &out->chat.messages[i];

	if (m->role != CHAT_USER || !*m->content || i + 1 == out->chat.count || m[1].role != CHAT_ASSISTANT)
		return false;
	out->answer.size = 0;
	text_add(&out->answer, m[1].content);
	add_calls(&out->answer, &m[1]);
	return out->answer.size > 0 || out->answer.failed;
}

/* The search for one prompt. */
struct search {
	uint64_t left; /* prompts to pass before it */
	dataset_accept *accept;
	void *arg;
};

/* Looks for the prompt in the row that *out holds. */
static enum status find_in_row(struct search *s, struct dataset_prompt *out, bool *found, struct error *err)
{
	const char *system = NULL;
	enum status st = STATUS_OK;

	for (size_t i = 0; !st && i < out->chat.count; i++) {
		const struct chat_message *m = &out->chat.messages[i];
		bool accepted = true;

		if (m->role == CHAT_SYSTEM && !system && *m->content)
			system = m->content;
		if (!has_answer(out, i))
			continue;
		if (out->answer.failed)
			return error_set(err, STATUS_NO_RESOURCE, "an answer");
		if (s->accept)
			st = s->accept(s->arg, m->content, text_str(&out->answer), &accepted, err);
		if (st || !accepted)
			continue;
		*found = !s->left--;
		if (*found) {
			out->user = m->content;
			out->system = system;
			return STATUS_OK;
		}
	}
	return st;
}

enum status dataset_find(const struct dataset *d, uint64_t row, uint32_t turn, dataset_accept *accept,
			 void *arg, struct dataset_prompt *out, struct error *err)
{
	struct search s = {.left = turn, .accept = accept, .arg = arg};
	uint64_t passed = 0; /* rows without a prompt, one after the other */
	bool found = false;
	enum status st = STATUS_OK;

	*out = (struct dataset_prompt){0};
	for (; !st && passed < d->rows.count; row++) {
		uint64_t before = s.left;

		st = rows_read(&d->rows, row % d->rows.count, ROWS_AUTO, &out->chat, err);
		if (!st)
			st = find_in_row(&s, out, &found, err);
		if (found && !st)
			return STATUS_OK;
		dataset_prompt_release(out);
		passed = s.left == before ? passed + 1 : 0;
	}
	return st ? st
		  : error_set(err, STATUS_BAD_INPUT,
			      "%s: no row has a user's message with an answer that fits the limit of tokens",
			      d->rows.path);
}

void dataset_prompt_release(struct dataset_prompt *p)
{
	if (p->chat.root)
		chat_release(&p->chat);
	text_release(&p->answer);
	*p = (struct dataset_prompt){0};
}
