/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include "core/text/text.h"
#include "engine/internal.h"

/* A step is planned before the step before is done. */
enum { PLANS_MOST = 2 };
enum { QUEUE_DEFAULT = 65536, AGE_S = 10, BYPASS_MOST = 16 };
enum { SLICE_NS = 25000000 };

static enum status no_memory(struct error *err)
{
	return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
			       "cannot allocate the engine's tables");
}

/* Steps with prompts beside decoding requests. They have no more rows than a step can have. */
static void set_mixed(const struct engine *e, struct schedule_options *o)
{
	const int32_t set = e->options.mixed_rows;

	if (e->loaded.back.kind == BACKEND_GPU)
		schedule_mixed_on_gpu(o);
	if (!set)
		return;
	o->mixed_rows = set < o->rows_most ? set : o->rows_most;
	o->mixed_few = o->mixed_prompt_rows = o->rows_together = 0;
}

static struct schedule_options schedule_options(const struct engine *e)
{
	const struct loaded *l = &e->loaded;
	const bool gpu = l->back.kind == BACKEND_GPU;
	const double set_ns = e->options.step_ms * 1e6;

	struct schedule_options o = {
		.pages = {.pages = l->pages + 1,
			  .page_tokens = l->most.page_tokens,
			  .seed = now_ns() * 0x9e3779b97f4a7c15u},
		.places = (int32_t)l->most.sequences,
		.requests_most = e->requests_most,
		.plans_most = PLANS_MOST,
		.rows_most = (int32_t)l->most.rows,
		.logits_most = (int32_t)l->most.outputs,
		.context = l->positions,
		.cost = step_cost_now(&e->cost),
		.budget_ns = set_ns > 0 ? set_ns
			     : gpu	? 30e6
					: 250e6,
		.budget_idle_ns = fmax(gpu ? 60e6 : 1e9, set_ns),
		.budget_backlog_ns = gpu && !(set_ns > 0) ? 150e6 : 0,
		.backlog_rows = e->options.backlog_rows,
		.bypass_most = BYPASS_MOST,
		.age_ns = (uint64_t)AGE_S * 1000000000u,
	};

	set_mixed(e, &o);
	return o;
}

static enum status create_tables(struct engine *e, struct error *err)
{
	const struct loaded *l = &e->loaded;
	struct schedule_options options;
	enum status st;

	e->requests_most =
		(int32_t)l->most.sequences + (e->options.queue ? e->options.queue : (int32_t)QUEUE_DEFAULT);
	e->overlaps = l->back.kind == BACKEND_GPU;
	e->slice_ns = e->options.slice_ms > 0 ? e->options.slice_ms * 1e6 : SLICE_NS;
	step_cost_start(&e->cost, &l->weights.shape, l->back.kind == BACKEND_GPU);
	e->running = calloc((size_t)e->requests_most, sizeof(*e->running));
	e->results = calloc((size_t)l->most.sequences, sizeof(*e->results));
	e->settled = calloc((size_t)l->most.sequences, sizeof(*e->settled));
	if (!e->running || !e->results || !e->settled)
		return no_memory(err);
	options = schedule_options(e);
	st = schedule_create(&e->schedule, &options, err);
	if (!st)
		st = row_lists_create(&e->rows, &l->most, err);
	if (!st)
		st = sampling_lists_create(&e->sampling, l->most.outputs, l->weights.shape.vocab, err);
	return st || !e->options.vocab ? st : compile_queue_create(&e->compiling, e->options.vocab, err);
}

enum status engine_create(struct engine **out, const struct engine_options *options, struct error *err)
{
	struct engine *e = calloc(1, sizeof(*e));
	const uint64_t begin = now_ns();
	enum status st;

	*out = e;
	if (!e)
		return no_memory(err);
	e->options = *options;
	st = load_open(&e->loaded, &options->load, err);
	if (!st)
		st = create_tables(e, err);
	e->load_s = (double)(now_ns() - begin) * 1e-9;
	if (st)
		engine_destroy(out);
	return st;
}

void engine_destroy(struct engine **out)
{
	struct engine *e = *out;

	if (!e)
		return;
	for (int32_t i = 0; e->running && i < e->requests_most; i++)
		running_release(&e->running[i]);
	compile_queue_destroy(&e->compiling);
	schedule_free(&e->schedule);
	row_lists_destroy(&e->rows);
	sampling_lists_destroy(&e->sampling);
	event_list_release(&e->events);
	free(e->running);
	free(e->results);
	free(e->settled);
	load_close(&e->loaded);
	free(e);
	*out = NULL;
}

