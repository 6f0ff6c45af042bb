/* SPDX-License-Identifier: Apache-2.0 */
#include "load/plan/plan.h"

#include <math.h>
#include <stdlib.h>
#include "load/plan/arrival.h"
#include "load/plan/trace.h"

/* Requests per second that no user of a closed loop can exceed. */
static const double user_rate_most = 1e5;

/* Makes the requests of a plan in order. */
struct maker {
	struct load_plan *p;
	const struct load_plan_spec *spec;
	size_t room;
	struct draw input, output, text, think, prefix;
	uint64_t timed; /* requests with a time of their own */
	struct error *err;
};

static enum status wrong(struct maker *m, const char *why)
{
	return error_set(m->err, STATUS_BAD_INPUT, "%s", why);
}

static enum status check_conversations(struct maker *m)
{
	const struct load_plan_spec *s = m->spec;

	if (!s->requests_most || s->requests_most > UINT32_MAX)
		return wrong(m, "the limit of requests is not from 1 to 4294967295");
	if (!s->turns)
		return wrong(m, "a conversation has no turns");
	if (s->turns > s->requests_most)
		return wrong(m, "a conversation has more turns than requests are allowed");
	if (!(s->think_s >= 0 && s->think_s <= LOAD_DURATION_MOST_S))
		return wrong(m, "the think time is not from 0 to 86400 s");
	if (!s->prefix_tokens != !s->prefix_groups)
		return wrong(m, "a shared prefix needs both a length and a number of groups");
	if (s->prefix_tokens > LOAD_TOKENS_MOST)
		return wrong(m, "the shared prefix has more than 10000000 tokens");
	if (s->dataset_rows || s->arrival == LOAD_TRACE)
		return STATUS_OK;
	if (load_length_check(&s->input, "prompt", m->err))
		return STATUS_BAD_INPUT;
	return load_length_check(&s->output, "answer", m->err);
}

static enum status check(struct maker *m)
{
	const struct load_plan_spec *s = m->spec;
	bool trace = s->arrival == LOAD_TRACE;

	if (!(s->duration_s >= 0 && s->duration_s <= LOAD_DURATION_MOST_S) ||
	    (!trace && !(s->duration_s > 0)))
		return wrong(m, "the duration is not above 0 and at most 86400 s");
	if (trace && (!s->trace || !(s->trace_speed > 0 && s->trace_speed <= 1e6)))
		return wrong(m, s->trace ? "the speed of the trace is not above 0 and at most 1000000"
					 : "no trace file is given");
	if (trace && (s->turns > 1 || s->dataset_rows || s->prefix_tokens))
		return wrong(
			m, "a trace has lengths and prefixes of its own; turns, a dataset or a shared prefix "
			   "cannot be added");
	if (s->arrival == LOAD_CLOSED && (!s->users || s->users > s->requests_most))
		return wrong(m, "a closed loop needs from 1 user to as many as requests are allowed");
	return check_conversations(m);
}

static enum status grow(struct maker *m, size_t count)
{
	size_t room = m->room ? m->room : 1024;
	struct load_request *grown;

	if (m->p->count + count <= m->room)
		return STATUS_OK;
	while (room < m->p->count + count)
		room *= 2;
	grown = realloc(m->p->request, room * sizeof(*grown));
	if (!grown)
		return error_set(m->err, STATUS_NO_RESOURCE, "a plan of %zu requests", room);
	m->p->request = grown;
	m->room = room;
	return STATUS_OK;
}

static uint64_t ns_of(double seconds)
{
	return (uint64_t)(seconds * 1e9 + 0.5);
}

/* There is room. Draws what a request needs besides its time. */
static struct load_request *add(struct maker *m, uint64_t at_ns)
{
	struct load_request *r = &m->p->request[m->p->count++];
	const struct load_plan_spec *s = m->spec;

	*r = (struct load_request){.at_ns = at_ns, .session = m->p->sessions, .source = draw_u64(&m->text)};
	if (s->dataset_rows) {
		r->source %= s->dataset_rows;
	} else if (s->arrival != LOAD_TRACE) {
		r->prompt_tokens = load_length_draw(&s->input, &m->input);
		r->output_tokens = load_length_draw(&s->output, &m->output);
	}
	m->timed += at_ns != LOAD_AFTER;
	return r;
}

