/* SPDX-License-Identifier: Apache-2.0 */
#include "run/ranks.h"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include "core/process.h"
#include "core/text.h"

enum { BEYOND_MS = 10000 };

struct rank { /* one thread's own */
	struct ranks *all;
	struct team *team;
	struct measure w;
	pthread_t thread;
	bool started;
	int numa; /* -1: anywhere */
};

struct ranks {
	unsigned size;
	uint16_t gpu[RANKS_MAX]; /* as the case's target has them */
	bool opens;		 /* their engines open these GPUs */
	struct team team[RANKS_MAX];
	struct rank rank[RANKS_MAX];
	const struct bench_case *c; /* set before PREPARE is posted */
	void *answer;		    /* the newest, with its samples */
	size_t answer_room;
	bool broken; /* a rank did not answer: it may hang for ever */
};

static bool several(const struct part *p)
{
	return p->c->target.ranks > 1;
}

/* -- a follower's thread -- */

static void bind_near(const struct rank *r)
{
	struct error why = {0};

	if (r->numa >= 0 && process_bind_thread(r->numa, &why))
		log_warn(r->w.log, LOG_TOPIC_RUN, "%s runs on any CPU: %s", r->team->name, why.text);
}

/* The new samples of the window go with the answer. */
static enum status answer(struct part *p, struct part_answer *a, struct error *err)
{
	size_t count = p->sample ? p->window.count - p->told : 0, size = sizeof(*a) + count * sizeof(double);
	char *bytes = malloc(size);
	enum status st;

	if (!bytes)
		return error_errno(err, ENOMEM, "an answer with %zu samples", count);
	a->count = count;
	memcpy(bytes, a, sizeof(*a));
	for (size_t i = 0; i < count; i++)
		memcpy(bytes + sizeof(*a) + i * sizeof(double), &p->sample[p->told + i].ns, sizeof(double));
	p->told += count;
	st = team_answer(p->team, bytes, size, err);
	free(bytes);
	return st;
}

static void *follow(void *arg)
{
	struct rank *r = arg;
	struct part *p = calloc(1, sizeof(*p));
	struct part_answer a;
	struct team_command c;
	enum status st = STATUS_OK;

	bind_near(r);
	while (p && !st && !team_follow(r->team, &c, NULL)) {
		if (c.word == PART_PREPARE)
			*p = (struct part){.w = &r->w, .c = r->all->c, .team = r->team};
		part_obey(p, &c, &a);
		if (c.word != PART_SAMPLE)
			st = answer(p, &a, NULL);
		if (c.word == PART_RELEASE)
			*p = (struct part){0};
	}
	if (r->team->close)
		r->team->close(r->team);
	device_close(&r->w);
	free(p);
	return NULL;
}

/* -- life -- */

static int numa_of(const struct measure *w, const struct bench_case *c, unsigned rank)
{
	if (!device_wanted(c) || machine_cpu(w->machine)->numa_count < 2)
		return -1;
	return (int)gpu_get(machine_gpu(w->machine, c->target.gpu[rank]), GPU_FACT_numa_node, -1);
}

static void name_rank(struct ranks *s, struct measure *w, const struct bench_case *c, unsigned r)
{
	struct team *t = &s->team[r];

	snprintf(t->name, sizeof(t->name), "rank %u (gpu%u)", r, c->target.gpu[r]);
	t->stop = w->stop;
	t->board = w->board && r < TEAM_BOARD_RANKS ? &w->board[r] : NULL;
	team_board_take(t->board, r);
	s->rank[r] = (struct rank){
		.all = s,
		.team = t,
		.w = {.machine = w->machine,
		      .seed = w->seed,
		      .clock = w->clock,
		      .log = w->log,
		      .stop = w->stop},
		.numa = numa_of(w, c, r),
	};
}

/* A request to stop is for the worker's first thread, which polls. */
static enum status start_threads(struct ranks *s, struct error *err)
{
	sigset_t polite, before;
	int failed = 0;

	sigemptyset(&polite);
	sigaddset(&polite, SIGTERM);
	sigaddset(&polite, SIGINT);
	pthread_sigmask(SIG_BLOCK, &polite, &before);
	for (unsigned r = 1; r < s->size && !failed; r++) {
		failed = pthread_create(&s->rank[r].thread, NULL, follow, &s->rank[r]);
		s->rank[r].started = !failed;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return failed ? error_errno(err, failed, "threads for %u ranks", s->size) : STATUS_OK;
}

static bool same_ranks(const struct ranks *s, const struct bench_case *c)
{
	return s && s->size == c->target.ranks && s->opens == device_wanted(c) &&
	       !memcmp(s->gpu, c->target.gpu, s->size * sizeof(s->gpu[0]));
}

static enum status start(struct measure *w, const struct bench_case *c, struct error *err)
{
	struct ranks *s;
	enum status st;

