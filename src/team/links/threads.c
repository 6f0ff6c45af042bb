/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Links between threads of one process: shared state behind one lock. Waiting threads sleep. A rank that
 * waits for the next command spins for a short while first, if the process has enough CPUs that spinning
 * takes none from the measured work.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "core/clock.h"
#include "core/text/text.h"
#include "team/links/links.h"

enum { COMMANDS = 64, SPIN_NS = 50000, LOOK_NS = 100000000 };

struct answer {
	struct answer *next;
	size_t size;
	char bytes[];
};

struct rank_state { /* state of one rank */
	bool here;  /* it waits in the meeting */
	enum team_meeting kind;
	const void *mine;
	size_t size;
	void *all;
	struct error met; /* how the meeting ended for it */
	uint64_t taken;	  /* commands */
	struct answer *first, *last;
};

struct thread_links {
	struct team_links links;
	pthread_mutex_t lock;
	pthread_cond_t news;
	unsigned size, arrived;
	uint64_t meetings;
	struct error left; /* the error of the first rank that left this step */
	bool ended;
	unsigned spin_ns;
	_Atomic uint64_t posted;
	struct team_command command[COMMANDS];
	struct rank_state *rank;
};

static struct thread_links *thread_links_of(const struct team *t)
{
	return (struct thread_links *)t->links;
}

static uint64_t deadline_of(const struct team *t)
{
	return clock_now_ns(clock_monotonic()) + (uint64_t)t->limit_ms * 1000000u;
}

/* Sleeps until the state changes, a tenth of a second at most. False: the deadline has passed, or a request
 * to stop. Called with the lock held. */
static bool wait_until(struct thread_links *h, const struct team *t, uint64_t deadline)
{
	uint64_t now = clock_now_ns(clock_monotonic()), until = now + LOOK_NS;

	if (now >= deadline || (t->stop && *t->stop))
		return false;
	until = until < deadline ? until : deadline;
	pthread_cond_timedwait(&h->news, &h->lock,
			       &(struct timespec){.tv_sec = (time_t)(until / 1000000000u),
						  .tv_nsec = (long)(until % 1000000000u)});
	return true;
}

/* The error for a wait_until that returned false. */
static enum status waited(const struct team *t, struct error *err, const char *what)
{
	if (t->stop && *t->stop)
		return error_set_cause(err, STATUS_CANCELLED, CAUSE_INTERRUPTED, "stopped on request");
	return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_TIMED_OUT, "%s within %.1f s", what,
			       t->limit_ms / 1e3);
}

/* -- meetings -- */

static bool all_alike(const struct thread_links *h)
{
	for (unsigned r = 1; r < h->size; r++)
		if (h->rank[r].kind != h->rank[0].kind || h->rank[r].size != h->rank[0].size)
			return false;
	return true;
}

/* All ranks sleep in the meeting, so their buffers can be read and written. */
static void deal(struct thread_links *h)
{
	struct rank_state *s = h->rank;
	size_t size = s[0].size;
	struct team_verdict worst = {0};

	if (s[0].kind == TEAM_MEET_AGREE)
		for (unsigned r = 0; r < h->size; r++) {
			const struct team_verdict *v = s[r].mine;

			if (v->status > worst.status)
				worst = *v;
		}
	for (unsigned r = 0; r < h->size; r++)
		switch (s[r].kind) {
		case TEAM_MEET_AGREE:
			memcpy(s[r].all, &worst, sizeof(worst));
			break;
		case TEAM_MEET_SHARE:
			memmove(s[r].all, s[0].mine, size);
			break;
		case TEAM_MEET_GATHER:
			for (unsigned from = 0; from < h->size; from++)
				memcpy((char *)s[r].all + from * size, s[from].mine, size);
			break;
		}
}

static void open_meeting(struct thread_links *h)
{
	struct error why = {0};

	if (all_alike(h))
		deal(h);
	else
		error_set(&why, STATUS_BUG, "the ranks are in different agreement steps");
	for (unsigned r = 0; r < h->size; r++) {
		h->rank[r].met = why;
		h->rank[r].here = false;
	}
	h->arrived = 0;
	h->meetings++;
	pthread_cond_broadcast(&h->news);
}

/* The first rank past its deadline names the missing ranks for all; ranks that arrive later get the same
 * message. */
