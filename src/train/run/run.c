/* SPDX-License-Identifier: Apache-2.0 */
#include "train/run/run.h"
#include <math.h>
#include <stdlib.h>
#include "model/gpu/backend.h"
#include "team/links/flight.h"
#include "train/run/internal.h"
#include "train/run/shared_save.h"

/* An error that the ranks agreed on begins with the rank that has it. */
static bool is_of_another_rank(const struct train *t, const char *text)
{
	unsigned rank;

	return t->comm && sscanf(text, "rank %u", &rank) == 1 && rank != t->comm->rank;
}

enum status run_fails(const struct train *t, const char *doing, enum status st, const struct error *why,
		      struct error *err)
{
	const struct backend *back = &t->stepper.back;
	const char *name =
		back->kind == BACKEND_GPU && back->device ? gpu_name(gpu_backend_device(back)) : NULL;
	const bool by_device = st == STATUS_VENDOR || st == STATUS_LOST || st == STATUS_UNSUPPORTED ||
			       why->cause == CAUSE_NO_MEMORY;

	return name && by_device && !strstr(why->text, name) && !is_of_another_rank(t, why->text)
		       ? error_set_cause(err, st, why->cause, "%s on %s: %s", doing, name, why->text)
		       : error_set_cause(err, st, why->cause, "%s", why->text);
}

/* Example: "step 3 of 100", "evaluation after step 2 of 100". */
static enum status fails_at(const struct train *t, const char *pass, uint64_t step, enum status st,
			    const struct error *why, struct error *err)
{
	char doing[96];

	snprintf(doing, sizeof(doing), "%s %llu of %llu", pass, (unsigned long long)step,
		 (unsigned long long)t->state.max_steps);
	return run_fails(t, doing, st, why, err);
}

/* Sends the next step's batch to the GPU while it still computes this step. */
static enum status prefetch_next_step(struct train *t, double *wait_s, struct error *err)
{
	const struct batch *b;
	double waited_s = 0;
	enum status st = STATUS_OK;

	if (t->stepper.back.kind == BACKEND_CPU || !t->config.training.dataloader_num_workers ||
	    t->state.step + 1 >= t->state.max_steps)
		return STATUS_OK;
	st = data_next(t->data, t->state.step + 1, 0, &b, &waited_s, err);
	*wait_s += waited_s;
	return st ? st : stepper_prefetch(&t->stepper, b, err);
}

static double tuning_s(const struct train *t)
{
	return t->stepper.back.kind == BACKEND_GPU ? gpu_backend_tuning_s(&t->stepper.back) : 0;
}

/* A process's first step loads code and libraries, so it is not steady. A step with tuning is not steady
 * either. */
static void add_tuning(struct train *t, struct step_figures *f)
{
	const double now_s = tuning_s(t);

	f->steady = t->made_steps && f->tuned_s <= 0;
	f->tuning_s = now_s - t->tuning_seen_s;
	t->tuning_seen_s = now_s;
}

/* For the flight record: the device got work, or all its work has ended. On a CPU a pass is over when its
 * function returns. */
static void note_work(const struct train *t, bool ended)
{
	struct team_board *board = t->job->board;

	if (!ended)
		team_flight_give(board);
	if (ended || t->stepper.back.kind == BACKEND_CPU)
		team_flight_worked(board);
}

/* Time in which this rank waited for collectives in this step. */
static double waited_s(const struct train *t)
{
	return t->comm ? t->comm->count.wait_s : 0;
}

/* One micro-batch. A CPU's times of a pass include waits for collectives within it, which are taken away: a
 * GPU's times are those of its stream. */
static enum status micro(struct train *t, const struct batch *b, struct step_figures *f, struct error *err)
{
	const struct step_part before = f->part;
	const double began_s = waited_s(t);
	enum status st = stepper_micro(&t->stepper, b, t->state.step, f->size.targets, &f->part, err);
	const double waited = waited_s(t) - began_s;
	const double forward = f->part.forward_s - before.forward_s,
		     both = forward + f->part.backward_s - before.backward_s;

