/* SPDX-License-Identifier: Apache-2.0 */
/* assay train CONFIG: fine-tunes a model, as a job with its own worker process. */
#include "cmd/train/train.h"
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cmd/shared/saved_kernels.h"
#include "cmd/shared/show.h"
#include "core/text/text.h"
#include "core/text/units.h"
#include "journal/record/record.h"
#include "machine/machine.h"
#include "train/run/fields.h"
#include "train/mesh/mesh.h"
#include "train/run/inputs.h"
#include "train/memory/train_plan.h"

static const struct opt opts[] = {
	OPT_ROW(struct train_opts, config, .name = "config", .shown = "CONFIG", .positional = true,
		.help = "YAML or JSON file with the sections model, lora, training, data (docs/reference/training.md)"),
	OPT_ROW(struct train_opts, out, .name = "out", .also = "output-dir output o", .shown = "DIR",
		.help = "run directory (default: output_dir in the section training, or assay-runs/DATE-train)"),
	OPT_ROW(struct train_opts, resume, .name = "resume", .also = "resume-from-checkpoint continue",
		.shown = "DIR",
		.help = "continue the run in DIR from its newest checkpoint, with its original configuration"),
	OPT_ROW(struct train_opts, resume_if_exists, .name = "resume-if-exists",
		.help = "if the run directory already holds a run, continue it as --resume does; otherwise begin a "
			"new run. For jobs that may start several times"),
	OPT_ROW(struct train_opts, plan, .name = "plan", .also = "dry-run",
		.help = "show the memory and work that the run needs; train nothing"),
	OPT_ROW(struct train_opts, gpus, .name = "gpus", .also = "gpus-per-node", .max = 1024,
		.help = "with --plan: plan for this number of GPUs on each node, on any machine; 0: for this machine"),
	OPT_ROW(struct train_opts, nodes, .name = "nodes", .also = "nnodes", .max = 65536,
		.help = "with --plan and --gpus: number of nodes; 0: one"),
	OPT_ROW(struct train_opts, link_rate, .name = "link-rate", .preset = "0", .unit = "B", .max = 1e15,
		.help = "with --gpus: rate between the GPUs of a node in bytes per second, in one direction. You can "
			"use the measured bus bandwidth of an all-reduce. 0: unknown"),
	OPT_ROW(struct train_opts, network_rate, .name = "network-rate", .preset = "0", .unit = "B",
		.max = 1e15,
		.help = "with --nodes: rate of all network ports of a node together in bytes per second, in one "
			"direction. 0: unknown"),
	OPT_ROW(struct train_opts, sample, .name = "telemetry", .preset = "true",
		.help = "sample power, clocks and temperatures during the run"),
	OPT_ROW(struct train_opts, real_names, .name = "real-names",
		.help = "keep serial numbers, addresses and host names in the journal instead of pseudonyms"),
	OPT_ROW(struct train_opts, silence, .name = "silence", .preset = "0", .unit = "s", .min = 0,
		.max = 1e7,
		.help = "end a worker process that sends no message for this time; 0: assay estimates the time from "
			"steps and files"),
	OPT_ROW(struct train_opts, no_cache, .name = "no-cache",
		.help = "time kernel candidates again; do not use the cache of tuning choices"),
	OPT_ROW(struct train_opts, json, .name = "json",
		.help = "print steps, evaluations and checkpoints as JSON Lines on stdout"),
	RUNNING_TEAM_ROWS(struct train_opts),
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
			o->config
				? "--resume uses the configuration in DIR: leave out CONFIG"
				: "no configuration given: assay train CONFIG, or assay train --resume DIR");
	if (o->resume && (o->out || o->plan))
		return error_set(err, STATUS_BAD_INPUT, "--resume and --%s cannot be combined",
				 o->out ? "out" : "plan");
	if (o->resume_if_exists && (o->resume || o->plan))
		return error_set(err, STATUS_BAD_INPUT, "--resume-if-exists and --%s cannot be combined",
				 o->resume ? "resume" : "plan");
	if ((o->gpus || o->nodes) && (!o->plan || !o->gpus))
		return error_set(
			err, STATUS_BAD_INPUT, "--%s works only with --plan%s", o->gpus ? "gpus" : "nodes",
			o->gpus ? "; assay launch starts several ranks, and training: gpus all of a node"
				: " and --gpus");
	if ((o->link_rate > 0 && !o->gpus) || (o->network_rate > 0 && o->nodes < 2))
		return error_set(err, STATUS_BAD_INPUT,
				 "--link-rate needs --plan --gpus, and --network-rate also --nodes");
	if ((o->out && !*o->out) || (o->resume && !*o->resume))
		return error_set(err, STATUS_BAD_INPUT, "--%s is empty", o->out ? "out" : "resume");
	return STATUS_OK;
}

