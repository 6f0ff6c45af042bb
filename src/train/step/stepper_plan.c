/* SPDX-License-Identifier: Apache-2.0 */
/* What a stepper needs: the passes over the largest batch on a back end that only counts memory and work.
 * Then its memory is allocated. */
#include "train/step/stepper_internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "model/backend/cost.h"
#include "model/backend/plan_backend.h"
#include "model/tensor/fp8.h"
#include "train/mesh/mesh.h"
#include "train/step/device.h"
#include "train/step/trained_model.h"

static struct step_size size_of(const struct config *c, uint32_t rows)
{
	const int64_t length = (int64_t)c->data.max_seq_length;

	return (struct step_size){.tokens = rows * length, .row_tokens = length};
}

struct step_size stepper_size(const struct config *c)
{
	return size_of(c, c->training.per_device_train_batch_size);
}

/* 0 tokens without a held-out set. */
static struct step_size evaluated_size(const struct config *c)
{
	return size_of(c, c->data.eval.count ? c->training.per_device_eval_batch_size : 0);
}

/* The sums of gradients that wait for others, if gradients are added along a tree. */
static enum status place_tree(struct stepper *s, const struct config *c, struct error *err)
{
	struct mesh m;
	enum status st = mesh_of(&m, c, err);

	s->each_pack = m.each_pack;
	return st || !m.each_pack
		       ? st
		       : gradient_tree_create(&s->tree, &s->arena, m.micros, s->model->params.length, err);
}

/* LoRA's gradient is small, so it is summed at once. A divided one is summed in each pass, layer by layer. */
static enum status make_buckets(struct stepper *s, const struct config *c, struct error *err)
{
	/* two communicators of a GPU are never at work at once (comm_nccl.c) */
	const bool at_once = s->back.kind == BACKEND_GPU && split_is(&s->model->split);
	const double bytes = s->model->full && !at_once ? c->training.bucket_cap_mb * 0x1p20 : HUGE_VAL;

	return mesh_copies(c) > 1 && !s->model->divided.gradient
		       ? buckets_make(&s->buckets, &s->model->params, s->model->shape.layers, bytes, err)
		       : STATUS_OK;
}

/* Clipping needs the norm of the whole gradient, and ranks add their gradients first. */
static bool updates_by_layer(const struct stepper *s, const struct config *c)
{
	return s->optimiser.max_norm <= 0 && c->place.ranks <= 1 && !s->each_pack;
}

static enum status place(struct stepper *s, const struct shape *shape, const struct config *c,
			 struct error *err)
{
	enum status st = trained_model_create(&s->model, shape, c, err);
	int64_t most;

	s->back.host = &s->host;
	if (!st)
		s->lending.on = lending_is_possible(c, s->model);
	if (!st)
		s->model->params.lead = s->lending.lead;
	s->optimiser = optimiser_of(&c->training);
	s->seed = c->training.seed;
	s->dropout = c->has_lora ? c->lora.dropout : 0;
	s->sums = (struct mat){.rows = 1, .cols = SUMS, .dtype = DTYPE_F64};
	if (!st)
		st = model_place(s->model, &s->back, err);
	if (!st)
		st = place_tree(s, c, err);
	if (!st)
		st = make_buckets(s, c, err);
	if (!st)
		st = arena_mat(&s->arena, MEM_WORKSPACE, &s->sums, "loss and norm", err);
	s->trained_most = stepper_size(c).tokens;
	s->evaluated_most = evaluated_size(c).tokens;
	most = s->trained_most > s->evaluated_most ? s->trained_most : s->evaluated_most;
	if (!st)
		st = workspace_lists(&s->back, most, err);
	if (!st)
		st = host_states_create(&s->states, &s->model->params, &s->arena, shape->layers,
					c->training.bucket_cap_mb * 0x1p20, updates_by_layer(s, c), err);
	if (!st)
		st = saved_create(&s->saved, s->model, trained_model_recompute(&c->training), err);
	s->saved.offload = c->training.recompute == CONFIG_RECOMPUTE_OFFLOAD;
	s->placed = arena_mark(&s->arena);
	s->host_placed = arena_mark(&s->host);
	if (!st)
		lending_begin(&s->lending, s->model, &s->back, &s->saved);
	return st;
}

