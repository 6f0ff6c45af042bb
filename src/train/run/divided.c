/* SPDX-License-Identifier: Apache-2.0 */
/* States that ranks divide (ZeRO and tensor parallel, docs/explanation/design/mesh.md). After a resume each
 * rank reads its range. If the ranks do not share the run directory, the states go to rank 0 for a
 * checkpoint, and come from it after a resume. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "model/tensor/dtype.h"
#include "train/run/internal.h"

/* -- a shared run directory -- */

/* Reads the own range from all shards in which it lies. */
static enum status read_own(struct train *t, struct error *err)
{
	const struct params *p = &t->stepper.model->params;
	const size_t begin = params_begin(p), end = params_end(p);
	void *memory = malloc(shard_bytes(p, begin, end) + 1);
	struct shard own;
	enum status st;

	if (!memory)
		return error_errno(err, ENOMEM, "a range of the optimizer's states");
	shard_place(&own, p, begin, end, memory);
	st = t->parts.ranks ? checkpoint_load_part(&t->earlier, &t->parts, &own, err)
			    : checkpoint_load_shard(&t->earlier, &t->host_params.params, &own, err);
	if (!st)
		st = host_params_put_shard(&own, p, &t->stepper.back, err);
	free(memory);
	return st;
}

enum status run_load_own(struct train *t, struct error *err)
{
	char path[sizeof(t->earlier.path)] = "", *whole;
	enum status st = STATUS_OK;

	if (run_writes(t)) {
		whole = realpath(t->earlier.path, NULL);
		if (!whole || strlen(whole) >= sizeof(path))
			st = error_errno(err, errno, "%s", t->earlier.path);
		text_copy(path, sizeof(path), whole ? whole : "");
		free(whole);
	}
	st = comm_agree(t->comm, st, err);
	if (!st)
		st = t->comm->ops->share(t->comm, path, sizeof(path), err);
	if (!st && !run_writes(t))
		st = checkpoint_reopen(&t->earlier, path, t->state.step, err);
	if (!st)
		st = read_own(t, err);
	return comm_agree(t->comm, st, err);
}

/* -- a run directory that only rank 0 has -- */

enum { PIECE = 4 << 20 }; /* bytes that are shared at once */

/* One state, complete on rank 0 and divided among the ranks. */
struct division {
	enum params_state which;
	struct mat own;	 /* this rank's range, on the device */
	uint8_t *whole;	 /* rank 0's complete state; NULL on other ranks */
	uint8_t *range;	 /* this rank's range in host memory; owned */
	size_t *border;	 /* [ranks + 1], in bytes; owned */
	bool is_divided; /* false: each rank has it complete */
	bool on_host;	 /* the rank's range is in host memory */
};

static void division_release(struct division *d)
{
	free(d->range);
	free(d->border);
	*d = (struct division){0};
}

static enum status division_make(struct division *d, struct train *t, enum params_state which,
				 struct error *err)
{
	struct params *own = &t->stepper.model->params, *whole = &t->host_params.params;
	const struct mat *all = params_state(whole, which);
	const size_t width = dtype_bytes(all->dtype, 1);

	*d = (struct division){.which = which,
			       .own = *params_state(own, which),
			       .whole = t->host_params.memory ? all->data : NULL,
			       .on_host = params_state_offloaded(own, which),
			       .is_divided = which != PARAMS_STATE_master || own->shards.master};
	d->border = calloc((size_t)t->comm->size + 1, sizeof(*d->border));
	if (!d->border)
		return error_errno(err, ENOMEM, "the ranges of %u ranks", t->comm->size);
	for (unsigned r = 0; r < t->comm->size; r++) { /* only the first shard group gives its ranges */
		const size_t end = r < own->shards.ranks ? own->border[r + 1] : own->length;

		d->border[r + 1] = width * params_part(whole, 0, end, which).count;
	}
	d->range = malloc(dtype_bytes(d->own.dtype, (uint64_t)d->own.cols) + 1);
	return d->range ? STATUS_OK : error_errno(err, ENOMEM, "a range of the optimizer's states");
}

static enum status collect(struct division *d, struct train *t, struct error *err)
{
	struct backend *back = &t->stepper.back;
	enum status st = STATUS_OK;

	if (!d->is_divided)
		return d->whole ? back->ops->get(back, d->own, d->whole, err) : STATUS_OK;
	if (d->on_host)
		memcpy(d->range, d->own.data, dtype_bytes(d->own.dtype, (uint64_t)d->own.cols));
	else if (d->own.cols)
		st = back->ops->get(back, d->own, d->range, err);
	return st ? st : comm_collect(t->comm, d->range, d->whole, d->border, err);
}

/* Copies what this rank's range has of bytes [at, at + n). */
static void take(const struct division *d, unsigned rank, const uint8_t *piece, size_t at, size_t n)
{
	const size_t first = d->is_divided ? d->border[rank] : 0;
	const size_t last = first + dtype_bytes(d->own.dtype, (uint64_t)d->own.cols);
	const size_t from = at > first ? at : first, to = at + n < last ? at + n : last;

	if (from < to)
		memcpy(d->range + (from - first), piece + (from - at), to - from);
}

static enum status divide(struct division *d, struct train *t, struct error *err)
{
	struct comm *c = t->comm;
	const size_t bytes = d->border[c->size];
	uint8_t *piece = malloc(PIECE);
	enum status st = piece ? STATUS_OK : error_errno(err, ENOMEM, "a part of the checkpoint");

	for (size_t at = 0, n; at < bytes && !st; at += n) {
		n = bytes - at < PIECE ? bytes - at : PIECE;
		if (d->whole)
			memcpy(piece, d->whole + at, n);
		st = c->ops->share(c, piece, n, err);
		take(d, t->stepper.model->params.shards.rank, piece, at, n);
	}
	free(piece);
	if (!st && d->on_host)
		memcpy(d->own.data, d->range, dtype_bytes(d->own.dtype, (uint64_t)d->own.cols));
	return st || !d->own.cols || d->on_host
		       ? st
		       : t->stepper.back.ops->put(&t->stepper.back, d->own, d->range, err);
}

static enum status each_state(struct train *t,
			      enum status (*act)(struct division *, struct train *, struct error *),
			      struct error *err)
{
	enum status st = STATUS_OK;

	for (int i = 0; i < PARAMS_STATE_COUNT && !st; i++) {
		struct division d;

		if (!params_state_bytes(&t->host_params.params, (enum params_state)i))
			continue;
		st = division_make(&d, t, (enum params_state)i, err);
		if (!st)
			st = act(&d, t, err);
		division_release(&d);
	}
	return st;
}

enum status run_collect(struct train *t, struct error *err)
{
	enum status st;

	if (!t->host_params.collected)
		return STATUS_OK;
	if (run_writes(t))
		log_debug(t->job->log, LOG_TOPIC_RUN, "collects the states of %u ranks after step %llu",
			  t->comm->size, (unsigned long long)t->state.step);
	st = checkpoint_writer_wait(t->writer, err); /* it reads the same memory */
	if (!st && t->stepper.model->params.offloaded)
		st = t->stepper.back.ops->lane_wait(&t->stepper.back, LANE_STATES, err);
	if (!st && t->mesh.tensor > 1)
		return run_split_collect(t, err);
	return st ? st : each_state(t, collect, err);
}

enum status run_divide(struct train *t, struct error *err)
{
	enum status st = t->mesh.tensor > 1 ? run_split_divide(t, err) : each_state(t, divide, err);

	return st ? st : host_params_put_live(&t->stepper.model->params, &t->stepper.back, err);
}
