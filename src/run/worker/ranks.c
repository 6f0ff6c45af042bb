/* SPDX-License-Identifier: Apache-2.0 */
#include "run/worker/ranks_internal.h"
#include <errno.h>
#include "core/text/text.h"

static bool several(const struct rank_case *p)
{
	return p->c->target.ranks > 1;
}

bool ranks_hang(const struct measure *w)
{
	return w->ranks && w->ranks->broken;
}

void ranks_home(struct measure *w)
{
	struct ranks *s = w->ranks;

	w->ranks = NULL;
	/* the thread of a hung rank still uses this memory, so it is freed with the process */
	if (!s || s->broken)
		return;
	if (s->threads)
		ranks_end_threads(s);
	free(s->answer);
	free(s);
}

/* Sends the answer with the new samples of the window. */
enum status ranks_answer(struct rank_case *p, struct rank_case_answer *a, struct error *err)
{
	size_t count = p->sample ? p->window.count - p->told : 0, size = sizeof(*a) + count * sizeof(double);
	char *bytes = malloc(size);
	enum status st;

	if (!bytes)
		return error_errno(err, ENOMEM, "an answer with %zu samples", count);
	a->count = count;
	memcpy(bytes, a, sizeof(*a));
	for (size_t i = 0; i < count; i++) {
		const struct sample *s = &p->sample[p->told + i];
		double ns = s->starved ? -s->ns : s->ns;

		memcpy(bytes + sizeof(*a) + i * sizeof(ns), &ns, sizeof(ns));
	}
	p->told += count;
	st = team_answer(p->team, bytes, size, err);
	free(bytes);
	return st;
}

static enum status make_room(struct ranks *s, size_t samples, struct error *err)
{
	size_t room = sizeof(struct rank_case_answer) + samples * sizeof(double);
	void *grown = room > s->answer_room ? realloc(s->answer, room) : s->answer;

	if (!grown)
		return error_errno(err, ENOMEM, "room for %zu samples of a rank", samples);
	s->answer = grown;
	s->answer_room = room > s->answer_room ? room : s->answer_room;
	return STATUS_OK;
}

/* Keeps the worst status; equal ones: that of the lowest rank. */
static void weigh(struct error *worst, enum status st, enum cause cause, const char *text)
{
	if (st <= worst->status)
		return;
	error_clear(worst);
	error_set_cause(worst, st, cause, "%s", text);
}

static bool opens_step(uint32_t word)
{
	return word != RANK_CASE_SAMPLE && word != RANK_CASE_DRAIN && word != RANK_CASE_END &&
	       word != RANK_CASE_RELEASE;
}

enum status
ranks_do(struct rank_case *p, const struct team_command *c, enum status (*own)(void *arg, struct error *err),
	 void (*take)(void *arg, unsigned rank, const struct rank_case_answer *a, const double *sample),
	 void *arg, struct error *err)
{
	struct ranks *s = p->w->ranks;
	struct error mine = {0};
	enum status st;

	if (opens_step(c->word))
		team_begin(p->team);
	st = make_room(s, c->word == RANK_CASE_BEGIN ? c->number : 0, err);
	if (!st)
		st = team_post(p->team, c, err);
	if (st)
		return st;
	rank_case_stand(p, c->word);
	st = own(arg, &mine);
	if (st)
		rank_case_leave(p, st, &mine);
	mine.status = st;
	for (unsigned r = 1; r < s->size; r++) {
		const struct rank_case_answer *a = s->answer;
		size_t size;
		enum status lost = team_collect(p->team, r, s->answer, s->answer_room, &size, err);

		s->broken = s->broken || lost;
		if (lost)
			return lost;
		weigh(&mine, (enum status)a->status, (enum cause)a->cause, a->text);
		if (take)
			take(arg, r, a, (const double *)(const void *)(a + 1));
	}
	if (*mine.text)
		error_set_cause(err, mine.status, mine.cause, "%s", mine.text);
	return mine.status;
}

/* -- rank 0's own part of a command -- */

struct deed {
	struct rank_case *p;
	struct team_command c;
	const char *name;
	struct wrong *wrong;
};

static enum status own_prepare(void *arg, struct error *err)
{
	return rank_case_prepare(((struct deed *)arg)->p, err);
}

