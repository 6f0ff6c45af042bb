/* SPDX-License-Identifier: Apache-2.0 */
/* assay generate: runs a prompt through a model, with or without a LoRA adapter. */
#include <errno.h>
#include <math.h>
#include "cmd/shared/single_process.h"
#include "cmd/model/generate_rows.h"
#include "cmd/shared/saved_kernels.h"
#include "cmd/shared/show.h"
#include "core/clock.h"
#include "core/file/file.h"
#include "core/process/process.h"
#include "cmd/model/one_text.h"
#include "core/json/read.h"
#include "text/chat/template.h"
#include "text/chat/tool_call.h"

enum { MESSAGES_MAX = 64 << 20, STOPS = 2 };

static const char template_setting[] = "--chat-template";
static const char *const devices[] = {"auto", "cpu", "gpu", NULL}; /* enum load_device */
static const char *const weights[] = {"auto", "fp8", NULL};

struct generate_opts {
	const char *model, *prompt, *adapter, *messages, *system, *template, *tokenizer, *rows, *out;
	uint64_t tokens, top_k, seed, rows_max;
	double temperature, top_p;
	uint32_t device, weights, grammar;
	bool merge, any_base, raw, no_thinking, control, json, logprobs, no_cache;
};

/* The tuning of CPU kernels before the model opens, and the time that it took. */
struct settling {
	const struct command_context *c;
	bool cache;
	double tuning_s;
};

static const struct opt opts[] = {
	OPT_ROW(struct generate_opts, model, .name = "model", .positional = true, .shown = "MODEL",
		.help = "the model: a folder with config.json and safetensors, or a GGUF file"),
	OPT_ROW(struct generate_opts, prompt, .name = "prompt", .positional = true, .shown = "TEXT",
		.help = "the user's message"),
	OPT_ROW(struct generate_opts, adapter, .name = "adapter", .also = "lora lora-path peft",
		.shown = "DIR", .help = "folder with a LoRA adapter in PEFT format"),
	OPT_ROW(struct generate_opts, merge, .name = "merge",
		.help = "add the adapter to the weights before generation"),
	OPT_ROW(struct generate_opts, device, .name = "device", .also = "gpus gpu devices cuda n-gpu-layers",
		.preset = "auto", .choices = devices,
		.help = "device for generation; auto: a GPU if one works, otherwise the CPU"),
	OPT_ROW(struct generate_opts, weights, .name = "weights", .also = "quantization", .preset = "auto",
		.choices = weights,
		.help = "number format of the layers' weights. auto: the format in which the device computes. fp8 "
			"(GPU only): quantize at load, which halves the memory"),
	OPT_ROW(struct generate_opts, any_base, .name = "any-base",
		.help = "accept an adapter that was trained on other base weights"),
	OPT_ROW(struct generate_opts, messages, .name = "messages", .shown = "FILE",
		.help = "a JSON file with a conversation instead of TEXT: messages, and tools if any"),
	OPT_ROW(struct generate_opts, rows, .name = "rows", .also = "input data input-file", .shown = "FILE",
		.help = "answer each row of FILE and compare the answer with the tool calls that the row accepts"),
	OPT_ROW(struct generate_opts, out, .name = "out", .also = "output o", .shown = "FILE",
		.help = "with --rows: write the answers as JSON Lines, each with its verdict"),
	OPT_ROW(struct generate_opts, rows_max, .name = "max-rows", .preset = "0", .max = 1e12,
		.help = "with --rows: use only the first N rows; 0: all"),
	OPT_ROW(struct generate_opts, system, .name = "system", .also = "system-prompt", .shown = "TEXT",
		.help = "system message before the prompt"),
	OPT_ROW(struct generate_opts, raw, .name = "raw",
		.help = "continue the text without a chat template"),
	OPT_ROW(struct generate_opts, template, .name = "chat-template", .also = "template",
		.help = "chat template: auto (the template of the model), a family such as chatml or qwen2.5, or a .jinja file"),
	OPT_ROW(struct generate_opts, tokenizer, .name = "tokenizer", .also = "tokenizer-path",
		.shown = "PATH", .help = "tokenizer file or folder (default: the model's own)"),
	OPT_ROW(struct generate_opts, grammar, .name = "grammar", .also = "tool-choice", .preset = "none",
		.choices = call_grammar_words,
		.help = "the answer follows a grammar of the conversation's tools, as in assay serve with this "
			"tool_choice. With auto, calls are well-formed. With required, the answer also has a call"),
	OPT_ROW(struct generate_opts, control, .name = "control",
		.help = "read words such as <|im_end|> in the prompt as control tokens, not as text"),
	OPT_ROW(struct generate_opts, no_thinking, .name = "no-thinking",
		.help = "Qwen3: answer without a thinking section"),
	OPT_ROW(struct generate_opts, tokens, .name = "tokens",
		.also = "max-tokens max-new-tokens n-predict num-tokens max-gen-len", .preset = "256",
		.min = 1, .max = 1048576, .help = "maximum number of tokens to generate"),
	OPT_ROW(struct generate_opts, temperature, .name = "temperature", .also = "temp", .preset = "0",
		.min = 0, .max = 100, .help = "sampling temperature; 0: always the most likely token"),
	OPT_ROW(struct generate_opts, top_k, .name = "top-k", .also = "topk", .preset = "0", .min = 0,
		.max = 1048576, .help = "sample only from the K most likely tokens; 0: all"),
	OPT_ROW(struct generate_opts, top_p, .name = "top-p", .also = "topp", .preset = "1", .min = 1e-9,
		.max = 1, .help = "sample only from the smallest set of tokens with this total probability"),
	OPT_ROW(struct generate_opts, seed, .name = "seed", .preset = "1",
		.help = "seed of the random sampling"),
	OPT_ROW(struct generate_opts, json, .name = "json",
		.help = "print text, tool calls and rates as JSON"),
	OPT_ROW(struct generate_opts, logprobs, .name = "logprobs",
		.help = "with --json: add each token's id and log probability"),
	OPT_ROW(struct generate_opts, no_cache, .name = "no-cache",
		.help = "time kernel candidates again; do not use the cache of tuning choices"),
};

