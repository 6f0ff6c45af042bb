/* SPDX-License-Identifier: Apache-2.0 */
/* assay train CONFIG: fine-tuning, as a job with a worker of its own. */
#include "cmd/train/train.h"
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cmd/shared/single_process.h"
#include "cmd/shared/saved_kernels.h"
#include "cmd/running/running.h"
#include "cmd/shared/show.h"
#include "core/text/text.h"
#include "core/text/units.h"
#include "journal/record/record.h"
#include "machine/machine.h"
#include "train/run/fields.h"
#include "train/run/inputs.h"
#include "train/memory/train_plan.h"

static const struct opt opts[] = {
	OPT_ROW(struct train_opts, config, .name = "config", .shown = "CONFIG", .positional = true,
		.help = "YAML or JSON: model, lora, training, data (docs/reference/training.md)"),
	OPT_ROW(struct train_opts, out, .name = "out", .also = "output-dir output o", .shown = "DIR",
		.help = "run directory; else training: output_dir, else assay-runs/DATE-train"),
	OPT_ROW(struct train_opts, resume, .name = "resume", .also = "resume-from-checkpoint continue",
		.shown = "DIR",
		.help = "go on with the run in DIR from its newest checkpoint, as it was begun"),
	OPT_ROW(struct train_opts, plan, .name = "plan", .also = "dry-run",
		.help = "show what memory and work it would take; train nothing"),
	OPT_ROW(struct train_opts, sample, .name = "telemetry", .preset = "true",
		.help = "sample power, clocks, temperatures beside it"),
	OPT_ROW(struct train_opts, real_names, .name = "real-names",
		.help = "serials, addresses and host names as they are in the journal, not as pseudonyms"),
	OPT_ROW(struct train_opts, silence, .name = "silence", .preset = "0", .unit = "s", .min = 0,
		.max = 1e7,
		.help = "end a worker that tells nothing so long; 0: by what its steps and files take"),
	OPT_ROW(struct train_opts, no_cache, .name = "no-cache",
		.help = "time kernel candidates anew: read and write no cache of earlier runs' choices"),
	OPT_ROW(struct train_opts, json, .name = "json",
		.help = "steps, evaluations, checkpoints as JSON Lines on stdout"),
};

static const struct field fields[] = {
#define X(name, unit, better, help) {#name, unit, help, FIELD_F64, better},
	TRAIN_FIELDS(X)
#undef X
#define X(name, help) {#name, "", help, FIELD_TEXT, 0},
		TRAIN_TEXTS(X)
#undef X
};

static enum status check_wishes(const struct train_opts *o, struct error *err)
{
	if (!o->config == !o->resume)
		return error_set(
			err, STATUS_BAD_INPUT,
			o->config ? "--resume goes on with DIR's own configuration: CONFIG is one too many"
				  : "which configuration? assay train CONFIG, or --resume DIR");
	if (o->resume && (o->out || o->plan))
		return error_set(err, STATUS_BAD_INPUT, "--resume and --%s contradict each other",
				 o->out ? "out" : "plan");
	if ((o->out && !*o->out) || (o->resume && !*o->resume))
		return error_set(err, STATUS_BAD_INPUT, "--%s is empty", o->out ? "out" : "resume");
	return STATUS_OK;
}

/* A model where its configuration belongs: a folder of Hugging Face files, or one file of weights. */
static bool is_model(const char *path)
{
	const char *const ends[] = {".safetensors", ".gguf", ".bin", ".pt"};
	size_t n = path ? strlen(path) : 0, k;
	struct stat about;

	for (size_t i = 0; path && i < sizeof(ends) / sizeof(ends[0]); i++) {
		k = strlen(ends[i]);
		if (n > k && !strcmp(path + n - k, ends[i]))
			return true;
	}
	return path && !stat(path, &about) && S_ISDIR(about.st_mode);
}

static enum status read_config(struct training *t, struct error *err)
{
	char path[PATH_MAX + 32];
	enum status st;

	if (!t->o->resume && is_model(t->o->config))
		return error_set(
			err, STATUS_BAD_INPUT,
			"%s is no configuration: give a YAML file, for example examples/train.yaml, "
			"with model: {name_or_path: %s}; docs/reference/training.md has every setting",
			t->o->config, t->o->config);
	snprintf(path, sizeof(path), "%s/" TRAIN_CONFIG, t->o->resume ? t->o->resume : "");
	st = config_read(&t->config, t->o->resume ? path : t->o->config, err);
	if (st == STATUS_UNAVAILABLE) /* a file named in the command that is not there */
		st = err->status = STATUS_BAD_INPUT;
	if (!st)
		train_write_config(t);
	for (const char *line = text_str(&t->config.notes), *end; (end = strchr(line, '\n')); line = end + 1)
		log_warn(t->c->log, LOG_TOPIC_RUN, "%.*s", (int)(end - line), line);
	return st;
}

