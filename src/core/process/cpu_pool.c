/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "core/process/cpu_pool.h"
#include "core/process/cpu_wait.h"

/*
 * A thread that waits pauses for a while, then offers its CPU to others again and again, then sleeps: after
 * about 0.2 ms between rounds, after about 2 ms at the end of a round. If other work took the CPU, the
 * machine is busy, and the thread sleeps at once: the one it waits for may need this CPU. It then pauses for
 * less, until waits end without that.
 */
enum { PAUSES_LEAST = 50, PAUSES_MOST = 2000, OFFERS_IDLE = 300, OFFERS_END = 5000 };
/* TAKEN_NS: an offer that lasts so long was taken. MOMENT_NS: sleep between cpu_pool_begin and cpu_pool_end.
 */
enum { TAKEN_NS = 50000, MOMENT_NS = 50000 };
enum { USABLE_MAX = 32 };

struct member {
	struct cpu_pool *pool;
	unsigned index;
	pthread_t thread;
	atomic_int tid; /* 0: it has not begun */
	clockid_t clock;
	uint64_t base_ns; /* thread 0: CPU time before the pool was created */
	uint64_t done_ns,
		done_cpu;   /* when it finished its part of the round, and its CPU time at that moment */
	uint64_t waited_ns; /* waiting for slower threads, all rounds; thread 0: without the last round */
	unsigned pauses;    /* before it offers its CPU */
};

/* Items that threads share. `state` is odd while the list may be joined, and grows by two per list. A thread
 * joins by adding to `joined` and then looking at `state` again. The list is replaced only when it is closed
 * and nobody has joined. */
struct shared {
	void (*work)(void *arg, int64_t item, unsigned thread);
	void *arg;
	int64_t count;
	_Atomic int64_t next;
	atomic_uint state, joined;
};

struct cpu_pool {
	unsigned count, started; /* threads; members whose pthread runs */
	void (*work)(void *arg, unsigned thread);
	void *arg;
	uint64_t ended_ns;     /* end of the last round */
	atomic_uint round;     /* grows by one per round */
	atomic_uint remaining; /* members still working, without thread 0 */
	atomic_bool stop, begun;
	struct shared shared;
	pthread_mutex_t lock;
	pthread_cond_t go, done;
	bool pinned;
	cpu_set_t affinity; /* thread 0's affinity before the pool */
	struct member member[];
};

static void pause_cpu(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#else
	sched_yield();
#endif
}

