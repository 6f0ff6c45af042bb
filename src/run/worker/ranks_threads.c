/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks as threads of this worker, one GPU each. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include "core/process/process.h"
#include "run/worker/ranks_internal.h"

struct rank { /* data of one thread */
	struct rank_threads *all;
	struct team *team;
	struct measure w;
	pthread_t thread;
	bool started;
	int numa; /* -1: not bound */
};

struct rank_threads {
	struct ranks *all;
	unsigned size;
	uint16_t gpu[RANKS_MAX]; /* in the order of the case's target */
	bool opens;		 /* their engines open these GPUs */
	struct team team[RANKS_MAX];
	struct rank rank[RANKS_MAX];
};

/* -- a follower's thread -- */

static void bind_near(const struct rank *r)
{
	struct error why = {0};

	if (r->numa >= 0 && process_bind_thread(r->numa, &why))
		log_warn(r->w.log, LOG_TOPIC_RUN, "%s is not bound to the GPU's NUMA node: %s", r->team->name,
			 why.text);
}

static void *follow(void *arg)
{
	struct rank *r = arg;
	struct rank_case *p = calloc(1, sizeof(*p));
	struct rank_case_answer a;
	struct team_command c;
	enum status st = STATUS_OK;

	bind_near(r);
	while (p && !st && !team_wait_for_lead(r->team, &c, NULL)) {
		if (c.word == RANK_CASE_PREPARE)
			*p = (struct rank_case){.w = &r->w, .c = r->all->all->c, .team = r->team};
		rank_case_obey(p, &c, &a);
		if (c.word != RANK_CASE_SAMPLE)
			st = ranks_answer(p, &a, NULL);
		if (c.word == RANK_CASE_RELEASE)
			*p = (struct rank_case){0};
	}
	if (r->team->close)
		r->team->close(r->team);
	device_close(&r->w);
	free(p);
	return NULL;
}

/* -- start and end -- */

static int numa_of(const struct measure *w, const struct bench_case *c, unsigned rank)
{
	if (!device_wanted(c) || machine_cpu(w->machine)->numa_count < 2)
		return -1;
	return (int)gpu_get(machine_gpu(w->machine, c->target.gpu[rank]), GPU_FACT_numa_node, -1);
}

static void name_rank(struct rank_threads *s, struct measure *w, const struct bench_case *c, unsigned r)
{
	struct team *t = &s->team[r];

	snprintf(t->name, sizeof(t->name), "rank %u (gpu%u)", r, c->target.gpu[r]);
	/* rank 0 sees a stop request and leaves the case; the others get a message */
	t->stop = r ? NULL : w->stop;
	t->board = w->board && r < TEAM_BOARD_RANKS ? &w->board[r] : NULL;
	team_board_take(t->board, r);
	s->rank[r] = (struct rank){
		.all = s,
		.team = t,
		.w = {.machine = w->machine, .seed = w->seed, .clock = w->clock, .log = w->log},
		.numa = numa_of(w, c, r),
	};
}

/* Only the worker's first thread handles a stop request, because it polls. */
static enum status start_threads(struct rank_threads *s, struct error *err)
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

static void set_limits(struct rank_threads *t, const struct bench_case *c)
{
	for (unsigned r = 0; r < t->size; r++)
		t->team[r].limit_ms = c->limit_ms ? c->limit_ms + RANKS_BEYOND_MS : TEAM_LIMIT_MS;
}

static bool same_ranks(const struct ranks *s, const struct bench_case *c)
{
	return s && s->threads && s->size == c->target.ranks && s->threads->opens == device_wanted(c) &&
	       !memcmp(s->threads->gpu, c->target.gpu, s->size * sizeof(c->target.gpu[0]));
}

enum status ranks_start_threads(struct measure *w, const struct bench_case *c, struct error *err)
{
	struct rank_threads *t;
	struct ranks *s;
	enum status st;

	if (same_ranks(w->ranks, c)) {
		set_limits(w->ranks->threads, c);
		return STATUS_OK;
	}
	ranks_home(w);
	if (c->target.ranks > RANKS_MAX)
		return error_set(err, STATUS_BUG, "%u ranks in one worker", c->target.ranks);
	s = calloc(1, sizeof(*s));
	t = calloc(1, sizeof(*t));
	st = s && t ? team_threads_create(t->team, c->target.ranks, err)
		    : error_errno(err, ENOMEM, "%u ranks", c->target.ranks);
	if (st) {
		free(s);
		free(t);
		return st;
	}
	*s = (struct ranks){.size = c->target.ranks, .team = t->team, .threads = t};
	t->all = s;
	t->size = s->size;
	t->opens = device_wanted(c);
	memcpy(t->gpu, c->target.gpu, s->size * sizeof(t->gpu[0]));
	w->ranks = s;
	for (unsigned r = 0; r < s->size; r++)
		name_rank(t, w, c, r);
	set_limits(t, c);
	bind_near(&t->rank[0]);
	st = start_threads(t, err);
	if (st)
		ranks_home(w);
	return st;
}

void ranks_end_threads(struct ranks *s)
{
	struct rank_threads *t = s->threads;

	team_threads_end(t->team);
	if (t->team[0].close)
		t->team[0].close(&t->team[0]);
	for (unsigned r = 1; r < s->size; r++)
		if (t->rank[r].started)
			pthread_join(t->rank[r].thread, NULL);
	team_threads_destroy(t->team);
	free(t);
	s->threads = NULL;
}
