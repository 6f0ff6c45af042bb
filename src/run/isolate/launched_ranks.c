/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Isolation search among launched ranks. Rank 0 decides and sends each round to all ranks. Each rank makes
 * the cases that it takes part in; rank 0 makes all of them. Groups run in waves. The first rank of each
 * group sends its figure to all ranks.
 */
#include <errno.h>
#include "core/text/text.h"
#include "machine/machine.h"
#include "run/probe.h"
#include "run/isolate/run.h"
#include "run/suite/target_team.h"
#include "team/control/control.h"

enum {
	ORDER_MS = 900000, /* long, because a rank may first run searches of its own */
	FIGURES_MS = 60000,
	GROUPS_MOST = ISOLATE_SEARCH_MEMBERS / 2,
	REPEATS_MOST = 8
};
static const char orders[] = "the next round of an isolation search",
		  figures[] = "figures of an isolation search";

/* One round, as every rank has it. */
struct round {
	struct isolate_run_order o;
	const json_t *groups; /* targets of the groups */
	size_t count, cases;  /* cases: groups times repeats */
	bool beside;
	unsigned ordinal; /* of the first case, among the team's cases */
	/* This rank's cases. step.cases[at[s]] is test s % count in repeat s / count. SIZE_MAX: the rank
	 * takes no part in test s. */
	struct step step;
	size_t *at;
};

/* ---- waves ---- */

static bool lead(const struct run *r)
{
	return !r->o->rank;
}

/* The figure of this rank's group if this rank is its first member; otherwise an empty object. */
static json_t *own_figure(const struct run *r, const struct bench_case *own)
{
	const struct case_outcome *n = own ? &r->note[own->id] : NULL;

	if (!own || members_first(own->target.member) != r->o->rank)
		return json_object();
	return json_pack("{s:s, s:s, s:s, s:f, s:f}", "ending", ending_name(r->last_ending), "status",
			 status_name(n->status), "cause", cause_name(n->cause), "rate", n->rate, "noise",
			 n->noise);
}

/* Rank 0 journals the cases of groups that it is not in. This one journals that a case begins. */
static void record_begin(struct run *r, const struct bench_case *c)
{
	r->attempt[c->id]++;
	run_journal(r, JOURNAL_BEGIN,
		    json_pack("{s:i, s:i, s:i}", "case", (int)c->id, "attempt", (int)r->attempt[c->id], "pid",
			      0));
}

/* Journals that a case has no figure: all ranks stopped, all ranks skip it, or the team has ended. */
static void record_none(struct run *r, const struct bench_case *c, const struct error *why)
{
	bool begun = r->attempt[c->id] > 0, stopped = run_stopping(r);

	if (stopped || r->team_over.status) {
		run_end(r, c, begun ? ENDING_CANCELLED : ENDING_NOT_RUN,
			begun || stopped ? STATUS_CANCELLED : STATUS_UNAVAILABLE,
			stopped ? CAUSE_INTERRUPTED : CAUSE_TEAM_LOST,
			stopped ? "stopped on request" : r->team_over.text, "");
		return;
	}
	if (!begun)
		record_begin(r, c);
	run_end(r, c, ENDING_DONE, why->status, why->cause, why->text, "");
}

/* Journals the figure of a case. */
static void record_figure(struct run *r, const struct bench_case *c, const json_t *figure)
{
	const struct team_shape *s = control_shape(r->o->control);
	unsigned first = members_first(c->target.member);
	enum ending ending = ENDING_NOT_RUN;
	enum status status = STATUS_UNAVAILABLE;
	enum cause cause = CAUSE_TEAM_LOST;
	char text[128];

	ending_from_name(json_string_value(json_object_get(figure, "ending")), &ending);
	status_from_name(json_string_value(json_object_get(figure, "status")), &status);
	cause_from_name(json_string_value(json_object_get(figure, "cause")), &cause);
	snprintf(text, sizeof(text), "rank %u on %.60s %s", first, s->node[s->rank[first].node].shown,
		 ending == ENDING_NOT_RUN ? "sent no result" : "reported this");
	case_outcome_take(&r->note[c->id], json_number_value(json_object_get(figure, "rate")),
			  json_number_value(json_object_get(figure, "noise")));
	if (r->note[c->id].rate > 0)
		run_journal(r, JOURNAL_RESULT,
			    json_pack("{s:i, s:s, s:o}", "case", (int)c->id, "phase", "burst", "values",
				      case_outcome_values(&r->note[c->id], c->work.limit)));
	run_end(r, c, ending, status, cause, status ? text : "", "");
}