struct generating {
	const struct command_context *c;
	const struct generate_opts *o;
	struct tokenizer *tokenizer;
	struct template *template;
	struct call_grammar grammar;
	char *grammar_source;  /* NULL: any text */
	struct token_list ids; /* token ids of the prompt */
	struct engine *engine;
	struct token_stream stream;
	struct text text;
	size_t shown; /* bytes of the text that are printed already */
	uint64_t made, first_ns, last_ns;
	uint64_t steady_ns, steady; /* start of the steady phase, and tokens generated since */
	struct settling settling;
	json_t *made_ids, *logprobs; /* for --logprobs */
	bool stopped;
};

static enum status check_wishes(const struct generate_opts *o, struct error *err)
{
	if (!o->model)
		return error_set(err, STATUS_BAD_INPUT, "no model given: assay generate MODEL TEXT");
	if (!!o->prompt + !!o->messages + !!o->rows != 1)
		return error_set(err, STATUS_BAD_INPUT,
				 "give exactly one of TEXT, --messages FILE and --rows FILE");
	if ((o->out || o->rows_max) && !o->rows)
		return error_set(err, STATUS_BAD_INPUT, "--%s needs --rows", o->out ? "out" : "max-rows");
	if (o->rows && (o->raw || o->system || o->logprobs))
		return error_set(err, STATUS_BAD_INPUT, "--rows and --%s cannot be combined",
				 o->raw	     ? "raw"
				 : o->system ? "system"
					     : "logprobs");
	if (o->grammar && !o->rows && !o->messages)
		return error_set(err, STATUS_BAD_INPUT,
				 "--grammar needs tools, which come with --rows or --messages");
	if (o->raw && (o->messages || o->system))
		return error_set(err, STATUS_BAD_INPUT,
				 "--raw cannot be combined with --messages or --system");
	if (o->raw && o->template)
		return error_set(err, STATUS_BAD_INPUT, "--raw and --chat-template cannot be combined");
	if (o->merge && !o->adapter)
		return error_set(err, STATUS_BAD_INPUT, "--merge needs --adapter");
	if (o->logprobs && !o->json)
		return error_set(err, STATUS_BAD_INPUT, "--logprobs needs --json");
	if (o->system && o->messages)
		return error_set(err, STATUS_BAD_INPUT, "--system and --messages cannot be combined");
	return STATUS_OK;
}

