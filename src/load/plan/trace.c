/* SPDX-License-Identifier: Apache-2.0 */
#include "load/plan/trace.h"

#include "core/file/mapped.h"
#include "core/json/read.h"
#include "core/text/text.h"
#include "core/text/units.h"
#include "core/text/utf8.h"
#include "load/plan/plan.h"

enum { COLUMNS_MOST = 32, FIELD_MOST = 64 };

enum trace_format { TRACE_MOONCAKE, TRACE_AZURE, TRACE_BURSTGPT };
enum column { COLUMN_TIME, COLUMN_PROMPT, COLUMN_OUTPUT, COLUMNS };

static const char *const headers[][COLUMNS] = {
	[TRACE_AZURE] = {"TIMESTAMP", "ContextTokens", "GeneratedTokens"},
	[TRACE_BURSTGPT] = {"Timestamp", "Request tokens", "Response tokens"},
};

struct reader {
	struct trace *t;
	const struct trace_limits *limits;
	const char *path;
	size_t line;
	enum trace_format format;
	size_t column[COLUMNS]; /* index of each in a line of CSV */
	bool begun;
	int64_t first_ns, last_ns; /* as recorded */
	struct error *err;
};

/* A line without its end and without blanks around it. */
struct line {
	const char *text;
	size_t size;
};

/* `what`: text of the file, or a name, that ends the message. */
static enum status wrong(struct reader *r, const char *message, const char *what)
{
	return error_set(r->err, STATUS_BAD_INPUT, "%s:%zu: %s%s", r->path, r->line, message, what);
}

static struct line trim(const char *text, size_t size)
{
	while (size && json_is_blank(*text)) {
		text++;
		size--;
	}
	while (size && json_is_blank(text[size - 1]))
		size--;
	return (struct line){text, size};
}

/* Copies the field of a CSV line at this index, without quotes around it. False: there is none, or it is too
 * long. */
static bool field_at(const struct line *line, size_t index, char out[FIELD_MOST])
{
	const char *at = line->text, *end = line->text + line->size, *comma;
	struct line field;

	for (;; index--) {
		comma = memchr(at, ',', (size_t)(end - at));
		if (!index)
			break;
		if (!comma)
			return false;
		at = comma + 1;
	}
	field = trim(at, (size_t)((comma ? comma : end) - at));
	if (field.size >= 2 && field.text[0] == '"' && field.text[field.size - 1] == '"')
		field = (struct line){field.text + 1, field.size - 2};
	if (field.size >= FIELD_MOST || memchr(field.text, 0, field.size))
		return false;
	memcpy(out, field.text, field.size);
	out[field.size] = 0;
	return true;
}

static bool find_columns(struct reader *r, const struct line *line, const char *const names[COLUMNS])
{
	char field[FIELD_MOST];

	for (int c = 0; c < COLUMNS; c++) {
		for (r->column[c] = 0;; r->column[c]++) {
			if (r->column[c] == COLUMNS_MOST || !field_at(line, r->column[c], field))
				return false;
			if (!strcmp(field, names[c]))
				break;
		}
	}
	return true;
}

static enum status recognise(struct reader *r, const struct line *line)
{
	if (line->text[0] == '{') {
		r->format = TRACE_MOONCAKE;
		return STATUS_OK;
	}
	for (r->format = TRACE_AZURE; r->format <= TRACE_BURSTGPT; r->format++)
		if (find_columns(r, line, headers[r->format]))
			return STATUS_OK;
	return wrong(
		r,
		"not a trace; the first line is a JSON object (Mooncake), or it names the columns TIMESTAMP, "
		"ContextTokens, GeneratedTokens (Azure) or Timestamp, Request tokens, Response tokens "
		"(BurstGPT)",
		"");
}

/* A number of seconds or milliseconds, in nanoseconds. */
static bool in_ns(int64_t *ns, double value, double unit)
{
	if (!(value >= 0 && value * unit <= 9e18))
		return false;
	*ns = (int64_t)(value * unit + 0.5);
	return true;
}

static enum status add_block(struct reader *r, const json_t *id)
{
	struct trace *t = r->t;
	uint32_t *grown;
	size_t room;

