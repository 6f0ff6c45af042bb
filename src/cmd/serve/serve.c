/* SPDX-License-Identifier: Apache-2.0 */
/* assay serve: an OpenAI-compatible server for one model. */
#include "cmd/serve/serve.h"
#include "cmd/shared/show.h"
#include "cmd/shared/single_process.h"
#include "core/text/text.h"
#include "text/chat/template.h"

static const char *const devices[] = {"auto", "cpu", "gpu", NULL}; /* enum load_device */
static const char *const caches[] = {"auto", "fp8", NULL}, *const weights[] = {"auto", "fp8", NULL};

static const struct opt opts[] = {
	OPT_ROW(struct serve_opts, model, .name = "model", .positional = true, .shown = "MODEL",
		.help = "the model: a folder with config.json and safetensors, or a GGUF file"),
	OPT_ROW(struct serve_opts, adapter, .name = "adapter", .also = "lora lora-path peft lora-modules",
		.shown = "DIR",
		.help = "folder with a LoRA adapter in PEFT format, which assay merges at load. Or up to 16 "
			"adapters, written as NAME=DIR,NAME=DIR; a request chooses one by the name of its model"),
	OPT_ROW(struct serve_opts, any_base, .name = "any-base",
		.help = "accept an adapter that was trained on other base weights"),
	OPT_ROW(struct serve_opts, name, .name = "served-model-name", .also = "alias model-name",
		.shown = "NAME",
		.help = "the name in /v1/models and in requests (default: the last part of MODEL's path)"),
	OPT_ROW(struct serve_opts, host, .name = "host", .also = "bind address listen", .preset = "127.0.0.1",
		.help = "address to listen on; 0.0.0.0: every interface"),
	OPT_ROW(struct serve_opts, port, .name = "port", .preset = "8000", .max = 65535,
		.help = "port to listen on; 0: any free one"),
	OPT_ROW(struct serve_opts, device, .name = "device", .also = "gpus gpu devices cuda n-gpu-layers",
		.preset = "auto", .choices = devices,
		.help = "device that computes; auto: a GPU if one works, otherwise the CPU"),
	OPT_ROW(struct serve_opts, context, .name = "context",
		.also = "max-model-len ctx-size n-ctx max-seq-len", .preset = "0", .max = 1048576,
		.shown = "TOKENS",
		.help = "most tokens of a request, prompt and answer together; 0: the model's own limit, at most "
			"32768"),
	OPT_ROW(struct serve_opts, sequences, .name = "max-sequences",
		.also = "max-num-seqs parallel max-batch-size", .preset = "0", .max = 512, .shown = "N",
		.help = "most requests that are computed at once (batch size); 0: 256 on a GPU, 16 on a CPU"),
	OPT_ROW(struct serve_opts, rows, .name = "max-rows", .also = "max-num-batched-tokens batch-size",
		.preset = "0", .max = 65536, .shown = "N",
		.help = "most tokens of one step; 0: 8192 on a GPU, 256 on a CPU"),
	OPT_ROW(struct serve_opts, step_ms, .name = "max-step-ms", .preset = "0", .max = 60000,
		.help = "longest predicted step while answers are generated, in milliseconds. With a lower value "
			"tokens arrive more evenly, with a higher value throughput rises. 0: 30 on a GPU, or 150 while "
			"many prompts wait; 250 on a CPU. Steps that only read prompts may take longer"),
	OPT_ROW(struct serve_opts, queue, .name = "max-queue", .preset = "4096", .min = 1, .max = 1e6,
		.help = "most requests that run or wait. Further requests get status 429"),
	OPT_ROW(struct serve_opts, memory, .name = "memory",
		.also = "gpu-memory-utilization mem-fraction-static", .preset = "0", .unit = "B",
		.help = "memory for weights and KV cache, such as 40GiB; 0: 90 % of the GPU's memory, or half of the host's"),
	OPT_ROW(struct serve_opts, page, .name = "page-tokens", .also = "block-size", .preset = "32",
		.min = 16, .max = 64, .help = "tokens per page of the KV cache: 16, 32 or 64"),
	OPT_ROW(struct serve_opts, cache, .name = "kv-cache", .also = "kv-cache-dtype cache-type-k",
		.preset = "auto", .choices = caches,
		.help = "number format of the KV cache; auto: BF16 on a GPU, F32 on a CPU"),
	OPT_ROW(struct serve_opts, weights, .name = "weights", .also = "quantization", .preset = "auto",
		.choices = weights,
		.help = "number format of the layers' weights. auto: the format in which the device computes. fp8 "
			"(GPU only): quantize at load, which halves the memory"),
	OPT_ROW(struct serve_opts, no_prefix_cache, .name = "no-prefix-cache",
		.also = "no-enable-prefix-caching",
		.help = "switch prefix caching off: prompts with the same beginning share no part of the KV cache"),
	OPT_ROW(struct serve_opts, deterministic, .name = "deterministic",
		.help = "a request gets the same tokens whatever other requests run. Slower on a GPU"),
	OPT_ROW(struct serve_opts, template, .name = "chat-template", .also = "template",
		.shown = "NAME|FILE",
		.help = "chat template: auto (the template of the model), a family such as chatml or qwen2.5, or a "
			".jinja file (default: auto)"),
	OPT_ROW(struct serve_opts, api_keys, .name = "api-key-file", .also = "api-key", .shown = "FILE",
		.help = "file with API keys, one per line; requests then need one of them"),
	OPT_ROW(struct serve_opts, certificate, .name = "tls-certificate",
		.also = "ssl-certfile ssl-cert-file", .shown = "FILE",
		.help = "PEM file with the certificate for HTTPS"),
	OPT_ROW(struct serve_opts, key, .name = "tls-key", .also = "ssl-keyfile ssl-key-file",
		.shown = "FILE", .help = "PEM file with the certificate's key"),
	OPT_ROW(struct serve_opts, cors, .name = "cors", .also = "allowed-origins", .shown = "ORIGIN",
		.help = "origin of web pages that may send requests; *: any"),
	OPT_ROW(struct serve_opts, connections, .name = "max-connections", .preset = "0", .max = 100000,
		.help = "most open connections; 0: 10000. A request on a further connection gets status 503, but "
			"/health, /ready and /metrics are answered"),
	OPT_ROW(struct serve_opts, body, .name = "max-body", .preset = "0", .unit = "B",
		.help = "largest body of a request, such as 8MiB; 0: 32 MiB"),
	OPT_ROW(struct serve_opts, answer_s, .name = "max-seconds", .preset = "0", .max = 1e6,
		.help = "time limit from a request to the end of its answer, in seconds. Then the answer ends with "
			"an error. 0: no limit"),
	OPT_ROW(struct serve_opts, request_log, .name = "request-log", .shown = "FILE",
		.help = "file with a JSON line per request: lengths, times and status (default: requests.jsonl in the run directory)"),
	OPT_ROW(struct serve_opts, log_requests, .name = "log-requests",
		.help = "write the contents of requests to the request log too"),
	OPT_ROW(struct serve_opts, out, .name = "out", .also = "output-dir output o", .shown = "DIR",
		.help = "run directory for journal, request log and report (default: assay-runs/DATE-serve)"),
	OPT_ROW(struct serve_opts, sample, .name = "telemetry", .preset = "true",
		.help = "sample power, clocks and temperatures during the run"),
	OPT_ROW(struct serve_opts, real_names, .name = "real-names",
		.help = "keep serial numbers, addresses and host names in the journal instead of pseudonyms"),
	OPT_ROW(struct serve_opts, plan, .name = "plan", .also = "dry-run",
		.help = "print how the server would divide the memory, and start nothing"),
	OPT_ROW(struct serve_opts, json, .name = "json", .help = "with --plan: print the plan as JSON"),
};

