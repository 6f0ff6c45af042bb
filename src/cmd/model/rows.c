/* SPDX-License-Identifier: Apache-2.0 */
/* assay rows: converts, splits and counts training data, with the same rules as assay train. */
#include <jansson.h>
#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cmd/model/answer_lines.h"
#include "cmd/command.h"
#include "cmd/shared/show.h"
#include "core/file/file.h"
#include "core/file/mapped.h"
#include "core/text/units.h"
#include "data/function_calls/bfcl.h"
#include "data/function_calls/holdout.h"
#include "train/data/tokenised.h"

enum { FORMAT_BFCL = ROWS_SHAREGPT + 1 };
static const char template_setting[] = "--chat-template";
static const char *const formats[] = {"auto", "chat", "glaive", "sharegpt", "bfcl", NULL};

struct rows_opts {
	struct opt_words files;
	uint32_t format;
	const char *out, *held_out, *model, *template, *answers;
	double share;
	uint64_t seed, length_max, bad_max, show;
	bool json;
};

static const struct opt opts[] = {
	OPT_ROW(struct rows_opts, format, .name = "format", .preset = "auto", .choices = formats,
		.help = "format of the rows; auto: detected from each row's keys; bfcl: the folder bfcl_eval/data of bfcl-eval"),
	OPT_ROW(struct rows_opts, out, .name = "out", .also = "output o", .shown = "FILE",
		.help = "write the rows to FILE as chat JSON Lines"),
	OPT_ROW(struct rows_opts, held_out, .name = "held-out", .also = "eval validation test",
		.shown = "FILE",
		.help = "write a share of the rows to FILE instead; no function occurs in both files"),
	OPT_ROW(struct rows_opts, share, .name = "share", .also = "split test-size eval-size",
		.preset = "0.1", .max = 1, .help = "maximum share of the rows for --held-out"),
	OPT_ROW(struct rows_opts, seed, .name = "seed", .preset = "42", .help = "seed of the random split"),
	OPT_ROW(struct rows_opts, model, .name = "model", .also = "tokenizer", .shown = "MODEL",
		.help = "count tokens with this model's tokenizer"),
	OPT_ROW(struct rows_opts, template, .name = "chat-template", .choices = template_names,
		.help = "chat template; auto: the template in the model's files"),
	OPT_ROW(struct rows_opts, length_max, .name = "max-length",
		.also = "max-seq-len max-seq-length cutoff-len", .preset = "0", .max = 16777216,
		.help = "count longer conversations as dropped, in tokens; 0: no limit"),
	OPT_ROW(struct rows_opts, bad_max, .name = "max-bad", .preset = "0", .max = 1e12,
		.help = "number of invalid rows to accept; each is reported"),
	OPT_ROW(struct rows_opts, show, .name = "show", .also = "head n", .preset = "0", .max = 1e12,
		.help = "print row N as text, with the trained part between [[ and ]]"),
	OPT_ROW(struct rows_opts, answers, .name = "answers", .shown = "FILE",
		.help = "JSON Lines of {\"row\", \"text\"}: a model's answers to rows of FILE; compare them with the tool "
			"calls that the rows accept"),
	OPT_ROW(struct rows_opts, json, .name = "json", .help = "print the counts as JSON"),
	OPT_ROW(struct rows_opts, files, .name = "file", .positional = true, .many = true, .shown = "FILE",
		.help = "training data: JSON Lines or one JSON array"),
};

/* The rows that were read, and the number of invalid ones. */
struct gathered {
	json_t *rows;
	uint64_t bad;
};

static enum status gather_file(struct gathered *g, const struct command_context *c, const struct rows_opts *o,
			       const char *path, struct error *err)
{
	struct rows rows;
	enum status st = rows_open(&rows, path, err);

	if (st)
		return st;
	for (size_t i = 0; !st && i < rows.count; i++) {
		struct error bad = {0};
		struct chat chat;

		if (!rows_read(&rows, i, (enum rows_format)o->format, &chat, &bad)) {
			json_array_append(g->rows, chat.root);
			chat_release(&chat);
		} else if (++g->bad > o->bad_max) {
			st = error_set(err, bad.status, "%s", bad.text);
		} else {
			log_warn(c->log, LOG_TOPIC_RUN, "%s: row left out", bad.text);
		}
	}
	st = mapped_check(st, err);
	rows_release(&rows);
	return st;
}