static void name_late(struct thread_links *h, const struct team *t)
{
	bool *here = calloc(h->size, sizeof(*here));

	for (unsigned r = 0; here && r < h->size; r++)
		here[r] = h->rank[r].here;
	if (t->stop && *t->stop)
		waited(t, &h->left, "");
	else if (here)
		team_late(t, here, "an agreement step", &h->left);
	else
		error_errno(&h->left, ENOMEM, "no memory for an agreement of %u ranks", h->size);
	pthread_cond_broadcast(&h->news);
	free(here);
}

static enum status meet(struct team *t, enum team_meeting kind, const void *mine, size_t size, void *all,
			struct error *err)
{
	struct thread_links *h = thread_links_of(t);
	struct rank_state *s = &h->rank[t->rank];
	uint64_t deadline = deadline_of(t);
	enum status st = STATUS_OK;
	uint64_t meeting;
	bool in_time = true;

	pthread_mutex_lock(&h->lock);
	meeting = h->meetings;
	s->kind = kind;
	s->mine = mine;
	s->size = size;
	s->all = all;
	s->here = true;
	s->met = (struct error){0};
	if (++h->arrived == h->size && !h->left.status)
		open_meeting(h);
	while (h->meetings == meeting && !h->left.status && in_time)
		in_time = wait_until(h, t, deadline);
	if (h->meetings == meeting && !h->left.status)
		name_late(h, t);
	if (h->meetings == meeting) {
		s->met = h->left;
		s->here = false;
		h->arrived--;
	}
	if (s->met.status)
		st = error_set_cause(err, s->met.status, s->met.cause, "%s", s->met.text);
	pthread_mutex_unlock(&h->lock);
	return st;
}

static void leave(struct team *t, const struct error *why)
{
	struct thread_links *h = thread_links_of(t);

	pthread_mutex_lock(&h->lock);
	if (!h->left.status) {
		h->left = *why;
		team_named(t, &h->left);
	}
	pthread_cond_broadcast(&h->news);
	pthread_mutex_unlock(&h->lock);
}

static bool left(struct team *t, struct error *why)
{
	struct thread_links *h = thread_links_of(t);
	bool any;

	pthread_mutex_lock(&h->lock);
	any = h->left.status != STATUS_OK;
	if (any)
		*why = h->left;
	pthread_mutex_unlock(&h->lock);
	return any;
}

static void begin(struct team *t)
{
	struct thread_links *h = thread_links_of(t);

	pthread_mutex_lock(&h->lock);
	h->left = (struct error){0};
	pthread_mutex_unlock(&h->lock);
}

/* -- commands -- */

static uint64_t slowest(const struct thread_links *h)
{
	uint64_t least = UINT64_MAX;

	for (unsigned r = 1; r < h->size; r++)
		least = h->rank[r].taken < least ? h->rank[r].taken : least;
	return least;
}

static enum status post(struct team *t, const struct team_command *c, struct error *err)
{
	struct thread_links *h = thread_links_of(t);
	uint64_t deadline = deadline_of(t);
	uint64_t posted = atomic_load_explicit(&h->posted, memory_order_relaxed);
	bool in_time = true;

	pthread_mutex_lock(&h->lock);
	while (posted - slowest(h) >= COMMANDS && in_time)
		in_time = wait_until(h, t, deadline);
	if (in_time) {
		h->command[posted % COMMANDS] = *c;
		atomic_store_explicit(&h->posted, posted + 1, memory_order_release);
		pthread_cond_broadcast(&h->news);
	}
	pthread_mutex_unlock(&h->lock);
	if (in_time)
		return STATUS_OK;
	return waited(t, err, "a rank did not take its commands");
}

/* Spins for a short while until a command arrives. */
static void spin(const struct thread_links *h, uint64_t taken)
{
	uint64_t until;

	if (!h->spin_ns)
		return;
	until = clock_now_ns(clock_monotonic()) + h->spin_ns;
	while (atomic_load_explicit(&h->posted, memory_order_acquire) == taken &&
	       clock_now_ns(clock_monotonic()) < until)
		;
}

static enum status follow(struct team *t, struct team_command *c, struct error *err)
{
	struct thread_links *h = thread_links_of(t);
	struct rank_state *s = &h->rank[t->rank];
	bool any;