	if (t->stepper.back.kind == BACKEND_GPU || !(both > waited))
		return st;
	f->part.forward_s -= waited * forward / both;
	f->part.backward_s -= waited * (1 - forward / both);
	return st;
}

static enum status one_step(struct train *t, struct step_figures *f, struct error *err)
{
	uint64_t step = t->state.step;
	double t0 = clock_now_s(), t1, sum = 0, tuned_s = tuning_s(t), passes_waited;
	enum status st;

	run_begin_figures(t);
	*f = (struct step_figures){.size = data_step(t->data, step),
				   .rate = schedule_rate(&t->schedule, step)};
	f->wait_s = clock_now_s() - t0; /* data_step may wait for the prefetch thread */
	if (t->comm)
		t->comm->count = (struct comm_count){0};
	st = comm_part(t->comm, "step", step + 1,
		       stepper_collectives(&t->stepper, f->size.packs, f->size.targets > 0), err);
	if (t->stepper.back.kind == BACKEND_GPU) /* from here on, the host may wait for the device */
		note_work(t, false);
	if (!st)
		st = stepper_begin(&t->stepper, err);
	stepper_packs(&t->stepper, f->size.own_packs);
	for (uint64_t i = 0; i < f->size.micro_batches && !st; i++) {
		const struct batch *b;
		double wait_s = 0;

		st = data_next(t->data, step, i, &b, &wait_s, err);
		f->wait_s += wait_s;
		f->own_tokens += !st ? (uint64_t)b->tokens : 0;
		t->stepper.last = i + 1 == f->size.micro_batches;
		t->stepper.rate = f->rate;
		if (!st && t->stepper.last && stepper_updates_early(&t->stepper))
			st = run_free_states(t, err);
		if (!st)
			st = micro(t, b, f, err);
		note_work(t, false);
		if (!st)
			st = run_emit_alive(t, err);
	}
	for (uint64_t i = f->size.micro_batches; i < f->size.micro_most && !st; i++)
		st = stepper_idle(&t->stepper, true, err);
	if (!st)
		st = prefetch_next_step(t, &f->wait_s, err);
	t1 = clock_now_s();
	if (!st)
		st = run_free_states(t, err);
	f->save_s = clock_now_s() - t1;
	t1 += f->save_s;
	passes_waited = waited_s(t);
	if (!st && f->size.targets)
		st = stepper_end(&t->stepper, f->rate, step, &sum, &f->norm, err);
	if (!st && f->size.targets)
		note_work(t, true);
	if (!st)
		st = stepper_overflows(&t->stepper, &f->part, err);
	f->optimiser_s = clock_now_s() - t1 - (waited_s(t) - passes_waited);
	if (!st && t->stepper.back.kind == BACKEND_GPU) {
		st = stepper_times(&t->stepper, &f->part, err);
		f->optimiser_s = f->part.optimiser_s;
		if (!st)
			st = run_emit_products(t, err);
		run_warn_of_graphs(t);
	}
	f->tuned_s = tuning_s(t) - tuned_s;
	if (!st)
		st = run_sum_step(t, f, &sum, err);
	if (!st) /* evaluation and checkpoint */
		st = comm_part(t->comm, "after step", step + 1, COMM_PART_ONCE, err);
	if (!st)
		st = run_save_join(t, false, err);
	f->loss = f->size.targets ? sum / (double)f->size.targets : 0;
	f->step_s = clock_now_s() - t0;
	if (t->stepper.back.kind ==
	    BACKEND_GPU) /* the last collectives end within this phase of its stream */
		f->part.backward_s = fmax(0, f->part.backward_s - f->comm_s);
	f->comm_s += f->part.wait_s;
	f->optimiser_s = fmax(0, f->optimiser_s);
	run_keep_figures(t, f);
	add_tuning(t, f);
	return st;
}

