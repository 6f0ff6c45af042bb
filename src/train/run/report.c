/* SPDX-License-Identifier: Apache-2.0 */
/* What a run reports: its lines, findings and TensorBoard events, and the results. */
#include <math.h>
#include <stdlib.h>
#include <time.h>
#include "core/math/stats.h"
#include "train/tuning/tuning_choices.h"
#include "train/run/internal.h"

enum { HALF_WIDTH_BATCHES = 5 };

void run_number(json_t *line, const char *name, double value)
{
	json_object_set_new(line, name, json_real(value));
}

void run_memory(struct train *t)
{
	struct train_state *s = &t->state;

	const struct backend *back = &t->stepper.back;

	if (!back->device) /* a resumed run may fail to open its device; the earlier figures stay */
		return;
	s->memory_bytes = fmax(s->memory_bytes,
			       (double)(back->kind == BACKEND_GPU ? memory_of_gpu(back) : memory_peak()));
	s->arena_bytes = fmax(s->arena_bytes, (double)t->stepper.arena.peak);
}

/* Figures up to this step. */
static void set_memory(json_t *out, struct train *t)
{
	run_memory(t);
	run_number(out, "arena_bytes", t->state.arena_bytes);
	if (!(t->state.memory_bytes > 0))
		return;
	run_number(out, "memory_bytes", t->state.memory_bytes);
	if (t->memory.bytes)
		run_number(out, "memory_planned_share", t->state.memory_bytes / (double)t->memory.bytes);
}

/* On a GPU, GEMMs are timed only with step_parts. */
static bool times_products(const struct train *t)
{
	return t->stepper.back.kind == BACKEND_CPU || t->config.training.step_parts;
}

/* Adds the FLOP of a part, or its bytes if it has no FLOP. */
static void set_part(json_t *line, const char *name, double s, const struct gpu_part_work *work)
{
	char field[48];

	snprintf(field, sizeof(field), "%s_part_s", name);
	run_number(line, field, s);
	snprintf(field, sizeof(field), "%s_part_%s", name, work->flop > 0 ? "flop" : "bytes");
	if (work->flop > 0 || work->bytes > 0)
		run_number(line, field, work->flop > 0 ? work->flop : work->bytes);
}

/* The account of the last steps of all ranks. */
static void set_account(json_t *line, const struct train *t)
{
	const struct rank_account *a = &t->account;

	if (!t->comm || !a->steps)
		return;
	run_number(line, "mean_compute_share", a->compute);
	run_number(line, "exposed_share", a->exposed);
	run_number(line, "waiting_share", a->waiting);
	run_number(line, "mean_rows_share", a->rows);
	run_number(line, "mean_save_share", a->save);
	run_number(line, "mean_host_share", a->host);
	if (a->late.rank < 0)
		return;
	run_number(line, "late_rank", a->late.rank);
	run_number(line, "late_share", a->late.waited_share);
}

static json_t *step_line(struct train *t, const struct step_figures *f)
{
	double rate = f->part.flop / f->step_s;
	size_t steady = json_array_size(t->state.times.each_s);
	double mean_s = steady ? t->state.times.step_s / (double)steady : f->step_s;
	json_t *line =
		json_pack("{s:I, s:f, s:f, s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}",
			  "step", (json_int_t)t->state.step, "epoch", t->state.epoch, "learning_rate",
			  f->rate, "tokens", (json_int_t)f->size.tokens, "targets",
			  (json_int_t)f->size.targets, "rows", (json_int_t)f->size.rows, "step_s", f->step_s,
			  "forward_s", f->part.forward_s, "backward_s", f->part.backward_s, "optimiser_s",
			  f->optimiser_s, "wait_s", f->wait_s, "gemm_s", f->part.gemm_s, "tokens_per_s",
			  (double)f->size.tokens / f->step_s, "rows_per_s", (double)f->size.rows / f->step_s,
			  "flop_rate", rate, "left_s", (double)(t->state.max_steps - t->state.step) * mean_s);

	if (!times_products(t))
		json_object_del(line, "gemm_s");
	run_number(line, "save_s", f->save_s);
	if (t->comm)
		run_number(line, "comm_s", f->comm_s);
	set_account(line, t);
	run_number(line, "steady", f->steady);
	run_number(line, "tuning_s", f->tuning_s);
	for (int i = 0; i < GPU_PART_COUNT && t->config.training.step_parts; i++)
		set_part(line, gpu_backend_part_name((enum gpu_part)i), f->part.parts_s[i],
			 &f->part.parts[i]);
	run_number(line, "loss", f->loss);
	run_number(line, "grad_norm", f->norm);
	if (t->stepper.model->fp8)
		run_number(line, "fp8_overflows", (double)f->part.overflows);
	set_memory(line, t);
	if (line && t->gemm_rate > 0)
		json_object_set_new(line, "mfu", json_real(rate / t->gemm_rate));
	return line;
}

