/* SPDX-License-Identifier: Apache-2.0 */
#include "train/step/stepper.h"
#include <inttypes.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "core/clock.h"
#include "model/backend/cost.h"
#include "model/backend/plan_backend.h"
#include "model/decoder/layer_tensors.h"
#include "model/tensor/matrix.h"
#include "model/tensor/fp8.h"
#include "train/mesh/mesh.h"
#include "train/step/device.h"

static enum recompute recompute_of(const struct config_training *t)
{
	static const enum recompute modes[] = {
		[CONFIG_RECOMPUTE_NONE] = RECOMPUTE_NONE,
		[CONFIG_RECOMPUTE_CHEAP] = RECOMPUTE_CHEAP,
		[CONFIG_RECOMPUTE_FULL] = RECOMPUTE_FULL,
		[CONFIG_RECOMPUTE_OFFLOAD] = RECOMPUTE_FULL,
		/* If memory_fit_settle was not called, memory does not matter. */
		[CONFIG_RECOMPUTE_AUTO] = RECOMPUTE_NONE,
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

static struct params_format format_of(const struct config_training *t)
{
	static const enum moments moments[] = {
		[CONFIG_ADAMW] = MOMENTS_F32,
		[CONFIG_ADAMW_TORCH] = MOMENTS_F32,
		[CONFIG_ADAMW_8BIT] = MOMENTS_8BIT,
		[CONFIG_ADAMW_BNB_8BIT] = MOMENTS_8BIT,
		[CONFIG_ADAMW_BF16] = MOMENTS_BF16,
		[CONFIG_PAGED_ADAMW_8BIT] = MOMENTS_8BIT,
		[CONFIG_PAGED_ADAMW_32BIT] = MOMENTS_F32,
	};
	static const enum master masters[] = {
		[CONFIG_MASTER_FP32] = MASTER_F32,
		[CONFIG_MASTER_SPLIT] = MASTER_SPLIT,
		[CONFIG_MASTER_NONE] = MASTER_NONE,
	};

	return (struct params_format){moments[t->optim], masters[t->master_weights]};
}

static struct storage storage_of(const struct config_model *m)
{
	static const enum bnb4_type types[] = {[CONFIG_NF4] = BNB4_NF4, [CONFIG_FP4] = BNB4_FP4};

	return m->load_in_4bit ? (struct storage){.form = STORAGE_BNB4,
						  .type = types[m->bnb_4bit_quant_type],
						  .nested = m->bnb_4bit_use_double_quant}
			       : (struct storage){.form = STORAGE_NUMBERS};
}

/* A mesh that does not fit is reported by place_tree. */
static struct model_split split_of(const struct config *c)
{
	const unsigned tensor = c->training.tensor_parallel_size;

	return (struct model_split){.rank = tensor > 1 ? c->place.rank % tensor : 0, .ranks = tensor};
}

/* What the ranks divide. Packs that are added along a tree before the sum over ranks need the whole gradient.
 */
static struct model_shards shards_of(const struct config *c)
{
	struct mesh m;
	struct error ignored = {0}; /* place_tree reports it */
	struct model_shards out = {.stage = c->training.zero_stage};

	if (mesh_of(&m, c, &ignored))
		return out;
	out.rank = m.shard_rank;
	out.ranks = m.shard;
	out.whole_gradient = m.each_pack && m.micros > 1;
	return out;
}

/* The parts of a configuration that say what is trained. */
static struct model_options stepper_model_options(const struct config *c, struct peft_config *lora)
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
				      .storage = storage_of(&c->model),
				      .shards = shards_of(c),
				      .split = split_of(c),
				      .separate = c->training.adapters == CONFIG_ADAPTERS_SEPARATE,
				      .states = format_of(&c->training),
				      .offload_states = c->training.offload == CONFIG_OFFLOAD_OPTIMIZER,
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

/* 0 tokens without a held-out set. */
static struct step_size evaluated_size(const struct config *c)
{
	return size_of(c, c->data.eval.count ? c->training.per_device_eval_batch_size : 0);
}

static int64_t most_rows(const struct config *c)
{
	const int64_t trained = stepper_size(c).tokens, evaluated = evaluated_size(c).tokens;

	return trained > evaluated ? trained : evaluated;
}

static enum status create_model(struct stepper *s, const struct shape *shape, const struct config *c,
				struct error *err)
{
	bool *fp8 = calloc((size_t)shape->layers + 1, sizeof(*fp8));
	struct peft_config lora;
	struct model_options options = stepper_model_options(c, &lora);
	enum status st = config_check_layers(c, shape->layers, err);

	if (!fp8)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory for a list of layers");
	for (int64_t i = 0; i < shape->layers; i++)
		fp8[i] = config_layer_fp8(c, i);
	options.fp8 = c->training.precision == CONFIG_PRECISION_FP8 ? fp8 : NULL;
	if (!st)
		st = model_create(&s->model, shape, &options, err);
	free(fp8);
	return st;
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
	enum status st = create_model(s, shape, c, err);

	s->back.host = &s->host;

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
	if (!st)
		st = workspace_lists(&s->back, most_rows(c), err);
	if (!st)
		st = host_states_create(&s->states, &s->model->params, &s->arena, shape->layers,
					c->training.bucket_cap_mb * 0x1p20, updates_by_layer(s, c), err);
	if (!st)
		st = saved_create(&s->saved, s->model, recompute_of(&c->training), err);
	s->saved.offload = c->training.recompute == CONFIG_RECOMPUTE_OFFLOAD;
	s->placed = arena_mark(&s->arena);
	s->host_placed = arena_mark(&s->host);
	return st;
}

/* Device address of one of the sums. */
static double *sum_at(const struct stepper *s, int which)
{
	return s->sums.data ? (double *)s->sums.data + which : NULL;
}

static enum status clear_sums(struct stepper *s, struct error *err)
{
	static const double none[SUMS] = {0};

	return s->back.ops->put(&s->back, s->sums, none, err);
}

static enum status phase(struct stepper *s, enum gpu_phase which, struct error *err)
{
	return s->back.kind == BACKEND_GPU ? gpu_backend_phase(&s->back, which, err) : STATUS_OK;
}

/* Ends the use of the memory of a pass. */
static void release_pass(struct stepper *s)
{
	arena_reset(&s->arena, &s->placed);
	arena_reset(&s->host, &s->host_placed);
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
		.forward_only = !training,
	};
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

/* The norm's place as a matrix of one number. */
static struct mat squares_of(const struct stepper *s)
{
	return (struct mat){
		.data = sum_at(s, SUM_SQUARES), .rows = 1, .cols = 1, .ld = 1, .dtype = DTYPE_F64};
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
			st = optimiser_squares(&s->back, &s->model->params, sum_at(s, SUM_SQUARES), err);
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
	return optimiser_squares(&s->back, p, sum_at(s, SUM_SQUARES), err);
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

/* Step number `step` (from 1) of the optimizer. */
static enum status step_params(struct stepper *s, double rate, uint64_t step, struct error *err)
{
	const double *squares = sum_at(s, SUM_SQUARES);
	const struct adamw a = optimiser_adamw(&s->optimiser, rate, step, squares);
	enum status st = sum_squares(s, err);

	if (st)
		return st;
	return s->states.params
		       ? host_states_update(&s->states, &s->optimiser, &s->back, &a, -1, err)
		       : optimiser_step(&s->optimiser, &s->back, &s->model->params, rate, step, squares, err);
}

static enum status plan_training(struct stepper *s, const struct batch *b, struct error *err)
{
	struct batch placed = {0};
	struct pass p = pass_of(s, &placed, 0, true);
	enum status st = s->back.ops->batch(&s->back, b, &placed, err);

	s->back.cost = (struct op_cost){0};
	if (!st)
		st = model_forward(&p, err);
	s->forward = s->back.cost;
	s->back.cost = (struct op_cost){0};
	if (!st)
		st = model_backward(&p, 1, NULL, err);
	s->backward = s->back.cost;
	release_pass(s);
	return st ? st : step_params(s, 0, 1, err);
}

static enum status evaluate(struct stepper *s, const struct batch *b, struct error *err)
{
	struct batch placed = {0};
	struct pass p = pass_of(s, &placed, 0, false);
	enum status st = s->back.ops->batch(&s->back, b, &placed, err);

	if (!st)
		st = model_forward(&p, err);
	if (!st)
		st = model_loss(&p, sum_at(s, SUM_LOSS), err);
	release_pass(s);
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
		st = evaluate(s, &b, err);
	free((void *)(uintptr_t)b.doc_start);
	return st;
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
	return st ? st : plan_passes(s, trained, evaluated, err);
}

enum status stepper_create(struct stepper *s, const struct shape *shape, const struct config *c,
			   unsigned threads, struct error *err)
{
	struct stepper plan;
	enum status st = stepper_plan(&plan, shape, c, threads, err);
	size_t bytes = plan.arena.peak, pinned = plan.host.peak;

	stepper_release(&plan);
	*s = (struct stepper){0};
	if (st)
		return st;
	st = train_device_open(s, c, &(struct train_device_needs){bytes, pinned, threads}, err);
	return st ? st : place(s, shape, c, err);
}

void stepper_rest(struct stepper *s)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), base = (uintptr_t)s->memory;
	const uintptr_t first = (base + s->placed.used + page - 1) / page * page;
	const uintptr_t end = (base + s->arena.size) / page * page;

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

enum status stepper_begin(struct stepper *s, struct error *err)
{
	enum status st;

	if (s->back.kind == BACKEND_GPU) {
		/* The user waits for the first step's loss, so it makes no tuning choices. */
		gpu_backend_hold(&s->back, !s->begun);
		gpu_backend_times_begin(&s->back);
	}
	s->begun = true;
	s->last = false;
	s->buckets.begun = 0;
	st = clear_sums(s, err);
	if (!st && s->model->fp8)
		st = s->back.ops->zero(&s->back, s->model->overflows, err);
	return st ? st : s->back.ops->zero(&s->back, s->model->params.grad, err);
}

void stepper_packs(struct stepper *s, uint64_t packs)
{
	gradient_tree_begin(&s->tree, packs);
}

/* Begins to sum the parts of the gradient that are complete. */
static enum status sum_layer(void *arg, int64_t layer, struct error *err)
{
	struct stepper *s = arg;

	return buckets_sum(&s->buckets, s->comm, &s->model->params.grad, layer, err);
}

bool stepper_updates_early(const struct stepper *s)
{
	return s->states.params && s->states.by_layer;
}

/* Steps a layer whose gradient is complete. If a number of a gradient so far is not finite, it changes
 * nothing, like the layers below. */
static enum status step_layer(void *arg, int64_t layer, struct error *err)
{
	struct stepper *s = arg;
	const struct params *p = &s->model->params;
	const struct adamw a = optimiser_adamw(&s->optimiser, s->rate, s->early_step, sum_at(s, SUM_LAYERS));
	const size_t begin = buckets_layer_begin(p, layer);
	const size_t end = layer + 1 < s->model->shape.layers ? buckets_layer_begin(p, layer + 1)
							      : params_find(p, NAME_NORM)->offset;
	struct mat grad = mat_cols(&p->grad, (int64_t)begin, (int64_t)(end - begin));
	enum status st;

	grad.ld = grad.cols;
	st = s->back.ops->reduce(&s->back, grad, REDUCE_SUM_SQUARES, sum_at(s, SUM_LAYERS), err);
	return st ? st : host_states_update(&s->states, &s->optimiser, &s->back, &a, layer, err);
}

/* Moves gradient and loss of the pack that was just computed to the tree. */
static enum status take_pack(struct stepper *s, struct error *err)
{
	double *loss = sum_at(s, SUM_LOSS);

	if (s->tree.at >= s->tree.packs)
		return error_set(err, STATUS_BUG, "a step has more packs than the %" PRIu64 " of its tree",
				 s->tree.packs);
	gradient_tree_add(&s->tree, &s->model->params.grad, *loss);
	*loss = 0;
	return STATUS_OK;
}

enum status stepper_micro(struct stepper *s, const struct batch *b, uint64_t step, uint64_t targets,
			  struct step_part *took, struct error *err)
{
	const struct clock *clock = clock_monotonic();
	struct batch placed;
	struct pass p = pass_of(s, &placed, step, true);
	double flop;
	uint64_t t0 = clock_now_ns(clock), t1;
	enum status st = batch_check(b, model_whole(s->model)->shape.vocab, err);

	s->back.cost = (struct op_cost){0};
	if (s->last && s->buckets.count > 1 && !s->each_pack) {
		p.layer_done = sum_layer;
		p.layer_done_arg = s;
	} else if (s->last && stepper_updates_early(s)) {
		s->early_step = step + 1;
		p.layer_done = step_layer;
		p.layer_done_arg = s;
	}
	if (!st && s->last)
		st = host_states_begin(&s->states, &s->back, err);
	if (!st)
		st = phase(s, GPU_PHASE_FORWARD, err);
	if (!st)
		st = s->back.ops->batch(&s->back, b, &placed, err);
	if (!st)
		st = model_forward(&p, err);
	t1 = clock_now_ns(clock);
	if (!st)
		st = phase(s, GPU_PHASE_BACKWARD, err);
	if (!st)
		st = model_backward(&p, (float)(1.0 / (double)targets), sum_at(s, SUM_LOSS), err);
	release_pass(s);
	if (!st && s->each_pack)
		st = take_pack(s, err);
	flop = s->back.cost.flop - s->back.cost.again;
	if (s->back.kind == BACKEND_CPU) {
		took->forward_s += (double)(t1 - t0) * 1e-9;
		took->backward_s += (double)(clock_now_ns(clock) - t1) * 1e-9;
		took->gemm_s += s->back.cost.gemm_s;
	}
	if (!st && placed.tokens != b->tokens) /* the GPU back end padded the batch */
		flop *= (double)b->tokens / (double)placed.tokens;
	took->flop += flop;
	return st;
}

enum status stepper_idle(struct stepper *s, bool training, struct error *err)
{
	enum status st = divided_empty_forward(s->model, &s->back, err);

	return st || !training ? st : divided_empty_backward(s->model, &s->back, err);
}

uint64_t stepper_collectives(const struct stepper *s, uint64_t packs, bool has_targets)
{
	const uint64_t ends = (uint64_t)s->model->shape.layers + 1;

	return (2 * packs + has_targets) * ends * ends + divided_state(&s->model->divided);
}

void stepper_join(struct stepper *s, struct comm *data, struct comm *tensor)
{
	s->comm = data;
	s->model->divided.comm = data;
	s->model->split.comm = tensor;
}

enum status stepper_prefetch(struct stepper *s, const struct batch *b, struct error *err)
{
	if (s->back.kind == BACKEND_CPU ||
	    batch_check(b, model_whole(s->model)->shape.vocab,
			NULL)) /* an invalid batch is reported when it is used */
		return STATUS_OK;
	return gpu_backend_prefetch(&s->back, b, err);
}

/* The gradient of all ranks. Until the wait ends, nothing else may use it. */
static enum status sum_gradient(struct stepper *s, struct error *err)
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

/* The collectives within the layers of one micro-batch, counted `micros` times. */
static enum status plan_split_comm(struct stepper *s, const struct config *c, uint64_t micros,
				   struct error *err)
{
	struct comm *tensor = s->model->split.comm;
	struct batch b = {0};
	enum status st = largest_batch(&b, stepper_size(c), err);

	tensor->count = (struct comm_count){0};
	if (!st)
		st = plan_training(s, &b, err);
	free((void *)(uintptr_t)b.doc_start);
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
		st = sum_gradient(s, err);
	for (uint64_t i = 0; i < micros && !st; i++)
		st = stepper_idle(s, true, err);

	return st ? st : stepper_gather(s, err);
}

enum status stepper_end(struct stepper *s, double rate, uint64_t step, double *loss, double *norm,
			struct error *err)
{
	struct backend *back = &s->back;
	double sums[SUMS] = {0};
	enum status st = sum_gradient(s, err);

	if (!st)
		st = phase(s, GPU_PHASE_OPTIMISER, err);
	if (!st)
		st = step_params(s, rate, step + 1, err);
	if (!st)
		st = stepper_gather(s, err);
	if (!st)
		st = model_refresh(s->model, back, err);
	if (!st)
		st = phase(s, GPU_PHASE_NONE, err);
	if (!st)
		st = back->ops->get(back, s->sums, sums, err);
	*loss = sums[SUM_LOSS];
	for (uint64_t i = 0; i < s->tree.at; i++)
		*loss += s->tree.loss[i];
	*norm = sqrt(sums[SUM_SQUARES]);
	return st;
}

/* The place where a pass first met what is not finite: the lowest input, or else the highest gradient,
 * because it spreads from there. -1: none. */
static int64_t first_overflow(const int32_t *counts, int64_t count)
{
	for (int64_t i = 0; i < count; i += 2)
		if (counts[i])
			return i;
	for (int64_t i = count - 1; i > 0; i -= 2)
		if (counts[i])
			return i;
	return -1;
}

enum status stepper_overflows(struct stepper *s, struct step_part *took, struct error *err)
{
	const int64_t count = s->model->overflows.cols;
	int32_t *counts;
	enum status st;

	if (!s->model->fp8)
		return STATUS_OK;
	counts = calloc((size_t)count, sizeof(*counts));
	if (!counts)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory for a list of counts");
	st = s->back.ops->get(&s->back, s->model->overflows, counts, err);
	for (int64_t i = 0; !st && i < count; i++)
		took->overflows += counts[i];
	if (!st && took->overflows)
		model_overflow_name(took->overflow_at, first_overflow(counts, count));
	free(counts);
	return st;
}

enum status stepper_times(struct stepper *s, struct step_part *took, struct error *err)
{
	double phase_s[GPU_PHASE_COUNT];
	enum status st;

	if (s->back.kind == BACKEND_CPU)
		return STATUS_OK;
	st = gpu_backend_times(&s->back, phase_s, took->parts_s, took->parts, err);
	if (st)
		return st;
	took->forward_s = phase_s[GPU_PHASE_FORWARD];
	took->backward_s = phase_s[GPU_PHASE_BACKWARD];
	took->optimiser_s = phase_s[GPU_PHASE_OPTIMISER];
	took->gemm_s = took->parts_s[GPU_PART_PRODUCTS] + took->parts_s[GPU_PART_THIN] +
		       took->parts_s[GPU_PART_ATTENTION] + took->parts_s[GPU_PART_ATTENTION_BWD];
	return STATUS_OK;
}

enum status stepper_evaluate(struct stepper *s, const struct batch *b, double *loss, struct error *err)
{
	struct backend *back = &s->back;
	double sums[SUMS] = {0};
	enum status st;

	if (!b->targets)
		return stepper_idle(s, false, err);
	if (back->kind == BACKEND_GPU)
		gpu_backend_times_begin(back);
	st = clear_sums(s, err);
	if (!st)
		st = batch_check(b, model_whole(s->model)->shape.vocab, err);
	if (!st)
		st = evaluate(s, b, err);
	if (!st)
		st = back->ops->get(back, s->sums, sums, err);
	*loss += sums[SUM_LOSS];
	return st;
}
