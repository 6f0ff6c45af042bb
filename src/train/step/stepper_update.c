/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a step: the gradient over the ranks, its norm, and the update of the parameters. */
#include "train/step/stepper_internal.h"

#include <errno.h>
#include <stdlib.h>
#include "model/decoder/layer_tensors.h"
#include "model/tensor/matrix.h"

/* The norm's place as a matrix of one number. */
static struct mat squares_of(const struct stepper *s)
{
	return (struct mat){
		.data = stepper_sum_at(s, SUM_SQUARES), .rows = 1, .cols = 1, .ld = 1, .dtype = DTYPE_F64};
}

/* The sum of the parts of all ranks of `comm`, each added up apart. */
static enum status add_squares(struct stepper *s, struct comm *comm, struct error *err)
{
	const struct ops *ops = s->back.ops;
	double sum = 0;
	enum status st = ops->get(&s->back, squares_of(s), &sum, err);

	if (!st)
		st = comm_sum(comm, &sum, 1, err);
	return st ? st : ops->put(&s->back, squares_of(s), &sum, err);
}

/* The squares of all ranges in the order of one rank: each rank goes on from the sum of the ranges before its
 * own. */
static enum status sum_squares_in_turn(struct stepper *s, struct error *err)
{
	const struct ops *ops = s->back.ops;
	struct comm *shards = comm_shards(s->comm);
	double own = 0, *all = calloc(shards->size, sizeof(*all));
	enum status st = STATUS_OK;

	if (!all)
		return error_errno(err, ENOMEM, "the norms of %u ranks", shards->size);
	for (unsigned r = 0; r < shards->size && !st; r++) {
		if (r == shards->rank)
			st = optimiser_squares(&s->back, &s->model->params, stepper_sum_at(s, SUM_SQUARES),
					       err);
		if (!st)
			st = ops->get(&s->back, squares_of(s), &own, err);
		if (!st)
			st = shards->ops->gather(shards, &own, sizeof(own), all, err);
		if (!st)
			st = ops->put(&s->back, squares_of(s), &all[r], err);
	}
	free(all);
	return st;
}

/* The squares of the own range, or of those of the shard group together. */
static enum status sum_squares_of_copy(struct stepper *s, struct error *err)
{
	const struct params *p = &s->model->params;

	if (p->border && s->comm && s->each_pack)
		return sum_squares_in_turn(s, err);
	return optimiser_squares(&s->back, p, stepper_sum_at(s, SUM_SQUARES), err);
}

/* Each number of the gradient counts once: the ranks of a shard group have ranges of it, and the ranks that
 * share a copy have parts of its tensors. */
static enum status sum_squares(struct stepper *s, struct error *err)
{
	enum status st = sum_squares_of_copy(s, err);

	if (!st && s->model->params.border && s->comm && !s->each_pack)
		st = add_squares(s, comm_shards(s->comm), err);
	return st || !s->model->split.comm ? st : add_squares(s, s->model->split.comm, err);
}

enum status stepper_step_params(struct stepper *s, double rate, uint64_t step, struct error *err)
{
	const double *squares = stepper_sum_at(s, SUM_SQUARES);
	const struct adamw a = optimiser_adamw(&s->optimiser, rate, step, squares);
	enum status st = sum_squares(s, err);

	if (st)
		return st;
	return s->states.params
		       ? host_states_update(&s->states, &s->optimiser, &s->back, &a, -1, err)
		       : optimiser_step(&s->optimiser, &s->back, &s->model->params, rate, step, squares, err);
}

enum status stepper_sum_layer(void *arg, int64_t layer, struct error *err)
{
	struct stepper *s = arg;

	return buckets_sum(&s->buckets, s->comm, &s->model->params.grad, layer, err);
}

bool stepper_updates_early(const struct stepper *s)
{
	return s->states.params && s->states.by_layer;
}

enum status stepper_step_layer(void *arg, int64_t layer, struct error *err)
{
	struct stepper *s = arg;
	const struct params *p = &s->model->params;
	const struct adamw a =
		optimiser_adamw(&s->optimiser, s->rate, s->early_step, stepper_sum_at(s, SUM_LAYERS));
	const size_t begin = params_layer_begin(p, layer);
	const size_t end = layer + 1 < s->model->shape.layers ? params_layer_begin(p, layer + 1)
							      : params_find(p, NAME_NORM)->offset;
	struct mat grad = mat_cols(&p->grad, (int64_t)begin, (int64_t)(end - begin));
	enum status st;

	grad.ld = grad.cols;
	st = s->back.ops->reduce(&s->back, grad, REDUCE_SUM_SQUARES, stepper_sum_at(s, SUM_LAYERS), err);
	return st ? st : host_states_update(&s->states, &s->optimiser, &s->back, &a, layer, err);
}

enum status stepper_sum_gradient(struct stepper *s, struct error *err)
{
	enum status st = STATUS_OK;

	if (s->comm)
		st = buckets_sum(&s->buckets, s->comm, &s->model->params.grad, -1, err);
	if (!st && s->comm)
		st = s->comm->ops->wait(s->comm, err);
	return st ? st : split_sum_gradient(s->model, &s->back, err);
}

enum status stepper_gather(struct stepper *s, struct error *err)
{
	struct params *p = &s->model->params;
	const size_t begin = params_begin(p), count = params_end(p) - begin;
	const bool has_live = p->shards.master;
	enum status st = STATUS_OK;

	if (!p->border || !s->comm)
		return STATUS_OK;
	if (s->model->divided.weights)
		return divided_gather(s->model, &s->back, err);
	if (has_live && count && !params_state_offloaded(p, PARAMS_STATE_master)) /* else its update did */
		st = s->back.ops->convert(&s->back, p->master, params_cut(p, &p->live, begin, count), err);
	s->comm->layer = -1;
	if (!st)
		st = s->comm->ops->all_gather(s->comm, has_live ? p->live : p->master, p->border, err);
	return st ? st : s->comm->ops->wait(s->comm, err);
}
