/* SPDX-License-Identifier: Apache-2.0 */
/* Files that a run writes: checkpoints, and the exported adapter or model. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "train/checkpoint/names.h"
#include "train/tuning/tuning_choices.h"
#include "train/checkpoint/export.h"
#include "train/run/internal.h"
#include "train/run/shared_save.h"

/* Adds the adapter to a checkpoint, next to the optimizer state. An adapter that is still zero is left out:
 * the first step of a warm-up changes nothing. In full fine-tuning the state already contains the
 * parameters. */
static enum status write_adapter(void *arg, const char *dir, const struct params *params, struct error *err)
{
	const struct train *t = arg;

	return t->stepper.model->full
		       ? STATUS_OK
		       : export_adapter(dir, model_whole(t->stepper.model), &params->master, true, err);
}

enum status run_check_directory(struct train *t, struct error *err)
{
	char now[PATH_MAX];
	int why;

	switch (run_dir_look(&t->home, now, &why)) {
	case RUN_DIR_REMOVED:
		return error_set(err, STATUS_UNAVAILABLE, "%s was removed during the run", t->home.path);
	case RUN_DIR_SHUT:
		return error_set(err, STATUS_UNAVAILABLE, "%s can no longer be written to: %s", t->home.path,
				 strerror(why));
	case RUN_DIR_MOVED:
		text_copy(t->dir, sizeof(t->dir), now);
		break;
	case RUN_DIR_HERE:
		break;
	}
	return STATUS_OK;
}

bool run_has_moved(const struct train *t)
{
	return strcmp(t->dir, t->job->dir) != 0;
}

/* Called on the writer's thread. It must not read t->dir, which the main thread changes when the folder is
 * moved. */
static enum status emit_saved(void *arg, const char *run, uint64_t step, struct error *err)
{
	struct train *t = arg;
	char path[PATH_MAX + 64];

	checkpoint_path(path, run, step, "");
	return run_emit(t, "saved", json_pack("{s:I, s:s}", "step", (json_int_t)step, "path", path), err);
}

enum status run_state_now(struct train *t, json_t **state, struct error *err)
{
	run_memory(t);
	if (t->stepper.back.kind == BACKEND_GPU) {
		json_decref(t->state.chosen);
		t->state.chosen = tuning_choices_json(&t->stepper.back);
	}
	t->state.best_saved |= t->state.best_step == t->state.step;
	*state = train_state_json(&t->state, &t->config.training);
	return *state ? STATUS_OK
		      : error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
					"no memory for a checkpoint");
}

/* Called on the writer's thread: copies the parameters as they were when the checkpoint was started. */
static enum status take_parameters(void *arg, struct error *err)
{
	struct train *t = arg;

	return host_params_take(&t->host_params, &t->stepper.model->params, &t->stepper.back, err);
}

enum status run_free_states(struct train *t, struct error *err)
{
	if (!t->host_params.lent)
		checkpoint_writer_taken(t->writer);
	else if (t->saving.pending) /* the thread's report is for run_save_join */
		checkpoint_writer_written(t->writer);
	else
		return checkpoint_writer_wait(t->writer, err);
	return STATUS_OK;
}

struct checkpoint_source run_source(struct train *t, const json_t *state)
{
	return (struct checkpoint_source){.run = t->dir,
					  .step = t->state.step,
					  .params = &t->host_params.taken,
					  .state = state,
					  .take = take_parameters,
					  .more = write_adapter,
					  .written = emit_saved,
					  .arg = t};
}

/* Marks the parameters for the next checkpoint. The previous checkpoint must be written first, because both
 * use the same host copy. */
static enum status mark_parameters(struct train *t, struct error *err)
{
	enum status st = t->host_params.copies || t->host_params.lent ? checkpoint_writer_wait(t->writer, err)
								      : STATUS_OK;

	return st ? st : host_params_mark(&t->host_params, &t->stepper.back, err);
}

/* This rank writes everything. */
static enum status save_alone(struct train *t, bool wait, struct error *err)
{
	struct checkpoint_source source;
	json_t *state = NULL;
	enum status st = run_state_now(t, &state, err);

	source = run_source(t, state);
	if (!st)
		st = run_check_directory(t, err);
	if (!st)
		st = mark_parameters(t, err);
	if (!st)
		st = checkpoint_writer_begin(t->writer, &source, t->state.best_step, err);
	json_decref(state);
	if (!st && wait)
		st = checkpoint_writer_wait(t->writer, err);
	return st;
}

enum status run_save(struct train *t, bool wait, struct error *err)
{
	if (t->saving.shared)
		return run_save_shared(t, wait, err);
	return run_writes(t) ? save_alone(t, wait, err) : STATUS_OK;
}

/* Opens the checkpoint of the best evaluation, if that is another one than the last step's. False: there is
 * none, or it is damaged, and the last step's parameters are used. */
static bool open_best(struct train *t, struct checkpoint_found *f)
{
	struct text note = {0};
	struct error why = {0};

	if (!t->config.training.load_best_model_at_end || !t->state.has_best ||
	    t->state.best_step == t->state.step)
		return false;
	if (!checkpoint_open(f, t->dir, t->state.best_step, &note, &why))
		return true;
	if (f->elsewhere)
		text_addf(&note, "%s\n", why.text);
	text_addf(&note,
		  "the best checkpoint, of step %" PRIu64
		  ", cannot be read; assay exports the last step, %" PRIu64 ", instead\n",
		  t->state.best_step, t->state.step);
	run_warn(t, &note);
	text_release(&note);
	return false;
}

/* From parameters in host memory. */
static enum status export_held(struct train *t, const char *path, struct error *err)
{
	const struct model *m = model_whole(t->stepper.model);
	struct params *held = &t->host_params.params;
	struct checkpoint_found best;
	enum status st = host_params_get(&t->host_params, &t->stepper.model->params, &t->stepper.back, err);

	if (!st && open_best(t, &best)) {
		st = checkpoint_load(&best, held, err);
		checkpoint_found_release(&best);
	}
	if (st)
		return st;
	return m->full ? export_model(path, m, held, NULL, &t->weights, err)
		       : export_adapter(path, m, &held->master, false, err);
}

/* Ranks divide the states or the tensors, so no rank holds all of them: from the checkpoint of the last step,
 * which all ranks have written. */
static enum status export_saved(struct train *t, const char *path, struct error *err)
{
	const struct params *whole = t->parts.ranks ? &t->parts.whole : &t->host_params.params;
	char last[PATH_MAX + 64];
	struct checkpoint_found f;
	enum status st = STATUS_OK;

	checkpoint_path(last, t->dir, t->state.step, "");
	if (!open_best(t, &f))
		st = checkpoint_reopen(&f, last, t->state.step, err);
	if (st)
		return st;
	st = checkpoint_fits(&f, whole, err);
	if (!st)
		st = export_model(path, model_whole(t->stepper.model), whole, &f, &t->weights, err);
	checkpoint_found_release(&f);
	return st;
}

enum status run_export(struct train *t, struct error *err)
{
	const bool full = t->stepper.model->full;
	char path[PATH_MAX + 16];
	enum status st;

	stepper_rest(&t->stepper);
	st = run_check_directory(t, err);
	snprintf(path, sizeof(path), "%s/%s", t->dir, full ? "model" : "adapter");
	if (!st)
		st = full && t->host_params.divided ? export_saved(t, path, err) : export_held(t, path, err);
	return st ? st
		  : run_emit(t, "saved",
			     json_pack("{s:I, s:s}", "step", (json_int_t)t->state.step, "path", path), err);
}
