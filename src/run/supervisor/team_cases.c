/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cases of a launched team, as one of its supervisors sees them: agreed before, run by a worker of each rank,
 * ended by all. A worker that falls takes those of the other ranks with it; the next case has new ones. What
 * ends the team for good is told once, and the run goes on with its own cases.
 */
#include <errno.h>
#include <inttypes.h>
#include "core/math/random.h"
#include "run/supervisor/worker_pool.h"
#include "run/suite/target_team.h"
#include "team/control/control.h"

enum {
	GRACE_MS = 15000, /* beyond what the others' work may take */
	WAIT_MOST_MS = 86400000,
	LISTEN_MS = 20000, /* for rank 0's worker to start and say where it listens */
	END_MS = 10000,	   /* beyond a case's limit: TERM, KILL and their seconds */
	PART_MS = 600000,  /* a rank may have a second round of its own */
};

static bool over(struct run *r, enum status st, const struct error *err)
{
	if (st && !r->team_over.status && !run_stopping(r)) {
		r->team_over = r->out->team_over = *err;
		log_warn(r->o->log, LOG_TOPIC_RUN, "the team is over, each rank goes on alone: %s",
			 err->text);
	}
	return r->team_over.status || st;
}

void team_ended(struct run *r, const struct error *err)
{
	over(r, err->status, err);
}

static unsigned bounded(uint64_t ms)
{
	return ms < WAIT_MOST_MS ? (unsigned)ms : WAIT_MOST_MS;
}

/* 0 in a plan of one round. */
static unsigned round_of(const struct bench_case *c)
{
	return c->round ? c->round : 1;
}

/* What this rank's cases of a line may take. */
static unsigned line_work(const struct run *r, unsigned line, unsigned round)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < r->plan->count; i++)
		for (size_t k = 0; k < r->plan->steps[i].count; k++) {
			const struct bench_case *c = &r->plan->steps[i].cases[k];

			if (c->line == line && round_of(c) == round)
				sum += c->limit_ms + END_MS;
		}
	return bounded(sum);
}

/* How long to wait for others: they may have more to do in the line under way than this rank has. */
static unsigned line_limit(const struct run *r)
{
	return bounded((uint64_t)GRACE_MS + r->line_ms);
}

void team_line(struct run *r, const struct bench_case *c)
{
	struct error err = {0};
	unsigned round = round_of(c), limit = line_limit(r);

	if (!r->o->control || r->team_over.status || run_stopping(r) || !c->line ||
	    (c->line == r->line && round == r->round))
		return;
	r->line = c->line;
	r->round = round;
	r->line_ms = line_work(r, c->line, round);
	over(r, control_line(r->o->control, round, c->line, &r->line_ms, limit, &err), &err);
}

void team_attend(struct run *r, struct worker *w)
{
	struct error err = {0};
	bool fell = false;

	if (!r->o->control || r->team_over.status || run_stopping(r))
		return;
	over(r, control_attend(r->o->control, &fell, &err), &err);
	r->team->fell = r->team->fell || fell;
	if (!w->c || !w->c->team || w->kill_ns)
		return;
	if (r->team_over.status)
		worker_ask(r, w, ENDING_CANCELLED, CAUSE_TEAM_LOST, r->team_over.text, RUN_STOP_NS);
	else if (fell)
		worker_ask(r, w, ENDING_CANCELLED, CAUSE_TEAM_LOST, "another rank's worker fell in this case",
			   RUN_STOP_NS);
}

/* -- what workers are told -- */

void team_own_name(const struct run *r, char *text, size_t size)
{
	const struct team_shape *s = control_shape(r->o->control);

	snprintf(text, size, "rank %u on %.24s", r->o->rank, s->node[s->rank[r->o->rank].node].shown);
}

json_t *team_place_json(const struct run *r)
{
	const struct team_shape *s = control_shape(r->o->control);
	const struct team_rank *own = &s->rank[r->o->rank];
	const struct team_node *node = &s->node[own->node];
	json_t *j;
	char name[48];

	team_own_name(r, name, sizeof(name));
	j = json_pack("{s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:s}", "rank", (int)r->team->rank, "size",
		      (int)r->team->size, "launched", (int)r->o->rank, "generation", (int)r->team->generation,
		      "local_rank", (int)own->local_rank, "local_size", (int)node->ranks, "node",
		      (int)own->node, "nodes", (int)s->nodes, "name", name);
	if (j && !r->team->rank)
		json_object_set_new(j, "secret", json_string(r->team->secret));
	return j;
}

json_t *team_links_json(const struct run *r)
{
	return json_pack("{s:s, s:i, s:s}", "host", r->team->host, "port", (int)r->team->port, "secret",
			 r->team->secret);
}

/* -- one case -- */

