/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/load/options.h"
#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

enum { DAY_S = 86400 };

/* By the words of --arrival. */
static const enum load_arrival arrival_of[] = {LOAD_POISSON, LOAD_CONSTANT, LOAD_GAMMA, LOAD_RAMP,
					       LOAD_STEPS};

/* A password would go into the journal and into reports. assay adds the paths of requests itself. */
static enum status check_url(const char *url, struct error *err)
{
	static const char *const ends[] = {"/chat/completions", "/completions", "/models"};
	const char *host = strstr(url, "://");
	size_t size = strlen(url);

	if (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0)
		return error_set(err, STATUS_BAD_INPUT,
				 "%.200s: not an address; it must begin with http:// or https://", url);
	if (memchr(host + 3, '@', strcspn(host + 3, "/?#")))
		return error_set(
			err, STATUS_BAD_INPUT,
			"the address has a user name or a password before @, which the report would show: leave them "
			"out; an API key goes into a file for --api-key-file");
	if (url[strcspn(url, "?# \t")])
		return error_set(
			err, STATUS_BAD_INPUT,
			"%.200s: the address has a blank, ? or #; give http://HOST:PORT, with or without /v1",
			url);
	while (size && url[size - 1] == '/')
		size--;
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		const size_t length = strlen(ends[i]);

		if (size > length && !strncmp(url + size - length, ends[i], length))
			return error_set(err, STATUS_BAD_INPUT,
					 "%.200s: assay adds %s itself: give the address up to /v1", url,
					 ends[i]);
	}
	return STATUS_OK;
}

static enum status check_target(const struct load_opts *o, struct error *err)
{
	if (!o->url && !o->model)
		return error_set(err, STATUS_BAD_INPUT,
				 "no server given: assay load http://HOST:PORT, or assay load --model MODEL");
	if (o->url && o->model)
		return error_set(err, STATUS_BAD_INPUT,
				 "give an address or --model, not both; for prompt lengths use --tokenizer");
	if (o->model && access(o->model, R_OK))
		return error_set(err, STATUS_BAD_INPUT, "cannot open model %s: %s", o->model,
				 strerror(errno));
	if (o->serve && !o->model)
		return error_set(err, STATUS_BAD_INPUT, "--serve-options needs --model");
	return o->url ? check_url(o->url, err) : STATUS_OK;
}

/* Options that would have no effect. */
static enum status check_useless(const struct load_opts *o, struct error *err)
{
	const enum load_arrival a = arrival_of[o->arrival];
	const struct {
		bool useless;
		const char *why;
	} rows[] = {
		{o->steps && a != LOAD_STEPS, "--steps needs --arrival steps"},
		{o->rate_end > 0 && a != LOAD_RAMP, "--rate-end needs --arrival ramp"},
		{o->burstiness != 1 && a != LOAD_GAMMA, "--burstiness needs --arrival gamma"},
		{o->speed != 1 && !o->trace, "--trace-speed needs --trace"},
		{o->think > 0 && !o->users && o->turns < 2, "--think needs --users or --turns"},
		{o->groups != 1 && !o->prefix, "--prefix-groups needs --prefix"},
		{a != LOAD_POISSON && (o->users || o->trace),
		 "--arrival is for an open loop: leave it out with --users and --trace"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].useless)
			return error_set(err, STATUS_BAD_INPUT, "%s", rows[i].why);
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
		st = check_useless(o, err);
	if (!st)
		st = check_out(o, err);
	if (!st)
		st = load_opts_spec(&spec, o, err);
	for (size_t i = 0; !st && !o->stream && i < spec.slo_count; i++)
		if (spec.slo[i].ttft_s > 0 || spec.slo[i].tpot_s > 0)
			st = error_set(
				err, STATUS_BAD_INPUT,
				"--slo %.60s limits the time to a token, which --no-stream does not measure",
				spec.slo_text[i]);
	return st;
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
		.prefix_groups = o->prefix ? (uint32_t)o->groups : 0,
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
		.ready_s = o->ready,
		.grace_s = o->grace,
		.warmup_s = o->warmup,
		.threads = (unsigned)o->threads,
		.connections = (unsigned)o->connections,
		.attainment = o->attainment,
	};
	set_plan(&spec->plan, o);
	spec->content = (struct load_content_spec){
		.tokenizer = o->tokenizer ? o->tokenizer : o->model,
		.chat_template = o->template,
		.dataset = o->dataset,
		.extra = o->body,
		.completion = o->endpoint == LOAD_ENDPOINT_COMPLETIONS,
		.uncounted = !o->recount,
		.stream = o->stream,
		.usage = o->stream,
		.ignore_eos = o->ignore_eos,
		.min_tokens = o->ignore_eos,
		.temperature = o->temperature,
		.seed = -1,
	};
	st = load_length_read(&spec->plan.input, o->input, err);
	if (!st)
		st = load_length_read(&spec->plan.output, o->output, err);
	return st ? st : read_slos(spec, o->slo, err);
}
