/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/engine.h"
#include <stdlib.h>
#include <string.h>
#include "core/clock.h"
#include "core/text/text.h"
#include "engine/compile_queue.h"
#include "engine/event_list.h"
#include "engine/schedule/schedule.h"
#include "engine/step/row_lists.h"
#include "engine/step/sampling_lists.h"
#include "engine/step/step_cost.h"

enum { QUEUE_DEFAULT = 65536, IN_FLIGHT = 2, AGE_S = 10, BYPASS_MOST = 16 };
/* docs/explanation/design/engine.md, "Scheduler", says why. */
enum { ROWS_TILE = 1024, PREFILL_STEPS = 5 };

/* A step that is enqueued and whose results are not fetched. */
struct flight {
	const struct schedule_plan *plan;
	uint64_t begun_ns;
	int turn;
};

/* What events need of an entry whose plan is done. */
struct settled {
	uint32_t number;
	int32_t scored; /* rows that gave the log probability of a token of the prompt */
	const struct sample_result *result;
};

struct engine {
	struct loaded loaded;
	struct engine_options options;
	struct schedule *schedule;
	struct running *running; /* by the scheduler's number */
	int32_t requests_most;
	struct row_lists *rows;
	struct sampling_lists *sampling;
	struct flight flight[IN_FLIGHT];
	int flights;
	struct schedule_result *results; /* [sequences] */
	struct settled *settled;	 /* [sequences] */
	struct compile_queue *compiling; /* NULL: no grammars */
	struct event_list events;
	bool events_read;
	struct step_cost cost;
	bool overlaps;	/* a step is enqueued before the results of the step before are fetched */
	uint64_t salts; /* given to requests that are to share no pages */
	double step_s, busy_s, load_s;
	uint64_t fetched_ns; /* when the last results came */
	int64_t pages_most;  /* most pages in use after a plan */
	void (*planned)(void *arg, double seconds);
	void *planned_arg;
};

static uint64_t now_ns(void)
{
	return clock_now_ns(clock_monotonic());
}

static enum status no_memory(struct error *err)
{
	return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
			       "cannot allocate the engine's tables");
}

/* Not more than a step can have; 0: no tiles. */
static int32_t rows_tile(const struct engine *e, bool gpu)
{
	const int32_t most = (int32_t)e->loaded.most.rows;
	const int32_t tile = e->options.rows_tile ? e->options.rows_tile : gpu ? ROWS_TILE : 0;

	return tile < most ? tile : most;
}

static struct schedule_options schedule_options(const struct engine *e)
{
	const struct loaded *l = &e->loaded;
	const bool gpu = l->back.kind == BACKEND_GPU;

	return (struct schedule_options){
		.pages = {.pages = l->pages + 1,
			  .page_tokens = l->most.page_tokens,
			  .seed = now_ns() * 0x9e3779b97f4a7c15u},
		.places = (int32_t)l->most.sequences,
		.requests_most = e->requests_most,
		.plans_most = IN_FLIGHT,
		.rows_most = (int32_t)l->most.rows,
		.logits_most = (int32_t)l->most.outputs,
		.context = l->positions,
		.cost = step_cost_now(&e->cost),
		.budget_ns = e->options.step_ms ? e->options.step_ms * 1e6
			     : gpu		? 30e6
						: 250e6,
		/* A cancelled request waits for the running step, and perhaps for the next one, which is
		 * planned in the middle of the running one. So it waits for 1.5 steps at most. The target is
		 * 100 ms. */
		.budget_idle_ns = gpu ? 60e6 : 1e9,
		.budget_backlog_ns = gpu && !e->options.step_ms ? 60e6 : 0,
		.rows_tile = rows_tile(e, gpu),
		.prefill_steps = e->options.prefill_steps ? e->options.prefill_steps : PREFILL_STEPS,
		.bypass_most = BYPASS_MOST,
		.age_ns = (uint64_t)AGE_S * 1000000000u,
	};
}

static enum status create_tables(struct engine *e, struct error *err)
{
	const struct loaded *l = &e->loaded;
	struct schedule_options options;
	enum status st;