struct loaded *engine_loaded(struct engine *e)
{
	return &e->loaded;
}

/* A request that cannot run ends at once. */
static enum status refuse(struct engine *e, const struct engine_request *r, bool bad_grammar,
			  const struct error *why, struct error *err)
{
	struct engine_event end = {.kind = ENGINE_EVENT_END,
				   .id = r->id,
				   .end = ENGINE_END_REFUSED,
				   .bad_grammar = bad_grammar,
				   .prompt_tokens = (int32_t)r->prompt_count};

	text_copy(end.text, sizeof(end.text), why->text);
	return outbox_add(e, &end, err);
}

/* Without a prefix cache each request has a salt of its own. */
static struct engine_request salted(struct engine *e, const struct engine_request *r)
{
	struct engine_request own = *r;

	if (e->options.no_prefix_cache)
		own.cache_salt = ++e->salts;
	return own;
}

/* What tells the KV caches of adapters apart: adapters are loaded once, so their numbers do. */
static uint64_t adapter_load(const struct engine *e, const struct engine_request *r)
{
	return e->loaded.adapters.count > 1 && r->adapter >= 0 ? (uint64_t)r->adapter + 1 : 0;
}

/* Hands a request to the scheduler. Takes the grammar's state. */
static enum status submit(struct engine *e, const struct engine_request *r, struct grammar_state *grammar,
			  struct error *err)
{
	const struct engine_request own = salted(e, r);
	struct running run;
	struct error why = {0};
	uint32_t number;
	enum status st = running_set(&run, r, err);

	run.grammar = grammar;
	if (!st && schedule_submit(e->schedule, &own, adapter_load(e, &own), now_ns(), &number, &why)) {
		running_release(&run);
		return refuse(e, r, false, &why, err);
	}
	if (st) {
		grammar_state_destroy(&grammar);
		return st;
	}
	running_release(&e->running[number]); /* of an earlier request with this number, which has ended */
	e->running[number] = run;
	return STATUS_OK;
}

enum status engine_submit(struct engine *e, const struct engine_request *r, struct error *err)
{
	const struct request_limits limits = {.vocab = e->loaded.weights.shape.vocab,
					      .adapters = e->loaded.adapters.count,
					      .penalties = e->options.load.penalties};
	struct error why = {0};

	if (request_check(r, &limits, &why))
		return refuse(e, r, false, &why, err);
	if (!r->grammar)
		return submit(e, r, NULL, err);
	if (!e->compiling) {
		error_set(
			&why, STATUS_UNSUPPORTED,
			"this engine runs without grammars: the model's files name no token that ends a text");
		return refuse(e, r, false, &why, err);
	}
	return compile_queue_add(e->compiling, r, err);
}

/* Too large a grammar, and a lack of memory, are no faults of the grammar itself. */
static enum status refuse_compiled(struct engine *e, const struct compiled_request *c, struct error *err)
{
	return refuse(e, &c->request, c->status == STATUS_BAD_INPUT || c->status == STATUS_UNSUPPORTED,
		      &c->error, err);
}

/* Submits the requests whose grammar is compiled. */
static enum status submit_compiled(struct engine *e, struct error *err)
{
	struct compiled_request c;
	enum status st = STATUS_OK;

	while (!st && e->compiling && compile_queue_take(e->compiling, &c)) {
		/* which ones stays out of the log: a schema is part of a request */
		if (c.warnings && e->options.load.log)
			log_warn(e->options.load.log, LOG_TOPIC_RUN,
				 "%zu keyword%s in a request's schema %s not enforced; with \"strict\": true "
				 "the answer is an error that names one",
				 c.warnings, c.warnings == 1 ? "" : "s", c.warnings == 1 ? "is" : "are");
		st = c.state ? submit(e, &c.request, c.state, err) : refuse_compiled(e, &c, err);
		compiled_release(&c);
	}
	return st;
}

/* Ends the requests whose deadline is over while their grammar is being compiled. */
static enum status end_late(struct engine *e, struct error *err)
{
	const uint64_t now = now_ns();
	struct compile_end late;
	enum status st = STATUS_OK;