static enum status check_adapters(const struct serve_opts *o, struct error *err)
{
	struct serve_opts copy = *o;
	enum status st = serve_opts_adapters(&copy, err);

	if (!st)
		serve_adapters_release(&copy.adapters);
	return st;
}

static bool names_template(const char *name)
{
	for (const char *const *known = template_names; *known; known++)
		if (!strcmp(name, *known))
			return true;
	return false;
}

static enum status check_template(const struct serve_opts *o, struct error *err)
{
	struct text names = {0};
	enum status st;

	if (!o->template || names_template(o->template) || template_names_file(o->template))
		return STATUS_OK;
	for (const char *const *known = template_names; *known; known++)
		text_addf(&names, "%s, ", *known);
	st = error_set(
		err, STATUS_BAD_INPUT,
		"--chat-template: \"%.60s\" is not a chat template: use %sor a file (with a / or ending in "
		".jinja)",
		o->template, text_str(&names));
	text_release(&names);
	return st;
}

/* What a browser sends as Origin. The text goes into a header. */
static bool is_origin(const char *text)
{
	for (const char *c = text; *c; c++)
		if (*c <= ' ' || *c > '~' || *c == ',')
			return false;
	return !strcmp(text, "*") || !strcmp(text, "null") || strstr(text, "://");
}