/* What can be known of it before a folder is made, so that a slip costs nothing. */
static enum status check_inputs(struct training *t, struct error *err)
{
	enum status st = inputs_ready(&t->config, &t->shape, &t->load_s, err);

	if (st == STATUS_UNAVAILABLE &&
	    err->cause != CAUSE_LIBRARY_MISSING) /* a path of the configuration's */
		st = err->status = STATUS_BAD_INPUT;
	return st;
}

/* What makes two runs comparable: model, what is trained, the size of a step and their number. */
static void write_key(char *key, size_t size, const struct config *c)
{
	const char *base = strrchr(c->model.name_or_path, '/');
	const struct config_training *t = &c->training;
	char what[32] = "full";

	if (c->has_lora)
		snprintf(what, sizeof(what), "lora-r%u", c->lora.r);
	snprintf(key, size, "train %.80s %s batch=%ux%u tokens=%llu steps=%llu",
		 base ? base + 1 : c->model.name_or_path, what, t->per_device_train_batch_size,
		 t->gradient_accumulation_steps, (unsigned long long)c->data.max_seq_length,
		 (unsigned long long)t->max_steps);
}

static enum status begin_job(struct training *t, struct error *err)
{
	const struct machine_scope scope = {
		.up_to = t->o->sample ? LAYER_NVML : LAYER_HOST, .out = t->dir, .stop = t->c->stop};
	struct machine *m = NULL;
	char key[200];
	const struct job_spec spec = {.dir = t->dir,
				      .command = (const char *const *)t->c->argv,
				      .name = "train",
				      .key = key,
				      .limit = "training",
				      .fields = fields,
				      .field_count = sizeof(fields) / sizeof(fields[0]),
				      .hash = t->hash,
				      .resume = t->goes_on,
				      .sample = t->o->sample,
				      .real_names = t->o->real_names,
				      .started_ns = process_started_ns(),
				      .log = t->c->log,
				      .clock = clock_monotonic()};
	enum status st = machine_read_scope(&m, &scope, NULL, t->c->log, err);

	write_key(key, sizeof(key), &t->config);
	if (!st)
		st = job_begin(&t->job, &spec, m, err);
	machine_free(m);
	return st;
}

/* What is found for this machine enters the configuration that is kept: a resumed run finds nothing anew. */
static enum status settle(struct training *t, struct error *err)
{
	const struct config_training *c = &t->config.training;
	const uint32_t evaluated = c->per_device_eval_batch_size;
	const uint32_t recompute = c->recompute;
	bool find = c->auto_find_batch_size;
	uint64_t planned;
	char bytes[32];
	enum status st = train_settle(&t->config, &t->room, &planned, err);

	if (st)
		return st;
	if (c->recompute != recompute)
		log_info(t->c->log, LOG_TOPIC_RUN, "recompute: %s", config_recompute_name(c->recompute));
	train_write_config(t);
	if (!find)
		return STATUS_OK;
	units_format(bytes, sizeof(bytes), (double)planned, "B");
	log_info(t->c->log, LOG_TOPIC_RUN,
		 "auto_find_batch_size: per_device_train_batch_size: %u, gradient_accumulation_steps: %u; "
		 "%s of memory planned",
		 c->per_device_train_batch_size, c->gradient_accumulation_steps, bytes);
	if (t->config.data.eval.count && c->per_device_eval_batch_size != evaluated)
		log_info(t->c->log, LOG_TOPIC_RUN,
			 "auto_find_batch_size: per_device_eval_batch_size: %u, not %u",
			 c->per_device_eval_batch_size, evaluated);
	return STATUS_OK;
}

static int show_plan(const struct training *t, struct error *err)
{
	struct text out = {0};
	json_t *json = NULL;
	enum status st =
		train_plan(&t->config, &t->room, t->o->json ? NULL : &out, t->o->json ? &json : NULL, err);

	if (!st && !t->o->json)
		show_text(&out, UTF8_KEEP_NOTHING);
	else if (!st && !show_json(json, JSON_INDENT(1)))
		st = error_set(err, STATUS_NO_RESOURCE, "the plan could not be written to stdout");
	json_decref(json);
	text_release(&out);
	return st ? running_complain(t->c, err) : EXIT_PASS;
}

/* Which kernels the run used that is gone on with, so that it goes on bit for bit. */
static void look_for_kernels(struct training *t, const struct record_case *c)
{
	const struct record_phase *p = record_phase(c, "kernels");
	const char *name = p ? record_text(p, "kernels") : NULL;

	text_copy(t->kernels, sizeof(t->kernels), name ? name : "");
}

