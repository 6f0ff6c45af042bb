/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A meter over several ranks. Rank 0's meter times as usual, and the other ranks do the same by command.
 * Inside a window a command is one word per sample, without an answer. The ranks' times are collected when
 * nothing is in flight. A sample lasts as long as on the slowest rank. A sample in a row lasts until the last
 * rank has done it.
 */
#include <errno.h>
#include <math.h>
#include "run/worker/ranks.h"

struct meter_team {
	struct meter base;
	struct meter *own; /* rank 0's meter */
	struct rank_case *part;
	struct rank_times times;
	double **ns; /* by rank, with room for the samples of a window */
	size_t room;
	struct window *window;
	bool row;    /* since the last drain: samples begin where the previous ones ended */
	bool uneven; /* a rank reported more or fewer samples than rank 0 */
	double once_ns;
	bool reached;
	uint64_t limit_ns;
};

static struct meter_team *team_of(struct meter *m)
{
	return (struct meter_team *)m;
}

static enum status say(struct meter_team *t, uint32_t word, uint64_t number, uint32_t variant,
		       enum status (*own)(void *arg, struct error *err),
		       void (*take)(void *arg, unsigned rank, const struct rank_case_answer *a,
				    const double *sample),
		       struct error *err)
{
	const struct team_command c = {.word = word, .number = number, .variant = variant};

	return ranks_do(t->part, &c, own, take, t, err);
}

/* -- cold and ramp -- */

static enum status own_once(void *arg, struct error *err)
{
	struct meter_team *t = arg;

	return t->own->ops->once(t->own, &t->once_ns, err);
}

static void take_once(void *arg, unsigned rank, const struct rank_case_answer *a, const double *sample)
{
	struct meter_team *t = arg;

	(void)rank, (void)sample;
	t->once_ns = a->ns > t->once_ns ? a->ns : t->once_ns;
}

static enum status once(struct meter *m, double *ns, struct error *err)
{
	struct meter_team *t = team_of(m);
	enum status st = say(t, RANK_CASE_ONCE, 0, 0, own_once, take_once, err);

	*ns = t->once_ns;
	return st;
}

static enum status own_ramp(void *arg, struct error *err)
{
	struct meter_team *t = arg;

	return t->own->ops->ramp(t->own, t->limit_ns, &t->reached, err);
}

static void take_ramp(void *arg, unsigned rank, const struct rank_case_answer *a, const double *sample)
{
	struct meter_team *t = arg;

	(void)rank, (void)sample;
	t->reached = t->reached && a->reached;
}

static enum status ramp(struct meter *m, uint64_t limit_ns, bool *reached, struct error *err)
{
	struct meter_team *t = team_of(m);
	enum status st;

	t->limit_ns = limit_ns;
	st = say(t, RANK_CASE_RAMP, limit_ns, 0, own_ramp, take_ramp, err);
	*reached = t->reached;
	return st;
}

/* -- windows -- */

static enum status make_room(struct meter_team *t, size_t room, struct error *err)
{
	for (unsigned r = 0; room > t->room && r < t->times.ranks; r++) {
		double *grown = realloc(t->ns[r], room * sizeof(*grown));

		if (!grown)
			return error_errno(err, ENOMEM, "room for %zu samples of %u ranks", room,
					   t->times.ranks);
		t->ns[r] = grown;
	}
	t->room = room > t->room ? room : t->room;
	return STATUS_OK;
}

static enum status own_begin(void *arg, struct error *err)
{
	struct meter_team *t = arg;

	return t->own->ops->begin(t->own, t->window, err);
}

static enum status begin(struct meter *m, struct window *w, struct error *err)
{
	struct meter_team *t = team_of(m);
	enum status st = make_room(t, w->room, err);

	if (st)
		return st;
	m->window = t->window = w;
	t->times.count = 0;
	t->row = t->own->ops->in_row;
	t->uneven = false;
	return say(t, RANK_CASE_BEGIN, w->room,
		   (w->stamp ? RANK_CASE_STAMP : 0) | (w->check ? RANK_CASE_CHECK : 0), own_begin, NULL, err);
}

static enum status post_sample(struct meter_team *t, uint64_t batch, uint32_t how, struct error *err)
{
	const struct team_command c = {.word = RANK_CASE_SAMPLE, .batch = batch, .variant = how};
	enum status st = team_post(t->part->team, &c, err);

	rank_case_stand(t->part, RANK_CASE_SAMPLE);
	return st;
}

/* The other ranks wait for their devices, which wait for this rank's device. So they are told about the
 * failure. */