static enum status gather(struct gathered *g, const struct command_context *c, const struct rows_opts *o,
			  struct error *err)
{
	enum status st = STATUS_OK;

	if (o->format == FORMAT_BFCL)
		return bfcl_read(&g->rows, o->files.word[0], err);
	g->rows = json_array();
	for (size_t i = 0; !st && i < o->files.count; i++)
		st = gather_file(g, c, o, o->files.word[i], err);
	return st;
}

/* Writes the held-out rows, or the others. */
static enum status write_rows(const char *path, const json_t *rows, const bool *held, bool want,
			      struct error *err)
{
	struct text out = {0};
	const json_t *row;
	enum status st;
	size_t i;

	json_array_foreach(rows, i, row)
	{
		char *line = held[i] == want ? json_dumps(row, JSON_COMPACT) : NULL;

		if (line)
			text_addf(&out, "%s\n", line);
		free(line);
	}
	st = out.failed ? error_set(err, STATUS_NO_RESOURCE, "%s", path)
			: file_write(path, text_str(&out), out.size, err);
	text_release(&out);
	return st;
}

static enum status convert(const struct rows_opts *o, const json_t *rows, struct error *err)
{
	bool *held = calloc(json_array_size(rows) + 1, sizeof(*held));
	enum status st = held ? STATUS_OK : error_set(err, STATUS_NO_RESOURCE, "rows");

	if (!st && o->held_out)
		st = holdout_split(held, rows, o->share, o->seed, err);
	if (!st && o->held_out)
		st = write_rows(o->held_out, rows, held, true, err);
	if (!st && o->out)
		st = write_rows(o->out, rows, held, false, err);
	free(held);
	return st;
}

static void add_stretch(struct text *out, const char *s, size_t size, bool trained)
{
	text_add(out, trained ? "[[" : "");
	text_add_bytes(out, s, size);
	text_add(out, trained ? "]]" : "");
}

static enum status show_row(const json_t *rows, uint64_t number, const struct template *template,
			    struct error *err)
{
	struct template_text text = {0};
	struct text out = {0};
	struct chat chat;
	size_t begin = 0, end;
	enum status st;

	if (number > json_array_size(rows))
		return error_set(err, STATUS_BAD_INPUT, "--show %llu: the file has only %zu rows",
				 (unsigned long long)number, json_array_size(rows));
	st = chat_read(&chat, json_deep_copy(json_array_get(rows, number - 1)), err);
	if (st)
		return st;
	st = template_render(template, &chat, &(struct template_ask){.setting = template_setting}, &text,
			     err);
	for (size_t i = 0; !st && i < text.count; begin = end) {
		bool trained = text.parts[i].trained;

		while (i < text.count && text.parts[i].trained == trained)
			i++;
		end = text.parts[i - 1].end;
		add_stretch(&out, text.text.data + begin, end - begin, trained);
	}
	if (!st)
		show_text(&out, UTF8_KEEP_LINES);
	text_release(&out);
	template_text_release(&text);
	chat_release(&chat);
	return st;
}

static int by_length(const void *a_, const void *b_)
{
	const uint64_t *a = a_, *b = b_;

	return *a < *b ? -1 : *a > *b;
}

/* Lengths of rows: the median, the 90th percentile and the maximum. */
static void lengths(const struct tokenised *t, uint64_t out[3])
{
	uint64_t *length = malloc((t->rows + 1) * sizeof(*length));

	for (uint64_t i = 0; length && i < t->rows; i++)
		length[i] = t->begin[i + 1] - t->begin[i];
	if (length) {
		qsort(length, t->rows, sizeof(*length), by_length);
		out[0] = length[t->rows / 2];
		out[1] = length[t->rows * 9 / 10];
		out[2] = length[t->rows - 1];
	}
	free(length);
}

