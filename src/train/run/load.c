/* SPDX-License-Identifier: Apache-2.0 */
/* Everything before the first step: configuration, model, rows, memory, and the parameters or the checkpoint
 * to resume from. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "core/clock.h"
#include "core/file/file.h"
#include "core/math/stats.h"
#include "model/files/fingerprint.h"
#include "model/decoder/layer_tensors.h"
#include "train/tuning/tuning_choices.h"
#include "train/run/inputs.h"
#include "train/run/internal.h"
#include "train/run/shared_save.h"

enum { NORM_SAMPLE = 1024, FORGET_ROWS = 32 };

/* Two runs started at once in the same folder write the same config.yaml, so its hash is checked. */
static enum status check_config_hash(const struct train *t, const char *path, struct error *err)
{
	char hash[65];

	if (!t->job->config_hash)
		return STATUS_OK;
	config_hash(hash, &t->config);
	return !strcmp(hash, t->job->config_hash)
		       ? STATUS_OK
		       : error_set(err, STATUS_BAD_INPUT,
				   "%s: another run in the same folder replaced it while this run was "
				   "starting; start this run again in its own folder",
				   path);
}

static enum status read_config(struct train *t, struct error *err)
{
	char path[PATH_MAX + 32];
	enum status st;

	snprintf(path, sizeof(path), "%s/config.yaml", t->dir);
	st = config_read(&t->config, path, err);
	t->config.gpu = t->job->gpu;
	t->config.place.rank = t->job->team ? t->job->team->rank : 0;
	t->config.place.ranks = t->job->team ? t->job->team->size : 1;
	return st ? st : check_config_hash(t, path, err);
}

static enum status plan_steps(struct train *t, struct error *err)
{
	const struct config_training *c = &t->config.training;
	uint64_t steps = c->max_steps, begun = t->state.max_steps;

	if (!steps)
		steps = (uint64_t)ceil(c->num_train_epochs * (double)data_steps(t->data));
	if (begun && begun != steps)
		return error_set(err, STATUS_BAD_INPUT,
				 "%s: it is from a run of %llu steps, and this run has %llu, so the rows "
				 "are different; start a new run",
				 t->earlier.path, (unsigned long long)begun, (unsigned long long)steps);
	t->state.max_steps = steps;
	return schedule_of(&t->schedule, c, steps, err);
}

/* Measures the GEMM rate, the denominator of MFU; of all ranks together. */
static enum status measure_products(struct train *t, struct error *err)
{
	/* all ranks measure at once, because they may share CPUs */
	enum status st = comm_agree(t->comm, STATUS_OK, err);

	if (!st)
		st = t->stepper.back.kind == BACKEND_GPU
			     ? gpu_backend_gemm_rate(&t->stepper.back, &t->gemm_rate, err)
			     : cpu_backend_gemm_rate(&t->stepper.back, &t->gemm_rate, err);
	return st ? st : comm_sum(t->comm, &t->gemm_rate, 1, err);
}

/* Restores the tuning choices of the resumed run, with a warning if the GPU or a library is another one. For
 * anything else it takes the choices of other runs from the cache. */
static enum status take_choices(struct train *t, struct error *err)
{
	struct text note = {0};
	json_t *cached = run_cached(t);
	enum status st = tuning_choices_recall(&t->stepper.back, t->state.chosen, cached, &note, err);

	run_warn(t, &note);
	json_decref(cached);
	text_release(&note);
	return st;
}

static enum status load_weights(struct train *t, struct error *err)
{
	const struct model_source from = {.weights = &t->weights,
					  .random = t->config.model.random_weights,
					  .seed = t->config.training.seed};
	struct model *m = t->stepper.model;
	enum status st = model_load(m, &t->stepper.back, &from, err);

	if (!st && !m->full) /* identifies the adapter's base model */
		st = weights_fingerprint(m->lora.base_sum, &t->weights, FINGERPRINT_NUMBERS, err);
	m->lora.base_storage = m->storage;
	model_whole(m)->lora = m->lora;
	if (!st)
		st = model_init_adapter(m, &t->stepper.back, t->config.training.seed, err);
	return st ? st : model_loaded(m, &t->stepper.back, err);
}

/* Old checkpoints have no checksums of their inputs. They are resumed unchecked, and later checkpoints have
 * checksums. */
static enum status check_inputs(struct train *t, json_t *now, struct error *err)
{
	enum status st = STATUS_OK;

