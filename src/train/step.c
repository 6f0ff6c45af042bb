/* SPDX-License-Identifier: Apache-2.0 */
#include "train/step.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "core/clock.h"
#include "model/plan.h"

static enum recompute recompute_of(const struct config_training *t)
{
	static const enum recompute modes[] = {
		[CONFIG_RECOMPUTE_NONE] = RECOMPUTE_NONE,
		[CONFIG_RECOMPUTE_CHEAP] = RECOMPUTE_CHEAP,
		[CONFIG_RECOMPUTE_FULL] = RECOMPUTE_FULL,
	};

	return t->gradient_checkpointing ? RECOMPUTE_FULL : modes[t->recompute];
}

static unsigned targets_of(const struct opt_words *words)
{
	unsigned all = 0, targets = 0;

	for (int i = 0; i < PEFT_TARGET_COUNT; i++)
		all |= 1u << i;
	for (size_t i = 0; i < words->count; i++)
		targets |= !strcmp(words->word[i], "all-linear") ? all : peft_target_by_name(words->word[i]);
	return words->count ? targets : all;
}

struct model_options stepper_model_options(const struct config *c, struct peft_config *lora)
{
	*lora = (struct peft_config){
		.rank = c->lora.r,
		.alpha = c->lora.alpha,
		.dropout = c->lora.dropout,
		.rslora = c->lora.use_rslora,
		.targets = targets_of(&c->lora.target_modules),
	};
	for (size_t i = 0; i < c->lora.modules_to_save.count; i++)
		lora->save |= !strcmp(c->lora.modules_to_save.word[i], "lm_head") ? PEFT_SAVE_HEAD
										  : PEFT_SAVE_EMBED;
	snprintf(lora->base, sizeof(lora->base), "%s", c->model.name_or_path);
	return (struct model_options){.lora = c->has_lora ? lora : NULL,
				      .full = !c->has_lora,
				      .positions = (int64_t)c->data.max_seq_length};
}

static struct step_size size_of(const struct config *c, uint32_t rows)
{
	const int64_t length = (int64_t)c->data.max_seq_length;

	return (struct step_size){.tokens = rows * length, .row_tokens = length};
}

struct step_size stepper_size(const struct config *c)
{
	return size_of(c, c->training.per_device_train_batch_size);
}

/* No tokens where nothing is held out. */
static struct step_size evaluated_size(const struct config *c)
{
	return size_of(c, c->data.eval.count ? c->training.per_device_eval_batch_size : 0);
}

static enum status place(struct stepper *s, const struct shape *shape, const struct config *c,
			 struct error *err)
{
	struct peft_config lora;
	struct model_options options = stepper_model_options(c, &lora);
	enum status st = model_create(&s->model, shape, &options, err);

	s->optimiser = optimiser_of(&c->training);
	s->seed = c->training.seed;
	s->dropout = c->has_lora ? c->lora.dropout : 0;
	s->loss_sum = (struct mat){.rows = 1, .cols = 1, .dtype = DTYPE_F64};
	if (!st)
		st = model_place(s->model, &s->back, err);
	if (!st)
		st = arena_mat(&s->arena, MEM_WORKSPACE, &s->loss_sum, "the loss", err);
	if (!st)
		st = saved_create(&s->saved, s->model, recompute_of(&c->training), err);
	s->placed = arena_mark(&s->arena);
	return st;
}

static struct pass pass_of(struct stepper *s, const struct batch *b, uint64_t step, bool training)
{
	return (struct pass){
		.model = s->model,
		.back = &s->back,
		.batch = b,
		.saved = &s->saved,
		.dropout_seed = s->seed + (step + 1) * 0x9e3779b97f4a7c15u,
		.dropout = training && s->dropout > 0,
	};
}

/* The largest micro-batch there can be: full rows, every token a target. Owner: caller, free(doc_start). */
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
	struct pass p = pass_of(s, b, 0, true);
	double norm;
	enum status st;

	s->back.cost = (struct op_cost){0};
	st = model_forward(&p, err);
	s->forward = s->back.cost;
	s->back.cost = (struct op_cost){0};
	if (!st)
		st = model_backward(&p, 1, NULL, err);
	s->backward = s->back.cost;
	arena_reset(&s->arena, &s->placed);
	return st ? st : optimiser_step(&s->optimiser, &s->back, &s->model->params, 0, 1, &norm, err);
}

static enum status evaluate(struct stepper *s, const struct batch *b, double *sum, struct error *err)
{
	struct pass p = pass_of(s, b, 0, false);
	enum status st = model_forward(&p, err);

	if (!st)
		st = model_loss(&p, sum, err);
	arena_reset(&s->arena, &s->placed);
	return st;
}

static enum status plan_passes(struct stepper *s, struct step_size trained, struct step_size evaluated,
			       struct error *err)
{
	struct batch b = {0};
	enum status st = largest_batch(&b, trained, err);

