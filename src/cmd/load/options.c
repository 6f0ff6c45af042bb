/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/load/options.h"
#include <math.h>
#include <string.h>

enum { CHAT, COMPLETIONS, REQUESTS_MOST = 10000000, DAY_S = 86400 };

static const char *const endpoints[] = {"chat", "completions", NULL};
static const char *const arrivals[] = {"poisson", "constant", "gamma", "ramp", "steps", NULL};
static const enum load_arrival arrival_of[] = {LOAD_POISSON, LOAD_CONSTANT, LOAD_GAMMA, LOAD_RAMP,
					       LOAD_STEPS};

static const struct opt rows[] = {
	OPT_ROW(struct load_opts, url, .name = "url", .positional = true, .shown = "URL",
		.help = "address of the server: http://HOST:PORT, with or without /v1"),
	OPT_ROW(struct load_opts, model, .name = "model", .shown = "MODEL",
		.help = "without URL: starts `assay serve MODEL` first, and ends it afterwards"),
	OPT_ROW(struct load_opts, serve, .name = "serve-options", .shown = "WORDS",
		.help = "with --model: further options for `assay serve`, in one text"),
	OPT_ROW(struct load_opts, name, .name = "name", .also = "served-model-name model-name",
		.shown = "NAME",
		.help = "the model's name in requests (default: the first one that the server lists)"),
	OPT_ROW(struct load_opts, endpoint, .name = "endpoint", .also = "endpoint-type backend",
		.preset = "chat", .choices = endpoints,
		.help = "chat: /v1/chat/completions; completions: /v1/completions"),
	OPT_ROW(struct load_opts, tokenizer, .name = "tokenizer", .shown = "PATH",
		.help = "the model's folder, tokenizer.json or GGUF file, for exact prompt lengths (default: --model)"),
	OPT_ROW(struct load_opts, template, .name = "chat-template", .shown = "NAME",
		.help = "chat template for the prompt's length; default: the tokenizer's own"),
	OPT_ROW(struct load_opts, key_file, .name = "api-key-file", .also = "api-key", .shown = "FILE",
		.help = "file whose first line is the API key"),
	OPT_ROW(struct load_opts, authorities, .name = "ca-file", .also = "cacert", .shown = "FILE",
		.help = "PEM file with the certificate authorities to trust"),
	OPT_ROW(struct load_opts, insecure, .name = "insecure", .help = "accept any TLS certificate"),
	OPT_ROW(struct load_opts, rate, .name = "rate", .also = "request-rate qps rps", .preset = "1",
		.min = 0, .max = 1e6, .help = "requests per second"),
	OPT_ROW(struct load_opts, arrival, .name = "arrival", .also = "arrivals distribution",
		.preset = "poisson", .choices = arrivals,
		.help = "times between requests: poisson, constant, gamma (see --burstiness), ramp (to --rate-end), "
			"steps (see --steps)"),
	OPT_ROW(struct load_opts, burstiness, .name = "burstiness", .preset = "1", .min = 0.01, .max = 1000,
		.help = "with --arrival gamma: shape of the distribution of gaps; 1 is poisson, less is burstier"),
	OPT_ROW(struct load_opts, rate_end, .name = "rate-end", .preset = "0", .max = 1e6,
		.help = "with --arrival ramp: requests per second at the end"),
	OPT_ROW(struct load_opts, steps, .name = "steps", .shown = "LIST",
		.help = "with --arrival steps: rates of equal parts of the duration, with commas between"),
	OPT_ROW(struct load_opts, trace, .name = "trace", .shown = "FILE",
		.help = "replays the times and lengths of a trace: Mooncake JSONL, Azure or BurstGPT CSV"),
	OPT_ROW(struct load_opts, speed, .name = "trace-speed", .preset = "1", .min = 0.001, .max = 1000,
		.help = "2: the trace runs twice as fast as it was recorded"),
	OPT_ROW(struct load_opts, users, .name = "users", .also = "concurrency max-concurrency parallel",
		.preset = "0", .max = 100000,
		.help = "closed loop: each of N users sends its next request after the answer; 0: open loop"),
	OPT_ROW(struct load_opts, think, .name = "think", .preset = "0", .unit = "s", .max = DAY_S,
		.help = "mean pause before a user's or conversation's next request"),
	OPT_ROW(struct load_opts, turns, .name = "turns", .preset = "1", .min = 1, .max = 1000,
		.help = "turns of a conversation; each contains the answers before it"),
	OPT_ROW(struct load_opts, duration, .name = "duration", .also = "time", .preset = "60", .unit = "s",
		.min = 1, .max = DAY_S, .letter = 'd',
		.help = "length of the schedule, or of each stage of a sweep"),
	OPT_ROW(struct load_opts, requests, .name = "max-requests", .also = "num-prompts requests",
		.preset = "1000000", .min = 1, .max = REQUESTS_MOST,
		.help = "most requests; the schedule ends there"),
	OPT_ROW(struct load_opts, input, .name = "input", .also = "input-len isl random-input-len",
		.preset = "512", .shown = "TOKENS",
		.help = "tokens of a prompt: 512, normal:512,100, lognormal:512,300 or uniform:256,1024"),
	OPT_ROW(struct load_opts, output, .name = "output", .also = "output-len osl random-output-len",
		.preset = "128", .shown = "TOKENS", .help = "tokens of an answer, in the same form"),
	OPT_ROW(struct load_opts, dataset, .name = "dataset", .also = "dataset-path", .shown = "FILE",
		.help = "prompts from a file instead: ShareGPT, chat or function-calling rows"),
	OPT_ROW(struct load_opts, prefix, .name = "prefix", .also = "prefix-len shared-prefix", .preset = "0",
		.max = 1000000, .help = "tokens that the prompts of a group share"),
	OPT_ROW(struct load_opts, groups, .name = "prefix-groups", .preset = "1", .min = 1, .max = 1000000,
		.help = "groups of shared prefixes"),
	OPT_ROW(struct load_opts, warm, .name = "warm-cache",
		.help = "the same prompts in every run, so that the server's prefix cache may have them"),
	OPT_ROW(struct load_opts, ignore_eos, .name = "ignore-eos", .preset = "true",
		.help = "ask for exactly the planned number of tokens; a strict server may refuse it"),
	OPT_ROW(struct load_opts, temperature, .name = "temperature", .preset = "0", .max = 2,
		.help = "temperature of requests"),
	OPT_ROW(struct load_opts, stream, .name = "stream", .preset = "true",
		.help = "answers as event streams; without them there is no time to first token"),
	OPT_ROW(struct load_opts, body, .name = "body", .also = "extra-body extra-inputs", .shown = "JSON",
		.help = "JSON object with further members of each request"),
	OPT_ROW(struct load_opts, slo, .name = "slo", .also = "goodput", .shown = "SETS",
		.help = "limits of each request: a set's name (chat, rag, mlperf-8b-server ..) or ttft=500ms,tpot=50ms; "
			"several with / between"),
	OPT_ROW(struct load_opts, attainment, .name = "attainment", .preset = "0.99", .min = 0.5, .max = 1,
		.help = "share of the requests that must meet the limits"),
	OPT_ROW(struct load_opts, sweep, .name = "sweep",
		.help = "search for the highest rate that meets the limits"),
	OPT_ROW(struct load_opts, warmup, .name = "warmup", .preset = "-1", .unit = "s", .min = -1,
		.max = DAY_S,
		.help = "begin and end of the schedule that are not measured; -1: a tenth of the duration each, at most 30 s"),
	OPT_ROW(struct load_opts, grace, .name = "grace", .preset = "60", .unit = "s", .max = DAY_S,
		.help = "time for answers after the schedule"),
	OPT_ROW(struct load_opts, timeout, .name = "timeout", .preset = "600", .unit = "s", .min = 0.1,
		.max = DAY_S, .help = "time limit of a request"),
	OPT_ROW(struct load_opts, connections, .name = "max-connections", .preset = "0", .max = 100000,
		.help = "most requests in flight; further ones wait, and their waiting counts; 0: 4096, or what "
			"the limit of open files allows"),
	OPT_ROW(struct load_opts, threads, .name = "threads", .preset = "0", .max = 64,
		.help = "sender threads; 0: one for two CPUs"),
	OPT_ROW(struct load_opts, seed, .name = "seed", .preset = "0", .max = 1e15,
		.help = "seed of times, lengths and texts"),
	OPT_ROW(struct load_opts, metrics, .name = "metrics", .shown = "PATH", .preset = "/metrics",
		.help = "path of the server's Prometheus metrics; none: do not read them"),
	OPT_ROW(struct load_opts, idle, .name = "idle", .preset = "2", .unit = "s", .max = 600,
		.help = "seconds before the load in which idle power is measured"),
	OPT_ROW(struct load_opts, node, .name = "node", .also = "ssh", .shown = "HOST",
		.help = "the server's node: power and clocks are sampled there over ssh by its own assay"),
	OPT_ROW(struct load_opts, sample, .name = "telemetry", .preset = "true",
		.help = "sample power, clocks and temperatures during the run"),
	OPT_ROW(struct load_opts, real_names, .name = "real-names",
		.help = "keep serial numbers, addresses and host names in the journal instead of pseudonyms"),
	OPT_ROW(struct load_opts, out, .name = "out", .also = "output-dir o", .shown = "DIR",
		.help = "run directory (default: assay-runs/DATE-load)"),
	OPT_ROW(struct load_opts, plan, .name = "plan", .also = "dry-run",
		.help = "print the number of requests, tokens and the time, and send nothing"),
	OPT_ROW(struct load_opts, json, .name = "json", .help = "print the results as JSON"),
};
const struct opt_table load_opt_table = {rows, sizeof(rows) / sizeof(rows[0]), sizeof(struct load_opts)};

