/* SPDX-License-Identifier: Apache-2.0 */
#include "train/checkpoint/trainer_state.h"
#include <math.h>
#include "train/checkpoint/names.h"

void train_state_release(struct train_state *s)
{
	json_decref(s->times.each_s);
	json_decref(s->history);
	json_decref(s->inputs);
	json_decref(s->chosen);
	*s = (struct train_state){0};
}

void train_state_log(struct train_state *s, json_t *values)
{
	if (!s->history)
		s->history = json_array();
	json_object_set_new(values, "epoch", json_real(s->epoch));
	json_object_set_new(values, "step", json_integer((json_int_t)s->step));
	json_array_append_new(s->history, values);
}

void train_state_time(struct train_state *s, double step_s)
{
	if (!s->times.each_s)
		s->times.each_s = json_array();
	json_array_append_new(s->times.each_s, json_real(step_s));
	s->times.step_s += step_s;
}

bool train_state_evaluated(struct train_state *s, double loss, double threshold)
{
	bool better = isfinite(loss) && (!s->has_best || loss < s->best_loss - threshold);

	s->worse = better ? 0 : s->worse + 1;
	if (!better)
		return false;
	s->has_best = true;
	s->best_loss = loss;
	s->best_step = s->step;
	s->best_saved = false;
	return true;
}

static json_t *diagnose_json(const struct diagnose *d)
{
	unsigned n = d->count < DIAGNOSE_WINDOW ? d->count : DIAGNOSE_WINDOW;
	json_t *loss = json_array(), *norm = json_array(), *told = json_array();

	for (unsigned i = 0; i < n; i++) {
		json_array_append_new(loss, json_real(d->loss[i]));
		json_array_append_new(norm, json_real(d->norm[i]));
	}
	for (int f = 0; f < FINDING_COUNT; f++)
		if (d->reported[f])
			json_array_append_new(told, json_string(finding_word((enum finding)f)));
	return json_pack("{s:I, s:o, s:o, s:o, s:f, s:f}", "steps", (json_int_t)d->count, "loss", loss,
			 "grad_norm", norm, "told", told, "step_s", d->step_s, "wait_s", d->wait_s);
}

/* Reads what diagnose_json wrote. Old states have no such entry; then *d stays empty. */
static bool diagnose_parse(struct diagnose *d, const json_t *j)
{
	const json_t *loss = json_object_get(j, "loss"), *norm = json_object_get(j, "grad_norm"), *word;
	json_int_t count = json_integer_value(json_object_get(j, "steps"));
	size_t n = count < DIAGNOSE_WINDOW ? (size_t)count : DIAGNOSE_WINDOW, i;

	*d = (struct diagnose){.count = (unsigned)count,
			       .step_s = json_number_value(json_object_get(j, "step_s")),
			       .wait_s = json_number_value(json_object_get(j, "wait_s"))};
	if (!j)
		return true;
	if (count < 0 || count > UINT32_MAX || json_array_size(loss) != n || json_array_size(norm) != n)
		return false;
	for (i = 0; i < n; i++) {
		d->loss[i] = json_number_value(json_array_get(loss, i));
		d->norm[i] = json_number_value(json_array_get(norm, i));
	}
	json_array_foreach(json_object_get(j, "told"), i,
			   word) for (int f = 0; f < FINDING_COUNT;
				      f++) if (json_is_string(word) && !strcmp(json_string_value(word),
									       finding_word((enum finding)f)))
		d->reported[f] = true;
	return true;
}

static json_t *times_json(const struct train_state *s)
{
	const struct train_times *t = &s->times;
	json_t *each = t->each_s ? json_deep_copy(t->each_s) : json_array();

	return json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:o}",
			 "forward_s", t->forward_s, "backward_s", t->backward_s, "optimiser_s",
			 t->optimiser_s, "wait_s", t->wait_s, "comm_s", t->comm_s, "gemm_s", t->gemm_s,
			 "save_s", t->save_s, "memory_bytes", s->memory_bytes, "arena_bytes", s->arena_bytes,
			 "start_s", t->start_s, "tuning_s", t->tuning_s, "steady_tokens", t->tokens,
			 "steady_rows", t->rows, "steady_flop", t->flop, "steady_s", each);
}

/* Reads what times_json wrote. Old versions recorded no times, or those of all steps instead of steady ones;
 * then the times stay empty. */
static void times_parse(struct train_state *s, const json_t *j)
{
	const json_t *steady_s = json_object_get(j, "steady_s"), *one;
	size_t i;

	s->memory_bytes = json_number_value(json_object_get(j, "memory_bytes"));
	s->arena_bytes = json_number_value(json_object_get(j, "arena_bytes"));
	if (!json_is_array(steady_s))
		return;
	s->times = (struct train_times){.forward_s = json_number_value(json_object_get(j, "forward_s")),
					.backward_s = json_number_value(json_object_get(j, "backward_s")),
					.optimiser_s = json_number_value(json_object_get(j, "optimiser_s")),
					.wait_s = json_number_value(json_object_get(j, "wait_s")),
					.comm_s = json_number_value(json_object_get(j, "comm_s")),
					.gemm_s = json_number_value(json_object_get(j, "gemm_s")),
					.save_s = json_number_value(json_object_get(j, "save_s")),
					.tokens = json_number_value(json_object_get(j, "steady_tokens")),
					.rows = json_number_value(json_object_get(j, "steady_rows")),
					.flop = json_number_value(json_object_get(j, "steady_flop")),
					.start_s = json_number_value(json_object_get(j, "start_s")),
					.tuning_s = json_number_value(json_object_get(j, "tuning_s"))};
	json_array_foreach(steady_s, i, one)
	{
		train_state_time(s, json_number_value(one));
	}
}