/* Builds the conversation as JSON. */
static enum status read_messages(const struct generate_opts *o, json_t **out, struct error *err)
{
	struct json_wrong why;
	size_t size;
	char *text;
	enum status st;

	if (!o->messages) {
		*out = json_pack("{s:[{s:s, s:s}]}", "messages", "role", "user", "content", o->prompt);
		if (*out && o->system)
			json_array_insert_new(
				json_object_get(*out, "messages"), 0,
				json_pack("{s:s, s:s}", "role", "system", "content", o->system));
		return *out ? STATUS_OK : error_set(err, STATUS_BAD_INPUT, "the prompt is not UTF-8");
	}
	st = file_read(&text, &size, o->messages, MESSAGES_MAX, err);
	if (st)
		return st;
	*out = json_read(text, size, JSON_REJECT_DUPLICATES, &why);
	free(text);
	return *out ? STATUS_OK
		    : error_set(err, STATUS_BAD_INPUT, "%s:%d: %s", o->messages, why.line, why.text);
}

static struct template_ask rendering_of(const struct generate_opts *o)
{
	return (struct template_ask){.generation_prompt = true,
				     .no_thinking = o->no_thinking,
				     .control = o->control,
				     .setting = template_setting};
}

/* For generation on the CPU: selects the BLAS library's fastest kernels. */
static void settle_kernels(void *arg)
{
	struct settling *s = arg;
	struct cpu_kernels kernels;
	char text[320], id[USER_CACHE_ID];

	saved_kernels_settle(&kernels, id, NULL, s->cache, s->c->log, s->c->stop);
	s->tuning_s = kernels.measured ? kernels.took_s : 0;
	cpu_kernels_text(&kernels, text, sizeof(text));
	if (*text)
		log_info(s->c->log, LOG_TOPIC_RUN, "%s", text);
}

/* *s must stay valid until the model is open. */
static struct load_options model_of(struct settling *s, const struct generate_opts *o)
{
	return (struct load_options){.model = o->model,
				     .adapter = {o->adapter},
				     .merge = o->merge,
				     .device = (enum load_device)o->device,
				     .any_base = o->any_base,
				     .weights_e4m3 = o->weights == 1,
				     .log = s->c->log,
				     .before_cpu = settle_kernels,
				     .arg = s};
}

static struct engine_sampling sampling_of(const struct generate_opts *o)
{
	return (struct engine_sampling){.temperature = (float)o->temperature,
					.top_k = (int32_t)o->top_k,
					.top_p = (float)o->top_p,
					.repetition = 1,
					.seed = o->seed};
}

static const char *files_of(const struct generate_opts *o)
{
	return o->tokenizer ? o->tokenizer : o->model;
}

static enum status encode_chat(struct generating *g, struct tokenizer_worker *w, struct error *err)
{
	const struct template_ask ask = rendering_of(g->o);
	struct template_text text = {0};
	struct template_tokens tokens = {0};
	struct chat chat = {0};
	json_t *root = NULL;
	enum status st = template_open(&g->template, g->o->template, template_setting, g->tokenizer, err);

