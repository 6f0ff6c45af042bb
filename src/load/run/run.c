/* SPDX-License-Identifier: Apache-2.0 */
#include "load/run/run.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include "core/clock.h"
#include "load/run/planned.h"
#include "load/run/reporter.h"
#include "load/run/server.h"
#include "load/run/sweep.h"

enum {
	OWN_DESCRIPTORS = 64, /* journal, libraries, epoll and the like */
	CONNECT_MS = 10000,
	SATURATED_USERS = 256,
	SETTLE_MS = 1000
};

struct run {
	struct load_run_spec spec; /* with its defaults resolved */
	struct http http;
	struct load_server server;
	struct load_stages stages;
	struct reporter reporter;
};

/* Raises the limit of open files, and says before the run if it is too low for the connections. */
static enum status check_descriptors(struct load_run_spec *o, struct error *err)
{
	const bool given = o->connections || o->plan.arrival == LOAD_CLOSED;
	const unsigned wanted =
		o->plan.arrival == LOAD_CLOSED && !o->connections ? o->plan.users : o->connections;
	struct rlimit limit;
	rlim_t most;

	o->limited = o->connections > 0;
	if (getrlimit(RLIMIT_NOFILE, &limit))
		return error_errno(err, errno, "the limit of open files");
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	getrlimit(RLIMIT_NOFILE, &limit);
	most = limit.rlim_cur > OWN_DESCRIPTORS ? limit.rlim_cur - OWN_DESCRIPTORS : 1;
	if (given && wanted > most)
		return error_set_cause(
			err, STATUS_NO_RESOURCE, CAUSE_LIMIT_LOW,
			"%u connections need %u open files, and the limit is %llu: raise it (ulimit -n), or "
			"use fewer --users or --max-connections",
			wanted, wanted + OWN_DESCRIPTORS, (unsigned long long)limit.rlim_cur);
	if (given)
		o->connections = wanted;
	else
		o->connections = most < LOAD_CONNECTIONS ? (unsigned)most : LOAD_CONNECTIONS;
	return STATUS_OK;
}

/* The body of one request, with another text than those of the load. */
static enum status make_trial(struct run *r, struct text *body, struct error *err)
{
	struct load_plan_spec one = r->spec.plan;
	struct load_plan plan = {0};
	struct load_worker *worker = NULL;
	struct load_asked asked;
	uint64_t raised;
	enum status st;

	one.seed = ~one.seed;
	if (one.arrival != LOAD_TRACE) { /* whatever the schedule, its first request is due */
		one.arrival = LOAD_CLOSED;
		one.users = 1;
		one.requests_most = one.turns;
	}
	st = load_plan_make(&plan, &one, err);
	if (!st)
		st = load_content_check(r->stages.content, &plan, &raised, err);
	if (!st)
		st = load_worker_create(&worker, r->stages.content, err);
	if (!st && plan.count)
		st = load_worker_body(worker, &plan.request[0], plan.count, NULL, body, &asked, err);
	load_worker_destroy(&worker);
	load_plan_release(&plan);
	return st;
}

/* Repeats the request while the server answers 503, because it may still load its model, or 429. */
static enum status try_until_ready(struct run *r, const struct text *body, struct error *err)
{
	const struct clock *clock = clock_monotonic();
	const uint64_t end = clock_now_ns(clock) + (uint64_t)(r->spec.ready_s * 1e9);
	unsigned again_ms;
	bool told = false;
	enum status st;

	while ((st = load_server_try(&r->server, &r->http, r->stages.path, body, &again_ms, err)) &&
	       again_ms && !*r->spec.stop && clock_now_ns(clock) < end) {
		if (!told)
			log_warn(r->spec.log, LOG_TOPIC_RUN, "%s; waiting at most %g s until it is ready",
				 err->text, r->spec.ready_s);
		told = true;
		*err = (struct error){0};
		clock_sleep_ns(clock, again_ms * 1000000ull);
	}
	return st;
}

/* A single request first: a server that refuses our requests is found before the load. */
static enum status try_request(struct run *r, struct error *err)
{
	struct text body = {0};
	enum status st = make_trial(r, &body, err);

