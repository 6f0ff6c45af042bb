/* SPDX-License-Identifier: Apache-2.0 */
/* assay load: an honest load test of any OpenAI server. */
#include "cmd/load/load.h"

enum { REQUESTS_MOST = 10000000, DAY_S = 86400 };

static const char *const endpoints[] = {"chat", "completions", NULL};
static const char *const arrivals[] = {"poisson", "constant", "gamma", "ramp", "steps", NULL};

static const struct opt rows[] = {
	OPT_ROW(struct load_opts, url, .name = "url", .positional = true, .shown = "URL",
		.help = "address of the server, for example http://HOST:PORT, with or without /v1"),
	OPT_ROW(struct load_opts, model, .name = "model", .shown = "MODEL",
		.help = "without URL: start `assay serve MODEL` before the load test, and end it afterwards"),
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
		.help = "replay the times and lengths of a recorded trace: Mooncake JSONL, Azure or BurstGPT CSV"),
	OPT_ROW(struct load_opts, speed, .name = "trace-speed", .preset = "1", .min = 0.001, .max = 1000,
		.help = "2: the trace runs twice as fast as it was recorded"),
	OPT_ROW(struct load_opts, users, .name = "users", .also = "concurrency max-concurrency parallel",
		.preset = "0", .max = 100000,
		.help = "closed loop: N users, each of which sends its next request after the answer. 0: open loop, "
			"requests at fixed times"),
	OPT_ROW(struct load_opts, think, .name = "think", .preset = "0", .unit = "s", .max = DAY_S,
		.help = "mean pause before a user's or conversation's next request"),
	OPT_ROW(struct load_opts, turns, .name = "turns", .preset = "1", .min = 1, .max = 1000,
		.help = "turns per conversation; each turn contains the answers of the earlier turns"),
	OPT_ROW(struct load_opts, duration, .name = "duration", .also = "time", .preset = "60", .unit = "s",
		.min = 1, .max = DAY_S, .letter = 'd',
		.help = "length of the schedule, or of each stage of a sweep"),
	OPT_ROW(struct load_opts, requests, .name = "max-requests", .also = "num-prompts requests",
		.preset = "1000000", .min = 1, .max = REQUESTS_MOST,
		.help = "most requests; the schedule ends there"),
	OPT_ROW(struct load_opts, input, .name = "input", .also = "input-len isl random-input-len",
		.preset = "512", .shown = "TOKENS",
		.help = "tokens per prompt: a number such as 512, or a distribution such as normal:512,100, "
			"lognormal:512,300 or uniform:256,1024"),
	OPT_ROW(struct load_opts, output, .name = "output", .also = "output-len osl random-output-len",
		.preset = "128", .shown = "TOKENS", .help = "tokens per answer, written in the same way"),
	OPT_ROW(struct load_opts, dataset, .name = "dataset", .also = "dataset-path", .shown = "FILE",
		.help = "prompts from a file instead: ShareGPT, chat or function-calling rows"),
	OPT_ROW(struct load_opts, prefix, .name = "prefix", .also = "prefix-len shared-prefix", .preset = "0",
		.max = 1000000, .help = "tokens that the prompts of a group share"),
	OPT_ROW(struct load_opts, groups, .name = "prefix-groups", .preset = "1", .min = 1, .max = 1000000,
		.help = "groups of shared prefixes"),
	OPT_ROW(struct load_opts, warm, .name = "warm-cache",
		.help = "send the same prompts in every run, so that the server's prefix cache may contain them"),
	OPT_ROW(struct load_opts, ignore_eos, .name = "ignore-eos", .preset = "true",
		.help = "ask for exactly the planned number of tokens (ignore_eos). A strict server may refuse this "
			"field"),
	OPT_ROW(struct load_opts, temperature, .name = "temperature", .preset = "0", .max = 2,
		.help = "temperature of requests"),
	OPT_ROW(struct load_opts, stream, .name = "stream", .preset = "true",
		.help = "ask for answers as event streams. Without streams there is no time to first token"),
	OPT_ROW(struct load_opts, body, .name = "body", .also = "extra-body extra-inputs", .shown = "JSON",
		.help = "JSON object with further members of each request"),
	OPT_ROW(struct load_opts, recount, .name = "recount", .preset = "true",
		.help = "count the tokens of answers with the tokenizer, and compare the counts with those of the "
			"server. Use --no-recount for models with random weights, whose tokens often have no text"),
	OPT_ROW(struct load_opts, slo, .name = "slo", .also = "goodput", .shown = "SETS",
		.help = "limits that each request must meet: the name of a set (chat, rag, mlperf-8b-server ..) or "
			"limits such as ttft=500ms,tpot=50ms. Separate several sets by /"),
	OPT_ROW(struct load_opts, attainment, .name = "attainment", .preset = "0.99", .min = 0.5, .max = 1,
		.help = "share of the requests that must meet the limits"),
	OPT_ROW(struct load_opts, expectations, .name = "expectations", .shown = "DIR",
		.help = "judge by these expectations: a folder, a saved set, or the built-in set d2 (P95 of TTFT below 100 ms, P99 below "
			"200 ms, on eight GPUs 10,000 tokens/s). With URL, d2 needs --gpus or --node"),
	OPT_ROW(struct load_opts, sweep, .name = "sweep",
		.help = "search for the highest rate that meets the limits"),
	OPT_ROW(struct load_opts, warmup, .name = "warmup", .preset = "-1", .unit = "s", .min = -1,
		.max = DAY_S,
		.help = "time at the beginning and at the end of the schedule that is not measured, each at most 40 "
			"% of the duration. -1: a tenth each, at most 30 s"),
	OPT_ROW(struct load_opts, grace, .name = "grace", .preset = "60", .unit = "s", .max = DAY_S,
		.help = "time to wait for answers after the end of the schedule"),
	OPT_ROW(struct load_opts, timeout, .name = "timeout", .preset = "600", .unit = "s", .min = 0.1,
		.max = DAY_S, .help = "time limit of a request"),
	OPT_ROW(struct load_opts, ready, .name = "ready-timeout", .preset = "300", .unit = "s", .max = DAY_S,
		.help = "how long to wait for a server that answers 503 (for example while it loads its model) or 429"),
	OPT_ROW(struct load_opts, connections, .name = "max-connections", .preset = "0", .max = 100000,
		.help = "most requests in flight. Further requests wait, and their waiting time counts. 0: 4096, or "
			"fewer if the limit of open files is lower"),
	OPT_ROW(struct load_opts, threads, .name = "threads", .preset = "0", .max = 64,
		.help = "threads that send requests; 0: one per two CPUs"),
	OPT_ROW(struct load_opts, seed, .name = "seed", .preset = "0", .max = 1e15,
		.help = "seed of times, lengths and texts"),
	OPT_ROW(struct load_opts, metrics, .name = "metrics", .shown = "PATH", .preset = "/metrics",
		.help = "path of the server's Prometheus metrics; none: do not read them"),
	OPT_ROW(struct load_opts, idle, .name = "idle", .preset = "2", .unit = "s", .max = 600,
		.help = "time before the load in which assay measures idle power"),
	OPT_ROW(struct load_opts, node, .name = "node", .also = "ssh", .shown = "HOST",
		.help = "the server's node: assay samples its power and clocks over ssh, with the assay on that node"),
	OPT_ROW(struct load_opts, gpus, .name = "gpus", .also = "server-gpus num-gpus", .preset = "0",
		.max = 100000,
		.help = "GPUs that the server uses, for marks such as d2; 0: those of the engine that --model starts, else "
			"those of --node, otherwise not known"),
	OPT_ROW(struct load_opts, sample, .name = "telemetry", .preset = "true",
		.help = "sample power, clocks and temperatures during the run"),
	OPT_ROW(struct load_opts, real_names, .name = "real-names",
		.help = "keep serial numbers, addresses and host names in the journal instead of pseudonyms"),
	OPT_ROW(struct load_opts, out, .name = "out", .also = "output-dir o", .shown = "DIR",
		.help = "run directory (default: assay-runs/DATE-load)"),
	OPT_ROW(struct load_opts, plan, .name = "plan", .also = "dry-run",
		.help = "print the number of requests, tokens and the time, and send nothing"),
	OPT_ROW(struct load_opts, json, .name = "json",
		.help = "print the results as JSON, or with --plan the plan"),
};
#define ROWS                                                                                                 \
	{                                                                                                    \
		rows, sizeof(rows) / sizeof(rows[0]), sizeof(struct load_opts)                               \
	}
const struct opt_table load_opt_table = ROWS;

const struct command command_load = {
	.name = "load",
	.summary = "load-test any server with OpenAI's API: latency, throughput, highest rate",
	.example =
		"assay load http://127.0.0.1:8000 --rate 4 --duration 30 --slo chat   # latencies, goodput, power",
	.help = "Sends requests on a schedule that is fixed before the run, and measures each answer. It "
		"reports the time to the first token (TTFT), the time per token (TPOT), the time of the "
		"whole answer, tokens per second, and the share of the requests that meet the limits. "
		"Latencies count from the scheduled send time, so waiting is included even if the client is "
		"late or the server is full. The run directory has the journal, one line per request, power "
		"and clocks, SUMMARY.md and an HTML page.\n\n"
		"Exit codes: 0 the limits of --slo and the rules of --expectations were met. Without both, 0 means "
		"that the figures can be trusted. 1 they were not met, or more than 1 % of the requests failed. 2 no "
		"answer ended in the measured window, or there were too few requests to decide. It is 2 also if a "
		"figure is missing or cannot be trusted. assay contacts only the server that you name, and follows "
		"no redirects.",
	.check = load_opts_check,
	.opts = ROWS,
	.single = true,
	.run = load_perform,
};