	if (!json_is_integer(id) || json_integer_value(id) < 0 || json_integer_value(id) > UINT32_MAX)
		return wrong(r, "hash_ids has a member that is not an integer from 0 to 4294967295", "");
	if (t->block_count == t->block_room) {
		if (t->block_count == TRACE_BLOCKS_MOST)
			return wrong(r, "the trace has too many hash_ids", "");
		room = t->block_room ? t->block_room * 2 : 4096;
		grown = realloc(t->block, room * sizeof(*grown));
		if (!grown)
			return error_set(r->err, STATUS_NO_RESOURCE, "%s: %zu hash_ids", r->path, room);
		t->block = grown;
		t->block_room = room;
	}
	t->block[t->block_count++] = (uint32_t)json_integer_value(id);
	return STATUS_OK;
}

static enum status add_blocks(struct reader *r, const json_t *ids, struct trace_row *row)
{
	size_t count = json_array_size(ids), i, needed;
	enum status st = STATUS_OK;
	const json_t *id;

	row->block = r->t->block_count;
	if (!ids || json_is_null(ids))
		return STATUS_OK;
	needed = ((size_t)row->prompt_tokens + LOAD_BLOCK_TOKENS - 1) / LOAD_BLOCK_TOKENS;
	if (!json_is_array(ids) || count != needed)
		return wrong(r, "hash_ids does not have one id for each 512 tokens of input_length", "");
	json_array_foreach(ids, i, id) if (!st) st = add_block(r, id);
	row->block_count = (uint32_t)count;
	return st;
}

static bool tokens_of(uint32_t *out, const json_t *value)
{
	if (!json_is_integer(value) || json_integer_value(value) < 0 ||
	    json_integer_value(value) > LOAD_TOKENS_MOST)
		return false;
	*out = (uint32_t)json_integer_value(value);
	return true;
}

static enum status read_object(struct reader *r, const json_t *root, struct trace_row *row, int64_t *ns)
{
	const json_t *time = json_object_get(root, "timestamp");

	if (!json_is_object(root))
		return wrong(r, "the line is not a JSON object", "");
	if (!json_is_number(time) || !in_ns(ns, json_number_value(time), 1e6))
		return wrong(r, "timestamp is not a number of milliseconds", "");
	if (!tokens_of(&row->prompt_tokens, json_object_get(root, "input_length")))
		return wrong(r, "input_length is not an integer from 0 to 10000000", "");
	if (!tokens_of(&row->output_tokens, json_object_get(root, "output_length")))
		return wrong(r, "output_length is not an integer from 0 to 10000000", "");
	return add_blocks(r, json_object_get(root, "hash_ids"), row);
}

static enum status read_json(struct reader *r, const struct line *line, struct trace_row *row, int64_t *ns)
{
	struct json_wrong why;
	json_t *root = json_read(line->text, line->size, JSON_REJECT_DUPLICATES, &why);
	enum status st;

	if (!root)
		return wrong(r, "", why.text);
	st = read_object(r, root, row, ns);
	json_decref(root);
	return st;
}

static enum status read_csv(struct reader *r, const struct line *line, struct trace_row *row, int64_t *ns)
{
	const char *const *names = headers[r->format];
	char field[COLUMNS][FIELD_MOST];
	uint64_t tokens[COLUMNS];
	double seconds;
	bool good;

	for (int c = 0; c < COLUMNS; c++)
		if (!field_at(line, r->column[c], field[c]))
			return wrong(r, "the line has no such field, or it is too long: ", names[c]);
	if (r->format == TRACE_AZURE)
		good = trace_time_read(ns, field[COLUMN_TIME]);
	else
		good = !units_parse(&seconds, field[COLUMN_TIME], "", NULL) && in_ns(ns, seconds, 1e9);
	if (!good)
		return wrong(r, "not a time: ", field[COLUMN_TIME]);
	for (int c = COLUMN_PROMPT; c <= COLUMN_OUTPUT; c++)
		if (units_parse_u64(&tokens[c], field[c], "", NULL) || tokens[c] > LOAD_TOKENS_MOST)
			return wrong(r, "not a number of tokens from 0 to 10000000: ", field[c]);
	row->prompt_tokens = (uint32_t)tokens[COLUMN_PROMPT];
	row->output_tokens = (uint32_t)tokens[COLUMN_OUTPUT];
	return STATUS_OK;
}