static pid_t thread_id(void)
{
	return (pid_t)syscall(SYS_gettid);
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec t = {0};

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Offers the CPU to other work. True: other work took it. */
static bool offer(void)
{
	const uint64_t began = clock_ns(CLOCK_MONOTONIC);

	sched_yield();
	return clock_ns(CLOCK_MONOTONIC) - began > TAKEN_NS;
}

static void sleep_moment(void)
{
	nanosleep(&(struct timespec){.tv_nsec = MOMENT_NS}, NULL);
}

static void learn(struct member *m, bool taken)
{
	if (taken)
		m->pauses = PAUSES_LEAST;
	else
		m->pauses = m->pauses < PAUSES_MOST / 2 ? 2 * m->pauses : PAUSES_MOST;
}

static void take_items(struct shared *s, unsigned thread)
{
	int64_t item;

	while ((item = atomic_fetch_add_explicit(&s->next, 1, memory_order_relaxed)) < s->count)
		s->work(s->arg, item, thread);
}

/* Joins a list that is open and not the one seen last. */
static bool join(struct shared *s, unsigned *seen, unsigned thread)
{
	unsigned state = atomic_load_explicit(&s->state, memory_order_acquire);
	bool joins;

	if (!(state & 1) || state == *seen)
		return false;
	atomic_fetch_add(&s->joined, 1);
	state = atomic_load(&s->state);
	joins = state & 1 && state != *seen;
	if (joins) {
		*seen = state;
		take_items(s, thread);
	}
	atomic_fetch_sub(&s->joined, 1);
	return joins;
}

static void sleep_until_go(struct cpu_pool *p, unsigned seen)
{
	pthread_mutex_lock(&p->lock);
	while (atomic_load(&p->round) == seen && !atomic_load(&p->begun))
		pthread_cond_wait(&p->go, &p->lock);
	pthread_mutex_unlock(&p->lock);
}

/* Waits until the round number differs from `seen`; meanwhile takes shared items. */
static unsigned wait_go(struct member *m, unsigned seen, unsigned *list)
{
	struct cpu_pool *p = m->pool;
	bool taken = false;

	for (unsigned turns = 0;; turns++) {
		unsigned now = atomic_load_explicit(&p->round, memory_order_acquire);

		if (now != seen) {
			learn(m, taken);
			return now;
		}
		if (join(&p->shared, list, m->index)) {
			turns = 0;
			taken = false;
		}
		if (turns < m->pauses) {
			pause_cpu();
			continue;
		}
		taken = taken || offer();
		if (!taken && turns < m->pauses + OFFERS_IDLE)
			continue;
		if (atomic_load_explicit(&p->begun, memory_order_relaxed)) {
			if (taken || turns > m->pauses + OFFERS_END)
				sleep_moment();
			continue;
		}
		learn(m, taken);
		sleep_until_go(p, seen);
		turns = 0;
		taken = false;
	}
}

static void wait_done(struct cpu_pool *p)
{
	struct member *m = &p->member[0];
	bool taken = false;

	for (unsigned turns = 0; turns < m->pauses + OFFERS_END && !taken; turns++) {
		if (!atomic_load_explicit(&p->remaining, memory_order_acquire)) {
			learn(m, false);
			return;
		}
		if (turns < m->pauses)
			pause_cpu();
		else
			taken = offer();
	}
	learn(m, taken);
	pthread_mutex_lock(&p->lock);
	while (atomic_load(&p->remaining))
		pthread_cond_wait(&p->done, &p->lock);
	pthread_mutex_unlock(&p->lock);
}

/* Time a thread waited for slower threads since it finished its part, without the CPU time it spent
 * spinning. Such waiting does not mean that other work kept the thread from its CPU. */
static uint64_t waited(const struct member *m)
{
	uint64_t ended = m->pool->ended_ns, spun = clock_ns(m->clock) - m->done_cpu;

	return ended > m->done_ns + spun ? ended - m->done_ns - spun : 0;
}

/* Each thread takes its own times, so that many threads add no cost to the thread that times the round. */
static void do_part(struct member *m)
{
	m->pool->work(m->pool->arg, m->index);
	m->done_ns = clock_ns(CLOCK_MONOTONIC);
	m->done_cpu = clock_ns(m->clock);
}

static void *member_main(void *arg)
{
	struct member *self = arg;
	struct cpu_pool *p = self->pool;
	unsigned round = 0, list = 0;

	atomic_store(&self->tid, thread_id());
	for (;;) {
		round = wait_go(self, round, &list);
		if (atomic_load(&p->stop))
			return NULL;
		if (self->done_ns)
			self->waited_ns += waited(self);
		do_part(self);
		if (atomic_fetch_sub(&p->remaining, 1) == 1) {
			pthread_mutex_lock(&p->lock);
			pthread_cond_signal(&p->done);
			pthread_mutex_unlock(&p->lock);
		}
	}
}

static void start_round(struct cpu_pool *p)
{
	pthread_mutex_lock(&p->lock);
	atomic_fetch_add(&p->round, 1);
	pthread_cond_broadcast(&p->go);
	pthread_mutex_unlock(&p->lock);
}

void cpu_pool_run(struct cpu_pool *p, void (*work)(void *arg, unsigned thread), void *arg)
{
	p->work = work;
	p->arg = arg;
	if (p->count == 1) {
		work(arg, 0);
		return;
	}
	atomic_store(&p->remaining, p->count - 1);
	start_round(p);
	do_part(&p->member[0]);
	wait_done(p);
	p->ended_ns = clock_ns(CLOCK_MONOTONIC);
	p->member[0].waited_ns += waited(&p->member[0]); /* now, because thread 0 goes on to other work */
}

void cpu_pool_begin(struct cpu_pool *p)
{
	if (p->count == 1 || p->begun)
		return;
	pthread_mutex_lock(&p->lock);
	atomic_store(&p->begun, true);
	pthread_cond_broadcast(&p->go);
	pthread_mutex_unlock(&p->lock);
}

void cpu_pool_end(struct cpu_pool *p)
{
	atomic_store(&p->begun, false);
}

bool cpu_pool_is_begun(const struct cpu_pool *p)
{
	return p->begun;
}

static void share_round(void *arg, unsigned thread)
{
	take_items(arg, thread);
}

void cpu_pool_share(struct cpu_pool *p, int64_t count, void (*work)(void *arg, int64_t item, unsigned thread),
		    void *arg)
{
	struct shared *s = &p->shared;

	s->work = work;
	s->arg = arg;
	s->count = count;
	atomic_store_explicit(&s->next, 0, memory_order_relaxed);
	if (!p->begun) {
		cpu_pool_run(p, share_round, s);
		return;
	}
	atomic_fetch_add(&s->state, 1);
	take_items(s, 0);
	atomic_fetch_add(&s->state, 1);
	for (unsigned turns = 0; atomic_load(&s->joined); turns++) {
		if (turns < PAUSES_MOST)
			pause_cpu();
		else
			sched_yield();
	}
}

static enum status pin(pthread_t thread, unsigned cpu, struct error *err)
{
	cpu_set_t set;
	int rc;

	CPU_ZERO(&set);
	if (cpu < CPU_SETSIZE)
		CPU_SET(cpu, &set);
	rc = pthread_setaffinity_np(thread, sizeof(set), &set);
	return rc ? error_errno(err, rc, "cannot pin a thread to CPU %u", cpu) : STATUS_OK;
}

static enum status start_member(struct cpu_pool *p, unsigned i, struct error *err)
{
	struct member *m = &p->member[i];
	int rc = pthread_create(&m->thread, NULL, member_main, m);

	if (rc)
		return error_errno(err, rc, "cannot start thread %u of %u", i, p->count);
	p->started++;
	pthread_getcpuclockid(m->thread, &m->clock);
	return STATUS_OK;
}

enum status cpu_pool_create(struct cpu_pool **out, const unsigned *cpus, unsigned count, struct error *err)
{
	struct cpu_pool *p = calloc(1, sizeof(*p) + count * sizeof(p->member[0]));
	enum status st = STATUS_OK;

	if (!p)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "out of memory for %u threads", count);
	p->count = count;
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->go, NULL);
	pthread_cond_init(&p->done, NULL);
	for (unsigned i = 0; i < count; i++)
		p->member[i] = (struct member){.pool = p, .index = i, .pauses = PAUSES_MOST};
	p->member[0].thread = pthread_self();
	atomic_store(&p->member[0].tid, thread_id());
	pthread_getcpuclockid(p->member[0].thread, &p->member[0].clock);
	p->member[0].base_ns = clock_ns(p->member[0].clock);
	if (cpus) {
		p->pinned = !pthread_getaffinity_np(pthread_self(), sizeof(p->affinity), &p->affinity);
		st = pin(pthread_self(), cpus[0], err);
	}
	for (unsigned i = 1; !st && i < count; i++) {
		st = start_member(p, i, err);
		if (!st && cpus)
			st = pin(p->member[i].thread, cpus[i], err);
	}
	if (st)
		cpu_pool_destroy(&p);
	*out = p;
	return st;
}

