/* SPDX-License-Identifier: Apache-2.0 */
/* assay __engine: the engine process that `assay serve` starts. It reads one line with its options from
 * descriptor 3 and writes lines to it. Descriptor 4 is the socket to the front end. */
#include <poll.h>
#include "cmd/command.h"
#include "cmd/internal/child_channel.h"
#include "cmd/shared/engine_memory.h"
#include "cmd/shared/saved_kernels.h"
#include "core/clock.h"
#include "engine/engine_loop.h"
#include "engine/grammar/tokenizer_vocab.h"
#include "text/tokenizer/tokenizer.h"

static volatile sig_atomic_t drain_requested;

static void on_term(int sig)
{
	(void)sig;
	drain_requested = 1;
}

struct engine_process {
	struct child_channel channel; /* its first line are the options */
	struct tokenizer *tokenizer;  /* whose ids are sampled */
	struct grammar_vocab *vocab;  /* the same for grammars */
	struct log log;
};

static enum status read_options(struct engine_process *p, struct error *err)
{
	child_read(&p->channel, &drain_requested);
	return json_is_string(json_object_get(p->channel.first, "model"))
		       ? STATUS_OK
		       : error_set(
				 err, STATUS_BAD_INPUT,
				 "descriptor 3 has no options: this is an internal command, use assay serve");
}

/* For an engine on the CPU: selects the BLAS library's fastest kernels. */
static void settle_kernels(void *arg)
{
	const struct engine_process *p = arg;
	struct cpu_kernels kernels;
	char text[320], id[USER_CACHE_ID];

	saved_kernels_settle(&kernels, id, NULL, true, &p->log, &drain_requested);
	cpu_kernels_text(&kernels, text, sizeof(text));
	if (*text)
		log_info(&p->log, LOG_TOPIC_RUN, "%s", text);
}

static int64_t number(const struct engine_process *p, const char *name)
{
	return (int64_t)json_integer_value(json_object_get(p->channel.first, name));
}

static bool flag(const struct engine_process *p, const char *name)
{
	return json_is_true(json_object_get(p->channel.first, name));
}

static struct engine_options engine_options_of(struct engine_process *p)
{
	const json_t *adapters = json_object_get(p->channel.first, "adapters");
	struct engine_options o = {
		.load = {.device = (enum load_device)number(p, "device"),
			 .model = json_string_value(json_object_get(p->channel.first, "model")),
			 .merge = true,
			 .any_base = flag(p, "any_base"),
			 .log = &p->log,
			 .before_cpu = settle_kernels,
			 .arg = p,
			 .positions = number(p, "positions"),
			 .positions_most = number(p, "positions_most"),
			 .sequences = number(p, "sequences"),
			 .rows = number(p, "rows"),
			 .vocab = tokenizer_size(p->tokenizer),
			 .page_tokens = (int32_t)number(p, "page_tokens"),
			 .pages = number(p, "pages"),
			 .memory = (uint64_t)number(p, "memory"),
			 .cache_e4m3 = flag(p, "cache_e4m3"),
			 .weights_e4m3 = flag(p, "weights_e4m3"),
			 .penalties = true,
			 .deterministic = flag(p, "deterministic")},
		.vocab = p->vocab,
		.step_ms = json_number_value(json_object_get(p->channel.first, "step_ms")),
		.no_prefix_cache = flag(p, "no_prefix_cache"),
		.queue = (int32_t)number(p, "queue"),
	};

	for (size_t i = 0; i < json_array_size(adapters) && i < ADAPTERS_MOST; i++)
		o.load.adapter[i] = json_string_value(json_array_get(adapters, i));
	return o;
}

/* What "alive" lines say. */
struct facts_sender {
	struct child_channel *channel;
	struct engine *engine;
	uint64_t tokens, at_ns; /* of the last line, for the rate */
};