static json_t *counts_of(const struct tokenised *t, const char *template)
{
	uint64_t length[3] = {0};

	lengths(t, length);
	return json_pack("{ss sI sI sI sI sI sI sI sI sI sI sf sf}", "chat_template", template, "rows",
			 (json_int_t)t->rows, "tokens", (json_int_t)t->tokens, "targets",
			 (json_int_t)t->targets, "length_p50", (json_int_t)length[0], "length_p90",
			 (json_int_t)length[1], "length_max", (json_int_t)length[2], "dropped",
			 (json_int_t)t->dropped, "untrained", (json_int_t)t->untrained, "bad",
			 (json_int_t)t->bad, "bytes", (json_int_t)t->bytes, "seconds", t->seconds,
			 "bytes_per_s", t->seconds > 0 ? (double)t->bytes / t->seconds : 0.0);
}

/* Counts tokens as training does. Reads the written file, or the input files if none is written. */
static enum status count(const struct command_context *c, const struct rows_opts *o, const json_t *rows,
			 json_t **out, struct error *err)
{
	const struct opt_words written = {.word = &o->out, .count = 1};
	struct tokenised_ask ask = {
		.files = o->out ? written : o->files,
		.format = o->out || o->format == FORMAT_BFCL ? ROWS_CHAT : (enum rows_format)o->format,
		.length_max = o->length_max ? o->length_max : UINT64_MAX,
		.template_setting = template_setting,
		.length_setting = "--max-length",
		.bad_max = o->bad_max,
		.log = c->log,
	};
	struct tokenizer *tokenizer = NULL;
	struct tokenised t = {0};
	enum status st = tokenizer_open(&tokenizer, o->model, err);

	if (!st)
		st = template_find(&ask.template, o->template, template_setting, tokenizer, err);
	ask.tokenizer = tokenizer;
	if (!st && o->show)
		st = show_row(rows, o->show, ask.template, err);
	if (!st)
		st = tokenised_read(&t, &ask, err);
	if (!st)
		*out = counts_of(&t, template_name(ask.template));
	tokenised_release(&t);
	tokenizer_close(&tokenizer);
	return st;
}

static void print_counts(const json_t *counts)
{
	struct text out = {0};
	const char *key;
	char rate[32];
	json_t *value;

	json_object_foreach((json_t *)counts, key, value)
	{
		text_addf(&out, "%-14s", key);
		units_format(rate, sizeof(rate), json_number_value(value), "B/s");
		if (json_is_string(value))
			text_addf(&out, "%s\n", json_string_value(value));
		else if (!strcmp(key, "bytes_per_s"))
			text_addf(&out, "%s\n", rate);
		else if (json_is_integer(value))
			text_addf(&out, "%lld\n", (long long)json_integer_value(value));
		else
			text_addf(&out, "%.3f\n", json_real_value(value));
	}
	show_text(&out, UTF8_KEEP_NOTHING);
	text_release(&out);
}

/* The absolute path of an existing or future file, without symbolic links. "" if its folder does not
 * exist. */
static void place_of(char place[PATH_MAX], const char *path)
{
	char folder[PATH_MAX], name[PATH_MAX], real[PATH_MAX];

	text_copy(folder, sizeof(folder), path);
	text_copy(name, sizeof(name), path);
	if (!realpath(path, place) && (!realpath(dirname(folder), real) ||
				       snprintf(place, PATH_MAX, "%s/%s", real, basename(name)) >= PATH_MAX))
		*place = '\0';
}

