/* SPDX-License-Identifier: Apache-2.0 */
/* assay tokens: shows the tokens into which a model's tokenizer splits a text. */
#include <jansson.h>

#include "cmd/command.h"
#include "cmd/shared/show.h"
#include "core/clock.h"
#include "core/file/file.h"
#include "core/text/units.h"
#include "text/tokenizer/tokenizer.h"

enum { TOKENS_FILE_MAX = 1 << 30 };

struct tokens_opts {
	const char *model, *text, *file;
	bool control, json;
};

static const struct opt opts[] = {
	OPT_ROW(struct tokens_opts, model, .name = "model", .positional = true, .shown = "MODEL",
		.help = "a tokenizer.json, a folder with one, or a GGUF file"),
	OPT_ROW(struct tokens_opts, text, .name = "text", .also = "prompt", .positional = true,
		.shown = "TEXT", .help = "the text, as one argument"),
	OPT_ROW(struct tokens_opts, file, .name = "file", .also = "input input-file", .shown = "FILE",
		.help = "read the text from FILE"),
	OPT_ROW(struct tokens_opts, control, .name = "control",
		.help = "recognise control tokens such as <|im_end|>; otherwise they are plain characters"),
	OPT_ROW(struct tokens_opts, json, .name = "json", .help = "print ids and pieces as JSON"),
};

/* The bytes of one token as printable text. */
static json_t *piece_of(const struct tokenizer *t, int32_t id)
{
	struct token_stream stream = {0};
	struct text piece = {0};
	json_t *out;

	token_stream_add(&stream, t, id, true, &piece);
	token_stream_end(&stream, &piece);
	out = json_stringn(text_str(&piece), piece.size);
	text_release(&piece);
	return out;
}

/* A text converted to token ids. */
struct encoded {
	struct token_list ids;
	size_t bytes;
	double seconds;
};

static double rate_of(const struct encoded *e)
{
	return e->seconds > 0 ? (double)e->bytes / e->seconds : 0;
}

static void print_json(const struct tokenizer *t, const struct encoded *e)
{
	json_t *id = json_array(), *pieces = json_array(), *root;

	for (size_t i = 0; i < e->ids.count; i++) {
		json_array_append_new(id, json_integer(e->ids.id[i]));
		json_array_append_new(pieces, piece_of(t, e->ids.id[i]));
	}
	root = json_pack("{sI sf sf si si so so sb}", "bytes", (json_int_t)e->bytes, "seconds", e->seconds,
			 "bytes_per_s", rate_of(e), "vocabulary", tokenizer_size(t), "eos", tokenizer_eos(t),
			 "ids", id, "pieces", pieces, "chat_template", *tokenizer_chat_template(t) != '\0');
	show_json(root, 0);
	json_decref(root);
}

static void print_text(const struct tokenizer *t, const struct token_list *ids)
{
	struct text out = {0};

	for (size_t i = 0; i < ids->count; i++) {
		json_t *piece = piece_of(t, ids->id[i]);
		char *quoted = json_dumps(piece, JSON_ENCODE_ANY);

		text_addf(&out, "%8d  %s\n", ids->id[i], quoted ? quoted : "");
		free(quoted);
		json_decref(piece);
	}
	show_text(&out, UTF8_KEEP_NOTHING);
	text_release(&out);
}

static void tell_rate(const struct command_context *c, const struct encoded *e)
{
	char rate[32];

	units_format(rate, sizeof(rate), rate_of(e), "B/s");
	log_info(c->log, LOG_TOPIC_RUN, "%zu tokens from %zu bytes in %.3f s: %s, on one CPU", e->ids.count,
		 e->bytes, e->seconds, rate);
}

static enum status encode(const struct tokens_opts *o, const struct tokenizer *t, struct encoded *e,
			  struct error *err)
{
	struct tokenizer_worker *w = NULL;
	char *text = NULL;
	uint64_t began;
	enum status st = tokenizer_worker_create(&w, t, err);

	if (!st && o->file)
		st = file_read(&text, &e->bytes, o->file, TOKENS_FILE_MAX, err);
	else
		e->bytes = strlen(o->text);
	if (!st && !o->control && tokenizer_bos(t) >= 0) /* as generate passes a plain text to the model */
		st = token_list_add(&e->ids, &(int32_t){tokenizer_bos(t)}, 1, err);
	began = clock_now_ns(clock_monotonic());
	if (!st)
		st = tokenizer_encode(w, text ? text : o->text, e->bytes, o->control ? ADDED_ALL : ADDED_NONE,
				      &e->ids, err);
	e->seconds = (double)(clock_now_ns(clock_monotonic()) - began) * 1e-9;
	free(text);
	tokenizer_worker_destroy(&w);
	return st;
}

static int run(const struct command_context *c, const void *opts_)
{
	const struct tokens_opts *o = opts_;
	struct tokenizer *t = NULL;
	struct encoded e = {0};
	struct error err = {0};
	enum status st;

	if (!o->model || !o->text == !o->file)
		st = error_set(&err, STATUS_BAD_INPUT,
			       "no model or no text given: assay tokens MODEL TEXT, or --file FILE");
	else
		st = tokenizer_open(&t, o->model, &err);
	if (!st)
		st = encode(o, t, &e, &err);
	if (!st && o->json)
		print_json(t, &e);
	else if (!st)
		print_text(t, &e.ids);
	if (!st && o->file && !o->json)
		tell_rate(c, &e);
	token_list_release(&e.ids);
	tokenizer_close(&t);
	return st ? command_complain(c, &err) : EXIT_PASS;
}

const struct command command_tokens = {
	.name = "tokens",
	.summary = "split a text into tokens with a model's tokenizer",
	.example = "assay tokens Qwen2.5-7B-Instruct \"Hello world\"   # one line per token: id and text",
	.help = "Prints a line for each token: its id, and its bytes as text (U+FFFD if they are not a whole character). "
		"A user's text never yields control tokens; use --control for text that a chat template produced.",
	.opts = {opts, sizeof(opts) / sizeof(opts[0]), sizeof(struct tokens_opts)},
	.alone = true,
	.run = run,
};