	if (t->state.inputs)
		st = inputs_check(t->state.inputs, now, t->dir, err);
	else
		log_warn(t->job->log, LOG_TOPIC_RUN,
			 "%s: it has no checksums, so assay cannot check that model, tokenizer and rows are "
			 "the same as before",
			 t->earlier.path);
	return st;
}

/* Finds the checkpoint to resume from and checks that the inputs are unchanged, before any of them is used.
 * A run that stopped before its first checkpoint starts over. */
static enum status find_checkpoint(struct train *t, json_t *inputs, struct error *err)
{
	struct text note = {0};
	struct error why = {0};
	json_t *state = NULL;
	enum status st = checkpoint_find(&t->earlier, t->dir, &note, &why);

	run_warn(t, &note);
	text_release(&note);
	if (st == STATUS_UNAVAILABLE) {
		log_warn(t->job->log, LOG_TOPIC_RUN, "%s: the run starts over", why.text);
		return STATUS_OK;
	}
	if (st)
		return error_set_cause(err, st, why.cause, "%s", why.text);
	st = checkpoint_state(&t->earlier, &state, err);
	if (!st)
		st = train_state_parse(&t->state, state, t->earlier.path, err);
	if (!st && t->state.step != t->earlier.step)
		st = error_set(err, STATUS_BAD_INPUT, "%s: its trainer_state.json belongs to step %llu",
			       t->earlier.path, (unsigned long long)t->state.step);
	json_decref(state);
	return st ? st : check_inputs(t, inputs, err);
}

static enum status note_inputs(struct train *t, struct error *err)
{
	json_t *now = NULL;
	enum status st = inputs_read(&now, &t->config, &t->weights, err);

	if (t->comm)
		st = comm_agree(t->comm, st, err);
	if (!st)
		st = run_compare_inputs(t, now, err);
	if (!st && t->job->resume && run_writes(t))
		st = find_checkpoint(t, now, err);
	if (!st)
		st = run_share_state(t, err);
	json_decref(t->state.inputs);
	t->state.inputs = now;
	return st;
}

/* Rank 0 reads the checkpoint, and gives it to the others. */
static enum status load_all(struct train *t, struct error *err)
{
	enum status st =
		t->earlier.manifest ? checkpoint_load(&t->earlier, &t->host_params.params, err) : STATUS_OK;

	if (!st && t->earlier.manifest)
		st = host_params_put(&t->host_params, &t->stepper.model->params, &t->stepper.back, err);
	return st ? st : run_share_params(t, err);
}

static enum status load_checkpoint(struct train *t, struct error *err)
{
	enum status st;

	if (!t->state.step)
		return stepper_gather(&t->stepper, err);
	if (t->host_params.divided)
		st = run_load_own(t, err);
	else
		st = load_all(t, err);
	if (!st)
		st = stepper_gather(&t->stepper, err);
	if (!st && run_writes(t))
		log_info(t->job->log, LOG_TOPIC_RUN, "resumes from %s", t->earlier.path);
	checkpoint_found_release(&t->earlier);
	return st ? st : model_refresh(t->stepper.model, &t->stepper.back, err);
}

static enum status open_events(struct train *t, struct error *err)
{
	char dir[PATH_MAX + 16];
	struct error why = {0};
	enum status st;

	if (!t->config.training.tensorboard || !run_writes(t))
		return STATUS_OK;
	snprintf(dir, sizeof(dir), "%s/runs", t->dir);
	st = events_open(&t->events, dir, (double)time(NULL), &why);
	if (st == STATUS_UNAVAILABLE && why.cause == CAUSE_LIBRARY_MISSING) {
		log_warn(t->job->log, LOG_TOPIC_RUN, "%s", why.text);
		return STATUS_OK;
	}
	return st ? error_set_cause(err, st, why.cause, "%s", why.text) : STATUS_OK;
}

static enum status row_norm(const struct train *t, int64_t row, float *x, double *norm, struct error *err)
{
	const struct shape *s = &t->weights.shape;
	enum status st = weights_rows(&t->weights, s->tied ? NAME_EMBED : NAME_HEAD, row, 1, x, err);
	double sum = 0;

	for (int64_t i = 0; !st && i < s->hidden; i++)
		sum += (double)x[i] * x[i];
	*norm = sqrt(sum);
	return st;
}