	if (!st && body.size)
		st = try_until_ready(r, &body, err);
	text_release(&body);
	return st;
}

static enum status meet_server(struct run *r, struct error *err)
{
	struct load_run_spec *o = &r->spec;
	struct http_options http = {.key = o->key,
				    .authorities = o->authorities,
				    .insecure = o->insecure,
				    .connect_ms = CONNECT_MS,
				    .request_ms = (unsigned)(o->timeout_s * 1e3)};
	enum status st = load_server_base(&r->server, o->url, err);

	http.base = r->server.base;
	if (!st && o->insecure)
		log_warn(r->spec.log, LOG_TOPIC_RUN, "--insecure: the server's certificate is not checked");
	if (!st)
		st = http_open(&r->http, &http, err);
	if (!st)
		st = load_server_meet(&r->server, &r->http, o->model, err);
	return st;
}

static enum status open_content(struct run *r, struct error *err)
{
	struct load_content_spec *c = &r->spec.content;

	c->model = r->server.model;
	if (load_content_open(&r->stages.content, c, err))
		return err->status;
	r->stages.path = c->completion ? "/v1/completions" : "/v1/chat/completions";
	r->spec.plan.dataset_rows = load_content_rows(r->stages.content);
	if (!load_content_exact(r->stages.content))
		log_warn(r->spec.log, LOG_TOPIC_RUN,
			 "prompt lengths are approximate: give the model's --tokenizer for exact ones");
	return STATUS_OK;
}

static enum status open_requests(struct run *r, struct error *err)
{
	struct text path = {0};

	text_addf(&path, "%s/requests.jsonl", r->spec.dir);
	r->stages.requests = fopen(text_str(&path), "we");
	text_release(&path);
	return r->stages.requests ? STATUS_OK : error_errno(err, errno, "%s/requests.jsonl", r->spec.dir);
}

static enum status begin(struct run *r, struct error *err)
{
	enum status st = check_descriptors(&r->spec, err);

	if (!st)
		st = meet_server(r, err);
	if (!st)
		st = open_content(r, err);
	if (!st)
		st = open_requests(r, err);
	if (!st)
		st = try_request(r, err);
	return st;
}

/* The stages of a sweep are made one after the other. */
static enum status tell_sweep(const struct run *r)
{
	const double stages = SWEEP_STAGES_MOST + 1, duration_s = r->spec.plan.duration_s;

	return r->spec.emit(r->spec.arg, "planned",
			    json_pack("{s:f, s:f, s:f, s:s}", "stages", stages, "duration_s", duration_s,
				      "most_s", stages * (duration_s + r->spec.grace_s), "model",
				      r->server.model),
			    NULL);
}

static enum status tell_planned(struct run *r, struct error *err)
{
	struct load_plan plan = {0};
	const struct load_run_spec *o = &r->spec;
	json_t *planned;
	enum status st;

	if (o->sweep)
		return tell_sweep(r);
	st = load_plan_make(&plan, &o->plan, err);
	planned = st ? NULL : load_planned(o, &plan);
	if (planned) {
		json_object_set_new(planned, "model", json_string(r->server.model));
		o->emit(o->arg, "planned", planned, NULL);
	}
	load_plan_release(&plan);
	return st;
}

static double value_of(const json_t *values, const char *name)
{
	return json_number_value(json_object_get(values, name));
}

/* A stage of a sweep, told as a phase of its own. */
static enum status sweep_stage(struct run *r, const struct load_plan_spec *plan, json_t **values,
			       struct error *err)
{
	enum status st = load_stage_run(&r->stages, plan, values, err);

	if (!st)
		r->spec.emit(r->spec.arg, "stage", json_pack("{s:O}", "values", *values), NULL);
	clock_sleep_ns(clock_monotonic(), SETTLE_MS * 1000000ull); /* the server ends what was cancelled */
	return st;
}

/* As many users as there may be connections, if the user limited these; else enough for most servers. */
static uint32_t saturated_users(const struct run *r)
{
	return r->spec.limited ? r->spec.connections : SATURATED_USERS;
}