static struct bench_case *case_of(const struct round *d, size_t s)
{
	return d->at[s] == SIZE_MAX ? NULL : &d->step.cases[d->at[s]];
}

/* Journals that the cases from..to of groups without rank 0 begin. Only on rank 0. */
static void others_begin(struct run *r, const struct round *d, size_t from, size_t to)
{
	for (size_t s = from; s < to && lead(r); s++)
		if (!target_takes(&case_of(d, s)->target, r->o->rank))
			record_begin(r, case_of(d, s));
}

/* Journals the end of those cases. `all`: the figure of each rank; NULL if no figures were exchanged, for the
 * reason `why`. */
static void others_end(struct run *r, const struct round *d, size_t from, size_t to, const json_t *all,
		       const struct error *why)
{
	for (size_t s = from; s < to && lead(r); s++) {
		const struct bench_case *c = case_of(d, s);

		if (target_takes(&c->target, r->o->rank))
			continue;
		if (all)
			record_figure(r, c, json_array_get(all, members_first(c->target.member)));
		else
			record_none(r, c, why);
	}
}

bool isolate_ranks_figures(struct run *r, json_t *mine, json_t **all, struct error *why)
{
	if (!control_gather(r->o->control, figures, mine, all, FIGURES_MS, why))
		return true;
	team_ended(r, why);
	return false;
}

/* Runs the tests from..to of one repeat simultaneously. `again`: the wave has the same groups as the previous
 * one. False: the search is over. */
static bool wave(struct run *r, const struct round *d, unsigned repeat, size_t from, size_t to, bool again)
{
	size_t base = repeat * d->count;
	struct run_wave v = {
		.ordinal = d->ordinal + (unsigned)(base + from), .like = d->o.trigger, .again = again};
	json_t *all = NULL;
	struct text what = {0};
	struct error why = {0};
	bool on;

	text_addf(&what, "%s on", d->o.trigger->key);
	for (size_t i = from; i < to; i++) {
		struct bench_case *c = case_of(d, base + i);

		text_addf(&what, " %s", json_string_value(json_array_get(d->groups, i)));
		if (c && target_takes(&c->target, r->o->rank))
			v.own = c;
	}
	v.what = text_str(&what);
	on = team_wave_begin(r, &v, &why);
	text_release(&what);
	if (on) {
		others_begin(r, d, base + from, base + to);
		on = team_wave_work(r, &v);
	}
	on = on && isolate_ranks_figures(r, own_figure(r, v.own), &all, &why);
	others_end(r, d, base + from, base + to, all, &why);
	json_decref(all);
	return on && !run_stopping(r) && !r->status;
}

/* Runs groups on separate nodes simultaneously. Other groups run one after the other, each with all its
 * repeats, because the next group needs other workers. */
static bool waves(struct run *r, const struct round *d)
{
	bool on = true;

	if (d->beside) {
		for (unsigned k = 0; on && k < d->o.repeats; k++)
			on = wave(r, d, k, 0, d->count, k > 0);
		return on;
	}
	for (size_t i = 0; on && i < d->count; i++)
		for (unsigned k = 0; on && k < d->o.repeats; k++)
			on = wave(r, d, k, i, i + 1, k > 0);
	return on;
}

/* ---- a round ---- */

static json_t *own_gpus(const struct run *r, const struct bench_case *trigger, bool part)
{
	json_t *gpus = json_array();

	for (unsigned i = 0; part && i < trigger->target.gpu_count; i++)
		json_array_append_new(gpus,
				      json_string(machine_gpu(r->machine, trigger->target.gpu[i])->pci));
	return gpus;
}

