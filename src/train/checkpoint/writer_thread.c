/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include "core/text/text.h"
#include "train/checkpoint/checkpoint.h"

struct checkpoint_writer {
	pthread_t thread;
	bool running;
	pthread_mutex_t lock; /* guards `taken` and `idle` */
	pthread_cond_t changed;
	bool taken, idle;
	unsigned keep;
	struct checkpoint_source source;
	struct checkpoint_part part;
	json_t *state;
	json_t *report;	 /* several ranks: of this rank's shard */
	json_t *reports; /* several ranks, rank 0: of all shards, while it joins them */
	uint64_t best;
	char run[PATH_MAX], folder[PATH_MAX + 64];
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
	w->idle = true;
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->changed, NULL);
	return STATUS_OK;
}

static void tell(struct checkpoint_writer *w, bool *what)
{
	pthread_mutex_lock(&w->lock);
	*what = true;
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

void checkpoint_writer_written(struct checkpoint_writer *w)
{
	pthread_mutex_lock(&w->lock);
	while (w->running && !w->idle)
		pthread_cond_wait(&w->changed, &w->lock);
	pthread_mutex_unlock(&w->lock);
}

bool checkpoint_writer_idle(struct checkpoint_writer *w)
{
	bool idle;

	pthread_mutex_lock(&w->lock);
	idle = w->idle;
	pthread_mutex_unlock(&w->lock);
	return idle;
}

/* After a checkpoint is complete. */
static enum status conclude(struct checkpoint_writer *w)
{
	enum status st = w->source.written ? w->source.written(w->source.arg, w->run, w->source.step, &w->err)
					   : STATUS_OK;

	if (!st)
		checkpoint_thin(w->run, w->keep, w->best);
	return st;
}

static void *write_it(void *arg)
{
	struct checkpoint_writer *w = arg;

	w->status = w->source.take ? w->source.take(w->source.arg, &w->err) : STATUS_OK;
	tell(w, &w->taken);
	if (!w->status && w->source.part)
		w->status = checkpoint_write_part(&w->source, &w->report, &w->err);
	else if (!w->status)
		w->status = checkpoint_write(&w->source, &w->err);
	if (!w->status && !w->source.part)
		w->status = conclude(w);
	tell(w, &w->idle);
	return NULL;
}

static void *join_them(void *arg)
{
	struct checkpoint_writer *w = arg;

	w->status = checkpoint_join(&w->source, w->reports, &w->err);
	if (!w->status)
		w->status = conclude(w);
	tell(w, &w->idle);
	return NULL;
}

static enum status start(struct checkpoint_writer *w, void *work(void *), struct error *err)
{
	int failed;

	w->idle = false; /* there is no thread that looks at it */
	failed = pthread_create(&w->thread, NULL, work, w);
	if (failed) {
		w->idle = true;
		return error_errno(err, failed, "the checkpoint writer's thread");
	}
	w->running = true;
	return STATUS_OK;
}

static enum status await(struct checkpoint_writer *w, struct error *err)
{
	enum status st;

	if (w->running)
		pthread_join(w->thread, NULL);
	w->running = false;
	st = w->status;
	if (st)
		error_set_cause(err, st, w->err.cause, "%s", w->err.text);
	w->status = STATUS_OK;
	error_clear(&w->err);
	return st;
}

static void forget(struct checkpoint_writer *w)
{
	json_decref(w->state);
	json_decref(w->report);
	json_decref(w->reports);
	w->state = w->report = w->reports = NULL;
}

enum status checkpoint_writer_wait(struct checkpoint_writer *w, struct error *err)
{
	enum status st = await(w, err);

	forget(w);
	return st;
}

enum status checkpoint_writer_begin(struct checkpoint_writer *w, const struct checkpoint_source *c,
				    uint64_t best, struct error *err)
{
	enum status st = checkpoint_writer_wait(w, err);

	if (st)
		return st;
	w->state = json_deep_copy(c->state);
	w->best = best;
	text_copy(w->run, sizeof(w->run), c->run ? c->run : "");
	w->source = *c;
	w->source.run = w->run;
	w->source.state = w->state;
	if (c->part) {
		w->part = *c->part;
		text_copy(w->folder, sizeof(w->folder), c->part->folder);
		w->part.folder = w->folder;
		w->source.part = &w->part;
	}
	w->taken = false;
	return start(w, write_it, err);
}

enum status checkpoint_writer_report(struct checkpoint_writer *w, json_t **report, struct error *err)
{
	enum status st = await(w, err);

	*report = w->report;
	w->report = NULL;
	return st;
}

enum status checkpoint_writer_join(struct checkpoint_writer *w, json_t *reports, struct error *err)
{
	w->reports = reports;
	return start(w, join_them, err);
}

void checkpoint_writer_free(struct checkpoint_writer *w)
{
	if (!w)
		return;
	if (w->running)
		pthread_join(w->thread, NULL);
	pthread_cond_destroy(&w->changed);
	pthread_mutex_destroy(&w->lock);
	forget(w);
	free(w);
}
