/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cases of a launched team, from the view of one supervisor. All ranks agree on a case before it begins, a
 * worker of each rank runs it, and all ranks end it together. If one worker dies, the workers of the other
 * ranks end too, and the next case gets new ones. If the team ends for good, that is reported once, and the
 * run continues with its own cases.
 */
#include <errno.h>
#include <inttypes.h>
#include "core/math/random.h"
#include "run/supervisor/worker_pool.h"
#include "run/suite/target_team.h"
#include "team/control/control.h"

enum {
	GRACE_MS = 15000, /* more than the other ranks' work may take */
	WAIT_MOST_MS = 86400000,
	LISTEN_MS = 20000, /* for the first rank's worker to start and report its port */
	END_MS = 10000,	   /* more than a case's limit: time for TERM and KILL */
	PART_MS = 600000,  /* long, because another rank may run a second round of its own */
};

static bool over(struct run *r, enum status st, const struct error *err)
{
	if (st && !r->team_over.status && !run_stopping(r)) {
		r->team_over = r->out->team_over = *err;
		log_warn(r->o->log, LOG_TOPIC_RUN, "the team has ended, each rank continues alone: %s",
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

/* A plan with one round has round 0. */
static unsigned round_of(const struct bench_case *c)
{
	return c->round ? c->round : 1;
}

/* Time limit of this rank's cases of a line. */
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

/* How long to wait for other ranks. They may have more work in the current line than this rank. */
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
		worker_terminate(r, w, ENDING_CANCELLED, CAUSE_TEAM_LOST, r->team_over.text, RUN_STOP_NS);
	else if (fell)
		worker_terminate(r, w, ENDING_CANCELLED, CAUSE_TEAM_LOST,
				 "another rank's worker died in this case", RUN_STOP_NS);
}

/* -- messages to workers -- */

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

/* If another rank cannot run the case, no rank runs it. */
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

/* Sets this rank's index among the members of the case, in the order of ranks. False: it is not a member. */
static bool take_part(struct run *r, const struct bench_case *c)
{
	r->team->rank = 0;
	r->team->size = c->target.ranks;
	r->team->first = members_first(c->target.member);
	for (unsigned n = 0; n < r->o->rank; n++)
		r->team->rank += target_takes(&c->target, n);
	return target_takes(&c->target, r->o->rank);
}

/* Whether the workers of the team's last case can run this one: it follows directly and is of the same kind.
 * All ranks come to the same result. */
static bool goes_on(const struct run *r, const struct bench_case *c)
{
	const struct run_team *t = r->team;

	if (c->engine->once)
		return t->any;
	return t->any && (c->engine->launched || t->id + 1 == c->id) && !strcmp(t->group, c->group) &&
	       !strcmp(t->place, c->target_text);
}

/* First rank: makes the random nonce that it sends to all, and the secret that each rank derives from it. */
static enum status new_secret(const struct run *r, char nonce[33], struct error *err)
{
	if (!random_hex(nonce, 33))
		return error_errno(err, errno, "no random bytes for the workers of a team");
	control_worker_secret(r->o->control, nonce, r->team->secret);
	return STATUS_OK;
}

/* First rank: waits until its worker reports the port that it listens on; 0: it does not. */
static uint16_t await_port(struct run *r, struct worker *w)
{
	uint64_t deadline = clock_now_ns(r->o->clock) + LISTEN_MS * 1000000ull;

	while (w->alive && !w->said_port && !run_stopping(r) && clock_now_ns(r->o->clock) < deadline)
		worker_pool_attend(r, w, 1);
	return w->alive ? w->port : 0;
}

/* Takes the port and the nonce that the first rank's supervisor sent. */
static void take_door(const struct run *r, struct run_team *t, const json_t *door)
{
	json_int_t port = json_integer_value(json_object_get(door, "port"));
	const char *nonce = json_string_value(json_object_get(door, "nonce"));

	t->port = nonce && port > 0 && port <= UINT16_MAX ? (uint16_t)port : 0;
	control_worker_secret(r->o->control, nonce ? nonce : "", t->secret);
}

/* Starts new workers on all ranks that take part; `c`: this rank's case. Port 0: the first rank's worker
 * could not be started. */
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
	st = control_gather(r->o->control, "the ports of workers", mine, &all, LISTEN_MS + GRACE_MS, err);
	take_door(r, t, json_array_get(all, t->first));
	json_decref(all);
	control_rank_host(r->o->control, t->first, t->host);
	return st;
}

/* Runs this rank's part. Returns how it ended here. */
static enum ending run_here(struct run *r, struct worker *w, const struct bench_case *c, bool fresh)
{
	char text[64];

	if (!r->team->port || (!fresh && !w->alive)) {
		snprintf(text, sizeof(text), "rank %u's worker could not be started", r->team->first);
		not_run(r, c, r->team->port ? "this rank's worker died between two cases" : text);
		return ENDING_CRASHED;
	}
	worker_give(r, w, c);
	while (w->c && !r->status)
		worker_pool_attend(r, w, 1);
	/* a worker that exits closes its links to all others */
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
		worker_end(r, w, 0);
		r->team->any = false; /* the other ranks' workers end too */
		r->team->lost = r->team->lost || c->engine->once;
		r->team->lost_by = c->id;
	}
}

/* Agrees with the other ranks whether the case runs; `c`: this rank's case, NULL if it has none. False: it
 * does not run, its end is in the journal, and *why is the reason. */
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

/* Runs the case on all ranks that take part; all ranks wait for its end. `limit`: a case with the same limit
 * on all ranks. */
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
			worker_end(r, w, 0);
			return;
		}
	}
	r->team->any = true;
	r->team->id = limit->id;
	text_copy(r->team->group, sizeof(r->team->group), limit->group);
	text_copy(r->team->place, sizeof(r->team->place), limit->target_text);
	end_together(r, w, limit, c ? run_here(r, w, c, fresh) : ENDING_DONE);
}

/* False: no rank has a worker that can run the case, and its end is in the journal. */
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
		 "%s can start only once per launched rank, and a rank's worker died in case %u",
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
		/* such an engine has one worker per rank for all its cases */
		v->again || v->like->engine->once;

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