	e->requests_most =
		(int32_t)l->most.sequences + (e->options.queue ? e->options.queue : (int32_t)QUEUE_DEFAULT);
	e->overlaps = l->back.kind == BACKEND_GPU;
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

/* Forgets the events that the caller has read. */
static void forget_read(struct engine *e)
{
	if (e->events_read)
		event_list_clear(&e->events);
	e->events_read = false;
}

static enum status add_event(struct engine *e, const struct engine_event *event, struct error *err)
{
	forget_read(e);
	return event_list_add(&e->events, event, err);
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
	return add_event(e, &end, err);
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
				 "%zu keywords in a request's schema are not enforced; with \"strict\": true "
				 "the answer is an error that names one",
				 c.warnings);
		st = c.state ? submit(e, &c.request, c.state, err) : refuse_compiled(e, &c, err);
		compiled_release(&c);
	}
	return st;
}

enum status engine_cancel(struct engine *e, uint64_t id, struct error *err)
{
	const struct engine_event end = {.kind = ENGINE_EVENT_END, .id = id, .end = ENGINE_END_CANCELLED};

	if (e->compiling && compile_queue_cancel(e->compiling, id))
		return add_event(e, &end, err);
	schedule_cancel(e->schedule, id);
	return STATUS_OK;
}

void engine_finish(struct engine *e, uint64_t id, int64_t tokens)
{
	schedule_finish(e->schedule, id, tokens);
}

static enum status set_history(struct engine *e, const struct schedule_entry *entry, struct error *err)
{
	const struct running *run = &e->running[entry->number];
	const struct sample_history history = {.place = (int32_t)entry->place,
					       .id = entry->tokens,
					       .prompt = run->prompt,
					       .count = entry->known};

	return entry->begins && running_counts(run) ? paged_step_history(e->loaded.step, &history, err)
						    : STATUS_OK;
}

/* The rows of an entry that need logits, in their order. */
static enum status add_sampling(struct engine *e, const struct schedule_entry *entry, struct error *err)
{
	const struct running *run = &e->running[entry->number];
	const int32_t scored = entry->logits - entry->samples;

	for (int32_t i = 0; i < scored; i++)
		sampling_lists_score(e->sampling, run,
				     entry->tokens[entry->first + entry->logits_first + i + 1]);
	if (schedule_outputs(entry) > entry->logits)
		sampling_lists_probe(e->sampling);
	if (!entry->samples)
		return STATUS_OK;
	return sampling_lists_add(e->sampling, run, (int32_t)entry->place,
				  entry->first + entry->rows - run->prompt, err);
}

static enum status add_entry(struct engine *e, const struct schedule_entry *entry, struct error *err)
{
	const struct row_sequence s = {.token = entry->tokens,
				       .known = entry->known,
				       .first = entry->first,
				       .rows = entry->rows,
				       .outputs = schedule_outputs(entry),
				       .place = (int32_t)entry->place,
				       .adapter = e->running[entry->number].adapter,
				       .page = entry->pages};
	enum status st = set_history(e, entry, err);

	row_lists_add(e->rows, &s);
	return st ? st : add_sampling(e, entry, err);
}

/* The number of rows or outputs that the device computes for `count`. */
static int64_t padded(const struct engine *e, int64_t count, int64_t most)
{
	return e->loaded.back.kind == BACKEND_GPU ? row_lists_ladder(count, most) : count;
}

/* Builds all lists of a plan, and enqueues its forward pass. The scheduler lends the tokens only until it is
 * called again. */
static enum status enqueue_forward(struct engine *e, const struct schedule_plan *plan, struct error *err)
{
	const struct paged_limits *most = &e->loaded.most;
	enum status st = STATUS_OK;
	struct paged_rows rows;

	row_lists_clear(e->rows);
	sampling_lists_clear(e->sampling);
	for (int32_t i = 0; !st && i < plan->count; i++)
		st = add_entry(e, &plan->entries[i], err);
	if (st)
		return st;
	rows = row_lists_end(e->rows, padded(e, row_lists_rows(e->rows), most->rows),
			     padded(e, row_lists_outputs(e->rows), most->outputs));
	/* without adapters, a GPU's GEMMs may round differently */
	rows.adapted |= e->options.load.deterministic;
	return paged_step_forward(e->loaded.step, &rows, err);
}