json_t *train_state_json(const struct train_state *s, const struct config_training *t)
{
	json_t *j, *history = s->history ? json_deep_copy(s->history) : json_array();
	char best[64];

	j = json_pack("{s:n, s:n, s:f, s:I, s:b, s:b, s:b, s:o, s:I, s:f, s:I, s:I, s:I, s:f, s:I}",
		      "best_metric", "best_model_checkpoint", "epoch", s->epoch, "global_step",
		      (json_int_t)s->step, "is_hyper_param_search", 0, "is_local_process_zero", 1,
		      "is_world_process_zero", 1, "log_history", history, "logging_steps",
		      (json_int_t)t->logging_steps, "num_train_epochs", t->num_train_epochs, "max_steps",
		      (json_int_t)s->max_steps, "eval_steps", (json_int_t)t->eval_steps, "save_steps",
		      (json_int_t)t->save_steps, "total_flos", s->flop, "train_batch_size",
		      (json_int_t)t->per_device_train_batch_size);
	if (!j)
		return NULL;
	if (s->has_best) {
		snprintf(best, sizeof(best), CHECKPOINT_NAME, s->best_step);
		json_object_set_new(j, "best_metric", json_real(s->best_loss));
		if (s->best_saved)
			json_object_set_new(j, "best_model_checkpoint", json_string(best));
	}
	json_object_set_new(j, "assay",
			    json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "tokens", (json_int_t)s->tokens,
				      "targets", (json_int_t)s->targets, "rows", (json_int_t)s->rows,
				      "best_step", (json_int_t)s->best_step, "worse", (json_int_t)s->worse,
				      "step_packs", (json_int_t)s->step_packs));
	json_object_set_new(json_object_get(j, "assay"), "diagnose", diagnose_json(&s->diagnose));
	if (s->inputs)
		json_object_set(json_object_get(j, "assay"), "inputs", s->inputs);
	if (s->chosen)
		json_object_set(json_object_get(j, "assay"), "chosen", s->chosen);
	json_object_set_new(json_object_get(j, "assay"), "times", times_json(s));
	if (s->has_loss) {
		json_object_set_new(json_object_get(j, "assay"), "loss_first", json_real(s->loss_first));
		json_object_set_new(json_object_get(j, "assay"), "loss", json_real(s->loss));
	}
	if (s->has_eval)
		json_object_set_new(json_object_get(j, "assay"), "eval_loss_first", json_real(s->eval_first));
	return j;
}

static bool count_of(const json_t *map, const char *key, uint64_t *out)
{
	const json_t *v = json_object_get(map, key);

	*out = (uint64_t)json_integer_value(v);
	return json_is_integer(v) && json_integer_value(v) >= 0;
}

static bool real_of(const json_t *map, const char *key, double *out)
{
	const json_t *v = json_object_get(map, key);

	*out = json_number_value(v);
	return json_is_number(v);
}

enum status train_state_parse(struct train_state *s, const json_t *j, const char *path, struct error *err)
{
	const json_t *own = json_object_get(j, "assay"), *history = json_object_get(j, "log_history");
	uint64_t worse = 0;

	*s = (struct train_state){0};
	if (!count_of(j, "global_step", &s->step) || !count_of(j, "max_steps", &s->max_steps) ||
	    !json_is_number(json_object_get(j, "epoch")) || !json_is_array(history))
		return error_set(err, STATUS_BAD_INPUT,
				 "%s: it has no global_step, max_steps, epoch or log_history", path);
	if (!count_of(own, "tokens", &s->tokens) || !count_of(own, "targets", &s->targets) ||
	    !count_of(own, "rows", &s->rows) || !count_of(own, "best_step", &s->best_step) ||
	    !count_of(own, "worse", &worse) || worse > UINT32_MAX)
		return error_set(err, STATUS_BAD_INPUT,
				 "%s: it has no tokens, targets, rows, best_step or worse in \"assay\"",
				 path);
	if (!diagnose_parse(&s->diagnose, json_object_get(own, "diagnose")))
		return error_set(err, STATUS_BAD_INPUT, "%s: it has no steps in \"diagnose\"", path);
	count_of(own, "step_packs", &s->step_packs);
	s->epoch = json_number_value(json_object_get(j, "epoch"));
	s->flop = json_number_value(json_object_get(j, "total_flos"));
	s->worse = (uint32_t)worse;
	s->has_loss = real_of(own, "loss_first", &s->loss_first);
	if (!real_of(own, "loss", &s->loss))
		s->loss = NAN;
	s->has_eval = real_of(own, "eval_loss_first", &s->eval_first);
	s->has_best = real_of(j, "best_metric", &s->best_loss);
	s->best_saved = json_is_string(json_object_get(j, "best_model_checkpoint"));
	times_parse(s, json_object_get(own, "times"));
	s->inputs = json_incref(json_object_get(own, "inputs"));
	s->chosen = json_incref(json_object_get(own, "chosen"));
	s->history = json_deep_copy(history);
	return s->history ? STATUS_OK : error_set(err, STATUS_NO_RESOURCE, "%s: no memory", path);
}