	if (!st)
		st = call_grammar_open(&g->grammar, (enum call_grammar_mode)g->o->grammar, g->template,
				       g->tokenizer, files_of(g->o), err);
	if (!st)
		st = read_messages(g->o, &root, err);
	if (!st)
		st = chat_read(&chat, root, err);
	if (!st)
		st = template_render(g->template, &chat, &ask, &text, err);
	if (!st)
		st = template_encode(w, &text, &tokens, err);
	if (!st)
		st = call_grammar_source(&g->grammar, chat.tools, &text.text, &g->grammar_source, err);
	if (!st) {
		g->ids = tokens.ids;
		tokens.ids = (struct token_list){0};
	}
	template_tokens_release(&tokens);
	template_text_release(&text);
	chat_release(&chat);
	return st;
}

static enum status encode(struct generating *g, struct error *err)
{
	struct tokenizer_worker *w = NULL;
	enum status st = tokenizer_open(&g->tokenizer, files_of(g->o), err);

	if (!st)
		st = tokenizer_worker_create(&w, g->tokenizer, err);
	if (!st && g->o->raw)
		st = tokenizer_encode(w, g->o->prompt, strlen(g->o->prompt),
				      g->o->control ? ADDED_ALL : ADDED_NONE, &g->ids, err);
	else if (!st)
		st = encode_chat(g, w, err);
	tokenizer_worker_destroy(&w);
	if (!st && !g->ids.count)
		st = error_set(err, STATUS_BAD_INPUT, "the prompt is empty");
	return st;
}

static bool take(void *arg, int32_t id, float logprob)
{
	struct generating *g = arg;

	g->last_ns = clock_now_ns(clock_monotonic());
	if (!g->made++)
		g->first_ns = g->last_ns;
	if (g->made <= 1)
		g->steady_ns = g->last_ns;
	else
		g->steady++;
	if (g->o->logprobs) {
		json_array_append_new(g->made_ids, json_integer(id));
		json_array_append_new(g->logprobs, json_real((double)logprob));
	}
	token_stream_add(&g->stream, g->tokenizer, id, false, &g->text);
	if (!g->o->json) {
		struct text piece = {0};

		text_add(&piece, text_str(&g->text) + g->shown);
		show_text(&piece, UTF8_KEEP_NOTHING);
		g->shown = g->text.size;
		text_release(&piece);
	}
	return show_flush() && !*g->c->stop;
}

static enum status speak(struct generating *g, struct error *err)
{
	const struct generate_opts *o = g->o;
	struct engine_options options = {.load = model_of(&g->settling, o), .vocab = g->grammar.vocab};
	const int32_t stop[STOPS] = {tokenizer_eos(g->tokenizer),
				     g->template ? tokenizer_added(g->tokenizer, template_end(g->template))
						 : -1};
	const struct one_text text = {.sampling = sampling_of(o),
				      .tokens = (int64_t)o->tokens,
				      .stop = stop,
				      .stops = STOPS,
				      .grammar = g->grammar_source,
				      .logprobs = o->logprobs,
				      .cancel = g->c->stop};
	enum status st;

	one_text_room(&options.load, (int64_t)(g->ids.count + o->tokens), 1, tokenizer_size(g->tokenizer));
	st = engine_create(&g->engine, &options, err);
	if (!st)
		st = tokenizer_check_rows(g->tokenizer, engine_loaded(g->engine)->weights.shape.vocab, err);
	if (!st)
		st = one_text(g->engine, &text, g->ids.id, g->ids.count, take, g, &g->stopped, err);
	token_stream_end(&g->stream, &g->text);
	return st;
}

/* Tokens per second after the start-up phase; 0 if the text is too short. */
static double rate(const struct generating *g)
{
	return g->steady && g->last_ns > g->steady_ns
		       ? (double)g->steady * 1e9 / (double)(g->last_ns - g->steady_ns)
		       : 0;
}

/* Seconds from the program's start to the first token, without tuning; 0 if there is no token. */
static double first_s(const struct generating *g)
{
	const uint64_t started_ns = process_started_ns();
	const double s = started_ns && g->made ? (double)(g->first_ns - started_ns) * 1e-9 : 0;

	return fmax(s - g->settling.tuning_s, 0);
}

