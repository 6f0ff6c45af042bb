/* SPDX-License-Identifier: Apache-2.0 */
/* assay eval: perplexity and function calls of a model in several precisions. */
#include <stdlib.h>
#include "cmd/eval/show.h"
#include "cmd/shared/show.h"
#include "cmd/shared/single_process.h"

enum { CONTEXT_AUTO = 2048, SIDES_MOST = EVAL_PRECISION_COUNT + 1 };

static const char *const devices[] = {"auto", "cpu", "gpu", NULL}; /* enum load_device */

struct eval_opts {
	const char *model, *data, *precisions, *compare, *tokenizer, *template;
	uint64_t rows_max, context, stride, tokens;
	double perplexity_mark, calls_mark;
	uint32_t device, grammar;
	bool json;
};

static const struct opt opts[] = {
	OPT_ROW(struct eval_opts, model, .name = "model", .positional = true, .shown = "MODEL",
		.help = "the model: a folder with config.json and safetensors, or a GGUF file"),
	OPT_ROW(struct eval_opts, data, .name = "data", .also = "file rows input dataset tasks",
		.shown = "FILE",
		.help = "plain text, or rows with text, input_ids or a conversation (JSON Lines or an array)"),
	OPT_ROW(struct eval_opts, precisions, .name = "precisions", .also = "precision dtype dtypes",
		.preset = "auto", .shown = "LIST",
		.help = "precisions, separated by commas. The first one is the reference. On a GPU: bf16, fp8-cache, "
			"fp8-weights, fp8. On a CPU: file, f32, fp8-cache"),
	OPT_ROW(struct eval_opts, compare, .name = "compare", .also = "with model2 other", .shown = "MODEL2",
		.help = "another model with the same tokenizer, such as a GGUF file, to compare with MODEL"),
	OPT_ROW(struct eval_opts, rows_max, .name = "max-rows", .also = "limit num-samples", .preset = "0",
		.max = 1e12, .help = "use only the first N rows; 0: all"),
	OPT_ROW(struct eval_opts, context, .name = "context", .also = "max-length ctx-size max-model-len",
		.preset = "0", .max = 1048576, .shown = "TOKENS",
		.help = "longest window of a document; 0: the model's context, at most 2048"),
	OPT_ROW(struct eval_opts, stride, .name = "stride", .preset = "0", .max = 1048576, .shown = "TOKENS",
		.help = "tokens from the beginning of a window to the beginning of the next; 0: the context, so "
			"windows do not overlap"),
	OPT_ROW(struct eval_opts, tokens, .name = "tokens",
		.also = "max-tokens max-new-tokens n-predict num-tokens max-gen-len", .preset = "256",
		.max = 1048576, .help = "most tokens of an answer with function calls; 0: ask no questions"),
	OPT_ROW(struct eval_opts, grammar, .name = "grammar", .also = "tool-choice", .preset = "none",
		.choices = call_grammar_words,
		.help = "answers follow a grammar of the row's tools, as in assay serve with this tool_choice. With "
			"auto, calls are well-formed. With required, the answer also has a call"),
	OPT_ROW(struct eval_opts, device, .name = "device", .also = "gpus gpu devices cuda n-gpu-layers",
		.preset = "auto", .choices = devices,
		.help = "device that computes; auto: a GPU if one works, otherwise the CPU"),
	OPT_ROW(struct eval_opts, perplexity_mark, .name = "perplexity-mark", .preset = "1", .min = 0,
		.max = 1e6, .shown = "PERCENT",
		.help = "pass mark: by how many percent the perplexity may exceed the reference's"),
	OPT_ROW(struct eval_opts, calls_mark, .name = "calls-mark", .preset = "2", .min = 0, .max = 100,
		.shown = "POINTS",
		.help = "pass mark: by how many percentage points the share of right calls may be below the "
			"reference's"),
	OPT_ROW(struct eval_opts, template, .name = "chat-template", .also = "template", .shown = "NAME",
		.help = "chat template of conversations: auto (the model's own), a family, or a .jinja file"),
	OPT_ROW(struct eval_opts, tokenizer, .name = "tokenizer", .also = "tokenizer-path", .shown = "PATH",
		.help = "tokenizer file or folder of both models (default: each model's own)"),
	OPT_ROW(struct eval_opts, json, .name = "json", .help = "print the results as JSON"),
};