/* True if the path is a model instead of a configuration: a folder of Hugging Face files, or one weights
 * file. */
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
			"%s is a model, not a configuration: give a YAML file, for example examples/train.yaml, "
			"with model: {name_or_path: %s}; docs/reference/training.md lists every setting",
			t->o->config, t->o->config);
	snprintf(path, sizeof(path), "%s/" TRAIN_CONFIG, t->o->resume ? t->o->resume : "");
	st = config_read(&t->config, t->o->resume ? path : t->o->config, err);
	if (st == STATUS_UNAVAILABLE) /* a file that the command names does not exist */
		st = err->status = STATUS_BAD_INPUT;
	if (!st)
		train_write_config(t);
	for (const char *line = text_str(&t->config.notes), *end; (end = strchr(line, '\n')); line = end + 1)
		log_warn(t->c->log, LOG_TOPIC_RUN, "%.*s", (int)(end - line), line);
	return st;
}

/* Checks all inputs before a folder is made, so that a mistake leaves nothing behind. */
static enum status check_inputs(struct training *t, struct error *err)
{
	enum status st = inputs_ready(&t->config, &t->shape, &t->load_s, err);

	if (st == STATUS_UNAVAILABLE && err->cause != CAUSE_LIBRARY_MISSING) /* a path in the configuration */
		st = err->status = STATUS_BAD_INPUT;
	return st;
}

/* The key by which runs are comparable: model, trained parameters, step size, number of steps, ranks. */
static void write_key(char *key, size_t size, const struct config *c)
{
	const char *base = strrchr(c->model.name_or_path, '/');
	const struct config_training *t = &c->training;
	char what[32] = "full", ranks[24] = "";

	if (c->has_lora)
		snprintf(what, sizeof(what), "lora-r%u", c->lora.r);
	if (c->place.ranks > 1)
		snprintf(ranks, sizeof(ranks), " ranks=%u", c->place.ranks);
	snprintf(key, size, "train %.80s %s batch=%ux%u tokens=%llu steps=%llu%s",
		 base ? base + 1 : c->model.name_or_path, what, t->per_device_train_batch_size,
		 t->gradient_accumulation_steps, (unsigned long long)c->data.max_seq_length,
		 (unsigned long long)t->max_steps, ranks);
}

static enum status begin_job(struct training *t, struct error *err)
{
	const struct machine_scope scope = {
		.up_to = t->o->sample ? LAYER_NVML : LAYER_HOST, .out = t->dir, .stop = t->c->stop};
	struct machine *m = NULL;
	char key[200];
	json_t *settings = config_run_settings(&t->config);
	const struct job_spec spec = {.dir = t->dir,
				      .command = (const char *const *)t->c->argv,
				      .name = "train",
				      .key = key,
				      .limit = "training",
				      .fields = fields,
				      .field_count = sizeof(fields) / sizeof(fields[0]),
				      .hash = t->run_hash,
				      .settings = settings,
				      .resume = t->goes_on && train_ranks_leads(t),
				      .sample = t->o->sample,
				      .real_names = t->o->real_names,
				      .started_ns = process_started_ns(),
				      .log = t->c->log,
				      .clock = clock_monotonic()};
	enum status st = machine_read_scope(&m, &scope, NULL, t->c->log, err);