	if (same_ranks(w->ranks, c))
		return STATUS_OK;
	ranks_home(w);
	if (c->target.ranks > RANKS_MAX)
		return error_set(err, STATUS_BUG, "%u ranks in one worker", c->target.ranks);
	s = calloc(1, sizeof(*s));
	if (!s)
		return error_errno(err, ENOMEM, "%u ranks", c->target.ranks);
	s->size = c->target.ranks;
	s->opens = device_wanted(c);
	memcpy(s->gpu, c->target.gpu, s->size * sizeof(s->gpu[0]));
	st = team_threads_create(s->team, s->size, err);
	if (st) {
		free(s);
		return st;
	}
	w->ranks = s;
	for (unsigned r = 0; r < s->size; r++)
		name_rank(s, w, c, r);
	bind_near(&s->rank[0]);
	st = start_threads(s, err);
	if (st)
		ranks_home(w);
	return st;
}

void ranks_home(struct measure *w)
{
	struct ranks *s = w->ranks;

	if (!s)
		return;
	w->ranks = NULL;
	if (s->broken) /* its thread uses all of this: it goes with the process */
		return;
	team_threads_end(s->team);
	if (s->team[0].close)
		s->team[0].close(&s->team[0]);
	for (unsigned r = 1; r < s->size; r++)
		if (s->rank[r].started)
			pthread_join(s->rank[r].thread, NULL);
	team_threads_destroy(s->team);
	free(s->answer);
	free(s);
}

/* -- commands -- */

static enum status make_room(struct ranks *s, size_t samples, struct error *err)
{
	size_t room = sizeof(struct part_answer) + samples * sizeof(double);
	void *grown = room > s->answer_room ? realloc(s->answer, room) : s->answer;

	if (!grown)
		return error_errno(err, ENOMEM, "room for %zu samples of a rank", samples);
	s->answer = grown;
	s->answer_room = room > s->answer_room ? room : s->answer_room;
	return STATUS_OK;
}

/* The worst so far: of the lowest rank. */
static void weigh(struct error *worst, enum status st, enum cause cause, const char *text)
{
	if (st <= worst->status)
		return;
	error_clear(worst);
	error_set_cause(worst, st, cause, "%s", text);
}

static bool opens_step(uint32_t word)
{
	return word != PART_SAMPLE && word != PART_DRAIN && word != PART_END && word != PART_RELEASE;
}

enum status
ranks_do(struct part *p, const struct team_command *c, enum status (*own)(void *arg, struct error *err),
	 void (*take)(void *arg, unsigned rank, const struct part_answer *a, const double *sample), void *arg,
	 struct error *err)
{
	struct ranks *s = p->w->ranks;
	struct error mine = {0};
	enum status st;

	if (opens_step(c->word))
		team_begin(p->team);
	st = make_room(s, c->word == PART_BEGIN ? c->number : 0, err);
	if (!st)
		st = team_post(p->team, c, err);
	if (st)
		return st;
	part_stand(p, c->word);
	st = own(arg, &mine);
	if (st)
		part_leave(p, st, &mine);
	mine.status = st;
	for (unsigned r = 1; r < s->size; r++) {
		const struct part_answer *a = s->answer;
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

/* -- what the conductor does itself -- */

struct deed {
	struct part *p;
	struct team_command c;
	const char *name;
	struct wrong *wrong;
};

static enum status own_prepare(void *arg, struct error *err)
{
	return part_prepare(((struct deed *)arg)->p, err);
}

enum status ranks_prepare(struct part *p, struct error *err)
{
	struct deed d = {.p = p, .c = {.word = PART_PREPARE}};
	struct meter *m;
	enum status st;

	if (!several(p))
		return part_prepare(p, err);
	st = start(p->w, p->c, err);
	if (st)
		return st;
	p->team = &p->w->ranks->team[0];
	for (unsigned r = 0; r < p->w->ranks->size;
	     r++) /* beyond the case's own: the supervisor tells who hangs */
		p->w->ranks->team[r].limit_ms = p->c->limit_ms ? p->c->limit_ms + BEYOND_MS : TEAM_LIMIT_MS;
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

enum status ranks_select(struct part *p, unsigned variant, const char **name, struct error *err)
{
	struct deed d = {.p = p, .c = {.word = PART_SELECT, .variant = variant}};
	enum status st = several(p) ? ranks_do(p, &d.c, own_select, NULL, &d, err) : own_select(&d, err);

	if (!st)
		*name = d.name;
	return st;
}

static enum status own_verify(void *arg, struct error *err)
{
	struct deed *d = arg;
	enum status st = part_verify(d->p, d->wrong, err);
	struct wrong own = *d->wrong;

	if (own.count)
		snprintf(d->wrong->place, sizeof(own.place), "rank 0, %.70s", own.place);
	return st;
}

/* Counts add up; what is told of the first wrong element is of the first rank that has one. */
static void add_wrong(void *arg, unsigned rank, const struct part_answer *a, const double *sample)
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
	*sum = first;
}

enum status ranks_verify(struct part *p, struct wrong *wrong, struct error *err)
{
	struct deed d = {.p = p, .c = {.word = PART_VERIFY}, .wrong = wrong};

	if (!several(p))
		return part_verify(p, wrong, err);
	return ranks_do(p, &d.c, own_verify, add_wrong, &d, err);
}

static enum status own_finish(void *arg, struct error *err)
{
	return part_finish(((struct deed *)arg)->p, err);
}

enum status ranks_finish(struct part *p, struct error *err)
{
	struct deed d = {.p = p, .c = {.word = PART_FINISH}};

	return several(p) ? ranks_do(p, &d.c, own_finish, NULL, &d, err) : part_finish(p, err);
}

static enum status own_release(void *arg, struct error *err)
{
	(void)err;
	part_release(((struct deed *)arg)->p);
	return STATUS_OK;
}

void ranks_release(struct part *p)
{
	struct deed d = {.p = p, .c = {.word = PART_RELEASE}};
	struct error why = {0};

	if (several(p) && p->team)
		ranks_do(p, &d.c, own_release, NULL, &d, &why);
	else
		part_release(p);
	if (why.status)
		log_warn(p->w->log, LOG_TOPIC_RUN, "%s: %s", p->c->key, why.text);
}