struct evaluating {
	const struct command_context *c;
	const struct eval_opts *o;
	struct eval_data data;
	struct eval_windows windows;
	size_t context, stride;
	struct eval_precision_list list;
	enum load_device device;
	struct eval_task task;
	struct eval_measured measured[SIDES_MOST];
	struct eval_verdict verdict[SIDES_MOST];
	size_t count;
};

static enum status check(const void *opts_, struct error *err)
{
	const struct eval_opts *o = opts_;
	enum load_device device = (enum load_device)o->device;
	struct eval_precision_list list;
	enum status st;

	if (!o->model)
		return error_set(err, STATUS_BAD_INPUT, "no model given: assay eval MODEL --data FILE");
	if (!o->data)
		return error_set(err, STATUS_BAD_INPUT, "no data given: assay eval MODEL --data FILE");
	if (o->context == 1)
		return error_set(
			err, STATUS_BAD_INPUT,
			"--context 1: a window needs at least two tokens, because the first is not scored");
	if (o->stride && o->context && o->stride > o->context)
		return error_set(
			err, STATUS_BAD_INPUT,
			"--stride %llu is larger than --context %llu, so some tokens would be left out",
			(unsigned long long)o->stride, (unsigned long long)o->context);
	st = eval_precisions_read(&list, o->precisions, err);
	return st ? st : eval_precisions_device(&list, &device, err);
}

static enum status read_data(struct eval_data *d, const struct eval_opts *o, const char *model,
			     struct error *err)
{
	const struct eval_data_ask ask = {.path = o->data,
					  .tokenizer = o->tokenizer ? o->tokenizer : model,
					  .template = o->template,
					  .rows_max = o->rows_max,
					  .questions = o->tokens,
					  .grammar = (enum call_grammar_mode)o->grammar};

	return eval_data_read(d, &ask, err);
}

/* Reads the data with the other model's tokenizer too. */
static enum status check_tokenizers(const struct evaluating *e, struct error *err)
{
	struct eval_data other;
	enum status st;

	if (!e->o->compare || e->o->tokenizer || !e->data.tokenizer)
		return STATUS_OK;
	st = read_data(&other, e->o, e->o->compare, err);
	if (!st)
		st = eval_data_compare(&e->data, &other, err);
	eval_data_release(&other);
	return st;
}

static enum status context_of(const char *model, size_t *context, struct error *err)
{
	struct weights w;
	enum status st = weights_open(&w, model, err);

	if (!st && (size_t)w.shape.context < *context)
		*context = (size_t)w.shape.context;
	weights_release(&w);
	return st;
}

/* Finds the context that all models have, and the stride. */
static enum status set_lengths(struct evaluating *e, struct error *err)
{
	const struct eval_opts *o = e->o;
	size_t context = SIZE_MAX;
	enum status st = context_of(o->model, &context, err);

	if (!st && o->compare)
		st = context_of(o->compare, &context, err);
	if (st)
		return st;
	if (o->context > context)
		return error_set(err, STATUS_BAD_INPUT,
				 "--context is %llu, but the model's context has %zu tokens",
				 (unsigned long long)o->context, context);
	e->context = o->context ? o->context : context < CONTEXT_AUTO ? context : CONTEXT_AUTO;
	e->stride = o->stride ? o->stride : e->context;
	if (e->stride > e->context)
		return error_set(
			err, STATUS_BAD_INPUT,
			"--stride is %zu, but a window has only %zu tokens, so some would be left out",
			e->stride, e->context);
	return STATUS_OK;
}

