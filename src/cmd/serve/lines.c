/* SPDX-License-Identifier: Apache-2.0 */
/* What the options mean for the memory plan and for the two processes. */
#include "cmd/serve/serve.h"
#include "core/text/text.h"

enum { CONTEXT_MOST = 32768 };

struct load_options serve_load_options(const struct serve_opts *o)
{
	struct load_options l = {
		.device = (enum load_device)o->device,
		.model = o->model,
		.merge = true,
		.any_base = o->any_base,
		.positions = (int64_t)o->context,
		.positions_most = o->context ? 0 : CONTEXT_MOST,
		.sequences = (int64_t)o->sequences,
		.rows = (int64_t)o->rows,
		.page_tokens = (int32_t)o->page,
		.memory = o->memory,
		.cache_e4m3 = o->cache == 1,
		.weights_e4m3 = o->weights == 1,
		.penalties = true,
		.deterministic = o->deterministic,
	};

	memcpy(l.adapter, o->adapters.dir, sizeof(l.adapter));
	return l;
}

/* The last part of the model's path, without the suffix of a GGUF file. */
static void default_name(const char *model, char *out, size_t size)
{
	size_t length = strlen(model), begin;

	while (length > 1 && model[length - 1] == '/')
		length--;
	if (length > 5 && !strncmp(model + length - 5, ".gguf", 5))
		length -= 5;
	for (begin = length; begin > 0 && model[begin - 1] != '/'; begin--)
		;
	snprintf(out, size, "%.*s", (int)(length - begin), model + begin);
}

/* The base model's name. One named adapter is merged into the weights, so the model has its name. */
const char *serve_name(const struct serve_opts *o, char out[256])
{
	if (o->name)
		return o->name;
	if (o->adapters.count == 1 && o->adapters.name[0])
		return o->adapters.name[0];
	default_name(o->model, out, 256);
	return out;
}

enum status serve_opts_adapters(struct serve_opts *o, struct error *err)
{
	char name[256];
	enum status st;

	st = serve_adapters_read(&o->adapters, o->adapter, serve_name(o, name), err);
	if (!st && o->name && o->adapters.count == 1 && o->adapters.name[0]) {
		serve_adapters_release(&o->adapters);
		st = error_set(err, STATUS_BAD_INPUT,
			       "one adapter is merged into the weights, so the model has one name: give "
			       "--served-model-name, or the name in --adapter");
	}
	return st;
}

/* The names of adapters that requests choose among. */
static json_t *adapter_names(const struct serve_opts *o)
{
	json_t *names = json_array();

	for (int32_t i = 0; o->adapters.count > 1 && i < o->adapters.count; i++)
		json_array_append_new(names, json_string(o->adapters.name[i]));
	return names;
}

json_t *serve_front_line(const struct serving *s)
{
	const struct serve_opts *o = s->o;
	char name[256];

	return json_pack(
		"{s:s, s:s, s:o, s:s?, s:s, s:I, s:s?, s:s?, s:s?, s:s?, s:s, s:I, s:b, s:I, s:I, s:I, s:I, s:I}",
		"model", o->model, "name", serve_name(o, name), "adapters", adapter_names(o), "chat_template",
		o->template, "host", o->host, "port", (json_int_t)(s->port ? s->port : o->port), "api_keys",
		o->api_keys, "certificate", o->certificate, "key", o->key, "cors", o->cors, "request_log",
		s->record.request_log, "request_log_begin", (json_int_t)s->record.log_begin, "log_requests",
		o->log_requests, "queue", (json_int_t)o->queue, "connections", (json_int_t)o->connections,
		"body", (json_int_t)o->body, "answer_s", (json_int_t)o->answer_s, "hang_s",
		(json_int_t)serve_hang_s());
}

json_t *serve_engine_line(const struct serve_opts *o, uint32_t epoch)
{
	const struct load_options l = serve_load_options(o);
	json_t *adapters = json_array();

	for (int32_t i = 0; i < o->adapters.count; i++)
		json_array_append_new(adapters, json_string(o->adapters.dir[i]));
	return json_pack(
		"{s:s, s:o, s:b, s:i, s:I, s:I, s:I, s:I, s:i, s:I, s:b, s:b, s:b, s:b, s:I, s:I, s:f}",
		"model", o->model, "adapters", adapters, "any_base", o->any_base, "device", (int)l.device,
		"positions", (json_int_t)l.positions, "positions_most", (json_int_t)l.positions_most,
		"sequences", (json_int_t)o->sequences, "rows", (json_int_t)l.rows, "page_tokens",
		(int)l.page_tokens, "memory", (json_int_t)l.memory, "cache_e4m3", l.cache_e4m3,
		"weights_e4m3", l.weights_e4m3, "deterministic", l.deterministic, "no_prefix_cache",
		o->no_prefix_cache, "queue", (json_int_t)o->queue, "epoch", (json_int_t)epoch, "step_ms",
		o->step_ms);
}
