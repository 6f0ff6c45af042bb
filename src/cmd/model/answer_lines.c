/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/model/answer_lines.h"
#include "cmd/shared/show.h"
#include "core/json/read.h"

json_t *answer_lines_line(size_t row, const char *text, const struct tool_calls *calls,
			  const struct answer_verdict *v)
{
	json_t *out = json_pack("{sI ss}", "row", (json_int_t)row, "text", text),
	       *read = tool_calls_json(calls);

	json_object_update_missing(out, read);
	json_decref(read);
	json_object_set_new(out, "valid", json_boolean(v->valid));
	json_object_set_new(out, "names", json_boolean(v->names));
	json_object_set_new(out, "exact", json_boolean(v->exact));
	if (!v->exact)
		json_object_set_new(out, "why", json_string(v->why));
	return out;
}

static enum status judge_one(json_t *lines, struct answer_totals *totals, const struct rows *rows,
			     enum rows_format format, size_t row, const char *text, const struct template *t,
			     struct error *err)
{
	struct answer_task task;
	struct answer_verdict verdict;
	struct tool_calls calls;
	enum status st = answer_task_read(&task, rows, row - 1, format, err);

	if (st)
		return st;
	st = tool_calls_read(&calls, t, text, err);
	if (!st) {
		answer_judge(&verdict, &task, &calls);
		answer_count(totals, &verdict, ANSWER_ENDED);
		json_array_append_new(lines, answer_lines_line(row, text, &calls, &verdict));
		tool_calls_release(&calls);
	}
	answer_task_release(&task);
	return st;
}

static enum status judge_line(json_t *lines, struct answer_totals *totals, const struct rows *rows,
			      enum rows_format format, const struct rows_place *at, const struct template *t,
			      struct error *err)
{
	struct json_wrong wrong;
	json_t *line = json_read(at->text, at->size, JSON_REJECT_DUPLICATES, &wrong);
	const char *text = json_string_value(json_object_get(line, "text"));
	json_int_t row = json_integer_value(json_object_get(line, "row"));
	enum status st;

	if (!line)
		st = error_set(err, STATUS_BAD_INPUT, "%s (column %d)", wrong.text, wrong.column);
	else if (!text || row < 1)
		st = error_set(err, STATUS_BAD_INPUT,
			       "expected an answer {\"row\": N, \"text\": ..} with N counted from 1");
	else if ((uint64_t)row > rows->count)
		st = error_set(err, STATUS_BAD_INPUT, "row %lld: %s has %zu rows", (long long)row, rows->path,
			       rows->count);
	else
		st = judge_one(lines, totals, rows, format, (size_t)row, text, t, err);
	json_decref(line);
	return st;
}

enum status answer_lines_judge_file(json_t **out, struct answer_totals *totals, const char *path,
				    enum rows_format format, const char *answers, const struct template *t,
				    struct error *err)
{
	struct rows rows, said;
	json_t *lines = json_array();
	enum status st = rows_open(&rows, path, err);

	*totals = (struct answer_totals){0};
	if (!st && (st = rows_open(&said, answers, err)))
		rows_release(&rows);
	if (st) {
		json_decref(lines);
		return st;
	}
	for (size_t i = 0; !st && i < said.count; i++) {
		struct error why = {0};

		st = judge_line(lines, totals, &rows, format, &said.place[i], t, &why);
		if (st)
			error_set(err, st, "%s:%zu: %s", said.path, said.place[i].line, why.text);
	}
	rows_release(&said);
	rows_release(&rows);
	if (st)
		json_decref(lines);
	else
		*out = lines;
	return st;
}

static void add_share(struct text *out, const char *what, uint64_t count, uint64_t of)
{
	text_addf(out, "%-28s%llu  %.1f %%\n", what, (unsigned long long)count,
		  of ? 100 * (double)count / (double)of : 0);
}

void answer_lines_show(const struct answer_totals *t)
{
	struct text out = {0};

	text_addf(&out, "%-28s%llu\n", "answers", (unsigned long long)t->rows);
	add_share(&out, "readable calls", t->valid, t->rows);
	add_share(&out, "expected functions", t->names, t->rows);
	add_share(&out, "accepted", t->exact, t->rows);
	show_text(&out, UTF8_KEEP_NOTHING);
	text_release(&out);
}

void answer_lines_show_ended(const struct answer_totals *t)
{
	struct text out = {0};

	text_addf(&out, "%-28s%llu\n", "answers that were not cut",
		  (unsigned long long)answer_totals_ended(t));
	add_share(&out, "readable calls of these", t->ended_valid, answer_totals_ended(t));
	show_text(&out, UTF8_KEEP_NOTHING);
	text_release(&out);
}