/* Adds case s if this rank takes part in it; rank 0 adds every case. */
static enum status add_case(struct run *r, struct round *d, size_t s, json_t *marks, struct error *err)
{
	const char *text = json_string_value(json_array_get(d->groups, s % d->count));
	struct isolate_run_group g = {.text = text ? text : "", .team = d->ordinal + (unsigned)s};
	struct target t;
	enum status st = target_parse(&t, g.text, NULL, r->machine, err);
	bool part = !st && target_takes(&t, r->o->rank);

	d->at[s] = SIZE_MAX;
	if (st || (!part && !lead(r)))
		return st;
	g.ranks = members_count(t.member);
	if (!g.ranks)
		g.ranks = control_shape(r->o->control)->size;
	g.gpus = own_gpus(r, d->o.trigger, part);
	st = isolate_run_case(&d->o, &g, &d->step.cases[d->step.count], err);
	if (st)
		return st;
	d->at[s] = d->step.count++;
	json_array_append_new(marks, isolate_run_mark(&d->o));
	return STATUS_OK;
}

/* On every rank: makes its cases and runs them together with the other ranks. False: the search is over. */
static bool do_round(struct run *r, struct round *d)
{
	json_t *marks = json_array();
	bool on;

	d->cases = d->count * d->o.repeats;
	d->step.cases = calloc(d->cases, sizeof(*d->step.cases));
	d->at = calloc(d->cases, sizeof(*d->at));
	d->ordinal = r->team_cases + 1;
	r->team_cases += (unsigned)d->cases;
	if (!d->step.cases || !d->at || !marks)
		r->status = error_errno(r->err, ENOMEM, "%zu cases of an isolation search", d->cases);
	for (size_t s = 0; s < d->cases && !r->status; s++)
		r->status = add_case(r, d, s, marks, r->err);
	on = !r->status && run_extend_report(r, &d->step, "follows", json_incref(marks)) && waves(r, d);
	json_decref(marks);
	for (size_t i = 0; i < d->step.count; i++)
		case_release(&d->step.cases[i]);
	free(d->step.cases);
	free(d->at);
	return on;
}

/* ---- rank 0 ---- */

/* "team:0-3,8"; false: the text does not fit. */
static bool group_text(const struct isolate_run *h, const struct isolate_search_test *t,
		       char text[TARGET_TEXT])
{
	const struct isolate_search_team *team = &h->team;
	uint64_t member[TARGET_MEMBERS / 64] = {0};

	for (unsigned i = 0; i < t->count; i++)
		for (unsigned n = 0; n < team->layout.ranks; n++)
			if (team->member_of[n] == h->f.group[t->first + i])
				members_add(member, n);
	if (members_count(member) == h->trigger->target.ranks) {
		text_copy(text, TARGET_TEXT, h->trigger->target_text);
		return true;
	}
	memcpy(text, "team:", 6);
	return members_text(text + 5, TARGET_TEXT - 5, member);
}

static json_t *groups_json(const struct isolate_run *h)
{
	json_t *groups = json_array();
	char text[TARGET_TEXT];

	for (unsigned i = 0; i < h->f.count; i++) {
		if (!group_text(h, &h->f.test[i], text)) {
			json_decref(groups);
			return NULL;
		}
		json_array_append_new(groups, json_string(text));
	}
	return groups;
}

bool isolate_ranks_order(struct isolate_run *h, const struct isolate_run_order *o, json_t *round)
{
	struct run *r = h->r;
	json_t *all = NULL,
	       *order = json_pack("{s:i, s:i, s:i, s:i, s:i, s:s}", "team", (int)o->trigger->team, "fault",
				  (int)o->fault, "traffic", (int)o->traffic, "round", (int)o->round,
				  "repeats", (int)o->repeats, "why", o->what);
	struct error err = {0};
	bool on = order && !json_object_update(order, round) &&
		  !control_gather(r->o->control, orders, json_incref(order), &all, ORDER_MS, &err);

	if (err.status)
		team_ended(r, &err);
	json_decref(all);
	json_decref(order);
	json_decref(round);
	return on;
}