static bool same_file(const char *a, const char *b)
{
	char place_a[PATH_MAX], place_b[PATH_MAX];
	struct stat x, y;

	place_of(place_a, a);
	place_of(place_b, b);
	if (!strcmp(a, b) || (*place_a && !strcmp(place_a, place_b)))
		return true;
	return !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* Output files must differ from the input files, because rows may exist only once. */
static enum status check_outputs(const struct rows_opts *o, struct error *err)
{
	const char *const outputs[] = {o->out, o->held_out};

	if (o->held_out && same_file(o->out, o->held_out))
		return error_set(err, STATUS_BAD_INPUT, "--out and --held-out are the same file, %s", o->out);
	for (size_t i = 0; i < o->files.count; i++)
		for (int k = 0; k < 2; k++)
			if (outputs[k] && same_file(outputs[k], o->files.word[i]))
				return error_set(err, STATUS_BAD_INPUT,
						 "%s is both input and output: write to another file",
						 outputs[k]);
	return STATUS_OK;
}

static enum status check(const struct rows_opts *o, struct error *err)
{
	if (!o->files.count)
		return error_set(err, STATUS_BAD_INPUT, "no file given: assay rows FILE --out ROWS.jsonl");
	if (o->answers && (o->out || o->show || o->format == FORMAT_BFCL || o->files.count != 1))
		return error_set(
			err, STATUS_BAD_INPUT,
			"--answers works with one file of rows, without --out, --show and --format bfcl");
	if (o->answers && !o->model && (!o->template || !strcmp(o->template, "auto")))
		return error_set(
			err, STATUS_BAD_INPUT,
			"--answers needs --chat-template or --model, to find the tool calls in the text");
	if (((o->template && !o->answers) || o->length_max) && !o->model)
		return error_set(err, STATUS_BAD_INPUT,
				 "--%s needs --model, whose tokenizer counts the tokens",
				 o->template ? "chat-template" : "max-length");
	if (o->show && !o->model)
		return error_set(err, STATUS_BAD_INPUT,
				 "--show needs --model, whose chat template renders the row");
	if (o->held_out && !o->out)
		return error_set(err, STATUS_BAD_INPUT, "--held-out needs --out for the other rows");
	if (o->format == FORMAT_BFCL && (o->files.count != 1 || (o->model && !o->out)))
		return error_set(
			err, STATUS_BAD_INPUT,
			"--format bfcl needs one folder, and --out for the converted rows if --model is given");
	return o->out ? check_outputs(o, err) : STATUS_OK;
}

static enum status judge(const struct rows_opts *o, struct error *err)
{
	const struct template *template = NULL;
	struct tokenizer *tokenizer = NULL;
	struct answer_totals totals;
	json_t *lines = NULL, *out;
	enum status st = o->model ? tokenizer_open(&tokenizer, o->model, err) : STATUS_OK;

	if (!st)
		st = template_find(&template, o->template, template_setting, tokenizer, err);
	if (!st)
		st = answer_lines_judge_file(&lines, &totals, o->files.word[0], (enum rows_format)o->format,
					     o->answers, template, err);
	if (!st && o->json) {
		out = answer_totals_json(&totals);
		json_object_set_new(out, "answers", lines);
		show_json(out, 0);
		json_decref(out);
	} else if (!st) {
		answer_lines_show(&totals);
		json_decref(lines);
	}
	tokenizer_close(&tokenizer);
	return st;
}

static int run(const struct command_context *c, const void *opts_)
{
	const struct rows_opts *o = opts_;
	struct gathered g = {0};
	json_t *counts = NULL;
	struct error err = {0};
	enum status st = check(o, &err);

	if (!st && o->answers)
		return (st = judge(o, &err)) ? command_complain(c, &err) : EXIT_PASS;
	if (!st)
		st = gather(&g, c, o, &err);
	if (!st && o->out)
		st = convert(o, g.rows, &err);
	if (!st && o->model)
		st = count(c, o, g.rows, &counts, &err);
	else if (!st)
		counts = json_pack("{sI sI}", "rows", (json_int_t)json_array_size(g.rows), "bad",
				   (json_int_t)g.bad);
	if (!st && o->json)
		show_json(counts, 0);
	else if (!st)
		print_counts(counts);
	json_decref(counts);
	json_decref(g.rows);
	return st ? command_complain(c, &err) : EXIT_PASS;
}

const struct command command_rows = {
	.name = "rows",
	.summary = "convert, split and count training data",
	.example =
		"assay rows glaive.json --model Qwen2.5-7B-Instruct --max-length 4096   # rows, tokens, lengths",
	.help = "Reads conversations (chat JSON Lines, ShareGPT, Glaive v2, bfcl-eval) and reports errors "
		"with file and line. --out writes them as chat JSON Lines. --held-out writes a share of them "
		"to a second file, to test the trained model. The split is by function names, so no function "
		"is in both files. --model counts tokens exactly as training does. Targets are the tokens on "
		"which the loss is computed.",
	.opts = {opts, sizeof(opts) / sizeof(opts[0]), sizeof(struct rows_opts)},
	.alone = true,
	.run = run,
};