static enum status add_row(struct reader *r, const struct trace_row *row)
{
	struct trace *t = r->t;
	struct trace_row *grown;
	size_t room;

	if (!row->prompt_tokens || !row->output_tokens) {
		t->block_count = row->block;
		t->skipped++;
		return STATUS_OK;
	}
	if (t->count >= r->limits->rows_most)
		return error_set(
			r->err, STATUS_BAD_INPUT,
			"%s:%zu: the trace has more than %llu requests; a shorter duration or a larger "
			"--max-requests is needed",
			r->path, r->line, (unsigned long long)r->limits->rows_most);
	if (t->count == t->room) {
		room = t->room ? t->room * 2 : 1024;
		grown = realloc(t->row, room * sizeof(*grown));
		if (!grown)
			return error_set(r->err, STATUS_NO_RESOURCE, "%s: %zu requests", r->path, room);
		t->row = grown;
		t->room = room;
	}
	t->row[t->count++] = *row;
	return STATUS_OK;
}

/* Sets *ended at the first row beyond the duration. */
static enum status read_row(struct reader *r, const struct line *line, bool *ended)
{
	struct trace_row row = {.block = r->t->block_count};
	int64_t ns = 0;
	enum status st =
		r->format == TRACE_MOONCAKE ? read_json(r, line, &row, &ns) : read_csv(r, line, &row, &ns);

	if (st)
		return st;
	if (!r->begun)
		r->first_ns = ns;
	else if (ns < r->last_ns)
		return error_set(
			r->err, STATUS_BAD_INPUT,
			"%s:%zu: the time is %.6f s before that of the request above; sort the trace by time",
			r->path, r->line, (double)(r->last_ns - ns) * 1e-9);
	r->begun = true;
	r->last_ns = ns;
	row.at_ns = (uint64_t)(ns - r->first_ns);
	*ended = row.at_ns >= r->limits->until_ns;
	return *ended ? STATUS_OK : add_row(r, &row);
}

static enum status read_lines(struct reader *r, const char *text, size_t size)
{
	bool known = false, ended = false;
	enum status st = STATUS_OK;
	size_t at = 0;

	for (r->line = 1; !st && !ended && at < size; r->line++) {
		const char *end = memchr(text + at, '\n', size - at);
		size_t length = end ? (size_t)(end - text) - at : size - at;
		struct line line = trim(text + at, length);

		at += length + 1;
		if (line.size > TRACE_LINE_MOST)
			return wrong(r, "the line is longer than 16 MiB", "");
		if (!line.size)
			continue;
		if (!known) {
			st = recognise(r, &line);
			known = true;
			if (st || r->format != TRACE_MOONCAKE)
				continue;
		}
		st = read_row(r, &line, &ended);
	}
	r->t->cut = ended;
	return st;
}

enum status trace_scan(struct trace *t, const char *path, const char *text, uint64_t size,
		       const struct trace_limits *limits, struct error *err)
{
	struct reader r = {.t = t, .limits = limits, .path = path, .err = err};
	size_t length = size;
	enum status st;

	*t = (struct trace){0};
	if (length)
		utf8_skip_bom(&text, &length);
	st = read_lines(&r, text, length);
	if (!st && !t->count)
		st = error_set(err, STATUS_BAD_INPUT, "%s: the trace has no requests", path);
	if (st)
		trace_release(t);
	return st;
}

enum status trace_open(struct trace *t, const char *path, const struct trace_limits *limits,
		       struct error *err)
{
	void *map = NULL;
	uint64_t size = 0;
	enum status st = mapped_open(&map, &size, path, err);

	*t = (struct trace){0};
	if (!st)
		st = trace_scan(t, path, map, size, limits, err);
	mapped_close(map, size);
	st = mapped_check(st, err);
	if (st)
		trace_release(t);
	return st;
}

void trace_release(struct trace *t)
{
	free(t->row);
	free(t->block);
	*t = (struct trace){0};
}