/* The largest possible micro-batch: full rows, every token a target. Owner: caller, free(doc_start). */
static enum status largest_batch(struct batch *b, struct step_size size, struct error *err)
{
	int64_t docs = size.tokens / size.row_tokens;
	int32_t *start = calloc((size_t)docs + 1, sizeof(*start));

	if (!start)
		return error_errno(err, ENOMEM, "a plan of %lld rows", (long long)docs);
	for (int64_t i = 0; i <= docs; i++)
		start[i] = (int32_t)(i * size.row_tokens);
	*b = (struct batch){.doc_start = start,
			    .tokens = size.tokens,
			    .docs = docs,
			    .doc_len_max = size.row_tokens,
			    .targets = size.tokens};
	return STATUS_OK;
}

static enum status plan_training(struct stepper *s, const struct batch *b, struct error *err)
{
	struct batch placed = {0};
	struct pass p = stepper_pass(s, &placed, 0, true);
	enum status st;

	lending_pass(&s->lending, &s->lending.trained);
	st = s->back.ops->batch(&s->back, b, &placed, err);
	s->back.cost = (struct op_cost){0};
	if (!st)
		st = model_forward(&p, err);
	s->forward = s->back.cost;
	s->back.cost = (struct op_cost){0};
	if (!st)
		st = model_backward(&p, 1, NULL, err);
	s->backward = s->back.cost;
	stepper_release_pass(s);
	return st;
}

/* One largest micro-batch, trained or evaluated. */
static enum status plan_pass(struct stepper *s, struct step_size size,
			     enum status (*run)(struct stepper *, const struct batch *, struct error *),
			     struct error *err)
{
	struct batch b = {0};
	enum status st = size.tokens ? largest_batch(&b, size, err) : STATUS_OK;

	if (!st && size.tokens)
		st = run(s, &b, err);
	free((void *)(uintptr_t)b.doc_start);
	return st;
}

/* The passes, the optimizer, and, if the gradient lends its memory to them, how much of it they have. */
static enum status plan_step(struct stepper *s, struct step_size trained, struct step_size evaluated,
			     struct error *err)
{
	struct lending *l = &s->lending;
	const struct params *p = &s->model->params;
	const size_t load = lending_peaks(l).scratch;
	size_t update;
	enum status st = plan_pass(s, trained, plan_training, err);

	l->trained = lending_peaks(l);
	l->lead = l->on ? lent_lead(&s->saved, p, l->trained.scratch) : 0;
	if (!st)
		st = stepper_step_params(s, 0, 1, err);
	update = lending_peaks(l).scratch;
	if (!st)
		st = plan_pass(s, evaluated, stepper_pass_loss, err);
	l->evaluated = lending_peaks(l);
	return st ? st : lending_settle(l, p, load, update, &s->arena, err);
}

static enum status check_tokens(struct step_size size, const char *setting, struct error *err)
{
	if (size.tokens <= INT32_MAX)
		return STATUS_OK;
	return error_set(err, STATUS_BAD_INPUT,
			 "a micro-batch would have %lld tokens, but %d is the maximum; reduce training: %s "
			 "or data: max_seq_length",
			 (long long)size.tokens, INT32_MAX, setting);
}

/* On a GPU the rows of a GEMM that sums over tokens begin at multiples of 16 bytes. */
static enum status check_fp8_tokens(const struct config *c, struct step_size size, const char *setting,
				    struct error *err)
{
	if (c->training.device != CONFIG_DEVICE_GPU || c->training.precision != CONFIG_PRECISION_FP8 ||
	    size.tokens % FP8_MULTIPLE == 0)
		return STATUS_OK;
	return error_set(
		err, STATUS_BAD_INPUT,
		"training: precision: fp8 needs micro-batches of a multiple of %d tokens, and %s x data: "
		"max_seq_length is %lld",
		FP8_MULTIPLE, setting, (long long)size.tokens);
}

/* `device: auto` is decided after the configuration was checked. */
static enum status check_master(const struct config *c, struct error *err)
{
	if (!c->training.master_weights || c->training.device == CONFIG_DEVICE_GPU)
		return STATUS_OK;
	return error_set(
		err, STATUS_BAD_INPUT,
		"training: master_weights: %s saves memory only on a GPU, and this run uses the CPU, which "
		"computes with float32 weights; use fp32",
		config_master_name(c->training.master_weights));
}

