/* SPDX-License-Identifier: Apache-2.0 */
#include "train/run/run.h"
#include <math.h>
#include <stdlib.h>
#include <time.h>
#include "core/clock.h"
#include "model/gpu/backend.h"
#include "train/tuning/tuning_choices.h"
#include "train/run/internal.h"

static double now_s(void)
{
	return (double)clock_now_ns(clock_monotonic()) * 1e-9;
}

static double wall_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

enum status run_emit(struct train *t, const char *type, json_t *body, struct error *err)
{
	if (!body)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory for a line of type %s", type);
	return t->job->emit(t->job->arg, type, body, err);
}

void run_warn(const struct train *t, const struct text *note)
{
	for (const char *line = text_str(note), *end; (end = strchr(line, '\n')); line = end + 1)
		log_warn(t->job->log, LOG_TOPIC_RUN, "%.*s", (int)(end - line), line);
}

enum status run_findings(struct train *t, const struct findings *f, struct error *err)
{
	enum status st = STATUS_OK;

	for (size_t i = 0; i < f->count && !st; i++) {
		enum finding what = f->found[i].what;

		st = run_emit(t, "finding",
			      json_pack("{s:s, s:s, s:s, s:I}", "finding", finding_word(what), "text",
					f->found[i].text, "knob", finding_knob(what), "step",
					(json_int_t)t->state.step),
			      err);
		train_state_log(&t->state, json_pack("{s:s, s:s, s:s}", "finding", finding_word(what), "text",
						     f->found[i].text, "knob", finding_knob(what)));
		if (!st && finding_ends(what))
			st = error_set_cause(err, t->state.step ? STATUS_MISMATCH : STATUS_BAD_INPUT,
					     what != FINDING_NOT_FINITE ? CAUSE_NONE
					     : t->state.step		? CAUSE_NAN
									: CAUSE_BAD_INPUT,
					     "%s: %s; change this setting: %s", finding_word(what),
					     f->found[i].text, finding_knob(what));
	}
	return st;
}

/* Emits `alive` at most once a second, because lines of steps can be far apart. */
static enum status tell_alive(struct train *t, struct error *err)
{
	double now = now_s();

	if (now - t->alive_s < 1)
		return STATUS_OK;
	t->alive_s = now;
	return run_emit(t, "alive", json_object(), err);
}

/* Emits the choices for GEMMs that are new in this step. The first step makes no choices, so its GEMMs are
 * emitted with the next step. */
static enum status tell_products(struct train *t, struct error *err)
{
	const uint64_t step = t->state.step + 1;
	json_t *list;

	if (gpu_backend_holds(&t->stepper.back) && step < t->state.max_steps)
		return STATUS_OK;
	list = tuning_choices_since(&t->stepper.back, &t->products_told);
	return list ? run_emit(t, "products",
			       json_pack("{s:I, s:o}", "step", (json_int_t)step, "products", list), err)
		    : STATUS_OK;
}

/* Warns once if CUDA graphs cannot be used. The run continues, but slower. */
static void warn_of_graphs(struct train *t)
{
	const char *why = t->graphs_told ? NULL : gpu_backend_graphs_refused(&t->stepper.back);

	if (!why)
		return;
	t->graphs_told = true;
	log_warn(t->job->log, LOG_TOPIC_RUN,
		 "no CUDA graph could be made, so the layers of small micro-batches are launched kernel by "
		 "kernel: %s",
		 why);
}

enum status run_fails(const struct train *t, const char *doing, enum status st, const struct error *why,
		      struct error *err)
{
	const struct backend *back = &t->stepper.back;
	const char *name =
		back->kind == BACKEND_GPU && back->device ? gpu_name(gpu_backend_device(back)) : NULL;
	const bool by_device = st == STATUS_VENDOR || st == STATUS_LOST || st == STATUS_UNSUPPORTED ||
			       why->cause == CAUSE_NO_MEMORY;

	return name && by_device && !strstr(why->text, name)
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
static enum status look_ahead(struct train *t, double *wait_s, struct error *err)
{
	const struct batch *b;
	double waited_s = 0;
	enum status st = STATUS_OK;

	if (t->stepper.back.kind == BACKEND_CPU || t->state.step + 1 >= t->state.max_steps)
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
static void look_at_tuning(struct train *t, struct step_figures *f, double before_s)
{
	const double now_s = tuning_s(t);

	f->steady = t->made_steps && now_s <= before_s;
	f->tuning_s = now_s - t->tuning_seen_s;
	t->tuning_seen_s = now_s;
}

static enum status one_step(struct train *t, struct step_figures *f, struct error *err)
{
	uint64_t step = t->state.step;
	double t0 = now_s(), t1, sum = 0, tuned_s = tuning_s(t);
	enum status st;