/* The closed loop that finds the saturated rate. Its figures are those of the run until a stage has better
 * ones. */
static enum status saturate(struct run *r, struct sweep *sweep, json_t **values, struct error *err)
{
	struct load_plan_spec plan = r->spec.plan;
	enum status st;

	plan.arrival = LOAD_CLOSED;
	plan.users = saturated_users(r);
	st = sweep_stage(r, &plan, values, err);
	if (!st)
		sweep_begin(sweep, value_of(*values, "completed_rate"));
	return st;
}

/* The client was the bottleneck, or the answers are suspect. */
static bool is_untrusted(const json_t *values)
{
	return json_array_size(json_object_get(values, "untrusted")) > 0;
}

/* One rate of the search. The figures of the best stage become those of the run: the highest rate that met
 * the limits, or else the last one. A missed stage that cannot be trusted says nothing about the server and
 * ends the search. */
static enum status search_step(struct run *r, struct sweep *sweep, double rate, json_t **best, bool *doubt,
			       struct error *err)
{
	struct load_plan_spec plan = r->spec.plan;
	json_t *values = NULL;
	enum status st;
	bool met, sure;

	plan.rate = rate;
	plan.seed += sweep->stages + 1; /* other times and other texts than in the stages before */
	st = sweep_stage(r, &plan, &values, err);
	met = value_of(values, "slo_met") > 0;
	*doubt = !met && is_untrusted(values);
	if (values && (met || *doubt || !(sweep->low > 0))) {
		json_decref(*best);
		*best = json_incref(values);
	}
	sure = sweep_is_sure(values);
	json_decref(values);
	sweep_take(sweep, rate, met, sure);
	return st;
}

static enum status run_sweep(struct run *r, json_t **best, struct error *err)
{
	struct sweep sweep = {0};
	double rate;
	bool doubt = false;
	enum status st = saturate(r, &sweep, best, err);

	while (!st && !doubt && !*r->spec.stop && (rate = sweep_next(&sweep)) > 0)
		st = search_step(r, &sweep, rate, best, &doubt, err);
	if (!*best)
		return st;
	if (!st && sweep.low > 0 && !(sweep.high > 0))
		log_warn(
			r->spec.log, LOG_TOPIC_RUN,
			"no rate missed the limits, up to %.4g requests/s; a closed loop of %u users reached %.4g/s. Give more "
			"--max-connections",
			sweep.low, (unsigned)saturated_users(r), sweep.saturated);
	json_object_set_new(*best, "saturated_rate", json_real(sweep.saturated));
	json_object_set_new(*best, "sweep_met_rate", json_real(sweep.low));
	json_object_set_new(*best, "sweep_missed_rate", json_real(sweep.high));
	json_object_set_new(*best, "sweep_sure_rate", json_real(sweep.sure));
	return st;
}

static void end(struct run *r)
{
	reporter_stop(&r->reporter);
	load_content_close(&r->stages.content);
	if (r->stages.requests && fclose(r->stages.requests) && !r->stages.written)
		r->stages.written = error_errno(&r->stages.error, errno, "requests.jsonl");
	http_release(&r->http);
}

enum status load_run(const struct load_run_spec *spec, json_t **values, struct error *err)
{
	struct run r = {.spec = *spec, .stages = {.live = LIVE_NEW}};
	enum status st;

	*values = NULL;
	r.stages.spec = &r.spec;
	r.stages.http = &r.http;
	r.stages.epoch_ns = clock_now_ns(clock_monotonic());
	st = begin(&r, err);
	if (!st)
		st = tell_planned(&r, err);
	if (!st)
		st = reporter_start(&r.reporter, &r.stages, r.spec.metrics, err);
	if (!st)
		st = r.spec.sweep ? run_sweep(&r, values, err)
				  : load_stage_run(&r.stages, &r.spec.plan, values, err);
	end(&r);
	if (*values) /* the origin of all times in the records and curves, on the clock of the telemetry */
		json_object_set_new(*values, "epoch_ns", json_integer((json_int_t)r.stages.epoch_ns));
	if (!st && r.stages.written) {
		*err = r.stages.error;
		st = r.stages.written;
	}
	return st;
}