/* For example "194.5 tokens/s steady; 2.31 s to the first token, 0.70 s tuning". */
static void rate_text(const struct generating *g, struct text *out)
{
	if (rate(g) > 0)
		text_addf(out, "%.1f tokens/s steady", rate(g));
	else
		text_add(out, "too short for a steady rate");
	text_addf(out, "; %.2f s to the first token, %.2f s tuning", first_s(g), g->settling.tuning_s);
}

static void tell(const struct generating *g, const struct tool_calls *calls, const char *end)
{
	const struct load_facts f = load_facts(engine_loaded(g->engine));
	struct text share = {0}, rates = {0};

	rate_text(g, &rates);
	if (f.memory_rate > 0)
		text_addf(&share, ", %.0f %% of its memory bandwidth",
			  100 * rate(g) * f.weight_bytes / f.memory_rate);
	fputc('\n', stdout);
	for (size_t i = 0; i < calls->count; i++) {
		char *arguments = json_dumps(calls->calls[i].arguments, JSON_ENCODE_ANY);

		log_info(g->c->log, LOG_TOPIC_RUN, "tool call: %s %s", calls->calls[i].name,
			 arguments ? arguments : "");
		free(arguments);
	}
	if (calls->broken)
		log_warn(g->c->log, LOG_TOPIC_RUN, "%zu tool calls are incomplete or malformed",
			 calls->broken);
	log_info(g->c->log, LOG_TOPIC_RUN, "%llu tokens after a prompt of %zu: %s; end: %s",
		 (unsigned long long)g->made, g->ids.count, text_str(&rates), end);
	if (f.gpu && rate(g) > 0)
		log_info(g->c->log, LOG_TOPIC_RUN, "%s: weights at %.0f GB/s%s", f.device,
			 rate(g) * f.weight_bytes * 1e-9, text_str(&share));
	text_release(&rates);
	text_release(&share);
}

static void print_device(const struct generating *g, json_t *out)
{
	const struct load_facts f = load_facts(engine_loaded(g->engine));

	json_object_set_new(out, "device", json_string(f.device));
	if (!f.gpu || !(rate(g) > 0))
		return;
	json_object_set_new(out, "weights_gb_per_s", json_real(rate(g) * f.weight_bytes * 1e-9));
	if (f.memory_rate > 0)
		json_object_set_new(out, "memory_share", json_real(rate(g) * f.weight_bytes / f.memory_rate));
}

/* Prints the JSON result: the text, and the tool calls in it. */
static enum status print(const struct generating *g, const struct tool_calls *calls, const char *end,
			 struct error *err)
{
	json_t *out = g->template ? tool_calls_json(calls) : json_object();
	enum status st = STATUS_OK;

	json_object_set_new(out, "text", json_stringn(text_str(&g->text), g->text.size));
	json_object_set_new(out, "broken_calls", json_integer((json_int_t)calls->broken));
	json_object_set_new(out, "end", json_string(end));
	json_object_set_new(out, "prompt_tokens", json_integer((json_int_t)g->ids.count));
	json_object_set_new(out, "tokens", json_integer((json_int_t)g->made));
	json_object_set_new(out, "tokens_per_s", rate(g) > 0 ? json_real(rate(g)) : json_null());
	json_object_set_new(out, "steady_tokens", json_integer((json_int_t)g->steady));
	json_object_set_new(out, "first_token_s", json_real(first_s(g)));
	json_object_set_new(out, "tuning_s", json_real(g->settling.tuning_s));
	print_device(g, out);
	if (g->o->logprobs) {
		json_object_set(out, "ids", g->made_ids);
		json_object_set(out, "logprobs", g->logprobs);
	}
	if (!out || !show_json(out, JSON_INDENT(1)))
		st = error_set(err, STATUS_NO_RESOURCE, "cannot write the answer to stdout");
	json_decref(out);
	return st;
}

