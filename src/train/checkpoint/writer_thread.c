/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include "train/checkpoint/checkpoint.h"

struct checkpoint_writer {
	pthread_t thread;
	bool running;
	pthread_mutex_t lock; /* guards `taken` */
	pthread_cond_t changed;
	bool taken;
	unsigned keep;
	struct checkpoint_source source;
	json_t *state;
	uint64_t best;
	char run[PATH_MAX];
	struct error err;
	enum status status; /* result of the last checkpoint; belongs to the thread until it is joined */
};

enum status checkpoint_writer_create(struct checkpoint_writer **out, unsigned keep, struct error *err)
{
	struct checkpoint_writer *w = calloc(1, sizeof(*w));

	*out = w;
	if (!w)
		return error_errno(err, ENOMEM, "the checkpoint writer");
	w->keep = keep;
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->changed, NULL);
	return STATUS_OK;
}

static void tell_taken(struct checkpoint_writer *w)
{
	pthread_mutex_lock(&w->lock);
	w->taken = true;
	pthread_cond_broadcast(&w->changed);
	pthread_mutex_unlock(&w->lock);
}

void checkpoint_writer_taken(struct checkpoint_writer *w)
{
	pthread_mutex_lock(&w->lock);
	while (w->running && !w->taken)
		pthread_cond_wait(&w->changed, &w->lock);
	pthread_mutex_unlock(&w->lock);
}

static void *write_it(void *arg)
{
	struct checkpoint_writer *w = arg;

	w->status = w->source.take ? w->source.take(w->source.arg, &w->err) : STATUS_OK;
	tell_taken(w);
	if (!w->status)
		w->status = checkpoint_write(&w->source, &w->err);
	if (!w->status && w->source.written)
		w->status = w->source.written(w->source.arg, w->run, w->source.step, &w->err);
	if (!w->status)
		checkpoint_thin(w->run, w->keep, w->best);
	return NULL;
}

enum status checkpoint_writer_wait(struct checkpoint_writer *w, struct error *err)
{
	enum status st;

	if (w->running)
		pthread_join(w->thread, NULL);
	w->running = false;
	json_decref(w->state);
	w->state = NULL;
	st = w->status;
	if (st)
		error_set_cause(err, st, w->err.cause, "%s", w->err.text);
	w->status = STATUS_OK;
	error_clear(&w->err);
	return st;
}

enum status checkpoint_writer_begin(struct checkpoint_writer *w, const struct checkpoint_source *c,
				    uint64_t best, struct error *err)
{
	enum status st = checkpoint_writer_wait(w, err);
	int failed;

	if (st)
		return st;
	w->state = json_deep_copy(c->state);
	w->best = best;
	snprintf(w->run, sizeof(w->run), "%s", c->run);
	w->source = *c;
	w->source.run = w->run;
	w->source.state = w->state;
	w->taken = false;
	failed = pthread_create(&w->thread, NULL, write_it, w);
	if (failed)
		return error_errno(err, failed, "the checkpoint writer's thread");
	w->running = true;
	return STATUS_OK;
}

void checkpoint_writer_free(struct checkpoint_writer *w)
{
	if (!w)
		return;
	if (w->running)
		pthread_join(w->thread, NULL);
	pthread_cond_destroy(&w->changed);
	pthread_mutex_destroy(&w->lock);
	json_decref(w->state);
	free(w);
}