static enum status check_target(const struct load_opts *o, struct error *err)
{
	if (!o->url && !o->model)
		return error_set(err, STATUS_BAD_INPUT,
				 "no server given: assay load http://HOST:PORT, or assay load --model MODEL");
	if (o->url && o->model)
		return error_set(err, STATUS_BAD_INPUT,
				 "give an address or --model, not both; for prompt lengths use --tokenizer");
	if (o->serve && !o->model)
		return error_set(err, STATUS_BAD_INPUT, "--serve-options needs --model");
	if (o->url && strncmp(o->url, "http://", 7) != 0 && strncmp(o->url, "https://", 8) != 0)
		return error_set(err, STATUS_BAD_INPUT,
				 "%.200s: not an address; it must begin with http:// or https://", o->url);
	return STATUS_OK;
}

static enum status check_arrival(const struct load_opts *o, struct error *err)
{
	const enum load_arrival a = arrival_of[o->arrival];

	if (o->users && o->trace)
		return error_set(err, STATUS_BAD_INPUT, "--users and --trace: only one of them");
	if (a == LOAD_RAMP && !(o->rate_end > 0))
		return error_set(err, STATUS_BAD_INPUT, "--arrival ramp needs --rate-end");
	if (a == LOAD_STEPS && !o->steps)
		return error_set(err, STATUS_BAD_INPUT, "--arrival steps needs --steps");
	if (!o->users && !o->trace && !o->sweep && a != LOAD_STEPS && !(o->rate > 0))
		return error_set(err, STATUS_BAD_INPUT,
				 "--rate is 0; give a rate, or --users for a closed loop");
	if (o->sweep && (o->users || o->trace || a == LOAD_RAMP || a == LOAD_STEPS))
		return error_set(
			err, STATUS_BAD_INPUT,
			"--sweep chooses the rate itself: leave out --users, --trace, ramp and steps");
	if (o->sweep && !o->slo)
		return error_set(err, STATUS_BAD_INPUT, "--sweep needs --slo");
	return STATUS_OK;
}