/* The CPU trains: by its library's fastest kernels, which its worker finds in the environment. */
static void settle_kernels(struct training *t)
{
	const uint64_t began = clock_now_ns(clock_monotonic());
	struct cpu_kernels k;
	char text[320], id[USER_CACHE_ID];
	json_t *values;

	if (*t->gpu || (t->goes_on && !*t->kernels)) /* what a run was begun with it keeps */
		return;
	saved_kernels_settle(&k, id, *t->kernels ? t->kernels : NULL, !t->o->no_cache, t->c->log, t->c->stop);
	t->tuned_s = k.measured ? k.took_s : 0;
	cpu_kernels_text(&k, text, sizeof(text));
	if (*text)
		log_info(t->c->log, LOG_TOPIC_RUN, "%s", text);
	if (!*k.used)
		return;
	values = json_pack("{s:s}", "kernels", k.used);
	if (values && k.gain > 0) {
		json_object_set_new(values, "kernels_chosen", json_string(k.chosen));
		json_object_set_new(values, "kernels_gain", json_real(k.gain));
	}
	if (values && k.cached)
		json_object_set_new(values, "kernels_from", json_sprintf("cache %s", id));
	job_phase(t->job, "kernels", began, clock_now_ns(clock_monotonic()), values);
}

/* The run in the directory has come to its end, and was asked the same: there is nothing to go on with. */
static enum status look_for_end(struct training *t, bool *finished, struct error *err)
{
	struct record r;
	enum status st = record_read_run(&r, t->dir, err);
	const char *asked;

	if (st)
		return st;
	asked = json_string_value(json_object_get(r.plan, "hash"));
	*finished = r.case_count == 1 && r.cases[0].ended && r.cases[0].ending == ENDING_DONE &&
		    r.cases[0].status == STATUS_OK && asked && !strcmp(asked, t->hash);
	if (r.case_count == 1)
		look_for_kernels(t, &r.cases[0]);
	record_release(&r);
	return STATUS_OK;
}

static int show_finished(const struct training *t, struct error *err)
{
	log_info(t->c->log, LOG_TOPIC_RUN, "%s is finished: there is nothing to go on with", t->dir);
	return train_report(t, err) ? running_complain(t->c, err) : EXIT_PASS;
}

static void let_go(struct training *t)
{
	if (t->claim >= 0)
		close(t->claim);
	t->claim = -1;
}

static int train(struct training *t, struct error *err)
{
	bool finished = false;
	enum status st;

	if (check_wishes(t->o, err) || (!t->o->plan && single_process_check("train", err)) ||
	    read_config(t, err) || check_inputs(t, err))
		return running_complain(t->c, err);
	if ((!t->o->resume || t->o->plan) && train_settle_device(t, err))
		return running_complain(t->c, err);
	if (t->o->plan)
		return show_plan(t, err);
	if ((!t->o->resume && settle(t, err)) || train_folder(t, err) ||
	    (t->goes_on && look_for_end(t, &finished, err)))
		return running_complain(t->c, err);
	if (finished) /* that needs no device */
		return show_finished(t, err);
	if ((t->o->resume && (train_settle_device(t, err) || settle(t, err))) || begin_job(t, err))
		return running_complain(t->c, err);
	let_go(t);
	run_dir_open(&t->home, t->dir);
	settle_kernels(t);
	t->start_ns = clock_now_ns(clock_monotonic());
	st = train_follow(t, err);
	if (st) {
		job_end(&t->job, ENDING_DONE, err->status, err->cause, err->text, NULL);
		return running_complain(t->c, err);
	}
	return train_conclude(t, err);
}

static int run(const struct command_context *c, const void *opts_)
{
	struct training *t = calloc(1, sizeof(*t));
	struct error err = {0};
	int code;

	if (!t) {
		error_errno(&err, ENOMEM, "a training run");
		return running_complain(c, &err);
	}
	t->c = c;
	t->o = opts_;
	t->claim = -1;
	t->home.fd = -1;
	code = train(t, &err);
	let_go(t);
	run_dir_close(&t->home);
	config_release(&t->config);
	text_release(&t->written);
	lines_release(&t->in);
	json_decref(t->values);
	json_decref(t->ready);
	json_decref(t->card);
	free(t);
	return code;
}

const struct command command_train = {
	.name = "train",
	.summary = "fine-tune a model: LoRA or all of it, from Hugging Face files to a PEFT adapter",
	.example = "assay train examples/train.yaml",
	.help = "Reads model, tokenizer and rows as the configuration names them, and trains. "
		"The run directory holds config.yaml (every setting as understood), the journal with loss, rates and "
		"telemetry, checkpoints, TensorBoard's events and in the end the adapter. "
		"Ctrl-C saves a checkpoint and ends; --resume goes on from the newest one that is whole, bit for bit "
		"as if it had not been cut (on a GPU with training: deterministic: true). Exit codes: "
		"0 trained, 1 what was trained is not right (it diverged), 2 it could not be, 64 wrong usage or a "
		"wrong configuration.",
	.opts = {opts, sizeof(opts) / sizeof(opts[0]), sizeof(struct train_opts)},
	.single = true,
	.stops_unread = true,
	.run = run,
};