bool isolate_ranks_over(struct isolate_run *h)
{
	if (h->r->team_over.status)
		snprintf(h->stopped, sizeof(h->stopped), "the team has ended: %.200s", h->r->team_over.text);
	return false;
}

bool isolate_ranks_tests(struct isolate_run *h, const struct isolate_run_order *o)
{
	struct run *r = h->r;
	json_t *groups = groups_json(h);
	struct round d = {
		.o = *o, .groups = groups, .count = h->f.count, .beside = isolate_run_in_parallel(h)};
	bool on = groups;

	if (!groups)
		text_copy(h->stopped, sizeof(h->stopped), "the list of a group's ranks is too long");
	on = on && isolate_ranks_order(h, o, json_pack("{s:b, s:O}", "beside", d.beside, "groups", groups)) &&
	     do_round(r, &d);
	json_decref(groups);
	return on || isolate_ranks_over(h);
}

/* Numbers the nodes of the ranks that take part by their lowest rank. */
static void layout_of(struct isolate_run *h, struct isolate_search_layout *l)
{
	const struct team_shape *s = control_shape(h->r->o->control);
	const struct target *t = &h->trigger->target;

	*l = (struct isolate_search_layout){
		.ranks = s->size < ISOLATE_SEARCH_MEMBERS ? s->size : ISOLATE_SEARCH_MEMBERS};
	for (unsigned r = 0; r < l->ranks; r++) {
		unsigned n = 0;

		l->node_of[r] = ISOLATE_SEARCH_NO_MEMBER;
		if (!target_takes(t, r))
			continue;
		while (n < l->nodes && h->node_of[n] != s->rank[r].node)
			n++;
		if (n == l->nodes)
			h->node_of[l->nodes++] = s->rank[r].node;
		l->node_of[r] = (uint16_t)n;
	}
}

void isolate_ranks_whole(struct isolate_run *h)
{
	struct isolate_search_layout layout;

	layout_of(h, &layout);
	isolate_search_team_whole(&h->team, &h->f, &layout);
}

/* "node-b", "node-b (rank 3)" if the node has one rank, or "rank 5 on node-b", with the PCI address of a
 * rank's GPU. */
struct isolate_run_place isolate_ranks_name(const struct isolate_run *h, unsigned member)
{
	const struct team_shape *s = control_shape(h->r->o->control);
	const struct isolate_search_team *t = &h->team;
	unsigned rank = member, ranks = t->node ? isolate_search_team_ranks(t, member, &rank) : 1;
	const char *node = s->node[s->rank[rank].node].shown;
	struct isolate_run_place p = {0};

	if (ranks == 1 && s->rank[rank].gpu_count == 1)
		text_copy(p.pci, sizeof(p.pci), s->rank[rank].pci[0]);
	if (!t->node)
		snprintf(p.place, sizeof(p.place), "rank %u on %.50s", rank, node);
	else if (ranks == 1)
		snprintf(p.place, sizeof(p.place), "%.50s (rank %u)", node, rank);
	else
		snprintf(p.place, sizeof(p.place), "%.50s", node);
	return p;
}

/* Puts the names of the two nodes before the reason. */
static void name_both_nodes(struct isolate_run *h, struct isolate_run_finding *out)
{
	struct isolate_run_place one, other;
	char why[sizeof(out->why)];

	h->team.node = true;
	one = isolate_ranks_name(h, 0);
	other = isolate_ranks_name(h, 1);
	text_copy(why, sizeof(why), out->why);
	snprintf(out->why, sizeof(out->why), "%.60s and %.60s: %.120s", one.place, other.place, why);
}

void isolate_ranks_search(struct isolate_run *h, const struct isolate_search_start *s,
			  struct isolate_run_finding *out)
{
	struct isolate_search_team *t = &h->team;
	unsigned first;

