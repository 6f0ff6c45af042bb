/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/compile_queue.h"
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "core/text/text.h"
#include "engine/turns.h"

enum { CACHE_BYTES = 256 << 20 };

/* A copy of a request in one block. */
struct entry {
	struct turn_item item; /* while it waits */
	struct entry *next;    /* while it is ready */
	struct compiled_request out;
	bool ended; /* the request ended before its grammar was compiled */
};

struct list {
	struct entry *first, **end;
};

struct compile_queue {
	struct grammar_cache *cache;
	pthread_t thread;
	bool started, stop;
	pthread_mutex_t lock;
	pthread_cond_t more;
	struct turns waiting;
	struct list ready;
	struct entry *compiling;
	size_t count;
	uint64_t wake_ns; /* no deadline comes before; UINT64_MAX: none */
	int fd;
};

static void list_add(struct list *l, struct entry *e)
{
	e->next = NULL;
	*l->end = e;
	l->end = &e->next;
}

static struct entry *list_take(struct list *l)
{
	struct entry *e = l->first;

	if (!e)
		return NULL;
	l->first = e->next;
	if (!l->first)
		l->end = &l->first;
	return e;
}

/* The cache finds a grammar that is compiled already at once. */
static void compile(struct compile_queue *q, struct entry *e)
{
	const struct engine_request *r = &e->out.request;
	struct grammar *g = NULL;
	enum status st = grammar_cache_get(q->cache, &g, r->grammar, r->grammar_size, &e->out.error);

	if (!st)
		st = grammar_state_create(&e->out.state, g, &e->out.error);
	e->out.status = st;
	e->out.warnings = g ? grammar_warnings(g) : 0;
	grammar_release(&g);
}

static void *run(void *arg)
{
	struct compile_queue *q = arg;

	pthread_mutex_lock(&q->lock);
	while (!q->stop) {
		q->compiling = (struct entry *)turns_take(&q->waiting);
		if (!q->compiling) {
			pthread_cond_wait(&q->more, &q->lock);
			continue;
		}
		pthread_mutex_unlock(&q->lock);
		compile(q, q->compiling);
		pthread_mutex_lock(&q->lock);
		list_add(&q->ready, q->compiling);
		q->compiling = NULL;
		eventfd_write(q->fd, 1);
	}
	pthread_mutex_unlock(&q->lock);
	return NULL;
}

enum status compile_queue_create(struct compile_queue **out, const struct grammar_vocab *vocab,
				 struct error *err)
{
	struct compile_queue *q = calloc(1, sizeof(*q));
	enum status st;

	*out = q;
	if (!q)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "cannot allocate the queue of grammars");
	q->wake_ns = UINT64_MAX;
	q->ready.end = &q->ready.first;
	pthread_mutex_init(&q->lock, NULL);
	pthread_cond_init(&q->more, NULL);
	q->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	st = q->fd < 0 ? error_errno(err, errno, "eventfd")
		       : grammar_cache_create(&q->cache, vocab, CACHE_BYTES, NULL, err);
	if (!st) {
		const int failed = pthread_create(&q->thread, NULL, run, q);

		q->started = !failed;
		if (failed)
			st = error_errno(err, failed, "cannot start the thread that compiles grammars");
	}
	if (st)
		compile_queue_destroy(out);
	return st;
}

static void entry_free(struct entry *e)
{
	grammar_state_destroy(&e->out.state);
	free(e);
}

void compile_queue_destroy(struct compile_queue **out)
{
	struct compile_queue *q = *out;
	struct entry *e;

	if (!q)
		return;
	pthread_mutex_lock(&q->lock);
	q->stop = true;
	pthread_cond_signal(&q->more);
	pthread_mutex_unlock(&q->lock);
	if (q->started)
		pthread_join(q->thread, NULL);
	while ((e = (struct entry *)turns_take(&q->waiting)) || (e = list_take(&q->ready)))
		entry_free(e);
	grammar_cache_destroy(&q->cache);
	if (q->fd >= 0)
		close(q->fd);
	pthread_cond_destroy(&q->more);
	pthread_mutex_destroy(&q->lock);
	free(q);
	*out = NULL;
}

/* Copies an array into the block and moves the block's end. */
static const void *copy_array(uint8_t **end, const void *from, size_t bytes)
{
	void *to = *end;

	if (bytes)
		memcpy(to, from, bytes);
	*end += (bytes + 7) / 8 * 8;
	return to;
}

static struct entry *copy_of(const struct engine_request *r)
{
	const size_t prompt = r->prompt_count * sizeof(*r->prompt), stop = r->stops * sizeof(*r->stop);
	const size_t bias = r->biases * sizeof(*r->bias);
	const size_t head = (sizeof(struct entry) + 7) / 8 * 8;
	struct entry *e = calloc(1, head + prompt + stop + bias + r->grammar_size + 5 * 8);
	uint8_t *end = (uint8_t *)e + head;

