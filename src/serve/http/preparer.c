/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/http/preparer.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

enum { THREADS_MOST = 16 };

struct preparer {
	const struct request_rules *rules;
	int wake;
	pthread_mutex_t lock;
	pthread_cond_t work;
	struct prepare_job *first, **last; /* to do */
	struct prepare_job *done;
	bool stop;
	struct prompter_worker *workers[THREADS_MOST];
	pthread_t threads[THREADS_MOST];
	unsigned started;
};

struct start {
	struct preparer *p;
	struct prompter_worker *worker;
};

static struct prepare_job *take_job(struct preparer *p)
{
	struct prepare_job *job;

	pthread_mutex_lock(&p->lock);
	while (!p->first && !p->stop)
		pthread_cond_wait(&p->work, &p->lock);
	job = p->stop ? NULL : p->first;
	if (job) {
		p->first = job->next;
		if (!p->first)
			p->last = &p->first;
	}
	pthread_mutex_unlock(&p->lock);
	return job;
}

static void give_back(struct preparer *p, struct prepare_job *job)
{
	uint64_t one = 1;
	ssize_t written;

	pthread_mutex_lock(&p->lock);
	job->next = p->done;
	p->done = job;
	pthread_mutex_unlock(&p->lock);
	written = write(p->wake, &one, sizeof(one)); /* full means that it is set already */
	(void)written;
}

static void *run(void *arg)
{
	struct start start = *(struct start *)arg;
	struct prepare_job *job;

	free(arg);
	while ((job = take_job(start.p))) {
		request_read(&job->request, job->protocol, job->body, job->size, start.p->rules, start.worker,
			     &job->error);
		give_back(start.p, job);
	}
	return NULL;
}

static enum status start_thread(struct preparer *p, struct error *err)
{
	struct start *start = malloc(sizeof(*start));
	enum status st;

	if (!start)
		return error_set(err, STATUS_NO_RESOURCE, "a thread that reads requests");
	st = prompter_worker_create(&p->workers[p->started], p->rules->prompter, err);
	if (!st) {
		*start = (struct start){.p = p, .worker = p->workers[p->started]};
		if (pthread_create(&p->threads[p->started], NULL, run, start))
			st = error_set(err, STATUS_NO_RESOURCE, "cannot start a thread that reads requests");
	}
	if (st) {
		prompter_worker_destroy(&p->workers[p->started]);
		free(start);
	} else {
		p->started++;
	}
	return st;
}

enum status preparer_create(struct preparer **out, const struct request_rules *rules, unsigned threads,
			    int wake, struct error *err)
{
	struct preparer *p = calloc(1, sizeof(*p));
	sigset_t all, before;
	enum status st = STATUS_OK;

	*out = NULL;
	if (!p)
		return error_set(err, STATUS_NO_RESOURCE, "the threads that read requests");
	p->rules = rules;
	p->wake = wake;
	p->last = &p->first;
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->work, NULL);
	sigfillset(&all); /* signals are the main thread's */
	pthread_sigmask(SIG_BLOCK, &all, &before);
	for (unsigned i = 0; !st && i < (threads < THREADS_MOST ? threads : THREADS_MOST); i++)
		st = start_thread(p, err);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (st)
		preparer_destroy(&p);
	*out = p;
	return st;
}

void preparer_destroy(struct preparer **p_)
{
	struct preparer *p = *p_;

	*p_ = NULL;
	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	p->stop = true;
	pthread_cond_broadcast(&p->work);
	pthread_mutex_unlock(&p->lock);
	for (unsigned i = 0; i < p->started; i++) {
		pthread_join(p->threads[i], NULL);
		prompter_worker_destroy(&p->workers[i]);
	}
	pthread_mutex_destroy(&p->lock);
	pthread_cond_destroy(&p->work);
	free(p);
}

void preparer_submit(struct preparer *p, struct prepare_job *job)
{
	job->next = NULL;
	pthread_mutex_lock(&p->lock);
	*p->last = job;
	p->last = &job->next;
	pthread_cond_signal(&p->work);
	pthread_mutex_unlock(&p->lock);
}

struct prepare_job *preparer_done(struct preparer *p)
{
	struct prepare_job *list, *in_order = NULL;

	pthread_mutex_lock(&p->lock);
	list = p->done;
	p->done = NULL;
	pthread_mutex_unlock(&p->lock);
	while (list) { /* the list grows at its head */
		struct prepare_job *next = list->next;

		list->next = in_order;
		in_order = list;
		list = next;
	}
	return in_order;
}
