/* SPDX-License-Identifier: Apache-2.0 */
/* assay serve --plan: how memory would be divided. */
#include "cmd/serve/serve.h"
#include "cmd/shared/engine_memory.h"
#include "cmd/shared/show.h"

static enum status plan_of(const struct serve_opts *o, const struct log *log, struct load_plan *plan,
			   struct error *err)
{
	struct load_options options = serve_load_options(o);
	struct error why = {0};
	enum status st;

	options.log = log;
	st = load_plan(plan, &options, &why);
	if (st && options.device == LOAD_GPU && !options.memory &&
	    (why.cause == CAUSE_DRIVER_MISSING || why.cause == CAUSE_NOT_GRANTED))
		return error_set_cause(
			err, st, why.cause,
			"%s; a plan for a GPU that is not here needs --memory, for example --memory 72GiB for 90 %% of 80 GiB",
			why.text);
	return st ? error_set_cause(err, st, why.cause, "%s", why.text) : STATUS_OK;
}

/* Sequences of the whole context that the KV cache holds at once. */
static double sequences_that_fit(const struct load_plan *p)
{
	return (double)p->pages / (double)((p->positions + p->page_tokens - 1) / p->page_tokens);
}

static void print(const struct load_plan *p)
{
	printf("%-36s %10s\n", "device", p->device);
	printf("%-36s %10.3f GB\n", "all", (double)p->bytes * 1e-9);
	for (int i = 0; i < MEM_KINDS; i++)
		if (p->kind[i])
			printf("  %-34s %10.3f GB\n", engine_memory_text((enum memory_kind)i),
			       (double)p->kind[i] * 1e-9);
	printf("%-36s %10lld of %lld tokens, %.3f MB each\n", "pages of the KV cache", (long long)p->pages,
	       (long long)p->page_tokens, (double)p->page_bytes * 1e-6);
	printf("%-36s %10lld\n", "tokens in the KV cache", (long long)(p->pages * p->page_tokens));
	printf("%-36s %10.1f of %lld tokens\n", "longest sequences that fit", sequences_that_fit(p),
	       (long long)p->positions);
	printf("%-36s %10lld\n", "sequences at once, at most", (long long)p->sequences);
}

static bool print_json(const struct load_plan *p)
{
	json_t *kinds = json_object(), *out;
	bool shown;

	for (int i = 0; i < MEM_KINDS; i++)
		if (p->kind[i])
			json_object_set_new(kinds, memory_kind_name((enum memory_kind)i),
					    json_integer((json_int_t)p->kind[i]));
	out = json_pack("{s:s, s:I, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:f}", "device", p->device, "bytes",
			(json_int_t)p->bytes, "kinds", kinds, "pages", (json_int_t)p->pages, "page_tokens",
			(json_int_t)p->page_tokens, "page_bytes", (json_int_t)p->page_bytes, "tokens",
			(json_int_t)(p->pages * p->page_tokens), "positions", (json_int_t)p->positions,
			"sequences", (json_int_t)p->sequences, "sequences_that_fit", sequences_that_fit(p));
	shown = show_json(out, JSON_INDENT(1));
	json_decref(out);
	return shown;
}

enum status serve_show_plan(const struct serve_opts *o, const struct log *log, struct error *err)
{
	struct load_plan plan;
	enum status st = plan_of(o, log, &plan, err);

	if (st)
		return st;
	if (o->json)
		return print_json(&plan)
			       ? STATUS_OK
			       : error_set(err, STATUS_NO_RESOURCE, "cannot write the plan to stdout");
	print(&plan);
	return STATUS_OK;
}