	write_key(key, sizeof(key), &t->config);
	if (!st)
		st = job_begin(&t->job, &spec, m, err);
	json_decref(settings);
	machine_free(m);
	return st;
}

/* Settings chosen for this machine are saved with the configuration, so that a resumed run does not choose
 * again. */
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
	const struct comm_links links = {.local = t->o->gpus,
					 .nodes = t->o->nodes ? t->o->nodes : 1,
					 .link = t->o->link_rate,
					 .network = t->o->network_rate};
	struct text out = {0};
	json_t *json = NULL;
	enum status st = train_plan(&t->config, &t->room, t->o->gpus ? &links : NULL,
				    t->o->json ? NULL : &out, t->o->json ? &json : NULL, err);

	if (!st && !t->o->json)
		show_text(&out, UTF8_KEEP_NOTHING);
	else if (!st && !show_json(json, JSON_INDENT(1)))
		st = error_set(err, STATUS_NO_RESOURCE, "cannot write the plan to stdout");
	json_decref(json);
	text_release(&out);
	return st ? command_complain(t->c, err) : EXIT_PASS;
}

/* Finds the kernels that the resumed run used, so that it continues bit for bit. */
static void look_for_kernels(struct training *t, const struct record_case *c)
{
	const struct record_phase *p = record_phase(c, "kernels");
	const char *name = p ? record_text(p, "kernels") : NULL;

	text_copy(t->kernels, sizeof(t->kernels), name ? name : "");
}

/* For training on the CPU: selects the BLAS library's fastest kernels, those of rank 0 on all ranks. The
 * worker finds them in its environment. */
static enum status settle_kernels(struct training *t, struct error *err)
{
	const uint64_t began = clock_now_ns(clock_monotonic());
	struct cpu_kernels k = {0};
	char text[320], id[USER_CACHE_ID] = "";
	const bool chooses =
		train_ranks_leads(t) && !(t->goes_on && !*t->kernels); /* a resumed run keeps them */
	json_t *values;
	enum status st = STATUS_OK;

	if (*t->gpu)
		return STATUS_OK;
	if (chooses) {
		saved_kernels_settle(&k, id, *t->kernels ? t->kernels : NULL, !t->o->no_cache, t->c->log,
				     t->c->stop);
		text_copy(t->kernels, sizeof(t->kernels), k.used);
	}
	st = train_ranks_kernels(t, t->kernels, sizeof(t->kernels), err);
	if (!st && !train_ranks_leads(t) && *t->kernels)
		saved_kernels_settle(&k, id, t->kernels, false, t->c->log, t->c->stop);
	t->tuned_s = k.measured ? k.took_s : 0;
	if (chooses) {
		cpu_kernels_text(&k, text, sizeof(text));
		if (*text)
			log_info(t->c->log, LOG_TOPIC_RUN, "%s", text);
	}
	if (st || !*k.used)
		return st;
	values = json_pack("{s:s}", "kernels", k.used);
	if (values && k.gain > 0) {
		json_object_set_new(values, "kernels_chosen", json_string(k.chosen));
		json_object_set_new(values, "kernels_gain", json_real(k.gain));
	}
	if (values && k.cached)
		json_object_set_new(values, "kernels_from", json_sprintf("cache %s", id));
	job_phase(t->job, "kernels", began, clock_now_ns(clock_monotonic()), values);
	return STATUS_OK;
}

/* Sets *finished if the run in the directory has finished with the same configuration: there is nothing to
 * resume. */
static enum status look_for_end(struct training *t, bool *finished, struct error *err)
{
	struct record r;
	enum status st = record_read_run(&r, t->dir, err);
	const char *asked;