enum status ranks_prepare(struct rank_case *p, struct error *err)
{
	struct deed d = {.p = p, .c = {.word = RANK_CASE_PREPARE}};
	struct meter *m;
	enum status st;

	if (!several(p))
		return rank_case_prepare(p, err);
	st = p->c->team ? ranks_start_team(p->w, p->c, err) : ranks_start_threads(p->w, p->c, err);
	if (st)
		return st;
	p->team = p->w->ranks->team;
	p->w->ranks->c = p->c;
	st = ranks_do(p, &d.c, own_prepare, NULL, &d, err);
	if (!st)
		st = meter_team_create(&m, p, err);
	if (!st)
		p->meter = m;
	return st;
}

static enum status own_select(void *arg, struct error *err)
{
	struct deed *d = arg;

	return d->p->c->engine->select(d->p->state, d->c.variant, &d->name, err);
}

enum status ranks_select(struct rank_case *p, unsigned variant, const char **name, struct error *err)
{
	struct deed d = {.p = p, .c = {.word = RANK_CASE_SELECT, .variant = variant}};
	enum status st = several(p) ? ranks_do(p, &d.c, own_select, NULL, &d, err) : own_select(&d, err);

	if (!st)
		*name = d.name;
	return st;
}

static enum status own_verify(void *arg, struct error *err)
{
	struct deed *d = arg;
	enum status st = rank_case_verify(d->p, d->wrong, err);
	struct wrong own = *d->wrong;

	if (own.count)
		snprintf(d->wrong->place, sizeof(own.place), "rank 0, %.70s", own.place);
	d->wrong->ranks = own.count > 0;
	return st;
}

/* Adds up the counts. The place is that of the first rank with a wrong element. All ranks report the same
 * suspect. */
static void add_wrong(void *arg, unsigned rank, const struct rank_case_answer *a, const double *sample)
{
	struct wrong *sum = ((struct deed *)arg)->wrong, one = a->wrong;
	struct wrong first = sum->count ? *sum : one;

	(void)sample;
	if (one.count && !sum->count)
		snprintf(first.place, sizeof(first.place), "rank %u, %.70s", rank, one.place);
	first.checked = sum->checked + one.checked;
	first.total = sum->total + one.total;
	first.count = sum->count + one.count;
	first.nan = sum->nan || one.nan;
	first.ranks = sum->ranks + (one.count > 0);
	first.rank = sum->count ? sum->rank : rank;
	if (one.count && one.suspect != first.suspect)
		first.suspect = 0;
	*sum = first;
}

enum status ranks_verify(struct rank_case *p, struct wrong *wrong, struct error *err)
{
	struct deed d = {.p = p, .c = {.word = RANK_CASE_VERIFY}, .wrong = wrong};

	if (!several(p))
		return rank_case_verify(p, wrong, err);
	return ranks_do(p, &d.c, own_verify, add_wrong, &d, err);
}

static enum status own_finish(void *arg, struct error *err)
{
	return rank_case_finish(((struct deed *)arg)->p, err);
}

enum status ranks_finish(struct rank_case *p, struct error *err)
{
	struct deed d = {.p = p, .c = {.word = RANK_CASE_FINISH}};

	return several(p) ? ranks_do(p, &d.c, own_finish, NULL, &d, err) : rank_case_finish(p, err);
}

static enum status own_release(void *arg, struct error *err)
{
	(void)err;
	rank_case_release(((struct deed *)arg)->p);
	return STATUS_OK;
}

void ranks_release(struct rank_case *p, enum status st, const struct error *why)
{
	struct deed d = {.p = p, .c = {.word = RANK_CASE_RELEASE}};
	struct error lost = {0};

	if (!several(p) || !p->team) {
		rank_case_release(p);
		return;
	}
	/* after a stop request, ranks that do not hang finish soon, so they are waited for */
	if (p->w->stop && *p->w->stop) {
		p->team->stop = NULL;
		p->team->limit_ms = RANKS_STOPPED_MS;
	}
	ranks_do(p, &d.c, own_release, NULL, &d, &lost);
	p->team->stop = p->w->stop;
	if (lost.status)
		log_warn(p->w->log, LOG_TOPIC_RUN, "%s: %s", p->c->key, lost.text);
	else if (p->c->team)
		ranks_report_outcome(p, st, why);
}