/* Warns if the text is longer than the model's context. */
static void warn_of_positions(const struct generating *g)
{
	uint64_t all = g->ids.count + g->made,
		 made_for = (uint64_t)engine_loaded(g->engine)->weights.shape.context;

	if (all > made_for)
		log_warn(g->c->log, LOG_TOPIC_RUN,
			 "prompt and text have %llu tokens, but the model supports %llu positions "
			 "(max_position_embeddings): do not rely on the text after them",
			 (unsigned long long)all, (unsigned long long)made_for);
}

/* Prints the result. After a stop request, the text so far is printed, but the result is an error. Prints
 * nothing if the reader of stdout is gone. */
static enum status conclude(const struct generating *g, struct error *err)
{
	bool cancelled = *g->c->stop && !g->stopped;
	const char *end = g->stopped ? "stop" : cancelled ? "cancelled" : "length";
	struct tool_calls calls = {0};
	enum status st = STATUS_OK;

	if (show_lost())
		return STATUS_OK;
	if (g->template)
		st = tool_calls_read(&calls, g->template, text_str(&g->text), err);
	if (!st && g->o->json)
		st = print(g, &calls, end, err);
	else if (!st)
		tell(g, &calls, end);
	tool_calls_release(&calls);
	warn_of_positions(g);
	if (!st && cancelled)
		st = error_set_cause(err, STATUS_CANCELLED, CAUSE_INTERRUPTED,
				     "stopped on request after %llu of at most %llu tokens",
				     (unsigned long long)g->made, (unsigned long long)g->o->tokens);
	return st;
}

static enum status run_rows(const struct command_context *c, const struct generate_opts *o, struct error *err)
{
	struct settling settling = {.c = c, .cache = !o->no_cache};
	const struct generate_rows_ask ask = {.rows = o->rows,
					      .out = o->out,
					      .rows_max = o->rows_max,
					      .tokenizer = o->tokenizer,
					      .template = o->template,
					      .rendering = rendering_of(o),
					      .model = model_of(&settling, o),
					      .sampling = sampling_of(o),
					      .tokens = o->tokens,
					      .grammar = (enum call_grammar_mode)o->grammar,
					      .json = o->json};

	return generate_rows(c, &ask, err);
}

static int run(const struct command_context *c, const void *opts_)
{
	struct generating g = {.c = c, .o = opts_, .made_ids = json_array(), .logprobs = json_array()};
	struct error err = {0};
	enum status st = check_wishes(g.o, &err);

	g.settling = (struct settling){.c = c, .cache = !g.o->no_cache};
	if (!st)
		st = single_process_check("generate", &err);
	if (!st && g.o->rows) {
		st = run_rows(c, g.o, &err);
	} else {
		if (!st)
			st = encode(&g, &err);
		if (!st)
			st = speak(&g, &err);
		if (!st)
			st = conclude(&g, &err);
	}
	engine_destroy(&g.engine);
	call_grammar_close(&g.grammar);
	free(g.grammar_source);
	template_close(&g.template);
	tokenizer_close(&g.tokenizer);
	token_list_release(&g.ids);
	text_release(&g.text);
	json_decref(g.made_ids);
	json_decref(g.logprobs);
	return st ? command_complain(c, &err) : EXIT_PASS;
}

const struct command command_generate = {
	.name = "generate",
	.summary = "run a prompt through a model, with or without a LoRA adapter",
	.example = "assay generate model \"What is the weather in Oslo?\" --adapter run/adapter",
	.help = "Applies the model's chat template to the prompt and generates the answer on the CPU or a "
		"GPU. Then extracts the tool calls from it. The same seed gives the same text. --messages "
		"reads a conversation with tools, in the format of training rows. --rows answers each row of "
		"a file and reports how many calls are right. A call is right if it agrees with the row's "
		"ground_truth (lists of accepted values, as in bfcl-eval). Without a ground_truth, it must "
		"agree with the calls in the row itself.",
	.opts = {opts, sizeof(opts) / sizeof(opts[0]), sizeof(struct generate_opts)},
	.single = true,
	.run = run,
};