	spin(h, s->taken);
	pthread_mutex_lock(&h->lock);
	while (atomic_load_explicit(&h->posted, memory_order_relaxed) == s->taken && !h->ended)
		pthread_cond_wait(&h->news, &h->lock);
	any = atomic_load_explicit(&h->posted, memory_order_relaxed) != s->taken;
	if (any) {
		*c = h->command[s->taken % COMMANDS];
		if (atomic_load_explicit(&h->posted, memory_order_relaxed) - s->taken++ >= COMMANDS)
			pthread_cond_broadcast(&h->news); /* rank 0 waits for room */
	}
	pthread_mutex_unlock(&h->lock);
	return any ? STATUS_OK : error_set(err, STATUS_CANCELLED, "rank 0 has ended");
}

/* -- answers -- */

static enum status answer(struct team *t, const void *bytes, size_t size, struct error *err)
{
	struct thread_links *h = thread_links_of(t);
	struct rank_state *s = &h->rank[t->rank];
	struct answer *a = malloc(sizeof(*a) + size);

	if (!a)
		return error_errno(err, ENOMEM, "no memory for an answer of %zu bytes", size);
	a->next = NULL;
	a->size = size;
	memcpy(a->bytes, bytes, size);
	pthread_mutex_lock(&h->lock);
	if (s->last)
		s->last->next = a;
	else
		s->first = a;
	s->last = a;
	pthread_cond_broadcast(&h->news);
	pthread_mutex_unlock(&h->lock);
	return STATUS_OK;
}

static enum status collect(struct team *t, unsigned rank, void *bytes, size_t room, size_t *size,
			   struct error *err)
{
	struct thread_links *h = thread_links_of(t);
	struct rank_state *s = &h->rank[rank];
	uint64_t deadline = deadline_of(t);
	struct answer *a;
	bool in_time = true;
	char what[48];

	pthread_mutex_lock(&h->lock);
	while (!s->first && in_time)
		in_time = wait_until(h, t, deadline);
	a = s->first;
	if (a && !(s->first = a->next))
		s->last = NULL;
	pthread_mutex_unlock(&h->lock);
	snprintf(what, sizeof(what), "rank %u did not answer", rank);
	if (!a)
		return waited(t, err, what);
	*size = a->size < room ? a->size : room;
	memcpy(bytes, a->bytes, *size);
	free(a);
	return STATUS_OK;
}

static const struct team_links_ops ops = {
	.meet = meet,
	.post = post,
	.follow = follow,
	.answer = answer,
	.collect = collect,
	.leave = leave,
	.left = left,
	.begin = begin,
};

/* -- create and destroy -- */

/* Ranks spin only if each has one CPU for its work and another one for spinning. */
static unsigned spin_time(unsigned size)
{
	cpu_set_t set;

	return !sched_getaffinity(0, sizeof(set), &set) && (unsigned)CPU_COUNT(&set) >= 2 * size ? SPIN_NS
												 : 0;
}

enum status team_threads_create(struct team *ranks, unsigned size, struct error *err)
{
	struct thread_links *h = calloc(1, sizeof(*h));
	pthread_condattr_t attr;

	if (h)
		h->rank = calloc(size, sizeof(*h->rank));
	if (!h || !h->rank) {
		free(h);
		return error_errno(err, ENOMEM, "no memory for links between %u ranks", size);
	}
	h->links.ops = &ops;
	h->size = size;
	h->spin_ns = spin_time(size);
	pthread_mutex_init(&h->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&h->news, &attr);
	pthread_condattr_destroy(&attr);
	for (unsigned r = 0; r < size; r++) {
		ranks[r] = (struct team){
			.rank = r,
			.size = size,
			.local_rank = r,
			.local_size = size,
			.nodes = 1,
			.in_process = true,
			.limit_ms = TEAM_LIMIT_MS,
			.links = &h->links,
		};
		snprintf(ranks[r].name, sizeof(ranks[r].name), "rank %u", r);
	}
	return STATUS_OK;
}

void team_threads_end(struct team *ranks)
{
	struct thread_links *h = thread_links_of(ranks);

	pthread_mutex_lock(&h->lock);
	h->ended = true;
	pthread_cond_broadcast(&h->news);
	pthread_mutex_unlock(&h->lock);
}

void team_threads_destroy(struct team *ranks)
{
	struct thread_links *h = thread_links_of(ranks);

	for (unsigned r = 0; r < h->size; r++)
		while (h->rank[r].first) {
			struct answer *a = h->rank[r].first;

			h->rank[r].first = a->next;
			free(a);
		}
	pthread_cond_destroy(&h->news);
	pthread_mutex_destroy(&h->lock);
	free(h->rank);
	free(h);
}