/* Adds the start-up time: up to the end of this process's first step, without tuning. */
static void add_start(struct train *t, const struct step_figures *f)
{
	struct train_times *sum = &t->state.times;
	const double tuned_s = t->job->tuned_s + f->tuning_s;

	sum->tuning_s += t->job->tuned_s;
	if (t->job->started_ns)
		sum->start_s += fmax(clock_now_s() - (double)t->job->started_ns * 1e-9 - tuned_s, 0);
}

static void add_steady(struct train *t, const struct step_figures *f)
{
	struct train_times *sum = &t->state.times;

	train_state_time(&t->state, f->step_s);
	sum->forward_s += f->part.forward_s;
	sum->backward_s += f->part.backward_s;
	sum->optimiser_s += f->optimiser_s;
	sum->wait_s += f->wait_s;
	sum->comm_s += f->comm_s;
	sum->save_s += f->save_s;
	sum->gemm_s += f->part.gemm_s;
	sum->tokens += (double)f->size.tokens;
	sum->rows += (double)f->size.rows;
	sum->flop += f->part.flop;
}

static void add_up(struct train *t, const struct step_figures *f)
{
	if (!t->made_steps++)
		add_start(t, f);
	t->state.times.tuning_s += f->tuning_s;
	if (f->steady)
		add_steady(t, f);
	if (!t->state.has_loss)
		t->state.loss_first = f->loss;
	t->state.has_loss = true;
	t->state.loss = f->loss;
	t->state.step++;
	t->state.epoch = (double)t->state.step / (double)data_steps(t->data);
	t->state.tokens += f->size.tokens;
	t->state.targets += f->size.targets;
	t->state.rows += f->size.rows;
	t->state.flop += f->part.flop;
	t->overflows += f->part.overflows;
}

/* The losses of this rank's micro-batches of the held-out set. A request to stop leaves the rest out, except
 * if the ranks divide the weights: then they all make the same number of passes. */
static enum status evaluate_own(struct train *t, double *losses, struct error *err)
{
	const uint64_t count = data_eval_micros(t->data);
	const bool all =
		t->stepper.model->divided.weights || t->stepper.model->divided.base || t->mesh.tensor > 1;
	struct error why = {0};
	enum status st = STATUS_OK;

	for (uint64_t i = t->mesh.rank; i - t->mesh.rank < count && !st && (all || !*t->job->stop);
	     i += t->mesh.size) {
		const struct batch *b;

		if (i >= count) {
			st = stepper_idle(&t->stepper, false, err);
			continue;
		}

		st = data_eval(t->data, i, &b, err);
		if (!st)
			st = stepper_evaluate(&t->stepper, b, &losses[i], &why);
		if (st && why.status)
			fails_at(t, "evaluation after step", t->state.step, st, &why, err);
		if (!st)
			st = run_emit_alive(t, err);
	}
	return st;
}

/* *sum: of the losses of all ranks. */
static enum status evaluate_all(struct train *t, double *sum, struct error *err)
{
	const uint64_t count = data_eval_micros(t->data);
	double *losses = calloc(count + 1, sizeof(*losses));
	enum status st;

	*sum = 0;
	if (!losses)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory for the losses of an evaluation");
	st = evaluate_own(t, losses, err);
	if (t->mesh.tensor_rank) /* the same losses as the group's first rank */
		memset(losses, 0, count * sizeof(*losses));
	if (!st)
		st = run_sum_losses(t, losses, count, err);
	for (uint64_t i = 0; i < count; i++)
		*sum += losses[i];
	free(losses);
	return st;
}

static enum status evaluate(struct train *t, struct error *err)
{
	struct data_counts counts = data_eval_counts(t->data);
	double sum = 0, t0 = clock_now_s(), eval_s, loss;
	json_t *line;
	struct scalar scalar = {.tag = "eval/loss"};
	enum status st;