static enum status check_out(const struct load_opts *o, struct error *err)
{
	if (o->plan && o->out)
		return error_set(err, STATUS_BAD_INPUT, "--plan writes no run directory: leave out --out");
	if (o->duration > DAY_S)
		return error_set(err, STATUS_BAD_INPUT, "--duration is longer than a day");
	return STATUS_OK;
}

enum status load_opts_check(const void *opts, struct error *err)
{
	const struct load_opts *o = opts;
	struct load_run_spec spec;
	enum status st = check_target(o, err);

	if (!st)
		st = check_arrival(o, err);
	if (!st)
		st = check_out(o, err);
	return st ? st : load_opts_spec(&spec, o, err);
}

static enum status read_slos(struct load_run_spec *spec, const char *text, struct error *err)
{
	enum status st = STATUS_OK;

	while (!st && text && *text) {
		const size_t size = strcspn(text, "/");
		char *one = spec->slo_text[spec->slo_count];

		if (spec->slo_count == LOAD_SLOS_MOST || size >= sizeof(spec->slo_text[0]))
			return error_set(err, STATUS_BAD_INPUT,
					 "--slo: more than %d sets, or a set is too long", LOAD_SLOS_MOST);
		memcpy(one, text, size);
		one[size] = '\0';
		st = load_slo_read(&spec->slo[spec->slo_count++], one, err);
		text += size + (text[size] == '/');
	}
	return st;
}