/* A supervisor that is stopped, and does not read, must not stop the engine. */
static void alive(void *arg, double expected_s)
{
	struct pollfd channel = {.fd = CHILD_CHANNEL, .events = POLLOUT};
	struct facts_sender *sender = arg;
	const struct engine_facts f = engine_facts(sender->engine);
	const uint64_t now = clock_now_ns(clock_monotonic());
	const double s = sender->at_ns ? (double)(now - sender->at_ns) * 1e-9 : 0;
	const double rate = s > 0 ? (double)(f.tokens - sender->tokens) / s : 0;
	struct engine_memory memory;

	sender->tokens = f.tokens;
	sender->at_ns = now;
	if (poll(&channel, 1, 0) != 1)
		return;
	engine_memory_read(&memory, sender->engine);
	child_send(sender->channel, "alive",
		   json_pack("{s:o*, s:f, s:f, s:I, s:I, s:I, s:I, s:I, s:I, s:i, s:i, s:i, s:i, s:i}",
			     "memory", engine_memory_json(&memory), "expected_s", expected_s, "tokens_per_s",
			     rate, "steps", (json_int_t)f.steps, "tokens", (json_int_t)f.tokens,
			     "prompt_tokens", (json_int_t)f.prompt_tokens, "cached_tokens",
			     (json_int_t)f.cached_tokens, "preemptions", (json_int_t)f.preemptions, "ended",
			     (json_int_t)f.ended, "running", (int)f.running, "waiting", (int)f.waiting,
			     "pages", (int)f.pages, "pages_used", (int)f.pages_used, "pages_cached",
			     (int)f.pages_cached),
		   NULL);
}

static json_t *ready_line(struct engine_ready r)
{
	json_t *line =
		json_pack("{s:s, s:b, s:I, s:I, s:I, s:I, s:f, s:f, s:f}", "device", r.device, "shared",
			  r.shared, "context", (json_int_t)r.context, "pages", (json_int_t)r.pages,
			  "page_tokens", (json_int_t)r.page_tokens, "sequences", (json_int_t)r.sequences,
			  "weight_bytes", r.weight_bytes, "cache_bytes", r.cache_bytes, "load_s", r.load_s);

	if (line && r.measured_rows) {
		json_object_set_new(line, "measured_rows", json_integer((json_int_t)r.measured_rows));
		json_object_set_new(line, "deterministic_s", json_real(r.deterministic_s));
		json_object_set_new(line, "ordinary_s", json_real(r.ordinary_s));
	}
	return line;
}

static enum status serve(struct engine_process *p, struct error *err)
{
	struct engine_options options;
	struct facts_sender sender = {.channel = &p->channel};
	struct engine_loop loop = {.fd = CHILD_SHARED,
				   .epoch = (uint32_t)number(p, "epoch"),
				   .drain = &drain_requested,
				   .alive = alive,
				   .arg = &sender};
	enum status st = tokenizer_open(&p->tokenizer,
					json_string_value(json_object_get(p->channel.first, "model")), err);

	if (!st)
		st = grammar_vocab_of(&p->vocab, p->tokenizer,
				      json_string_value(json_object_get(p->channel.first, "model")), err);
	if (st)
		return st;
	if (!p->vocab)
		log_warn(
			&p->log, LOG_TOPIC_RUN,
			"neither the tokenizer nor generation_config.json names a token that ends a text: requests with a grammar, a schema or a required tool are refused, and answers end at their limit");
	options = engine_options_of(p);
	st = engine_create(&loop.engine, &options, err);
	if (!st)
		st = tokenizer_check_rows(p->tokenizer, engine_loaded(loop.engine)->weights.shape.vocab, err);
	if (!st) {
		sender.engine = loop.engine;
		child_send(&p->channel, "ready", ready_line(engine_ready(loop.engine)), NULL);
		st = engine_loop(&loop, err);
		alive(&sender, 0); /* the last figures */
	}
	engine_destroy(&loop.engine);
	return st;
}

static int run(const struct command_context *c, int argc, char **argv)
{
	struct engine_process p = {.channel = CHILD_CHANNEL_NEW};
	struct error err = {0};
	enum status st;

	(void)c, (void)argc, (void)argv;
	child_prepare(on_term);
	p.log = child_log(&p.channel);
	st = read_options(&p, &err);
	if (!st)
		st = serve(&p, &err);
	child_send_end(&p.channel, st, &err, NULL);
	grammar_vocab_destroy(&p.vocab);
	tokenizer_close(&p.tokenizer);
	child_release(&p.channel);
	return st ? 1 : 0;
}

const struct command command_engine = {
	.name = "__engine",
	.summary = "generate text for the front end on descriptor 4",
	.hidden = true,
	.raw = true,
	.run_raw = run,
};