	*f = (struct step_figures){.size = data_step(t->data, step),
				   .rate = schedule_rate(&t->schedule, step)};
	f->wait_s = now_s() - t0; /* data_step may wait for the prefetch thread */
	st = stepper_begin(&t->stepper, err);
	for (uint64_t i = 0; i < f->size.micro_batches && !st; i++) {
		const struct batch *b;
		double wait_s = 0;

		st = data_next(t->data, step, i, &b, &wait_s, err);
		f->wait_s += wait_s;
		if (!st)
			st = stepper_micro(&t->stepper, b, step, f->size.targets, &f->part, err);
		if (!st)
			st = tell_alive(t, err);
	}
	if (!st)
		st = look_ahead(t, &f->wait_s, err);
	t1 = now_s();
	if (!st &&
	    !t->host_params.memory) /* the writer reads the parameters that the optimizer changes next */
		st = checkpoint_writer_wait(t->writer, err);
	else if (!st)
		checkpoint_writer_taken(t->writer);
	f->save_s = now_s() - t1;
	t1 += f->save_s;
	if (!st && f->size.targets)
		st = stepper_end(&t->stepper, f->rate, step, &sum, &f->norm, err);
	f->optimiser_s = now_s() - t1;
	if (!st && t->stepper.back.kind == BACKEND_GPU) {
		st = stepper_times(&t->stepper, &f->part, err);
		f->optimiser_s = f->part.optimiser_s;
		if (!st)
			st = tell_products(t, err);
		warn_of_graphs(t);
	}
	f->loss = f->size.targets ? sum / (double)f->size.targets : 0;
	f->step_s = now_s() - t0;
	look_at_tuning(t, f, tuned_s);
	return st;
}

/* Adds the start-up time: up to the end of this process's first step, without tuning. */
static void add_start(struct train *t, const struct step_figures *f)
{
	struct train_times *sum = &t->state.times;
	const double tuned_s = t->job->tuned_s + f->tuning_s;

	sum->tuning_s += t->job->tuned_s;
	if (t->job->started_ns)
		sum->start_s += fmax(now_s() - (double)t->job->started_ns * 1e-9 - tuned_s, 0);
}

static void add_steady(struct train *t, const struct step_figures *f)
{
	struct train_times *sum = &t->state.times;

	train_state_time(&t->state, f->step_s);
	sum->forward_s += f->part.forward_s;
	sum->backward_s += f->part.backward_s;
	sum->optimiser_s += f->optimiser_s;
	sum->wait_s += f->wait_s;
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
}

static enum status write_events(struct train *t, const struct scalar *scalars, size_t count,
				struct error *err)
{
	return t->events ? events_add(t->events, wall_s(), (int64_t)t->state.step, scalars, count, err)
			 : STATUS_OK;
}

static enum status tell_step(struct train *t, const struct step_figures *f, struct error *err)
{
	const struct scalar scalars[] = {
		{"train/loss", f->loss},
		{"train/grad_norm", f->norm},
		{"train/learning_rate", f->rate},
		{"train/epoch", t->state.epoch},
		{"train/tokens_per_s", (double)f->size.tokens / f->step_s},
		{"train/wait_share", f->wait_s / f->step_s},
	};
	json_t *logged;
	enum status st;

	if (t->state.step % t->config.training.logging_steps && t->state.step != t->state.max_steps)
		return STATUS_OK;
	logged = json_pack("{s:f}", "learning_rate", f->rate);
	run_number(logged, "loss", f->loss);
	run_number(logged, "grad_norm", f->norm);
	train_state_log(&t->state, logged);
	st = run_emit(t, "step", run_step_line(t, f), err);
	return st ? st : write_events(t, scalars, sizeof(scalars) / sizeof(scalars[0]), err);
}

/* Also emits the findings of a step that ends the run. */
static enum status look_at(struct train *t, const struct step_figures *f, struct error *err)
{
	const struct diagnose_step s = {.step = t->state.step,
					.loss = f->loss,
					.grad_norm = f->norm,
					.rate = f->rate,
					.targets = f->size.targets,
					.step_s = f->step_s,
					.wait_s = f->wait_s};
	struct findings found;

	diagnose_step(&t->state.diagnose, &found, &s);
	return run_findings(t, &found, err);
}

static enum status evaluate(struct train *t, struct error *err)
{
	struct data_counts counts = data_eval_counts(t->data);
	double sum = 0, t0 = now_s(), eval_s, loss;
	json_t *line;
	struct scalar scalar = {.tag = "eval/loss"};
	struct error why = {0};
	enum status st = STATUS_OK;

	if (!counts.targets)
		return STATUS_OK;
	for (uint64_t i = 0; i < data_eval_micros(t->data) && !st && !*t->job->stop; i++) {
		const struct batch *b;

		st = data_eval(t->data, i, &b, err);
		if (!st)
			st = stepper_evaluate(&t->stepper, b, &sum, &why);
		if (st && why.status)
			fails_at(t, "evaluation after step", t->state.step, st, &why, err);
		if (!st)
			st = tell_alive(t, err);
	}
	if (st || *t->job->stop)
		return st;
	eval_s = now_s() - t0;
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
	return st ? st : write_events(t, &scalar, 1, err);
}

static bool due(uint64_t step, uint64_t every)
{
	return every && step % every == 0;
}

static enum status save(struct train *t, bool wait, struct error *err)
{
	struct error why = {0};
	enum status st = run_save(t, wait, &why);