static void not_run(struct run *r, const struct bench_case *c, const char *why)
{
	if (c->skip)
		return;
	if (run_stopping(r))
		run_end(r, c, ENDING_NOT_RUN, STATUS_CANCELLED, CAUSE_INTERRUPTED, "stopped on request", "");
	else
		run_end(r, c, ENDING_NOT_RUN, STATUS_UNAVAILABLE, CAUSE_TEAM_LOST, why, "");
}

/* What another rank cannot do is nobody's case. */
static void agreed_skip(struct run *r, const struct bench_case *c, const struct error *why)
{
	if (c->skip)
		return;
	r->attempt[c->id]++;
	run_journal(r, JOURNAL_BEGIN,
		    json_pack("{s:i, s:i, s:i}", "case", (int)c->id, "attempt", (int)r->attempt[c->id], "pid",
			      0));
	run_end(r, c, ENDING_DONE, why->status, why->cause, why->text, "");
}

/* Its place among those that take part: by rank, the lowest is their first. False: it is none of them. */
static bool take_part(struct run *r, const struct bench_case *c)
{
	r->team->rank = 0;
	r->team->size = c->target.ranks;
	r->team->first = members_first(c->target.member);
	for (unsigned n = 0; n < r->o->rank; n++)
		r->team->rank += target_takes(&c->target, n);
	return target_takes(&c->target, r->o->rank);
}

/* Stands right behind the team's last case and is of its kind: then the workers of that one are there on
 * every rank. All ranks come to the same. */
static bool goes_on(const struct run *r, const struct bench_case *c)
{
	const struct run_team *t = r->team;

	if (c->engine->once)
		return t->any;
	return t->any && (c->engine->launched || t->id + 1 == c->id) && !strcmp(t->group, c->group) &&
	       !strcmp(t->place, c->target_text);
}

/* The first's: what it tells all, and the secret that each makes of it. */
static enum status new_secret(const struct run *r, char nonce[33], struct error *err)
{
	if (!random_hex(nonce, 33))
		return error_errno(err, errno, "no random bytes for the workers of a team");
	control_worker_secret(r->o->control, nonce, r->team->secret);
	return STATUS_OK;
}

/* The first's: until its worker says where it listens; 0: it does not. */
static uint16_t await_port(struct run *r, struct worker *w)
{
	uint64_t deadline = clock_now_ns(r->o->clock) + LISTEN_MS * 1000000ull;

	while (w->alive && !w->said_port && !run_stopping(r) && clock_now_ns(r->o->clock) < deadline)
		worker_pool_attend(r, w, 1);
	return w->alive ? w->port : 0;
}

/* Where the first's worker listens, as its supervisor said. */
static void take_door(const struct run *r, struct run_team *t, const json_t *door)
{
	json_int_t port = json_integer_value(json_object_get(door, "port"));
	const char *nonce = json_string_value(json_object_get(door, "nonce"));

	t->port = nonce && port > 0 && port <= UINT16_MAX ? (uint16_t)port : 0;
	control_worker_secret(r->o->control, nonce ? nonce : "", t->secret);
}

/* New workers on all ranks that take part; `c`: what this one does. Port 0: the first's could not be started.
 */
static enum status start_workers(struct run *r, struct worker *w, const struct bench_case *c, bool part,
				 struct error *err)
{
	struct run_team *t = r->team;
	json_t *mine = json_object(), *all = NULL;
	struct error own = {0};
	char nonce[33] = "";
	enum status st;

	if (w->alive)
		worker_pool_dismiss(r, w);
	if (part && !t->rank)
		new_secret(r, nonce, &own);
	if (part && !own.status)
		worker_ready(r, w, c, &own);
	if (part && own.status)
		log_warn(r->o->log, LOG_TOPIC_RUN, "%s: %s", c->target_text, own.text);
	if (part && !t->rank && !own.status) {
		json_object_set_new(mine, "port", json_integer(await_port(r, w)));
		json_object_set_new(mine, "nonce", json_string(nonce));
	}
	if (run_stopping(r)) {
		json_decref(mine);
		return STATUS_CANCELLED;
	}
	st = control_gather(r->o->control, "where workers listen", mine, &all, LISTEN_MS + GRACE_MS, err);
	take_door(r, t, json_array_get(all, t->first));
	json_decref(all);
	control_rank_host(r->o->control, t->first, t->host);
	return st;
}

/* This rank's part; how it ended here. */
static enum ending run_here(struct run *r, struct worker *w, const struct bench_case *c, bool fresh)
{
	char text[64];