/* Norms of the head's rows, as stored in the files: the end token's, and the median of a sample. */
static enum status head_norms(const struct train *t, int32_t end, struct diagnose_before *b,
			      struct error *err)
{
	const struct shape *s = &t->weights.shape;
	int64_t n = s->vocab < NORM_SAMPLE ? s->vocab : NORM_SAMPLE;
	float *x = malloc((size_t)s->hidden * sizeof(*x));
	double norm[NORM_SAMPLE];
	enum status st;

	if (!x)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "no memory for a row");
	st = row_norm(t, end, x, &b->end_norm, err);
	for (int64_t i = 0; !st && i < n; i++) {
		st = row_norm(t, i * s->vocab / n, x, &norm[i], err);
		if (i % FORGET_ROWS == 0) /* a row brings pages around it into memory */
			weights_forget(&t->weights);
	}
	if (!st)
		b->median_norm = stats_median(norm, (size_t)n);
	free(x);
	return st;
}

static enum status check_start(struct train *t, struct error *err)
{
	const struct model *m = t->stepper.model;
	const struct data_counts counts = data_train_counts(t->data);
	struct diagnose_before b = {.targets = counts.targets, .rows = counts.rows};
	int32_t end = data_end_token(t->data, &b.end_token);
	struct findings found;

	if (t->state.step) /* reported when the run was started */
		return STATUS_OK;
	for (uint64_t step = 0; t->schedule.peak > 0 && step < t->state.max_steps && b.rate <= 0; step++)
		b.rate = schedule_rate(&t->schedule, step);
	b.end_trained = m->full || m->lora.save & PEFT_SAVE_HEAD;
	if (end >= 0 && end < t->weights.shape.vocab && !t->config.model.random_weights) {
		enum status st = head_norms(t, end, &b, err);

		if (st)
			return st;
	}
	diagnose_before(&found, &b);
	return run_findings(t, &found, err);
}

/* "cpu", or the GPU's name with its PCI address. */
static const char *device_name(const struct train *t)
{
	const struct backend *back = &t->stepper.back;

	return back->kind == BACKEND_GPU ? gpu_name(gpu_backend_device(back)) : "cpu";
}

/* The implementation of attention. A library is used only for sequences of equal length. */
static void attention_text(char out[96], const struct backend *back)
{
	const char *by = back->kind == BACKEND_GPU ? gpu_backend_attention(back) : "own";

	snprintf(out, 96, "%s%s", by,
		 strcmp(by, "own") && strcmp(by, "plain") ? " for rows of one length, else own" : "");
}

static bool computes_in_fp8(const struct model *m)
{
	for (int64_t i = 0; i < m->shape.layers; i++)
		if (m->layer[i].qkv.is_fp8) /* all linear layers of a layer are, or none */
			return true;
	return false;
}

/* As the model was opened. So it says whether the setting took effect. */
static const char *precision_text(const struct train *t)
{
	const struct backend *back = &t->stepper.back;

	if (computes_in_fp8(t->stepper.model))
		return config_precision_name(CONFIG_PRECISION_FP8);
	if (back->dtype == DTYPE_BF16)
		return config_precision_name(CONFIG_PRECISION_BF16);
	return config_precision_name(back->kind == BACKEND_GPU &&
						     gpu_backend_precision(back) == GPU_PRECISION_TF32
					     ? CONFIG_PRECISION_TF32
					     : CONFIG_PRECISION_FP32);
}

static enum status emit_ready(struct train *t, struct error *err)
{
	const struct data_counts c = data_train_counts(t->data);
	const struct data_counts held = data_eval_counts(t->data);

	const struct backend *back = &t->stepper.back;
	const bool gpu = back->kind == BACKEND_GPU;
	char attention[96];

	attention_text(attention, back);
	return run_emit(t, "ready",
			json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:s, "
				  "s:s, s:s, s:s*, s:s, s:O}",
				  "parameters", (json_int_t)shape_parameters(&t->weights.shape), "trained",
				  (json_int_t)model_whole(t->stepper.model)->params.length, "rows",
				  (json_int_t)c.rows, "tokens", (json_int_t)c.tokens, "targets",
				  (json_int_t)c.targets, "eval_rows", (json_int_t)held.rows, "dropped",
				  (json_int_t)c.dropped, "truncated", (json_int_t)c.truncated, "bad",
				  (json_int_t)c.bad, "steps", (json_int_t)t->state.max_steps,
				  "memory_planned_bytes", (json_int_t)t->memory.bytes, "arena_planned_bytes",
				  (json_int_t)t->memory.arena_bytes, "gemm_rate", t->gemm_rate, "gemm",
				  gpu ? gpu_backend_gemm(back) : cpu_backend_gemm(back), "attention",
				  attention, "precision", precision_text(t), "adapters",
				  t->stepper.model->full       ? NULL
				  : t->stepper.model->extended ? "fused"
							       : "separate",
				  "device", device_name(t), "start_s", t->start_s),
			err);
}

