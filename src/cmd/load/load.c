/* SPDX-License-Identifier: Apache-2.0 */
/* assay load: an honest load test of any OpenAI server. */
#include "cmd/load/load.h"

enum { REQUESTS_MOST = 10000000, DAY_S = 86400 };

static const char *const endpoints[] = {"chat", "completions", NULL};
static const char *const arrivals[] = {"poisson", "constant", "gamma", "ramp", "steps", NULL};

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
	OPT_ROW(struct load_opts, recount, .name = "recount", .preset = "true",
		.help = "count the tokens of answers with the tokenizer and compare them with what the server reports; "
			"--no-recount: for models with random weights, whose tokens often have no text"),
	OPT_ROW(struct load_opts, slo, .name = "slo", .also = "goodput", .shown = "SETS",
		.help = "limits of each request: a set's name (chat, rag, mlperf-8b-server ..) or ttft=500ms,tpot=50ms; "
			"several with / between"),
	OPT_ROW(struct load_opts, attainment, .name = "attainment", .preset = "0.99", .min = 0.5, .max = 1,
		.help = "share of the requests that must meet the limits"),
	OPT_ROW(struct load_opts, expectations, .name = "expectations", .shown = "DIR",
		.help = "judge by these expectations: a folder, a saved set, or the built-in set d2 (P95 of TTFT below 100 ms, P99 below "
			"200 ms, on eight GPUs 10,000 tokens/s)"),
	OPT_ROW(struct load_opts, sweep, .name = "sweep",
		.help = "search for the highest rate that meets the limits"),
	OPT_ROW(struct load_opts, warmup, .name = "warmup", .preset = "-1", .unit = "s", .min = -1,
		.max = DAY_S,
		.help = "begin and end of the schedule that are not measured; at most 40 % of the duration "
			"each; -1: a tenth each, at most 30 s"),
	OPT_ROW(struct load_opts, grace, .name = "grace", .preset = "60", .unit = "s", .max = DAY_S,
		.help = "time for answers after the schedule"),
	OPT_ROW(struct load_opts, timeout, .name = "timeout", .preset = "600", .unit = "s", .min = 0.1,
		.max = DAY_S, .help = "time limit of a request"),
	OPT_ROW(struct load_opts, ready, .name = "ready-timeout", .preset = "300", .unit = "s", .max = DAY_S,
		.help = "how long to wait for a server that answers 503, as while it loads its model, or 429"),
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
#define ROWS                                                                                                 \
	{                                                                                                    \
		rows, sizeof(rows) / sizeof(rows[0]), sizeof(struct load_opts)                               \
	}
const struct opt_table load_opt_table = ROWS;

const struct command command_load = {
	.name = "load",
	.summary = "load test of an OpenAI server",
	.example =
		"assay load http://127.0.0.1:8000 --rate 4 --duration 30 --slo chat   # latencies, goodput, power",
	.help = "Sends requests on a schedule that is fixed before the run, and measures each answer: time to first token, "
		"time per token, whole answer, tokens per second, and the share that meets the limits. Latencies count from "
		"the schedule, so a late client or a full server cannot hide waiting. The run directory has the journal, a line "
		"per request, power and clocks, SUMMARY.md and an HTML page.\n\n"
		"The exit code is 0 if the limits of --slo were met (or none were given), 1 if not, and 2 if the figures cannot be "
		"trusted. assay contacts only the server that you name, and follows no redirect.",
	.check = load_opts_check,
	.opts = ROWS,
	.single = true,
	.run = load_perform,
};
