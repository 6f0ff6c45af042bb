/* SPDX-License-Identifier: Apache-2.0 */
/* The passes of a step and of an evaluation. */
#include "train/step/stepper_internal.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include "core/clock.h"
#include "model/tensor/matrix.h"

double *stepper_sum_at(const struct stepper *s, int which)
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

void stepper_release_pass(struct stepper *s)
{
	lending_rest(&s->lending);
	arena_reset(&s->arena, &s->placed);
	arena_reset(&s->host, &s->host_placed);
}

struct pass stepper_pass(struct stepper *s, const struct batch *b, uint64_t step, bool training)
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

/* The batch with its limit of padding. */
static struct batch limited(const struct batch *b, int64_t most)
{
	struct batch out = *b;

	out.tokens_most = most;
	return out;
}

enum status stepper_pass_loss(struct stepper *s, const struct batch *b, struct error *err)
{
	const struct batch evaluated = limited(b, s->evaluated_most);
	struct batch placed = {0};
	struct pass p = stepper_pass(s, &placed, 0, false);
	enum status st;

	lending_pass(&s->lending, &s->lending.evaluated);
	st = s->back.ops->batch(&s->back, &evaluated, &placed, err);
	if (!st)
		st = model_forward(&p, err);
	if (!st)
		st = model_loss(&p, stepper_sum_at(s, SUM_LOSS), err);
	stepper_release_pass(s);
	return st;
}

/* The backward pass clears the part that the gradient lends to it. */
static enum status clear_gradient(struct stepper *s, struct error *err)
{
	const size_t lent = s->lending.elements;
	struct mat rest =
		mat_cols(&s->model->params.grad, (int64_t)lent, s->model->params.grad.cols - (int64_t)lent);

	rest.ld = rest.cols;
	return rest.cols ? s->back.ops->zero(&s->back, rest, err) : STATUS_OK;
}

/* The same for a rank that has no backward pass in this step. */
static enum status clear_lent(struct stepper *s, struct error *err)
{
	struct mat lent = mat_cols(&s->model->params.grad, 0, (int64_t)s->lending.elements);

	lent.ld = lent.cols;
	return lent.cols && !s->model->divided.gradient ? s->back.ops->zero(&s->back, lent, err) : STATUS_OK;
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
	s->lending.micros = 0;
	st = clear_sums(s, err);
	if (!st && s->model->fp8)
		st = s->back.ops->zero(&s->back, s->model->overflows, err);
	return st ? st : clear_gradient(s, err);
}

void stepper_packs(struct stepper *s, uint64_t packs)
{
	gradient_tree_begin(&s->tree, packs);
}

/* Moves gradient and loss of the pack that was just computed to the tree. */
static enum status take_pack(struct stepper *s, struct error *err)
{
	double *loss = stepper_sum_at(s, SUM_LOSS);

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
	const struct batch trained = limited(b, s->trained_most);
	const struct clock *clock = clock_monotonic();
	struct batch placed;
	struct pass p = stepper_pass(s, &placed, step, true);
	double flop;
	uint64_t t0 = clock_now_ns(clock), t1;
	enum status st = batch_check(b, model_whole(s->model)->shape.vocab, err);

	s->back.cost = (struct op_cost){0};
	if (s->last && s->buckets.count > 1 && !s->each_pack) {
		p.layer_done = stepper_sum_layer;
		p.layer_done_arg = s;
	} else if (s->last && stepper_updates_early(s)) {
		s->early_step = step + 1;
		p.layer_done = stepper_step_layer;
		p.layer_done_arg = s;
	}
	if (!st)
		st = lending_micro(&s->lending, err);
	if (!st && s->last)
		st = host_states_begin(&s->states, &s->back, err);
	lending_pass(&s->lending, &s->lending.trained);
	if (!st)
		st = phase(s, GPU_PHASE_FORWARD, err);
	if (!st)
		st = s->back.ops->batch(&s->back, &trained, &placed, err);
	if (!st)
		st = model_forward(&p, err);
	t1 = clock_now_ns(clock);
	if (!st)
		st = phase(s, GPU_PHASE_BACKWARD, err);
	if (!st)
		st = model_backward(&p, (float)(1.0 / (double)targets), stepper_sum_at(s, SUM_LOSS), err);
	stepper_release_pass(s);
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

	if (st || !training)
		return st;
	st = lending_micro(&s->lending, err);
	if (!st)
		st = clear_lent(s, err);
	return st ? st : divided_empty_backward(s->model, &s->back, err);
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
	const struct batch trained = limited(b, s->trained_most);

	if (s->back.kind == BACKEND_CPU ||
	    batch_check(b, model_whole(s->model)->shape.vocab,
			NULL)) /* an invalid batch is reported when it is used */
		return STATUS_OK;
	return gpu_backend_prefetch(&s->back, &trained, err);
}

enum status stepper_end(struct stepper *s, double rate, uint64_t step, double *loss, double *norm,
			struct error *err)
{
	struct backend *back = &s->back;
	double sums[SUMS] = {0};
	enum status st = stepper_sum_gradient(s, err);

	if (!st)
		st = phase(s, GPU_PHASE_OPTIMISER, err);
	if (!st)
		st = stepper_step_params(s, rate, step + 1, err);
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
	took->wait_s = phase_s[GPU_PHASE_WAIT];
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
		st = stepper_pass_loss(s, b, err);
	if (!st)
		st = back->ops->get(back, s->sums, sums, err);
	*loss += sums[SUM_LOSS];
	return st;
}