static void set_plan(struct load_plan_spec *p, const struct load_opts *o)
{
	*p = (struct load_plan_spec){
		.arrival = o->trace   ? LOAD_TRACE
			   : o->users ? LOAD_CLOSED
				      : arrival_of[o->arrival],
		.rate = o->rate,
		.rate_end = o->rate_end,
		.burstiness = o->burstiness,
		.steps = o->steps,
		.trace = o->trace,
		.trace_speed = o->speed,
		.duration_s = o->duration,
		.requests_most = o->requests,
		.users = (uint32_t)o->users,
		.turns = (uint32_t)o->turns,
		.think_s = o->think,
		.prefix_tokens = (uint32_t)o->prefix,
		.prefix_groups = (uint32_t)o->groups,
		.seed = o->seed,
	};
}

enum status load_opts_spec(struct load_run_spec *spec, const struct load_opts *o, struct error *err)
{
	enum status st;

	*spec = (struct load_run_spec){
		.url = o->url,
		.model = o->name,
		.authorities = o->authorities,
		.metrics = strcmp(o->metrics, "none") ? o->metrics : "",
		.insecure = o->insecure,
		.stream = o->stream,
		.sweep = o->sweep,
		.timeout_s = o->timeout,
		.grace_s = o->grace,
		.warmup_s = o->warmup,
		.threads = (unsigned)o->threads,
		.connections = (unsigned)o->connections,
		.attainment = o->attainment,
	};
	set_plan(&spec->plan, o);
	spec->content = (struct load_content_spec){
		.tokenizer = o->tokenizer ? o->tokenizer : o->model,
		.template = o->template,
		.dataset = o->dataset,
		.extra = o->body,
		.completion = o->endpoint == COMPLETIONS,
		.stream = o->stream,
		.ignore_eos = o->ignore_eos,
		.warm = o->warm,
		.temperature = o->temperature,
		.prefix_tokens = (uint32_t)o->prefix,
		.seed = o->seed,
	};
	st = load_length_read(&spec->plan.input, o->input, err);
	if (!st)
		st = load_length_read(&spec->plan.output, o->output, err);
	return st ? st : read_slos(spec, o->slo, err);
}