/* Adds the median of the steady steps, and the half-width of their mean. */
static void add_spread(json_t *v, const struct train_times *sum)
{
	size_t n = json_array_size(sum->each_s), i;
	double *each_s = calloc(n, sizeof(*each_s));
	const json_t *one;

	if (!each_s)
		return;
	json_array_foreach(sum->each_s, i, one)
	{
		each_s[i] = json_number_value(one);
	}
	if (n >= 2 * HALF_WIDTH_BATCHES)
		run_number(v, "half_width_share",
			   stats_batch_half_width(each_s, n, HALF_WIDTH_BATCHES) * (double)n / sum->step_s);
	run_number(v, "step_s", stats_median(each_s, n));
	free(each_s);
}

/* Adds the rates of the steady steps. */
static void add_rates(json_t *v, const struct train *t)
{
	const struct train_times *sum = &t->state.times;
	double s = sum->step_s;
	json_t *rates = json_pack(
		"{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "tokens_per_s", sum->tokens / s,
		"rows_per_s", sum->rows / s, "forward_share", sum->forward_s / s, "backward_share",
		sum->backward_s / s, "optimiser_share", sum->optimiser_s / s, "wait_share", sum->wait_s / s,
		"gemm_share", sum->gemm_s / s, "flop_rate", sum->flop / s, "save_share", sum->save_s / s);

	if (t->comm)
		run_number(rates, "comm_share", sum->comm_s / s);
	if (!times_products(t))
		json_object_del(rates, "gemm_share");
	json_object_update(v, rates);
	json_decref(rates);
	add_spread(v, sum);
	if (t->gemm_rate > 0)
		json_object_set_new(v, "mfu", json_real(sum->flop / s / t->gemm_rate));
}

/* Adds where the time of all ranks went. */
static void add_account(json_t *v, const struct train *t)
{
	const struct rank_parts *p = &t->window.sum;
	const double all_s = rank_parts_all_s(p);
	char text[720];

	if (t->comm && all_s > 0) {
		run_number(v, "mean_compute_share", p->compute_s / all_s);
		run_number(v, "exposed_share", p->exposed_s / all_s);
		run_number(v, "waiting_share", p->waiting_s / all_s);
		run_number(v, "mean_rows_share", p->rows_s / all_s);
		run_number(v, "mean_save_share", p->save_s / all_s);
		run_number(v, "mean_host_share", p->host_s / all_s);
	}
	if (t->late.rank < 0)
		return;
	run_number(v, "late_share", t->late.waited_share);
	snprintf(text, sizeof(text), "rank %d, by %s: %s", t->late.rank, rank_cause_text(t->late.cause),
		 t->late.evidence);
	json_object_set_new(v, "late_rank", json_string(text));
}