	if (!counts.targets)
		return STATUS_OK;
	st = evaluate_all(t, &sum, err);
	if (st || run_stops(t))
		return st;
	eval_s = clock_now_s() - t0;
	scalar.value = loss = sum / (double)counts.targets;
	if (!t->state.has_eval)
		t->state.eval_first = loss;
	t->state.has_eval = t->evaluated = true;
	t->eval_last = loss;
	t->evaluated_step = t->state.step;
	if (t->state.step) /* an evaluation before training is not a result of training */
		train_state_evaluated(&t->state, loss, t->config.training.early_stopping_threshold);
	line = json_pack("{s:f}", "eval_runtime", eval_s);
	run_number(line, "eval_loss", loss);
	train_state_log(&t->state, line);
	line = json_pack("{s:I, s:f}", "step", (json_int_t)t->state.step, "eval_s", eval_s);
	run_number(line, "eval_loss", loss);
	st = run_emit(t, "eval", line, err);
	return st ? st : run_write_events(t, &scalar, 1, err);
}

static bool due(uint64_t step, uint64_t every)
{
	return every && step % every == 0;
}

static bool saves(const struct train *t)
{
	return t->config.training.save_strategy != CONFIG_SAVE_NO;
}

/* Collects the states only for a checkpoint that is written: they travel through the ranks' connections. */
static enum status save(struct train *t, bool wait, struct error *err)
{
	struct error why = {0};
	enum status st;

	if (!saves(t))
		return STATUS_OK;
	st = run_collect(t, &why);
	if (!st)
		st = run_save(t, wait, &why);
	return st ? fails_at(t, "checkpoint after step", t->state.step, st, &why, err) : STATUS_OK;
}

/* After a step: first the evaluation, then the checkpoint, which records its result. */
static enum status evaluate_and_save(struct train *t, struct error *err)
{
	const struct config_training *c = &t->config.training;
	bool eval = due(t->state.step, c->eval_steps), best;
	enum status st = eval ? evaluate(t, err) : STATUS_OK;

	best = eval && c->load_best_model_at_end && t->state.best_step == t->state.step;
	if (!st && (due(t->state.step, c->save_steps) || best) && t->state.step < t->state.max_steps)
		st = save(t, false, err);
	return st;
}

static bool is_finished(const struct train *t)
{
	uint32_t patience = t->config.training.early_stopping_patience;

	return t->state.step >= t->state.max_steps || (patience && t->state.worse >= patience);
}

static enum status moved_error(const struct train *t, struct error *err)
{
	return error_set(err, STATUS_UNAVAILABLE, "%s was moved to %s during the run", t->job->dir, t->dir);
}

/* After a move, the journal can no longer be written under its old path. Saves the state at the new path and
 * stops. Several ranks first agree to stop, with the sums of the next step. */
static enum status leave(struct train *t, struct error *err)
{
	enum status st = save(t, true, err);

	return st ? st : moved_error(t, err);
}

/* A finding ends all ranks after the same step, so that they can still complete a checkpoint before. */
static enum status check_step(struct train *t, const struct step_figures *f, struct error *err)
{
	struct error ignored = {0};
	enum status st = run_check_step(t, f, err);

	if (st)
		run_save_join(t, true, &ignored);
	return st;
}

static enum status all_steps(struct train *t, struct error *err)
{
	enum status st = STATUS_OK;

	while (!st && !is_finished(t) && !run_stops(t)) {
		struct error why = {0};
		struct step_figures f;

		st = one_step(t, &f, &why);
		if (st)
			return fails_at(t, "step", t->state.step + 1, st, &why, err);
		add_up(t, &f);
		st = run_emit_step(t, &f, err);
		if (!st && !t->chosen_emitted)
			st = run_emit_chosen(t, err);
		if (!st)
			st = check_step(t, &f, err);
		if (!st)
			st = evaluate_and_save(t, err);
		if (!st) /* do not compute steps that cannot be saved */
			st = run_check_directory(t, err);
		if (!st && run_has_moved(t) && !t->comm)
			return leave(t, err);
	}
	if (!st && t->state.step < t->state.max_steps && is_finished(t))
		log_info(t->job->log, LOG_TOPIC_RUN,
			 "stops early: the held-out loss did not improve in %u evaluations; the best was at "
			 "step %llu",
			 t->state.worse, (unsigned long long)t->state.best_step);
	return st;
}