	if (isolate_ranks_pair(h, s, out))
		return;
	for (isolate_search_team_begin(t, s); !t->done; isolate_search_team_next(t)) {
		if (!isolate_run_has_time(h, isolate_run_waves(h, h->f.repeats))) {
			snprintf(h->stopped, sizeof(h->stopped), "no time for round %u",
				 isolate_run_round(h));
			break;
		}
		if (!isolate_run_tests(h, h->f.repeats, &first))
			break;
		isolate_run_answers(h, first);
	}
	out->of = t->node ? "node" : "rank"; /* a node that was named before the search stopped stays named */
	out->found = t->found;
	out->with = t->with;
	out->without = t->without;
	snprintf(out->why, sizeof(out->why), "%.120s%s%.120s", t->why, *t->why && *h->stopped ? "; " : "",
		 h->stopped);
	if (t->found == ISOLATE_SEARCH_NOBODY && t->layout.nodes == 2)
		name_both_nodes(h, out);
	isolate_run_name(h, t->found, t->a, t->b, out);
}

bool isolate_ranks_can(const struct run *r, const struct bench_case *c, enum isolate_search_fault fault)
{
	bool able =
		!c->engine->once || (fault == ISOLATE_SEARCH_WRONG && !r->teams[c->engine->launched].lost);

	return r->o->control && lead(r) && !r->team_over.status && c->engine->targets & TARGET_TEAM && able;
}

void isolate_ranks_end(struct run *r)
{
	struct error err = {0};
	json_t *all = NULL;

	if (!r->o->control || r->team_over.status || run_stopping(r))
		return;
	if (control_gather(r->o->control, orders, json_object(), &all, ORDER_MS, &err))
		team_ended(r, &err);
	json_decref(all);
}

/* ---- the other ranks ---- */

static const struct bench_case *team_case_of(const struct run *r, json_int_t ordinal)
{
	for (size_t i = 0; i < r->plan->count; i++)
		for (size_t k = 0; k < r->plan->steps[i].count; k++)
			if (ordinal > 0 && r->plan->steps[i].cases[k].team == ordinal)
				return &r->plan->steps[i].cases[k];
	return NULL;
}

/* Runs one round that rank 0 sent. False: the order is invalid, or the search is over. */
static bool obey(struct run *r, const json_t *order)
{
	const json_t *groups = json_object_get(order, "groups");
	const char *why = json_string_value(json_object_get(order, "why"));
	struct round d = {
		.o = {.r = r,
		      .trigger = team_case_of(r, json_integer_value(json_object_get(order, "team"))),
		      .fault = json_integer_value(json_object_get(order, "fault")) ? ISOLATE_SEARCH_WRONG
										   : ISOLATE_SEARCH_SLOW,
		      .traffic = (enum isolate_search_traffic)json_integer_value(
			      json_object_get(order, "traffic")),
		      .round = (unsigned)json_integer_value(json_object_get(order, "round")),
		      .repeats = (unsigned)json_integer_value(json_object_get(order, "repeats")),
		      .what = why ? why : ""},
		.groups = groups,
		.count = json_array_size(groups),
		.beside = json_is_true(json_object_get(order, "beside")),
	};

	if (d.o.trigger && json_is_true(json_object_get(order, "works"))) {
		json_t *all = NULL;
		bool on = isolate_ranks_works(&d.o, &all);

		json_decref(all);
		return on;
	}
	if (!d.o.trigger || !d.count || d.count > GROUPS_MOST || !d.o.repeats || d.o.repeats > REPEATS_MOST)
		return false;
	return do_round(r, &d);
}

void isolate_ranks_follow_rounds(struct run *r)
{
	bool on = r->o->control;

	while (on && !r->team_over.status && !run_stopping(r) && !r->status) {
		struct error err = {0};
		json_t *all = NULL;

		if (control_gather(r->o->control, orders, json_object(), &all, ORDER_MS, &err))
			team_ended(r, &err);
		else
			on = json_object_get(json_array_get(all, 0), "round") &&
			     (obey(r, json_array_get(all, 0)) || !r->team_over.status);
		json_decref(all);
	}
}