	while (!st && e->compiling && compile_queue_expire(e->compiling, now, &late)) {
		const struct engine_event end = {.kind = ENGINE_EVENT_END,
						 .id = late.id,
						 .end = ENGINE_END_DEADLINE,
						 .prompt_tokens = (int32_t)late.prompt_count};

		st = outbox_add(e, &end, err);
	}
	return st;
}

enum status engine_cancel(struct engine *e, uint64_t id, struct error *err)
{
	const struct engine_event end = {.kind = ENGINE_EVENT_END, .id = id, .end = ENGINE_END_CANCELLED};

	if (e->compiling && compile_queue_cancel(e->compiling, id))
		return outbox_add(e, &end, err);
	schedule_cancel(e->schedule, id);
	return outbox_pass(e, err);
}

void engine_finish(struct engine *e, uint64_t id, int64_t tokens)
{
	schedule_finish(e->schedule, id, tokens);
}

static void count_pages(struct engine *e)
{
	const int64_t used = schedule_facts(e->schedule).pages.used;

	if (used > e->pages_most)
		e->pages_most = used;
}

int64_t engine_pages_most(const struct engine *e)
{
	return e->pages_most;
}

enum status engine_step(struct engine *e, bool *idle, struct error *err)
{
	const struct schedule_plan *plan;
	const struct schedule_cost cost = step_cost_now(&e->cost);
	enum status st;

	outbox_forget_read(e);
	*idle = false;
	st = submit_compiled(e, err);
	if (!st)
		st = end_late(e, err);
	if (st)
		return st;
	if (dispatch_is_open(e))
		return dispatch_continue(e, err);
	schedule_set_cost(e->schedule, &cost);
	plan = schedule_plan(e->schedule, now_ns(), 1);
	count_pages(e);
	st = outbox_pass(e, err);
	*idle = !plan && !e->flying;
	if (!st && plan)
		return dispatch_begin(e, plan, err);
	return !st && e->flying ? dispatch_fetch(e, err) : st;
}

void engine_tell(struct engine *e, void (*planned)(void *arg, double seconds), void *arg)
{
	e->planned = planned;
	e->planned_arg = arg;
}

int engine_fd(const struct engine *e)
{
	return e->compiling ? compile_queue_fd(e->compiling) : -1;
}

uint64_t engine_wake(const struct engine *e)
{
	const uint64_t planned = schedule_wake(e->schedule);
	const uint64_t compiling = e->compiling ? compile_queue_wake(e->compiling) : UINT64_MAX;

	return compiling < planned ? compiling : planned;
}

struct engine_facts engine_facts(const struct engine *e)
{
	const struct schedule_facts f = schedule_facts(e->schedule);

	return (struct engine_facts){
		.steps = f.steps,
		.tokens = f.tokens,
		.prompt_tokens = f.prompt_tokens,
		.cached_tokens = f.cached_tokens,
		.preemptions = f.preemptions,
		.ended = f.ended,
		.running = f.running,
		.waiting = f.waiting + (e->compiling ? (int32_t)compile_queue_count(e->compiling) : 0),
		.pages = (int32_t)f.pages.pages,
		.pages_used = (int32_t)f.pages.used,
		.pages_cached = (int32_t)f.pages.cached,
		.step_s = e->step_s,
		.busy_s = e->busy_s,
	};
}

struct engine_ready engine_ready(const struct engine *e)
{
	const struct loaded *l = &e->loaded;
	struct engine_ready r = {
		.shared = load_facts(l).shared,
		.vocab = l->weights.shape.vocab,
		.context = l->positions,
		.pages = l->pages,
		.page_tokens = l->most.page_tokens,
		.sequences = l->most.sequences,
		.weight_bytes = (double)l->arena.kind_used[MEM_WEIGHTS],
		.cache_bytes = (double)l->arena.kind_used[MEM_CACHE],
		.load_s = e->load_s,
		.measured_rows = l->deterministic_cost.rows,
		.deterministic_s = l->deterministic_cost.step_s,
		.ordinary_s = l->deterministic_cost.ordinary_s,
	};

	snprintf(r.device, sizeof(r.device), "%s", load_facts(l).device);
	return r;
}

enum status engine_check(const struct engine *e, struct error *err)
{
	return schedule_check(e->schedule, err);
}