static void warn_if_no_better(const struct train *t)
{
	const struct train_state *s = &t->state;

	if (t->config.training.eval_on_start && s->has_eval && s->has_best && s->best_loss >= s->eval_first)
		log_warn(t->job->log, LOG_TOPIC_RUN,
			 "the held-out loss never fell below its value before training, %.4f; the best was "
			 "%.4f at step %llu",
			 s->eval_first, s->best_loss, (unsigned long long)s->best_step);
}

/* Writes the last checkpoint and the adapter or model, unless save_strategy is `no`. */
static enum status finish(struct train *t, struct error *err)
{
	enum status st = STATUS_OK;

	if (!t->evaluated || t->evaluated_step != t->state.step)
		st = evaluate(t, err);
	if (!st)
		st = run_emit_chosen(t, err);
	if (!st)
		st = run_emit(t, "at", json_pack("{s:s}", "phase", "save"), err);
	if (!st && t->state.step)
		st = save(t, true, err);
	if (!st && run_has_moved(t))
		return moved_error(t, err);
	if (!st && run_stops(t))
		return error_set_cause(
			err, STATUS_CANCELLED, CAUSE_INTERRUPTED, "stopped on request at step %llu of %llu",
			(unsigned long long)t->state.step, (unsigned long long)t->state.max_steps);
	if (st)
		return st;
	warn_if_no_better(t);
	if (saves(t) && !t->state.step) /* otherwise the last checkpoint has collected the same states */
		st = run_collect(t, err);
	return st || !run_writes(t) || !saves(t) ? st : run_export(t, err);
}

static enum status work(struct train *t, struct error *err)
{
	enum status st = run_load(t, err);

	t->tuning_seen_s = !st ? tuning_s(t) : 0; /* timing GEMMs for MFU does not count as tuning */
	if (!st)
		st = run_emit(t, "at", json_pack("{s:s}", "phase", "train"), err);
	if (!st && t->config.training.eval_on_start && !t->state.step)
		st = evaluate(t, err);
	if (!st)
		st = all_steps(t, err);
	return st ? st : finish(t, err);
}

enum status train_run(const struct train_job *job, json_t **values, struct error *err)
{
	struct train *t = calloc(1, sizeof(*t));
	struct error late = {0};
	enum status st, last;

	*values = NULL;
	if (!t)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory for a training run");
	t->job = job;
	t->late.rank = t->account.late.rank = -1;
	text_copy(t->dir, sizeof(t->dir), job->dir);
	run_dir_open(&t->home, job->dir);
	st = work(t, err);
	*values = run_results(t);
	last = t->writer ? checkpoint_writer_wait(t->writer, &late) : STATUS_OK;
	if (!st && last)
		st = error_set_cause(err, last, late.cause, "%s", late.text);
	if (st && st != STATUS_CANCELLED && t->comm) /* its thread may still use the memory */
		return st;
	run_comm_close(t);
	checkpoint_writer_free(t->writer);
	checkpoint_found_release(&t->earlier);
	json_decref(t->start_s);
	rank_window_release(&t->window);
	free(t->cache_key);
	events_close(&t->events);
	data_close(&t->data);
	host_params_release(&t->host_params);
	checkpoint_parts_release(&t->parts);
	stepper_release(&t->stepper);
	weights_release(&t->weights);
	train_state_release(&t->state);
	config_release(&t->config);
	run_dir_close(&t->home);
	free(t);
	return st;
}