	if (st)
		return st;
	asked = json_string_value(json_object_get(r.plan, "hash"));
	*finished = r.case_count == 1 && r.cases[0].ended && r.cases[0].ending == ENDING_DONE &&
		    r.cases[0].status == STATUS_OK && asked && !strcmp(asked, t->run_hash);
	if (r.case_count == 1)
		look_for_kernels(t, &r.cases[0]);
	record_release(&r);
	return STATUS_OK;
}

static int show_finished(const struct training *t, struct error *err)
{
	log_info(t->c->log, LOG_TOPIC_RUN, "%s is finished: there is nothing to continue", t->dir);
	return train_report(t, err) ? command_complain(t->c, err) : EXIT_PASS;
}

static void let_go(struct training *t)
{
	if (t->claim >= 0)
		close(t->claim);
	t->claim = -1;
}

/* Everything before a folder is made. Ranks other than 0 need no configuration of a run that is resumed. */
static enum status check_start(struct training *t, struct error *err)
{
	struct mesh mesh;
	enum status st = STATUS_OK;

	if (train_ranks_leads(t) || !t->o->resume)
		st = read_config(t, err);
	if (!st)
		st = train_ranks_spread(t, err);
	t->config.place =
		(struct config_place){.rank = t->ranks.team.place.rank, .ranks = t->ranks.team.place.size};
	if (t->o->gpus)
		t->config.place.ranks = t->o->gpus * (t->o->nodes ? t->o->nodes : 1);
	if (!st && !t->o->resume)
		st = mesh_of(&mesh, &t->config, err);
	if (!st && t->config.training.zero_stage && mesh_copies(&t->config) < 2)
		log_warn(
			t->c->log, LOG_TOPIC_RUN,
			"training: zero_stage: %u has no effect on one %s, which holds all weights, gradients and "
			"moments",
			t->config.training.zero_stage,
			t->config.training.tensor_parallel_size > 1 ? "copy of the model" : "rank");
	st = train_ranks_agree(t, "the configuration", st, err);
	if (!st)
		st = train_ranks_agree(t, "equal configurations", train_ranks_compare_config(t, err), err);
	return st ? st : train_ranks_agree(t, "the inputs", check_inputs(t, err), err);
}

/* Takes the settings of rank 0, and checks that this rank has the same kind of device and enough memory. */
static enum status settle_as_first(struct training *t, struct error *err)
{
	const bool gpu = *t->gpu != '\0';
	uint64_t planned;
	enum status st = train_ranks_take_config(t, err);
	enum status same = train_ranks_compare_gpu(t, st ? NULL : err); /* on all ranks, whatever st is */

	if (st || same || train_ranks_leads(t))
		return st ? st : same;
	if (gpu != (t->config.training.device == CONFIG_DEVICE_GPU))
		return error_set(
			err, STATUS_BAD_INPUT,
			"%s: start one rank for each GPU (--ranks-per-node), or set training: device: cpu",
			gpu ? "rank 0 trains on a CPU, but this rank has a GPU"
			    : "rank 0 trains on a GPU, but this rank has none");
	return train_settle(&t->config, &t->room, &planned, err);
}

/* The settings that depend on the machine are those of rank 0. */
static enum status settle_machine(struct training *t, struct error *err)
{
	enum status st = train_settle_device(t, err);

	if (!st && train_ranks_leads(t))
		st = settle(t, err);
	st = train_ranks_agree(t, "the device", st, err);
	if (!st && train_ranks_several(t))
		st = train_ranks_agree(t, "the settings of rank 0", settle_as_first(t, err), err);
	return st;
}

/* Rank 0's run directory, and what the others use beside it. */
static enum status settle_folder(struct training *t, bool *finished, struct error *err)
{
	enum status st = STATUS_OK;