/* A state that exceeds its limits allows no token, so its request fails and the others go on. */
static void fill_mask(const struct engine *e, struct grammar_state *grammar, uint32_t *mask)
{
	struct error why = {0};

	if (grammar_mask(grammar, mask, &why))
		memset(mask, 0, grammar_vocab_words(e->options.vocab) * sizeof(*mask));
}

/* Fills the masks of the rows whose request has a grammar. Every token before is known by now. */
static enum status add_masks(struct engine *e, const struct schedule_plan *plan, struct error *err)
{
	enum status st = STATUS_OK;
	int64_t row = 0;

	for (int32_t i = 0; !st && i < plan->count; i++) {
		const struct schedule_entry *entry = &plan->entries[i];
		struct grammar_state *grammar = e->running[entry->number].grammar;
		uint32_t *mask;

		row += schedule_outputs(entry);
		if (!grammar || !entry->samples)
			continue;
		mask = sampling_lists_mask(e->sampling, row - 1);
		if (!mask)
			st = no_memory(err);
		else
			fill_mask(e, grammar, mask);
	}
	return st;
}

static enum status enqueue_sampling(struct engine *e, const struct schedule_plan *plan, int *turn,
				    struct error *err)
{
	enum status st = add_masks(e, plan, err);
	struct sample_lists lists;

	if (st)
		return st;
	lists = sampling_lists_end(e->sampling,
				   padded(e, row_lists_outputs(e->rows), e->loaded.most.outputs));

	return paged_step_sample(e->loaded.step, &lists, turn, err);
}

/* The outcome of the row that sampled. */
static enum schedule_outcome outcome_of(const struct running *run, const struct schedule_entry *entry,
					const struct sample_result *r)
{
	const int64_t made = entry->first + entry->rows - run->prompt + 1;
	enum grammar_accepted accepted = GRAMMAR_ACCEPTED;

	if (r->status == SAMPLE_OK && run->grammar)
		accepted = grammar_accept(run->grammar, r->id);
	if (r->status != SAMPLE_OK || accepted == GRAMMAR_REFUSED || accepted == GRAMMAR_FAILED)
		return SCHEDULE_FAILED;
	if (accepted == GRAMMAR_ENDED)
		return SCHEDULE_STOPPED;
	return made > run->min_tokens && running_stops(run, r->id) ? SCHEDULE_STOPPED : SCHEDULE_CONTINUES;
}

static bool finite_of(const struct sample_result *r, int32_t count)
{
	for (int32_t i = 0; i < count; i++)
		if (r[i].status == SAMPLE_NOT_FINITE)
			return false;
	return true;
}

static enum status add_token(struct engine *e, const struct running *run, enum engine_event_kind kind,
			     const struct sample_result *r, int32_t tops, struct error *err)
{
	struct engine_event event = {.kind = kind, .id = run->id, .token = r->id, .logprob = r->logprob};

	event.tops = tops < 0 ? 0 : tops < r->tops ? tops : r->tops;
	for (int32_t i = 0; i < event.tops; i++)
		event.top[i] = (struct engine_logprob){.id = r->top_id[i], .logprob = r->top_logprob[i]};
	return add_event(e, &event, err);
}

/* Passes the scheduler's events on. */
static enum status add_schedule_events(struct engine *e, struct error *err)
{
	struct schedule_event event;
	enum status st = STATUS_OK;

	while (!st && schedule_event(e->schedule, &event)) {
		struct engine_event out = {
			.kind = event.kind == SCHEDULE_EVENT_BEGUN ? ENGINE_EVENT_BEGUN : ENGINE_EVENT_END,
			.id = event.id,
			.prompt_tokens = event.prompt_tokens,
			.cached_tokens = event.cached_tokens,
			.end = event.end,
			.tokens = event.tokens,
		};

		if (event.kind == SCHEDULE_EVENT_ENDED)
			text_copy(out.text, sizeof(out.text), event.text);
		st = add_event(e, &out, err);
	}
	return st;
}