enum status stepper_plan(struct stepper *s, const struct shape *shape, const struct config *c,
			 unsigned threads, struct error *err)
{
	const struct step_size trained = stepper_size(c), evaluated = evaluated_size(c);
	enum status st = check_tokens(trained, "per_device_train_batch_size", err);

	*s = (struct stepper){0};
	if (!st)
		st = check_fp8_tokens(c, trained, "per_device_train_batch_size", err);
	if (!st)
		st = check_fp8_tokens(c, evaluated, "per_device_eval_batch_size", err);
	if (!st)
		st = check_tokens(evaluated, "per_device_eval_batch_size", err);
	if (!st)
		st = check_master(c, err);
	if (st)
		return st;
	if (c->training.device == CONFIG_DEVICE_GPU)
		plan_backend_gpu(&s->back,
				 train_device_precision(&c->training) == GPU_PRECISION_BF16 ? DTYPE_BF16
											    : DTYPE_F32,
				 &s->arena);
	else
		plan_backend_cpu(&s->back, threads, &s->arena);
	st = place(s, shape, c, err);
	/* Quantizing needs memory behind all that is placed, maybe more than the passes. */
	if (!st && (s->model->slots.count || s->model->fp8))
		st = model_load(s->model, &s->back, &(struct model_source){.random = true}, err);
	return st ? st : plan_step(s, trained, evaluated, err);
}

enum status stepper_create(struct stepper *s, const struct shape *shape, const struct config *c,
			   unsigned threads, struct error *err)
{
	struct stepper plan;
	enum status st = stepper_plan(&plan, shape, c, threads, err);
	size_t bytes = plan.arena.peak, pinned = plan.host.peak;

	*s = (struct stepper){.lending = plan.lending};
	stepper_release(&plan);
	if (st)
		return st;
	st = train_device_open(s, c, &(struct train_device_needs){bytes, pinned, threads}, err);
	return st ? st : place(s, shape, c, err);
}

void stepper_rest(struct stepper *s)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), base = (uintptr_t)s->memory;
	const struct arena *room = &s->lending.room;
	const uintptr_t from = s->lending.on ? (uintptr_t)room->base : base + s->placed.used;
	const uintptr_t upto = s->lending.on ? from + room->size : base + s->arena.size;
	const uintptr_t first = (from + page - 1) / page * page, end = upto / page * page;

	if (s->memory && first < end)
		madvise((void *)first, end - first, MADV_DONTNEED);
}

void stepper_release(struct stepper *s)
{
	saved_release(&s->saved);
	host_states_release(&s->states);
	gradient_tree_release(&s->tree);
	buckets_release(&s->buckets);
	model_release(s->model);
	if (s->back.kind == BACKEND_GPU)
		gpu_backend_release(&s->back);
	else if (s->memory)
		cpu_backend_release(&s->back);
	free(s->memory);
	free(s->own_host);
	*s = (struct stepper){0};
}

/* The collectives within the layers of one micro-batch, counted `micros` times. */
static enum status plan_split_comm(struct stepper *s, const struct config *c, uint64_t micros,
				   struct error *err)
{
	struct comm *tensor = s->model->split.comm;
	enum status st;

	tensor->count = (struct comm_count){0};
	st = plan_pass(s, stepper_size(c), plan_training, err);
	if (!st)
		st = stepper_step_params(s, 0, 1, err);
	if (s->comm) /* stepper_plan_comm counts these */
		s->comm->count = (struct comm_count){0};
	divided_drop(&s->model->divided);
	tensor->count.calls *= (double)micros;
	tensor->count.bytes *= (double)micros;
	tensor->count.planned_s *= (double)micros;
	return st;
}

enum status stepper_plan_comm(struct stepper *s, const struct config *c, uint64_t micros, struct error *err)
{
	enum status st = s->model->split.comm ? plan_split_comm(s, c, micros, err) : STATUS_OK;

	if (!st)
		st = stepper_sum_gradient(s, err);
	for (uint64_t i = 0; i < micros && !st; i++)
		st = stepper_idle(s, true, err);

	return st ? st : stepper_gather(s, err);
}