	if (train_ranks_leads(t)) {
		st = train_folder(t, err);
		if (!st && t->goes_on)
			st = look_for_end(t, finished, err);
	}
	st = train_ranks_agree(t, "the run directory", st, err);
	if (!st)
		st = train_ranks_share(t, finished, &t->goes_on, err);
	if (!st)
		st = train_ranks_dir(t, err);
	if (!st && !train_ranks_leads(t) && !*finished)
		st = train_folder_beside(t, err);
	return train_ranks_several(t) ? train_ranks_agree(t, "the folders", st, err) : st;
}

static enum status work_on(struct training *t, struct error *err)
{
	struct error mine = {0};
	enum status st;

	begin_job(t, &mine);
	st = train_ranks_begin(t, &mine, err);
	let_go(t);
	if (st)
		return st;
	run_dir_open(&t->home, t->dir);
	st = settle_kernels(t, err);
	t->start_ns = clock_now_ns(clock_monotonic());
	return st ? st : train_follow(t, err);
}

/* A plan for other GPUs needs none here, and knows nothing about their memory. */
static enum status plan_device(struct training *t, struct error *err)
{
	if (!t->o->gpus)
		return train_settle_device(t, err);
	if (t->config.training.device == CONFIG_DEVICE_CPU)
		return error_set(err, STATUS_BAD_INPUT, "--gpus plans for GPUs, but training: device is cpu");
	t->config.training.device = CONFIG_DEVICE_GPU;
	return STATUS_OK;
}

static int train(struct training *t, struct error *err)
{
	bool finished = false;
	enum status st;

	if (check_wishes(t->o, err) || train_ranks_join(t, err) || train_continue(t, err) ||
	    check_start(t, err))
		return command_complain(t->c, err);
	if (t->o->plan)
		return plan_device(t, err) ? command_complain(t->c, err) : show_plan(t, err);
	if ((!t->o->resume && settle_machine(t, err)) || settle_folder(t, &finished, err))
		return command_complain(t->c, err);
	if (finished) /* needs no device */
		return train_ranks_leads(t) ? show_finished(t, err) : EXIT_PASS;
	if (t->o->resume && settle_machine(t, err))
		return command_complain(t->c, err);
	st = work_on(t, err);
	if (st) {
		if (t->job)
			job_end(&t->job, ENDING_DONE, err->status, err->cause, err->text, NULL);
		return command_complain(t->c, err);
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
		return command_complain(c, &err);
	}
	t->c = c;
	t->o = opts_;
	t->claim = -1;
	t->home.fd = -1;
	code = train_ranks_leave(t, train(t, &err));
	let_go(t);
	run_dir_close(&t->home);
	config_release(&t->config);
	text_release(&t->written);
	lines_release(&t->in);
	json_decref(t->end.values);
	json_decref(t->ready);
	json_decref(t->card);
	free(t);
	return code;
}

const struct command command_train = {
	.name = "train",
	.summary =
		"fine-tune a model (LoRA, QLoRA or all weights): from Hugging Face files to a PEFT adapter",
	.example = "assay train examples/train.yaml   # the adapter goes to assay-runs/DATE-train/adapter",
	.help = "Reads the model, the tokenizer and the rows (training examples) that the configuration "
		"names, and trains. The run directory holds config.yaml (every setting as assay understood "
		"it), the journal with loss, rates and telemetry, checkpoints, TensorBoard events and "
		"finally the adapter. Ctrl-C saves a checkpoint and stops. So do the signals TERM and USR1. "
		"--resume continues from the newest complete checkpoint. The result is bit for bit the same "
		"as without the interruption, on a GPU only with the setting deterministic.\n\n"
		"Exit codes: 0 training ended normally. 1 the result is not usable, for example because "
		"training diverged. 2 training was not possible. 64 wrong usage or an error in the "
		"configuration. 75 TERM or USR1 stopped the run, and a checkpoint is saved.",
	.opts = {opts, sizeof(opts) / sizeof(opts[0]), sizeof(struct train_opts)},
	.mpi_on_cpus = true,
	.saves = true,
	.again = train_again,
	.stops_unread = true,
	.run = run,
};
