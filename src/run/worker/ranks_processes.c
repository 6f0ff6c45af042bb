/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks as workers, one worker per rank, linked by sockets. The supervisors ensure that all have the same
 * case. */
#include <errno.h>
#include "core/text/text.h"
#include "run/timing/phases.h"
#include "run/worker/ranks_internal.h"
#include "team/links/links.h"

static unsigned limit_of(const struct bench_case *c)
{
	return c->limit_ms ? c->limit_ms + RANKS_BEYOND_MS : TEAM_LIMIT_MS;
}

enum status ranks_start_team(struct measure *w, const struct bench_case *c, struct error *err)
{
	if (!w->team || w->team->size != c->target.ranks)
		return error_set(err, STATUS_BUG, "%s: this worker is not linked to a team of this size",
				 c->target_text);
	if (!w->ranks)
		w->ranks = calloc(1, sizeof(*w->ranks));
	if (!w->ranks)
		return error_errno(err, ENOMEM, "%u ranks", c->target.ranks);
	w->ranks->size = w->team->size;
	w->ranks->team = w->team;
	w->team->limit_ms = limit_of(c);
	return STATUS_OK;
}

void ranks_report_outcome(struct rank_case *p, enum status st, const struct error *why)
{
	const struct team_command c = {.word = RANK_CASE_OUTCOME};
	struct team_verdict v = {.status = st, .cause = st ? why->cause : CAUSE_NONE};

	if (st)
		text_copy(v.text, sizeof(v.text), why->text);
	team_begin(p->team);
	if (!team_post(p->team, &c, NULL))
		team_share(p->team, &v, sizeof(v), NULL);
}

/* -- a follower -- */

struct following {
	struct measure *w;
	const struct bench_case *c;
	struct rank_case part;
	double ns; /* mean iteration of the last window */
	uint64_t samples;
	struct wrong wrong;
};

static enum status emit(const struct following *f, const char *type, json_t *body, struct error *err)
{
	enum status st = body ? f->w->emit.event(f->w->emit.arg, type, body, err)
			      : error_errno(err, ENOMEM, "an event of type %s", type);

	json_decref(body);
	return st;
}

/* Emits the phase, so that a hang here has a place. Nothing is emitted inside a window. */
static enum status at(const struct following *f, uint32_t word, struct error *err)
{
	static const char *const phase[RANK_CASE_WORDS] = {
		[RANK_CASE_PREPARE] = "prepare", [RANK_CASE_SELECT] = "select",
		[RANK_CASE_ONCE] = "cold",	 [RANK_CASE_RAMP] = "ramp",
		[RANK_CASE_BEGIN] = "window",	 [RANK_CASE_VERIFY] = "verify",
		[RANK_CASE_FINISH] = "finish",	 [RANK_CASE_RELEASE] = "release",
	};

	if (word >= RANK_CASE_WORDS || !phase[word])
		return STATUS_OK;
	return emit(f, "at", json_pack("{s:i, s:s}", "case", (int)f->c->id, "phase", phase[word]), err);
}

static void keep_figures(struct following *f, const struct team_command *c, const struct rank_case_answer *a)
{
	if (c->word == RANK_CASE_END && f->part.window.count) {
		f->ns = window_mean_ns(&f->part.window, 0, f->part.window.count);
		f->samples = f->part.window.count;
	}
	if (c->word == RANK_CASE_VERIFY && (a->wrong.count || !f->wrong.count))
		f->wrong = a->wrong;
}

/* Reports this rank's own figures, in addition to those of the case, which rank 0 reports. */
static enum status tell_figures(const struct following *f, struct error *err)
{
	struct result *r = result_create();
	enum status st;

	if (!r)
		return error_errno(err, ENOMEM, "%s: the values of a rank", f->c->key);
	if (f->samples) {
		result_f64(r, &field_time_ns_mean, f->ns);
		result_u64(r, &field_samples, f->samples);
	}
	result_u64(r, &field_wrong_checked, f->wrong.checked);
	result_u64(r, &field_wrong_total, f->wrong.total);
	result_u64(r, &field_wrong_count, f->wrong.count);
	st = emit(f, "result",
		  json_pack("{s:i, s:s, s:o}", "case", (int)f->c->id, "phase", "rank", "values",
			    result_json(r)),
		  err);
	result_destroy(r);
	return st;
}

static enum status hear_outcome(const struct following *f, struct error *err)
{
	struct team_verdict v = {0};
	enum status st = team_share(f->part.team, &v, sizeof(v), err);

	if (st || !v.status)
		return st;
	v.text[sizeof(v.text) - 1] = '\0';
	return error_set_cause(err, v.status < STATUS_COUNT ? (enum status)v.status : STATUS_BUG,
			       v.cause < CAUSE_COUNT ? (enum cause)v.cause : CAUSE_NONE, "%s", v.text);
}

static enum status follow(struct following *f, struct error *err)
{
	struct rank_case *p = &f->part;
	struct rank_case_answer a;
	struct team_command c;

	for (;;) {
		enum status st = team_wait_for_lead(p->team, &c, err);

		if (!st)
			st = at(f, c.word, err);
		if (st)
			return st;
		if (c.word == RANK_CASE_OUTCOME)
			return hear_outcome(f, err);
		rank_case_obey(p, &c, &a);
		keep_figures(f, &c, &a);
		if (c.word == RANK_CASE_RELEASE)
			tell_figures(f, NULL); /* if the supervisor has exited, the next line shows it */
		if (c.word != RANK_CASE_SAMPLE)
			st = ranks_answer(p, &a, err);
		if (st)
			return st;
	}
}

enum status ranks_follow(struct measure *w, const struct bench_case *c, struct error *err)
{
	struct following *f = calloc(1, sizeof(*f));
	enum status st;

	if (!f)
		return error_errno(err, ENOMEM, "%s", c->key);
	f->w = w;
	f->c = c;
	f->part = (struct rank_case){.w = w, .c = c, .team = w->team};
	w->team->limit_ms = limit_of(c);
	st = follow(f, err);
	rank_case_release(&f->part); /* if rank 0 did not send RELEASE */
	free(f);
	return st;
}