	if (!st)
		st = plan_training(s, &b, err);
	free((void *)(uintptr_t)b.doc_start);
	if (st || !evaluated.tokens)
		return st;
	b.doc_start = NULL;
	st = largest_batch(&b, evaluated, err);
	if (!st)
		st = evaluate(s, &b, NULL, err);
	free((void *)(uintptr_t)b.doc_start);
	return st;
}

static enum status check_tokens(struct step_size size, const char *setting, struct error *err)
{
	if (size.tokens <= INT32_MAX)
		return STATUS_OK;
	return error_set(err, STATUS_BAD_INPUT,
			 "a micro-batch of %lld tokens: there may be %d; training: %s and data: "
			 "max_seq_length make it",
			 (long long)size.tokens, INT32_MAX, setting);
}

enum status stepper_plan(struct stepper *s, const struct shape *shape, const struct config *c,
			 unsigned threads, struct error *err)
{
	const struct step_size trained = stepper_size(c), evaluated = evaluated_size(c);
	enum status st = check_tokens(trained, "per_device_train_batch_size", err);

	*s = (struct stepper){0};
	if (!st)
		st = check_tokens(evaluated, "per_device_eval_batch_size", err);
	if (st)
		return st;
	plan_back_cpu(&s->back, threads, &s->arena);
	st = place(s, shape, c, err);
	return st ? st : plan_passes(s, trained, evaluated, err);
}

enum status stepper_create(struct stepper *s, const struct shape *shape, const struct config *c,
			   unsigned threads, struct error *err)
{
	const struct cpu_options options = {.threads = threads};
	struct stepper plan;
	enum status st = stepper_plan(&plan, shape, c, threads, err);
	size_t size = plan.arena.peak;

	stepper_release(&plan);
	*s = (struct stepper){0};
	if (st)
		return st;
	if (posix_memalign(&s->memory, ARENA_ALIGN, size))
		return error_errno(err, ENOMEM, "%.3g GB of memory, as planned (assay train CONFIG --plan)",
				   (double)size * 1e-9);
	s->arena = (struct arena){.base = s->memory, .size = size};
	st = cpu_back_create(&s->back, &options, &s->arena, err);
	return st ? st : place(s, shape, c, err);
}

void stepper_rest(struct stepper *s)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), base = (uintptr_t)s->memory;
	const uintptr_t first = (base + s->placed.used + page - 1) / page * page;
	const uintptr_t end = (base + s->arena.size) / page * page;

	if (first < end)
		madvise((void *)first, end - first, MADV_DONTNEED);
}

void stepper_release(struct stepper *s)
{
	saved_release(&s->saved);
	model_release(s->model);
	if (s->memory)
		cpu_back_release(&s->back);
	free(s->memory);
	*s = (struct stepper){0};
}

enum status stepper_begin(struct stepper *s, struct error *err)
{
	*(double *)s->loss_sum.data = 0;
	return s->back.ops->zero(&s->back, s->model->params.grad, err);
}

enum status stepper_micro(struct stepper *s, const struct batch *b, uint64_t step, uint64_t targets,
			  struct step_part *took, struct error *err)
{
	const struct clock *clock = clock_monotonic();
	struct pass p = pass_of(s, b, step, true);
	uint64_t t0 = clock_now_ns(clock), t1;
	enum status st = batch_check(b, s->model->shape.vocab, err);

	s->back.cost = (struct op_cost){0};
	if (!st)
		st = model_forward(&p, err);
	t1 = clock_now_ns(clock);
	if (!st && b->targets)
		st = model_backward(&p, (float)(1.0 / (double)targets), s->loss_sum.data, err);
	arena_reset(&s->arena, &s->placed);
	took->forward_s += (double)(t1 - t0) * 1e-9;
	took->backward_s += (double)(clock_now_ns(clock) - t1) * 1e-9;
	took->gemm_s += s->back.cost.gemm_s;
	took->flop += s->back.cost.flop - s->back.cost.again;
	return st;
}

enum status stepper_end(struct stepper *s, double rate, uint64_t step, double *loss, double *norm,
			struct error *err)
{
	enum status st =
		optimiser_step(&s->optimiser, &s->back, &s->model->params, rate, step + 1, norm, err);

	*loss = *(const double *)s->loss_sum.data;
	return st ? st : model_refresh(s->model, &s->back, err);
}

enum status stepper_evaluate(struct stepper *s, const struct batch *b, double *loss, struct error *err)
{
	enum status st;

	if (!b->targets)
		return STATUS_OK;
	*(double *)s->loss_sum.data = 0;
	st = batch_check(b, s->model->shape.vocab, err);
	if (!st)
		st = evaluate(s, b, s->loss_sum.data, err);
	*loss += *(const double *)s->loss_sum.data;
	return st;
}