	return st ? fails_at(t, "checkpoint after step", t->state.step, st, &why, err) : STATUS_OK;
}

/* After a step: first the evaluation, then the checkpoint, which records its result. */
static enum status look_around(struct train *t, struct error *err)
{
	const struct config_training *c = &t->config.training;
	bool eval = due(t->state.step, c->eval_steps), best;
	enum status st = eval ? evaluate(t, err) : STATUS_OK;

	best = eval && c->load_best_model_at_end && t->state.best_step == t->state.step;
	if (!st && (due(t->state.step, c->save_steps) || best) && t->state.step < t->state.max_steps)
		st = save(t, false, err);
	return st;
}

static bool enough(const struct train *t)
{
	uint32_t patience = t->config.training.early_stopping_patience;

	return t->state.step >= t->state.max_steps || (patience && t->state.worse >= patience);
}

static bool has_moved(const struct train *t)
{
	return strcmp(t->dir, t->job->dir) != 0;
}

static enum status say_moved(const struct train *t, struct error *err)
{
	return error_set(err, STATUS_UNAVAILABLE, "%s was moved to %s during the run", t->job->dir, t->dir);
}

/* After a move, the journal can no longer be written under its old path. Saves the state at the new path and
 * stops. */
static enum status leave(struct train *t, struct error *err)
{
	enum status st = save(t, true, err);

	return st ? st : say_moved(t, err);
}

static enum status all_steps(struct train *t, struct error *err)
{
	enum status st = STATUS_OK;

	while (!st && !enough(t) && !*t->job->stop) {
		struct error why = {0};
		struct step_figures f;

		st = one_step(t, &f, &why);
		if (st)
			return fails_at(t, "step", t->state.step + 1, st, &why, err);
		add_up(t, &f);
		st = tell_step(t, &f, err);
		if (!st && !t->chosen_told)
			st = run_tell_chosen(t, err);
		if (!st)
			st = look_at(t, &f, err);
		if (!st)
			st = look_around(t, err);
		if (!st) /* do not compute steps that cannot be saved */
			st = run_look_home(t, err);
		if (!st && has_moved(t))
			return leave(t, err);
	}
	if (!st && t->state.step < t->state.max_steps && enough(t))
		log_info(t->job->log, LOG_TOPIC_RUN,
			 "stops early: the held-out loss did not improve in %u evaluations; the best was at "
			 "step %llu",
			 t->state.worse, (unsigned long long)t->state.best_step);
	return st;
}

static void warn_of_harm(const struct train *t)
{
	const struct train_state *s = &t->state;

	if (t->config.training.eval_on_start && s->has_eval && s->has_best && s->best_loss >= s->eval_first)
		log_warn(t->job->log, LOG_TOPIC_RUN,
			 "the held-out loss never fell below its value before training, %.4f; the best was "
			 "%.4f at step %llu",
			 s->eval_first, s->best_loss, (unsigned long long)s->best_step);
}

/* Writes the last checkpoint and the adapter or model. */
static enum status finish(struct train *t, struct error *err)
{
	enum status st = STATUS_OK;

	if (!t->evaluated || t->evaluated_step != t->state.step)
		st = evaluate(t, err);
	if (!st)
		st = run_tell_chosen(t, err);
	if (!st)
		st = run_emit(t, "at", json_pack("{s:s}", "phase", "save"), err);
	if (!st && t->state.step)
		st = save(t, true, err);
	if (!st && has_moved(t))
		return say_moved(t, err);
	if (!st && *t->job->stop)
		return error_set_cause(
			err, STATUS_CANCELLED, CAUSE_INTERRUPTED, "stopped on request at step %llu of %llu",
			(unsigned long long)t->state.step, (unsigned long long)t->state.max_steps);
	if (!st)
		warn_of_harm(t);
	return st ? st : run_export(t, err);
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
	text_copy(t->dir, sizeof(t->dir), job->dir);
	run_dir_open(&t->home, job->dir);
	st = work(t, err);
	*values = run_results(t);
	last = t->writer ? checkpoint_writer_wait(t->writer, &late) : STATUS_OK;
	if (!st && last)
		st = error_set_cause(err, last, late.cause, "%s", late.text);
	checkpoint_writer_free(t->writer);
	checkpoint_found_release(&t->earlier);
	json_decref(t->start_s);
	free(t->cache_key);
	events_close(&t->events);
	data_close(&t->data);
	host_params_release(&t->host_params);
	stepper_release(&t->stepper);
	weights_release(&t->weights);
	train_state_release(&t->state);
	config_release(&t->config);
	run_dir_close(&t->home);
	free(t);
	return st;
}