/* The longest sequence: a window, or a prompt and its answer. */
static int64_t positions_of(const struct evaluating *e)
{
	size_t most = e->windows.longest;

	for (size_t i = 0; i < e->data.question_count; i++) {
		const size_t all = e->data.questions[i].ids.count + e->o->tokens;

		most = all > most ? all : most;
	}
	return (int64_t)most;
}

static enum status prepare(struct evaluating *e, struct error *err)
{
	enum status st = eval_precisions_read(&e->list, e->o->precisions, err);

	e->device = (enum load_device)e->o->device;
	if (!st)
		st = eval_precisions_device(&e->list, &e->device, err);
	if (!st)
		st = read_data(&e->data, e->o, e->o->model, err);
	if (!st)
		st = check_tokenizers(e, err);
	if (!st)
		st = set_lengths(e, err);
	if (!st)
		st = eval_windows_cut(&e->windows, &e->data, e->context, e->stride, err);
	e->task = (struct eval_task){.c = e->c,
				     .data = &e->data,
				     .windows = &e->windows,
				     .path = e->o->data,
				     .tokens = (int64_t)e->o->tokens,
				     .positions = positions_of(e)};
	return st;
}

static void warn(const struct evaluating *e, size_t i)
{
	const struct eval_measured *m = &e->measured[i];

	if (m->calls.cut)
		log_warn(e->c->log, LOG_TOPIC_RUN,
			 "%s: %llu answers were cut at %llu tokens; --tokens raises the limit", m->name,
			 (unsigned long long)m->calls.cut, (unsigned long long)e->o->tokens);
	if (e->verdict[i].uncertain)
		log_warn(
			e->c->log, LOG_TOPIC_RUN,
			"%s: a pass mark lies within the interval of its difference; more rows make the verdict "
			"certain",
			m->name);
	if (e->verdict[i].unanswered)
		log_warn(
			e->c->log, LOG_TOPIC_RUN,
			"%s: function calls are not measured. The grammar of %llu of %llu questions was refused, "
			"so these have no answer. At least %g %% must have one",
			m->name, (unsigned long long)m->calls.refused, (unsigned long long)m->calls.rows,
			100 * EVAL_ANSWERED_LEAST);
	else if (e->verdict[i].undecided)
		log_warn(
			e->c->log, LOG_TOPIC_RUN,
			"%s: one %s is too little to decide, because its interval has no end. Use more rows%s",
			m->name, e->windows.count == 1 ? "window" : "question",
			e->windows.count == 1 ? " or a smaller --context" : "");
}

static enum status measure(struct evaluating *e, const char *model, const char *name,
			   enum eval_precision precision, struct error *err)
{
	const struct eval_side side = {
		.model = model, .name = name, .precision = precision, .device = e->device};
	const struct eval_marks marks = {e->o->perplexity_mark, e->o->calls_mark};
	struct eval_measured *m = &e->measured[e->count++];
	enum status st = eval_measure(m, &e->task, &side, err);

	if (st)
		return st;
	if (*m->broken && m == e->measured)
		return error_set(err, STATUS_MISMATCH, "the reference %s gives no figures: %s", m->name,
				 m->broken);
	e->verdict[m - e->measured] = eval_judge(m, e->measured, e->windows.count, &marks);
	return STATUS_OK;
}

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/* The first load decides which device `auto` means, and so which precisions `auto` means. The first of these
 * is the precision of a load without options. */
static enum status measure_first(struct evaluating *e, struct error *err)
{
	const enum eval_precision first = e->list.count ? e->list.at[0] : EVAL_FILE;
	enum status st = measure(e, e->o->model, eval_precisions[first].name, first, err);
	struct eval_measured *m = e->measured;

	e->device = m->gpu ? LOAD_GPU : LOAD_CPU;
	if (st || e->list.count)
		return st;
	e->list = eval_precisions_auto(m->gpu);
	snprintf(m->name, sizeof(m->name), "%s", eval_precisions[e->list.at[0]].name);
	return STATUS_OK;
}