/* Fills the result that the scheduler gets, and notes what the events need after the plan is gone. */
static void read_entry(struct engine *e, int32_t i, const struct schedule_entry *entry,
		       const struct sample_result *r)
{
	const int32_t outputs = schedule_outputs(entry);
	const struct sample_result *last = r + outputs - 1;

	e->settled[i] = (struct settled){
		.number = entry->number, .scored = entry->logits - entry->samples, .result = r};
	e->results[i] = (struct schedule_result){.finite = finite_of(r, outputs)};
	if (!entry->samples)
		return;
	e->results[i].tokens = &last->id;
	e->results[i].count = 1;
	e->results[i].outcome = outcome_of(&e->running[entry->number], entry, last);
}

/* Events of an entry's scores and token. */
static enum status add_entry_events(struct engine *e, int32_t i, struct error *err)
{
	const struct settled *s = &e->settled[i];
	const struct running *run = &e->running[s->number];
	enum status st = STATUS_OK;

	for (int32_t k = 0; !st && e->results[i].alive && k < s->scored; k++)
		st = add_token(e, run, ENGINE_EVENT_PROMPT, &s->result[k], run->prompt_logprobs, err);
	if (!st && e->results[i].taken)
		st = add_token(e, run, ENGINE_EVENT_TOKEN, &s->result[s->scored], run->logprobs, err);
	return st;
}

/* Hands the results of the oldest step to the scheduler, and makes events. */
static enum status settle(struct engine *e, const struct schedule_plan *plan, const struct sample_result *r,
			  struct error *err)
{
	const int32_t count = plan->count;
	enum status st;

	for (int32_t i = 0; i < count; i++) {
		read_entry(e, i, &plan->entries[i], r);
		r += schedule_outputs(&plan->entries[i]);
	}
	st = schedule_done(e->schedule, e->results, count, now_ns(), err);
	for (int32_t i = 0; !st && i < count; i++)
		st = add_entry_events(e, i, err);
	return st ? st : add_schedule_events(e, err);
}

/* Waits for the results of the oldest step. */
static enum status fetch(struct engine *e, struct error *err)
{
	const struct flight f = e->flight[0];
	const struct sample_result *r = NULL;
	enum status st = paged_step_results(e->loaded.step, f.turn, &r, err);
	const uint64_t now = now_ns();

	e->flights--;
	memmove(e->flight, e->flight + 1, (size_t)e->flights * sizeof(e->flight[0]));
	if (st)
		return st;
	e->step_s = (double)(now - (f.begun_ns > e->fetched_ns ? f.begun_ns : e->fetched_ns)) * 1e-9;
	e->busy_s += e->step_s;
	e->fetched_ns = now;
	step_cost_measured(&e->cost, f.plan->predicted_ns, e->step_s * 1e9);
	return settle(e, f.plan, r, err);
}

/* Enqueues a step. The results of the step before are fetched between its two parts, so that grammar masks
 * know every token, while the device computes the first part. */
static enum status run_step(struct engine *e, const struct schedule_plan *plan, struct error *err)
{
	struct flight f = {.plan = plan, .begun_ns = now_ns()};
	enum status st = enqueue_forward(e, plan, err);

	if (!st && e->flights)
		st = fetch(e, err);
	if (!st)
		st = enqueue_sampling(e, plan, &f.turn, err);
	if (st)
		return st;
	e->flight[e->flights++] = f;
	return e->overlaps ? STATUS_OK : fetch(e, err);
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

	forget_read(e);
	*idle = false;
	st = submit_compiled(e, err);
	if (st)
		return st;
	schedule_set_cost(e->schedule, &cost);
	plan = schedule_plan(e->schedule, now_ns(), 1);
	count_pages(e);
	st = add_schedule_events(e, err);
	*idle = !plan && !e->flights;
	if (plan && e->planned)
		e->planned(e->planned_arg, plan->predicted_ns * 1e-9);
	if (!st && plan)
		return run_step(e, plan, err);
	return !st && e->flights ? fetch(e, err) : st;
}

size_t engine_events(struct engine *e, const struct engine_event **events)
{
	forget_read(e);
	*events = e->events.event;
	e->events_read = true;
	return e->events.count;
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
	return schedule_wake(e->schedule);
}

uint64_t engine_hold(const struct engine *e)
{
	const struct flight *f = &e->flight[0];

	if (!e->flights)
		return 0;
	return (f->begun_ns > e->fetched_ns ? f->begun_ns : e->fetched_ns) +
	       step_cost_hold_ns(&e->cost, f->plan->predicted_ns);
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