static uint64_t think(struct maker *m)
{
	return m->spec->think_s > 0 ? ns_of(m->spec->think_s * draw_exponential(&m->think)) : 0;
}

/* There is room. Adds the turns of one conversation, which share a row of the dataset and a prefix. */
static void add_conversation(struct maker *m, uint64_t at_ns, uint64_t think_ns, uint32_t turns)
{
	const struct load_plan_spec *s = m->spec;
	uint32_t group = s->prefix_groups ? (uint32_t)(draw_u64(&m->prefix) % s->prefix_groups) + 1 : 0;
	uint64_t row = 0;

	for (uint32_t turn = 0; turn < turns; turn++) {
		struct load_request *r = add(m, turn ? LOAD_AFTER : at_ns);

		r->turn = turn;
		r->think_ns = turn ? think(m) : think_ns;
		r->prefix = group;
		r->prefix_tokens = turn ? 0 : s->prefix_tokens;
		row = turn ? row : r->source;
		if (s->dataset_rows)
			r->source = row;
	}
}

static enum status make_open(struct maker *m)
{
	struct arrivals *a = malloc(sizeof(*a));
	const struct load_plan_spec *s = m->spec;
	enum status st;
	double at;

	if (!a)
		return error_set(m->err, STATUS_NO_RESOURCE, "a plan");
	st = arrivals_begin(a, s, m->err);
	m->p->duration_s = s->duration_s;
	while (!st && arrivals_next(a, &at)) {
		if (m->p->count + s->turns > s->requests_most) {
			m->p->cut = true;
			m->p->duration_s = at;
			break;
		}
		st = grow(m, s->turns);
		if (st)
			break;
		add_conversation(m, ns_of(at), 0, s->turns);
		m->p->sessions++;
	}
	free(a);
	return st;
}

/* Users take equal parts of the requests that are allowed. A user begins after a think time, so that users
 * who think do not come at once. */
static enum status make_closed(struct maker *m)
{
	const struct load_plan_spec *s = m->spec;
	uint64_t share = s->requests_most / s->users;
	uint64_t reachable = (uint64_t)(s->duration_s * user_rate_most) + 1;
	uint64_t each = share < reachable ? share : reachable;
	enum status st = grow(m, each * s->users);

	m->p->duration_s = s->duration_s;
	for (uint32_t user = 0; !st && user < s->users; user++) {
		uint64_t begin = think(m);

		for (uint64_t made = 0; made < each; made += s->turns) {
			uint32_t turns = each - made < s->turns ? (uint32_t)(each - made) : s->turns;

			add_conversation(m, made ? LOAD_AFTER : begin, made ? think(m) : 0, turns);
		}
		m->p->sessions++;
	}
	return st;
}

static int by_begin(const void *a_, const void *b_)
{
	const struct load_request *const *a = a_, *const *b = b_;

	if ((*a)->at_ns != (*b)->at_ns)
		return (*a)->at_ns < (*b)->at_ns ? -1 : 1;
	return (*a)->session < (*b)->session ? -1 : 1;
}

/* Orders the users of a closed loop by the time of their first request. */
static enum status order_sessions(struct maker *m)
{
	struct load_plan *p = m->p;
	size_t each = p->count / p->sessions;
	struct load_request *sorted = malloc(p->count * sizeof(*sorted));
	const struct load_request **first = malloc(p->sessions * sizeof(const struct load_request *));
	enum status st = STATUS_OK;

	if (!sorted || !first) {
		st = error_set(m->err, STATUS_NO_RESOURCE, "a plan of %zu requests", p->count);
		goto out;
	}
	for (uint32_t i = 0; i < p->sessions; i++)
		first[i] = &p->request[i * each];
	qsort(first, p->sessions, sizeof(const struct load_request *), by_begin);
	for (uint32_t i = 0; i < p->sessions; i++) {
		memcpy(&sorted[i * each], first[i], each * sizeof(*sorted));
		for (size_t k = 0; k < each; k++)
			sorted[i * each + k].session = i;
	}
	free(p->request);
	p->request = sorted;
	sorted = NULL;
out:
	free(sorted);
	free(first);
	return st;
}