static enum status measure_all(struct evaluating *e, struct error *err)
{
	enum status st = measure_first(e, err);

	for (size_t i = 1; !st && i < e->list.count; i++)
		st = measure(e, e->o->model, eval_precisions[e->list.at[i]].name, e->list.at[i], err);
	if (!st && e->o->compare)
		st = measure(e, e->o->compare, last_part(e->o->compare),
			     e->measured[0].gpu ? EVAL_BF16 : EVAL_FILE, err);
	for (size_t i = 0; !st && i < e->count; i++)
		warn(e, i);
	return st;
}

static enum status show(const struct evaluating *e, struct error *err)
{
	const struct eval_results r = {.model = e->o->model,
				       .path = e->o->data,
				       .data = &e->data,
				       .windows = &e->windows,
				       .context = e->context,
				       .stride = e->stride,
				       .grammar = call_grammar_words[e->o->grammar],
				       .marks = {e->o->perplexity_mark, e->o->calls_mark},
				       .measured = e->measured,
				       .verdict = e->verdict,
				       .count = e->count};
	json_t *out;
	bool shown;

	if (!e->o->json) {
		eval_show(&r);
		return STATUS_OK;
	}
	out = eval_json(&r);
	shown = out && show_json(out, JSON_INDENT(1));
	json_decref(out);
	return shown ? STATUS_OK : error_set(err, STATUS_NO_RESOURCE, "cannot write the results to stdout");
}

static int code_of(const struct evaluating *e)
{
	int code = e->count && e->verdict[0].unanswered ? EXIT_INCONCLUSIVE : EXIT_PASS;

	for (size_t i = 1; i < e->count; i++) {
		const struct eval_verdict *v = &e->verdict[i];

		if (!v->met && !v->undecided)
			return EXIT_FAILED;
		if (v->undecided)
			code = EXIT_INCONCLUSIVE;
	}
	return code;
}

static int run(const struct command_context *c, const void *opts_)
{
	struct evaluating e = {.c = c, .o = opts_};
	struct error err = {0};
	enum status st = check(opts_, &err);
	int code;

	if (!st)
		st = single_process_check("eval", &err);
	if (!st)
		st = prepare(&e, &err);
	if (!st)
		st = measure_all(&e, &err);
	if (!st)
		st = show(&e, &err);
	code = code_of(&e);
	for (size_t i = 0; i < e.count; i++)
		eval_measured_release(&e.measured[i]);
	eval_windows_release(&e.windows);
	eval_data_release(&e.data);
	return st ? command_complain(c, &err) : code;
}

const struct command command_eval = {
	.name = "eval",
	.summary = "compare the accuracy of a model in several precisions, such as BF16 and FP8",
	.example =
		"assay eval model --data held.jsonl   # perplexity and right calls per precision, with verdicts",
	.help = "Measures a model in several precisions (number formats) with the same data. It computes the "
		"perplexity: how well the model predicts the data, lower is better. For conversations with "
		"tools and an expected answer, it also counts the answers with the right function calls, by "
		"the rule of bfcl-eval's checker. The first precision is the reference. For each other "
		"precision, it prints the difference, the interval of the difference, and a verdict by the "
		"pass marks. By default, these are the marks that assay sets for its own FP8 weights and FP8 "
		"cache. Exit code 1: a mark was missed. Exit code 2: there is only one window or one "
		"question, so the interval is too wide to decide. It is also 2 if --grammar refused the tools of "
		"more than 10 % of the questions, because these have no answer.\n\n"
		"If a document is longer than the context, assay cuts it into windows. Each window scores "
		"the tokens that no earlier window has scored, except its first token. In a conversation, "
		"assay scores only the assistant's texts, if it knows the family of the chat template. A "
		"text file is one document.\n\n"
		"A table for each precision compares the planned memory of each component with the largest "
		"memory in use.",
	.check = check,
	.opts = {opts, sizeof(opts) / sizeof(opts[0]), sizeof(struct eval_opts)},
	.single = true,
	.run = run,
};