	if (!e)
		return NULL;
	e->out.request = *r;
	e->out.copy = e;
	e->item.client = r->client;
	e->out.request.prompt = copy_array(&end, r->prompt, prompt);
	e->out.request.stop = copy_array(&end, r->stop, stop);
	e->out.request.bias = copy_array(&end, r->bias, bias);
	e->out.request.grammar = copy_array(&end, r->grammar, r->grammar_size);
	return e;
}

static uint64_t deadline_of(const struct entry *e)
{
	return e->out.request.deadline_ns ? e->out.request.deadline_ns : UINT64_MAX;
}

static bool add(struct compile_queue *q, struct entry *e)
{
	bool added;

	pthread_mutex_lock(&q->lock);
	added = turns_add(&q->waiting, &e->item);
	q->count += added;
	if (added && deadline_of(e) < q->wake_ns)
		q->wake_ns = deadline_of(e);
	pthread_cond_signal(&q->more);
	pthread_mutex_unlock(&q->lock);
	return added;
}

enum status compile_queue_add(struct compile_queue *q, const struct engine_request *r, struct error *err)
{
	struct entry *e = copy_of(r);

	if (e && add(q, e))
		return STATUS_OK;
	free(e);
	return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
			       "cannot allocate memory for a request");
}

static bool has_id(void *id, const struct turn_item *item)
{
	return ((const struct entry *)item)->out.request.id == *(uint64_t *)id;
}

/* Takes a request out that waits. */
static bool drop_waiting(struct compile_queue *q, bool (*wanted)(void *arg, const struct turn_item *item),
			 void *arg, struct compile_end *end)
{
	struct entry *e = (struct entry *)turns_pick(&q->waiting, wanted, arg);

	if (!e)
		return false;
	*end = (struct compile_end){e->out.request.id, e->out.request.prompt_count};
	q->count--;
	entry_free(e);
	return true;
}

/* The grammar of this request is thrown away. */
static bool end_entry(struct entry *e, struct compile_end *end)
{
	*end = (struct compile_end){e->out.request.id, e->out.request.prompt_count};
	return e->ended = true;
}

static bool end_ready(struct compile_queue *q, uint64_t id, struct compile_end *end)
{
	for (struct entry *e = q->ready.first; e; e = e->next)
		if (e->out.request.id == id && !e->ended)
			return end_entry(e, end);
	return false;
}

bool compile_queue_cancel(struct compile_queue *q, uint64_t id)
{
	struct compile_end end;
	bool found;

	pthread_mutex_lock(&q->lock);
	found = drop_waiting(q, has_id, &id, &end) || end_ready(q, id, &end);
	if (!found && q->compiling && q->compiling->out.request.id == id && !q->compiling->ended)
		found = end_entry(q->compiling, &end);
	pthread_mutex_unlock(&q->lock);
	return found;
}

struct late {
	uint64_t now_ns, next_ns; /* next_ns: the earliest deadline of those that are not late */
};

static bool is_late(void *arg, const struct turn_item *item)
{
	const uint64_t deadline = deadline_of((const struct entry *)item);
	struct late *late = arg;

	if (deadline <= late->now_ns)
		return true;
	if (deadline < late->next_ns)
		late->next_ns = deadline;
	return false;
}

/* Looks at all requests without a grammar. */
static bool find_late(struct compile_queue *q, struct late *late, struct compile_end *end)
{
	struct entry *e = q->compiling;

	if (e && !e->ended && is_late(late, &e->item))
		return end_entry(e, end);
	return drop_waiting(q, is_late, late, end);
}

bool compile_queue_expire(struct compile_queue *q, uint64_t now_ns, struct compile_end *end)
{
	struct late late = {now_ns, UINT64_MAX};
	bool found = false;

	pthread_mutex_lock(&q->lock);
	if (q->wake_ns <= now_ns) {
		found = find_late(q, &late, end);
		if (!found)
			q->wake_ns = late.next_ns;
	}
	pthread_mutex_unlock(&q->lock);
	return found;
}

uint64_t compile_queue_wake(struct compile_queue *q)
{
	uint64_t wake_ns;

	pthread_mutex_lock(&q->lock);
	wake_ns = q->wake_ns;
	pthread_mutex_unlock(&q->lock);
	return wake_ns;
}

bool compile_queue_take(struct compile_queue *q, struct compiled_request *out)
{
	struct entry *e;
	eventfd_t ready;

	pthread_mutex_lock(&q->lock);
	while ((e = list_take(&q->ready))) {
		q->count--;
		if (!e->ended)
			break;
		entry_free(e);
	}
	if (!e)
		eventfd_read(q->fd, &ready);
	pthread_mutex_unlock(&q->lock);
	if (e)
		*out = e->out;
	return e;
}

void compiled_release(struct compiled_request *c)
{
	free(c->copy);
	*c = (struct compiled_request){0};
}

size_t compile_queue_count(struct compile_queue *q)
{
	size_t count;

	pthread_mutex_lock(&q->lock);
	count = q->count;
	pthread_mutex_unlock(&q->lock);
	return count;
}

int compile_queue_fd(const struct compile_queue *q)
{
	return q->fd;
}