static enum status check_http(const struct serve_opts *o, struct error *err)
{
	if (!o->certificate != !o->key)
		return error_set(err, STATUS_BAD_INPUT,
				 "--tls-certificate and --tls-key are needed together");
	if (o->cors && !is_origin(o->cors))
		return error_set(err, STATUS_BAD_INPUT,
				 "--cors must be * or one origin, such as https://example.org");
	return STATUS_OK;
}

static enum status check(const void *opts_, struct error *err)
{
	const struct serve_opts *o = opts_;
	enum status st;

	if (!o->model)
		return error_set(err, STATUS_BAD_INPUT, "no model given: assay serve MODEL");
	if (o->page & (o->page - 1))
		return error_set(err, STATUS_BAD_INPUT, "--page-tokens is %llu; it must be 16, 32 or 64",
				 (unsigned long long)o->page);
	if (o->context == 1)
		return error_set(err, STATUS_BAD_INPUT,
				 "--context is 1; the shortest prompt and answer need 2 tokens");
	if (o->any_base && !o->adapter)
		return error_set(err, STATUS_BAD_INPUT, "--any-base needs --adapter");
	if (o->weights == 1 && o->device == LOAD_CPU)
		return error_set(err, STATUS_BAD_INPUT, "--weights fp8 needs a GPU; remove --device cpu");
	if (o->json && !o->plan)
		return error_set(err, STATUS_BAD_INPUT, "--json needs --plan");
	if (o->out && o->plan)
		return error_set(err, STATUS_BAD_INPUT, "--plan writes no run directory: leave out --out");
	if (o->name && !*o->name)
		return error_set(err, STATUS_BAD_INPUT,
				 "--served-model-name is empty; give a name, or leave out the option");
	st = check_http(o, err);
	if (!st)
		st = check_template(o, err);
	return st ? st : check_adapters(o, err);
}

static enum status serve_run(struct serving *s, struct error *err)
{
	enum status st = serve_record_begin(s, err);

	if (st)
		return st;
	st = serve_supervise(s, err);
	serve_record_end(s, s->summary, err);
	return st;
}

static int run(const struct command_context *c, const void *opts_)
{
	struct serve_opts o = *(const struct serve_opts *)opts_;
	struct serving s = {.c = c, .o = &o, .control = -1};
	struct error err = {0};
	enum status st = check(opts_, &err);

	if (!st)
		st = single_process_check("serve", &err);
	if (!st)
		st = serve_opts_adapters(&o, &err);
	if (!st)
		st = serve_check_model(s.o, c->log, &err);
	if (!st && s.o->plan)
		st = serve_show_plan(s.o, c->log, &err);
	else if (!st)
		st = serve_run(&s, &err);
	json_decref(s.ready);
	json_decref(s.summary);
	serve_adapters_release(&o.adapters);
	return st ? command_complain(c, &err) : EXIT_PASS;
}

const struct command command_serve = {
	.name = "serve",
	.summary = "serve a model with OpenAI's API",
	.example = "assay serve model --port 8000   # then: curl http://127.0.0.1:8000/v1/models",
	.help = "Loads a model and answers requests of OpenAI clients: /v1/chat/completions, "
		"/v1/completions, /v1/models and more. All running requests are computed together "
		"(continuous batching). Prompts with the same beginning share their part of the KV cache "
		"(prefix caching). GET / is a small chat page. Only programs on this machine can connect, "
		"unless you set --host. After TERM or Ctrl-C, the server finishes the running requests and "
		"ends. A second TERM or Ctrl-C ends it at once.",
	.check = check,
	.opts = {opts, sizeof(opts) / sizeof(opts[0]), sizeof(struct serve_opts)},
	.single = true,
	.run = run,
};