static enum status left_on_failure(struct meter_team *t, enum status st, struct error *err)
{
	if (st)
		rank_case_leave(t->part, st, err);
	return st;
}

static enum status sample(struct meter *m, uint64_t batch, struct error *err)
{
	struct meter_team *t = team_of(m);
	enum status st = post_sample(t, batch, 0, err);

	return st ? st : left_on_failure(t, t->own->ops->sample(t->own, batch, err), err);
}

static enum status singles(struct meter *m, uint64_t count, struct error *err)
{
	struct meter_team *t = team_of(m);
	enum status st = post_sample(t, count, RANK_CASE_SINGLES, err);

	t->row = false; /* each iteration by itself, because a percentile is about single iterations */
	return st ? st : left_on_failure(t, t->own->ops->singles(t->own, count, err), err);
}

/* Saves rank 0's own times before the combined times overwrite them. */
static void keep_own(struct meter_team *t)
{
	for (size_t k = t->times.count; k < t->window->count; k++)
		t->ns[0][k] = t->window->sample[k].ns;
}

static enum status own_drain(void *arg, struct error *err)
{
	struct meter_team *t = arg;
	enum status st = t->own->ops->drain(t->own, err);

	keep_own(t);
	return st;
}

static enum status own_end(void *arg, struct error *err)
{
	struct meter_team *t = arg;
	enum status st = t->own->ops->end(t->own, err);

	keep_own(t);
	return st;
}

static void take_samples(void *arg, unsigned rank, const struct rank_case_answer *a, const double *sample)
{
	struct meter_team *t = arg;
	struct window *w = t->window;
	size_t from = t->times.count;

	if (a->count != w->count - from) {
		t->uneven = true;
		return;
	}
	for (size_t i = 0; i < a->count; i++) {
		struct sample *s = &w->sample[from + i];
		double ns = fabs(sample[i]);

		t->ns[rank][from + i] = ns;
		s->ns = fmax(s->ns, ns);
		s->starved = s->starved || signbit(sample[i]);
	}
}

static enum status bring_together(struct meter_team *t, uint32_t word,
				  enum status (*own)(void *arg, struct error *err), struct error *err)
{
	size_t from = t->times.count;
	enum status st = say(t, word, 0, 0, own, take_samples, err);

	if (!st && t->uneven)
		st = error_set(err, STATUS_BUG, "the ranks have not timed the same samples");
	t->times.count = t->window->count;
	if (!st && t->row)
		rank_row_samples(&t->times, from, t->window->sample);
	t->row = t->own->ops->in_row;
	return st;
}

static enum status drain(struct meter *m, struct error *err)
{
	return bring_together(team_of(m), RANK_CASE_DRAIN, own_drain, err);
}

static bool single(const struct window *w)
{
	for (size_t i = 0; i < w->count; i++)
		if (w->sample[i].batch != 1)
			return false;
	return w->count > 1;
}

static enum status end(struct meter *m, struct error *err)
{
	struct meter_team *t = team_of(m);
	enum status st = bring_together(t, RANK_CASE_END, own_end, err);

	t->window->ranks = rank_spread_of(&t->times, single(t->window));
	m->window = t->window = NULL;
	return st;
}

static enum status state(struct meter *m, struct meter_state *out, struct error *err)
{
	struct meter *own = team_of(m)->own;

	*out = (struct meter_state){0};
	return own->ops->state ? own->ops->state(own, out, err) : STATUS_OK;
}

static void destroy(struct meter *m)
{
	struct meter_team *t = team_of(m);

	meter_destroy(&t->own);
	for (unsigned r = 0; t->ns && r < t->times.ranks; r++)
		free(t->ns[r]);
	free(t->ns);
	free(t);
}

static const struct meter_ops ops = {
	.name = "team",
	.once = once,
	.ramp = ramp,
	.begin = begin,
	.sample = sample,
	.singles = singles,
	.drain = drain,
	.end = end,
	.state = state,
	.destroy = destroy,
};

enum status meter_team_create(struct meter **out, struct rank_case *p, struct error *err)
{
	struct meter_team *t = calloc(1, sizeof(*t));

	if (t)
		t->ns = calloc(p->team->size, sizeof(*t->ns));
	if (!t || !t->ns) {
		free(t);
		return error_errno(err, ENOMEM, "a meter of %u ranks", p->team->size);
	}
	t->base = *p->meter;
	t->base.ops = &ops;
	t->own = p->meter;
	t->part = p;
	t->times.ranks = p->team->size;
	t->times.ns = t->ns;
	*out = &t->base;
	return STATUS_OK;
}