json_t *run_results(struct train *t)
{
	const struct train_state *state = &t->state;
	json_t *v = json_object();

	if (!v || !state->step)
		return v;
	json_object_set_new(v, "steps", json_real((double)state->step));
	json_object_set_new(v, "tokens", json_real((double)state->tokens));
	json_object_set_new(v, "targets", json_real((double)state->targets));
	json_object_set_new(v, "rows", json_real((double)state->rows));
	json_object_set_new(v, "ranks", json_real(t->mesh.ranks));
	if (state->has_loss) {
		run_number(v, "loss_first", state->loss_first);
		run_number(v, "loss", state->loss);
	}
	run_number(v, "steady_steps", (double)json_array_size(state->times.each_s));
	if (state->times.start_s > 0)
		run_number(v, "start_s", state->times.start_s);
	run_number(v, "tuning_s", state->times.tuning_s);
	if (state->times.step_s > 0)
		add_rates(v, t);
	add_account(v, t);
	if (t->memory.bytes)
		run_number(v, "memory_planned_bytes", (double)t->memory.bytes);
	if (t->memory.gpu) {
		run_number(v, "host_bytes", (double)memory_peak());
		run_number(v, "host_planned_bytes", (double)t->memory.host_bytes);
	}
	set_memory(v, t);
	if (t->stepper.model && t->stepper.model->fp8)
		run_number(v, "fp8_overflows", (double)t->overflows);
	if (t->stepper.back.kind == BACKEND_GPU && t->stepper.back.device)
		run_number(v, "graph_launches", (double)gpu_backend_graph_launches(&t->stepper.back));
	if (state->has_eval)
		json_object_set_new(v, "eval_loss_first", json_real(state->eval_first));
	if (t->evaluated)
		json_object_set_new(v, "eval_loss", json_real(t->eval_last));
	if (state->has_best)
		json_object_set_new(v, "eval_loss_best", json_real(state->best_loss));
	return v;
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

enum status run_emit_alive(struct train *t, struct error *err)
{
	double now = clock_now_s();

	if (now - t->alive_s < 1)
		return STATUS_OK;
	t->alive_s = now;
	return run_emit(t, "alive", json_object(), err);
}

enum status run_emit_products(struct train *t, struct error *err)
{
	const uint64_t step = t->state.step + 1;
	json_t *list;

	if (gpu_backend_holds(&t->stepper.back) && step < t->state.max_steps)
		return STATUS_OK;
	list = tuning_choices_since(&t->stepper.back, &t->products_emitted);
	return list ? run_emit(t, "products",
			       json_pack("{s:I, s:o}", "step", (json_int_t)step, "products", list), err)
		    : STATUS_OK;
}

void run_warn_of_graphs(struct train *t)
{
	const char *why = t->graphs_warned ? NULL : gpu_backend_graphs_refused(&t->stepper.back);

	if (!why)
		return;
	t->graphs_warned = true;
	log_warn(t->job->log, LOG_TOPIC_RUN,
		 "no CUDA graph could be made, so the layers of small micro-batches are launched kernel by "
		 "kernel: %s",
		 why);
}

static double wall_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

enum status run_write_events(struct train *t, const struct scalar *scalars, size_t count, struct error *err)
{
	return t->events ? events_add(t->events, wall_s(), (int64_t)t->state.step, scalars, count, err)
			 : STATUS_OK;
}

enum status run_emit_step(struct train *t, const struct step_figures *f, struct error *err)
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
	st = run_emit(t, "step", step_line(t, f), err);
	return st ? st : run_write_events(t, scalars, sizeof(scalars) / sizeof(scalars[0]), err);
}

enum status run_check_step(struct train *t, const struct step_figures *f, struct error *err)
{
	const struct diagnose_step s = {.step = t->state.step,
					.loss = f->loss,
					.grad_norm = f->norm,
					.rate = f->rate,
					.targets = f->size.targets,
					.step_s = f->step_s,
					.wait_s = f->wait_s,
					.overflows = f->part.overflows,
					.overflow_at = f->part.overflow_at,
					.ranks = &t->account};
	struct findings found;

	diagnose_step(&t->state.diagnose, &found, &s);
	return run_findings(t, &found, err);
}