static enum status take_trace(struct maker *m, struct trace *t)
{
	double speed = m->spec->trace_speed;
	enum status st = grow(m, t->count);

	for (size_t i = 0; !st && i < t->count; i++) {
		const struct trace_row *row = &t->row[i];
		struct load_request *r = add(m, (uint64_t)((double)row->at_ns / speed + 0.5));

		r->prompt_tokens = row->prompt_tokens;
		r->output_tokens = row->output_tokens;
		r->blocks = row->block_count ? t->block + row->block : NULL;
		r->block_count = row->block_count;
		m->p->sessions++;
	}
	if (st)
		return st;
	m->p->trace = true;
	m->p->skipped = t->skipped;
	m->p->blocks = t->block;
	t->block = NULL;
	m->p->duration_s = m->spec->duration_s > 0 ? m->spec->duration_s : LOAD_DURATION_MOST_S;
	return STATUS_OK;
}

/* A trace says nothing of the time after its last request. Its mean gap is taken as the time until the next
 * one. */
static double trace_duration(const struct load_plan *p)
{
	double first = (double)p->request[0].at_ns * 1e-9,
	       last = (double)p->request[p->count - 1].at_ns * 1e-9;

	return p->count > 1 && last > first ? last + (last - first) / (double)(p->count - 1) : last + 1;
}

static enum status make_trace(struct maker *m)
{
	const struct load_plan_spec *s = m->spec;
	double all = (s->duration_s > 0 ? s->duration_s : LOAD_DURATION_MOST_S) * s->trace_speed * 1e9;
	const struct trace_limits limits = {.until_ns = all < 1e19 ? (uint64_t)all : UINT64_MAX,
					    .rows_most = s->requests_most};
	struct trace t = {0};
	enum status st = trace_open(&t, s->trace, &limits, m->err);

	if (!st)
		st = take_trace(m, &t);
	if (!st && !t.cut && (!(s->duration_s > 0) || trace_duration(m->p) < s->duration_s))
		m->p->duration_s = trace_duration(m->p);
	trace_release(&t);
	return st;
}

static enum status make(struct maker *m)
{
	enum status st = check(m);

	if (st)
		return st;
	if (m->spec->arrival == LOAD_TRACE)
		return make_trace(m);
	if (m->spec->arrival != LOAD_CLOSED)
		return make_open(m);
	st = make_closed(m);
	return st ? st : order_sessions(m);
}

enum status load_plan_make(struct load_plan *p, const struct load_plan_spec *spec, struct error *err)
{
	struct maker m = {.p = p, .spec = spec, .err = err};
	enum status st;

	*p = (struct load_plan){0};
	draw_begin(&m.input, spec->seed, DRAW_INPUT);
	draw_begin(&m.output, spec->seed, DRAW_OUTPUT);
	draw_begin(&m.text, spec->seed, DRAW_TEXT);
	draw_begin(&m.think, spec->seed, DRAW_THINK);
	draw_begin(&m.prefix, spec->seed, DRAW_PREFIX);
	st = make(&m);
	if (!st && !p->count)
		st = error_set(err, STATUS_BAD_INPUT,
			       "no request is due within %g s; a longer duration or a higher rate is needed",
			       spec->duration_s);
	if (st)
		load_plan_release(p);
	else if (spec->arrival != LOAD_CLOSED)
		p->offered = (double)m.timed / p->duration_s;
	return st;
}

void load_plan_release(struct load_plan *p)
{
	free(p->request);
	free(p->blocks);
	*p = (struct load_plan){0};
}

struct load_plan_tokens load_plan_tokens(const struct load_plan *p)
{
	struct load_plan_tokens sum = {0};

	for (size_t i = 0; i < p->count; i++) {
		sum.prompt += p->request[i].prompt_tokens;
		sum.output += p->request[i].output_tokens;
	}
	return sum;
}
