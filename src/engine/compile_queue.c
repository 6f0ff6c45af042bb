/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/compile_queue.h"
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "core/text/text.h"

enum { CACHE_BYTES = 256 << 20 };

/* A copy of a request in one block. */
struct entry {
	struct entry *next;
	struct compiled_request out;
	bool cancelled;
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
	struct list waiting, ready;
	struct entry *compiling;
	size_t count;
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
		q->compiling = list_take(&q->waiting);
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
	q->waiting.end = &q->waiting.first;
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
	while ((e = list_take(&q->waiting)) || (e = list_take(&q->ready)))
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
	e->out.request.prompt = copy_array(&end, r->prompt, prompt);
	e->out.request.stop = copy_array(&end, r->stop, stop);
	e->out.request.bias = copy_array(&end, r->bias, bias);
	e->out.request.grammar = copy_array(&end, r->grammar, r->grammar_size);
	return e;
}

enum status compile_queue_add(struct compile_queue *q, const struct engine_request *r, struct error *err)
{
	struct entry *e = copy_of(r);

	if (!e)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "cannot allocate memory for a request");
	pthread_mutex_lock(&q->lock);
	list_add(&q->waiting, e);
	q->count++;
	pthread_cond_signal(&q->more);
	pthread_mutex_unlock(&q->lock);
	return STATUS_OK;
}

static bool cancel_in(const struct list *l, uint64_t id)
{
	for (struct entry *e = l->first; e; e = e->next)
		if (e->out.request.id == id && !e->cancelled)
			return e->cancelled = true;
	return false;
}

bool compile_queue_cancel(struct compile_queue *q, uint64_t id)
{
	bool found;

	pthread_mutex_lock(&q->lock);
	found = cancel_in(&q->waiting, id) || cancel_in(&q->ready, id);
	if (!found && q->compiling && q->compiling->out.request.id == id && !q->compiling->cancelled)
		found = q->compiling->cancelled = true;
	pthread_mutex_unlock(&q->lock);
	return found;
}

bool compile_queue_take(struct compile_queue *q, struct compiled_request *out)
{
	struct entry *e;
	eventfd_t ready;

	pthread_mutex_lock(&q->lock);
	while ((e = list_take(&q->ready))) {
		q->count--;
		if (!e->cancelled)
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