enum status cpu_pool_usable(struct cpu_pool **p, struct error *err)
{
	cpu_set_t set;
	unsigned count = 1;

	if (!sched_getaffinity(0, sizeof(set), &set))
		count = (unsigned)CPU_COUNT(&set);
	if (count > USABLE_MAX)
		count = USABLE_MAX;
	return cpu_pool_create(p, NULL, count ? count : 1, err);
}

void cpu_pool_destroy(struct cpu_pool **pool)
{
	struct cpu_pool *p = *pool;

	if (!p)
		return;
	atomic_store(&p->stop, true);
	start_round(p);
	for (unsigned i = 1; i <= p->started; i++)
		pthread_join(p->member[i].thread, NULL);
	if (p->pinned)
		pthread_setaffinity_np(pthread_self(), sizeof(p->affinity), &p->affinity);
	pthread_mutex_destroy(&p->lock);
	pthread_cond_destroy(&p->go);
	pthread_cond_destroy(&p->done);
	free(p);
	*pool = NULL;
}

unsigned cpu_pool_count(const struct cpu_pool *p)
{
	return p->count;
}

uint64_t cpu_pool_time_ns(const struct cpu_pool *p)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < p->count; i++) {
		const struct member *m = &p->member[i];

		sum += clock_ns(m->clock) - m->base_ns + m->waited_ns;
		if (i && m->done_ns)
			sum += waited(m);
	}
	return sum;
}

void cpu_share(uint64_t count, uint64_t grain, unsigned thread, unsigned threads, uint64_t *first,
	       uint64_t *last)
{
	uint64_t blocks = (count + grain - 1) / grain;

	*first = blocks * thread / threads * grain;
	*last = blocks * (thread + 1) / threads * grain;
	if (*first > count)
		*first = count;
	if (*last > count)
		*last = count;
}

void cpu_pool_waits(const struct cpu_pool *p, uint64_t *wait_ns)
{
	for (unsigned i = 0; i < p->count; i++) {
		const pid_t tid = atomic_load(&p->member[i].tid);

		wait_ns[i] = tid ? cpu_wait_ns(tid) : 0;
	}
}