	if (!r->team->port || (!fresh && !w->alive)) {
		snprintf(text, sizeof(text), "rank %u's worker could not be started", r->team->first);
		not_run(r, c, r->team->port ? "this rank's worker fell between two cases" : text);
		return ENDING_CRASHED;
	}
	worker_give(r, w, c);
	while (w->c && !r->status)
		worker_pool_attend(r, w, 1);
	/* A worker that goes takes the links of all with it. */
	return r->last_ending == ENDING_DONE && (!w->alive || w->leaves) ? ENDING_CRASHED : r->last_ending;
}

static void end_together(struct run *r, struct worker *w, const struct bench_case *c, enum ending mine)
{
	enum ending worst = ENDING_DONE;
	struct error err = {0};
	unsigned rank = 0;

	if (run_stopping(r) || r->team_over.status)
		return;
	if (over(r,
		 control_end(r->o->control, mine, &worst, &rank, bounded(c->limit_ms + END_MS + GRACE_MS),
			     &err),
		 &err) ||
	    worst != ENDING_DONE) {
		worker_home(r, w, 0);
		r->team->any = false; /* nor are the other ranks' */
		r->team->lost = r->team->lost || c->engine->once;
		r->team->lost_by = c->id;
	}
}

/* Settles with the others whether it runs; `c`: this rank's case, NULL: it has none. False: it does not run,
 * which has been recorded, and *why. */
static bool agree(struct run *r, const struct bench_case *c, const struct run_wave *v, unsigned limit_ms,
		  struct error *why)
{
	struct error mine = {0}, err = {0};

	if (c && c->skip)
		error_set_cause(&mine, c->skip, c->skip_cause, "%s", c->skip_reason);
	if (over(r,
		 control_begin(r->o->control, v->ordinal, v->what, &mine, why, &r->team->agreed, limit_ms,
			       &err),
		 &err)) {
		*why = r->team_over.status ? r->team_over : err;
		if (c)
			not_run(r, c, why->text);
		return false;
	}
	if (why->status && c)
		agreed_skip(r, c, why);
	return !why->status;
}

/* All that take part do it, and all wait for its end. `limit`: a case whose limit all know. */
static void work_together(struct run *r, const struct bench_case *c, const struct bench_case *limit,
			  bool fresh)
{
	struct worker *w = limit->engine->launched ? &r->slot : &r->keeper;
	struct error err = {0};

	r->team->fell = false;
	if (fresh) {
		r->team->generation = r->team->agreed;
		if (over(r, start_workers(r, w, c, c != NULL, &err), &err)) {
			if (c)
				not_run(r, c, r->team_over.text);
			worker_home(r, w, 0);
			return;
		}
	}
	r->team->any = true;
	r->team->id = limit->id;
	text_copy(r->team->group, sizeof(r->team->group), limit->group);
	text_copy(r->team->place, sizeof(r->team->place), limit->target_text);
	end_together(r, w, limit, c ? run_here(r, w, c, fresh) : ENDING_DONE);
}

/* False: there is no worker any more that could run it, on any rank, and that has been recorded. */
static bool can_begin(struct run *r, const struct bench_case *c)
{
	char text[128];

	if (r->team_over.status) {
		not_run(r, c, r->team_over.text);
		return false;
	}
	if (!c->engine->once || !r->team->lost)
		return true;
	snprintf(text, sizeof(text),
		 "%s begins once for each launched rank, and a rank's worker fell in case %u",
		 c->engine->name, r->team->lost_by);
	not_run(r, c, text);
	return false;
}

void team_case(struct run *r, const struct bench_case *c)
{
	char what[4096 + TARGET_TEXT];
	const struct run_wave v = {.ordinal = c->team, .what = what};
	struct error why = {0};
	bool part;

	r->team = &r->teams[c->engine->launched];
	if (!can_begin(r, c))
		return;
	snprintf(what, sizeof(what), "%.4000s on %s", c->key, c->target_text);
	part = take_part(r, c);
	if (agree(r, part ? c : NULL, &v, line_limit(r), &why))
		work_together(r, part ? c : NULL, c, !goes_on(r, c));
}

bool team_wave_begin(struct run *r, const struct run_wave *v, struct error *why)
{
	*why = r->team_over;
	r->team = &r->teams[v->like->engine->launched];
	if (v->own)
		take_part(r, v->own);
	if (r->team_over.status && v->own)
		not_run(r, v->own, r->team_over.text);
	return !r->team_over.status && agree(r, v->own, v, PART_MS, why);
}

bool team_wave_work(struct run *r, const struct run_wave *v)
{
	bool kept =
		v->again || v->like->engine->once; /* one worker a rank does all that it begins once for */

	work_together(r, v->own, v->like, !kept || !r->team->any);
	return !r->team_over.status;
}

bool team_part(struct run *r)
{
	struct error err = {0};

	if (!r->o->control || r->team_over.status || run_stopping(r))
		return false;
	return !over(r, control_part(r->o->control, PART_MS, &err), &err);
}