static enum status open_weights(struct train *t, struct error *err)
{
	enum status st = weights_open(&t->weights, t->config.model.name_or_path, err);

	return st ? st : note_inputs(t, err);
}

static enum status open_rows(struct train *t, struct error *err)
{
	enum status st;

	t->config.place.step_packs = t->state.step_packs;
	st = mesh_of(&t->mesh, &t->config, err);
	t->state.step_packs = t->mesh.packs;
	if (!st)
		st = data_open(&t->data, &t->config, &t->weights.shape, &t->mesh, t->comm, t->job->log, err);
	if (t->comm)
		st = comm_agree(t->comm, st, err);
	return st ? st : plan_steps(t, err);
}

/* The host copies from which checkpoints are written. */
static enum status open_copies(struct train *t, struct error *err)
{
	struct host_part part;
	enum status st = STATUS_OK;

	if (t->mesh.tensor > 1 && (!t->saving.shared || !t->stepper.model->full)) {
		struct params whole = model_whole_params(t->stepper.model);

		t->saving.shared = false; /* adapters are small, and rank 0 needs them whole */
		return host_params_create_whole(&t->host_params, &whole, run_writes(t), err);
	}
	if (t->mesh.tensor > 1)
		st = checkpoint_parts_make(&t->parts, t->stepper.model, err);
	host_part_of(&part, &t->config, &t->stepper.model->params);
	return st ? st
		  : host_params_create(&t->host_params, &t->stepper.model->params, &t->stepper.back,
				       t->saving.shared ? &part : NULL, err);
}

static enum status open_ranks(struct train *t, struct error *err)
{
	enum status st = run_comm_open(t, err);

	return st ? st : run_saving_open(t, err);
}

static enum status open_device(struct train *t, struct error *err)
{
	enum status st = memory_plan(&t->memory, &t->weights.shape, &t->config, cpu_backend_threads(), err);

	if (!st)
		st = stepper_create(&t->stepper, &t->weights.shape, &t->config, cpu_backend_threads(), err);
	if (!st && t->earlier.manifest) {
		const struct params *p = &t->stepper.model->params;
		const struct params whole = t->mesh.tensor > 1 ? model_whole_params(t->stepper.model)
					    : p->border	       ? params_whole(p)
							       : *p;

		st = checkpoint_fits(&t->earlier, &whole, err);
	}
	if (!st)
		st = take_choices(t, err);
	if (!st)
		st = run_comm_device(t, err);
	if (!st)
		stepper_join(&t->stepper, t->mesh.tensor > 1 ? t->data_comm : t->comm, t->tensor_comm);
	return st ? st : open_copies(t, err);
}

static enum status open_files(struct train *t, struct error *err)
{
	enum status st = open_events(t, err);

	return st ? st : checkpoint_writer_create(&t->writer, t->config.training.save_total_limit, err);
}

enum status run_load(struct train *t, struct error *err)
{
	static const struct {
		const char *part;
		enum status (*run)(struct train *, struct error *);
	} parts[] = {
		{"config", read_config},     {"ranks", open_ranks},	     {"inputs", open_weights},
		{"rows", open_rows},	     {"device", open_device},	     {"weights", load_weights},
		{"resume", load_checkpoint}, {"products", measure_products}, {"files", open_files},
	};
	enum status st = run_emit(t, "at", json_pack("{s:s}", "phase", "load"), err);

	t->start_s = json_object();
	for (size_t i = 0; !st && i < sizeof(parts) / sizeof(parts[0]); i++) {
		const uint64_t began_ns = clock_now_ns(clock_monotonic());
		struct error why = {0};

		st = parts[i].run(t, &why);
		if (st)
			run_fails(t, parts[i].part, st, &why, err);
		json_object_set_new(t->start_s, parts[i].part,
				    json_real((double)(clock_now_ns(clock_monotonic()) - began_ns) * 1e-9));
	}
	if (!st)
		st = emit_ready(t, err);
	return st ? st : check_start(t, err);
}
