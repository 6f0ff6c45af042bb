/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include "train/checkpoint.h"

struct checkpoint_writer {
	pthread_t thread;
	bool running;
	unsigned keep;
	struct params copy; /* table lent; master, m and v in `memory` */
	float *memory;
	struct checkpoint_source source;
	json_t *state;
	uint64_t best;
	char run[PATH_MAX];
	struct error err;
	enum status status; /* of the last one; the thread's until it is joined */
};

enum status checkpoint_writer_create(struct checkpoint_writer **out, const struct params *params,
				     unsigned keep, struct error *err)
{
	struct checkpoint_writer *w = calloc(1, sizeof(*w));
	struct mat *part[3];

	*out = NULL;
	if (w)
		w->memory = malloc(3 * params->length * sizeof(float));
	if (!w || !w->memory) {
		checkpoint_writer_free(w);
		return error_errno(err, ENOMEM, "a copy of what is trained, to write checkpoints from");
	}
	w->keep = keep;
	w->copy = *params;
	part[0] = &w->copy.master;
	part[1] = &w->copy.m;
	part[2] = &w->copy.v;
	for (size_t i = 0; i < 3; i++)
		part[i]->data = w->memory + i * params->length;
	*out = w;
	return STATUS_OK;
}

static void *write_it(void *arg)
{
	struct checkpoint_writer *w = arg;

	w->status = checkpoint_write(&w->source, &w->err);
	if (!w->status && w->source.written)
		w->status = w->source.written(w->source.arg, w->source.step, &w->err);
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
	memcpy(w->copy.master.data, c->params->master.data, c->params->length * sizeof(float));
	memcpy(w->copy.m.data, c->params->m.data, c->params->length * sizeof(float));
	memcpy(w->copy.v.data, c->params->v.data, c->params->length * sizeof(float));
	w->state = json_deep_copy(c->state);
	w->best = best;
	snprintf(w->run, sizeof(w->run), "%s", c->run);
	w->source = *c;
	w->source.run = w->run;
	w->source.params = &w->copy;
	w->source.state = w->state;
	failed = pthread_create(&w->thread, NULL, write_it, w);
	if (failed)
		return error_errno(err, failed, "a thread that writes checkpoints");
	w->running = true;
	return STATUS_OK;
}

void checkpoint_writer_free(struct checkpoint_writer *w)
{
	if (!w)
		return;
	if (w->running)
		pthread_join(w->thread, NULL);
	json_decref(w->state);
	free(w->memory);
	free(w);
}
