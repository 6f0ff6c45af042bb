/* SPDX-License-Identifier: Apache-2.0 */
/* assay ladder [CONFIG]: what each optimization of training is worth on this machine. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include "cmd/ladder/ladder.h"
#include "cmd/shared/run_dirs.h"
#include "cmd/shared/show.h"
#include "core/clock.h"
#include "machine/machine.h"
#include "model/shape/shape.h"

enum { DEVICE_AUTO, DEVICE_CPU, DEVICE_GPU };
static const char *const devices[] = {"auto", "cpu", "gpu", NULL};

/* FP32 weights of Qwen2-7B take 30 GB, and its micro-batch of the rung batch 21 GB. */
#define GPU_LARGE_BYTES 70e9
enum { GPU_LENGTH = 1024, CPU_LENGTH = 128, LENGTH_LEAST = 64 };
enum { GPU_STEPS = 5, CPU_STEPS = 4, ROUNDS = 3, STEPS_LEAST = 3 };

static const struct opt opts[] = {
	OPT_ROW(struct ladder_opts, config, .name = "config", .shown = "CONFIG", .positional = true,
		.help = "configuration of assay train: use its model, adapter and rows, and list the optimizations "
			"that it lacks (default: a built-in model and rows)"),
	OPT_ROW(struct ladder_opts, device, .name = "device", .preset = "auto", .choices = devices,
		.help = "device of the jobs. auto: a GPU if one works, otherwise the CPU"),
	OPT_ROW(struct ladder_opts, shape, .name = "shape", .also = "size preset", .choices = shape_names,
		.help = "without CONFIG and --model: shape of the model, with random weights (default: smollm2-135m; qwen2-7b on a "
			"GPU with 70 GB)"),
	OPT_ROW(struct ladder_opts, model, .name = "model", .shown = "MODEL",
		.help = "without CONFIG: a model with real weights, a folder or GGUF file, for example SmolLM2"),
	OPT_ROW(struct ladder_opts, loss_model, .name = "loss-model", .shown = "MODEL",
		.help = "compare losses with this model, in one more round of jobs"),
	OPT_ROW(struct ladder_opts, steps, .name = "steps", .also = "max-steps", .preset = "0", .max = 1000,
		.help = "optimizer steps of a job; 0: 5 on a GPU, 4 on a CPU"),
	OPT_ROW(struct ladder_opts, length, .name = "length", .also = "max-seq-length cutoff-len",
		.preset = "0", .max = 65536,
		.help = "without CONFIG: tokens per sequence. Rows have half as many on average. 0: 1024 on a GPU, "
			"128 on a CPU"),
	OPT_ROW(struct ladder_opts, rounds, .name = "rounds", .preset = "0", .max = LADDER_ROUNDS,
		.help = "rounds of all jobs; 0: 3, or fewer within the time"),
	OPT_ROW(struct ladder_opts, within_s, .name = "within", .also = "time", .preset = "300s", .unit = "s",
		.max = 86400,
		.help = "time limit: after the first round, assay begins only rounds that will end before it"),
	OPT_ROW(struct ladder_opts, plan, .name = "plan", .also = "dry-run",
		.help = "print the rungs and their settings; run nothing"),
	OPT_ROW(struct ladder_opts, keep, .name = "keep-weights",
		.help = "keep checkpoints and adapters of the jobs"),
	OPT_ROW(struct ladder_opts, resume, .name = "resume", .also = "continue", .shown = "DIR",
		.help = "run the missing jobs of the ladder in DIR"),
	OPT_ROW(struct ladder_opts, out, .name = "out", .also = "output-dir o", .shown = "DIR",
		.help = "folder for all results; new or empty (default: assay-runs/DATE-ladder)"),
	OPT_ROW(struct ladder_opts, json, .name = "json", .help = "print the summary as JSON"),
};

static enum status check_path(const char *option, const char *path, struct error *err)
{
	if (!path || !access(path, R_OK))
		return STATUS_OK;
	return error_set(err, STATUS_BAD_INPUT, "%s%.300s: there is no such file or folder", option, path);
}

static enum status check(const void *opts_, struct error *err)
{
	const struct ladder_opts *o = opts_;
	enum status st = STATUS_OK;

	if (o->resume && (o->config || o->model || o->loss_model || o->out || o->plan))
		st = error_set(
			err, STATUS_BAD_INPUT,
			"--resume continues the plan in DIR: leave out CONFIG, --model, --loss-model, --out and "
			"--plan");
	else if ((o->config != NULL) + (o->model != NULL) + (o->shape != NULL) > 1)
		st = error_set(err, STATUS_BAD_INPUT,
			       "give only one of CONFIG, --model and --shape: each says which model");
	else if (o->plan && o->json)
		st = error_set(err, STATUS_BAD_INPUT, "--plan prints text: leave out --json");
	else if (o->steps && o->steps < STEPS_LEAST)
		st = error_set(err, STATUS_BAD_INPUT,
			       "--steps %llu: a job needs %d steps, because the first two may load and tune",
			       (unsigned long long)o->steps, STEPS_LEAST);
	if (!st && o->length && (o->config || o->length < LENGTH_LEAST))
		st = error_set(err, STATUS_BAD_INPUT,
			       o->config ? "--length: CONFIG has its own max_seq_length: leave out --length"
					 : "--length %llu: rows need %d tokens or more",
			       (unsigned long long)o->length, LENGTH_LEAST);
	if (!st)
		st = check_path("", o->config, err);
	if (!st)
		st = check_path("--model ", o->model, err);
	return st ? st : check_path("--loss-model ", o->loss_model, err);
}

/* The first usable GPU, and the number of usable ones. */
static const struct gpu *usable_gpu(const struct machine *m, unsigned *count)
{
	const struct gpu *first = NULL;

	*count = 0;
	for (unsigned i = 0; i < machine_gpu_count(m); i++) {
		const struct gpu *g = machine_gpu(m, i);

		if (!g->granted || g->status)
			continue;
		first = first ? first : g;
		++*count;
	}
	return first;
}

/* The device in words; nothing that names the machine. */
static void set_host(struct ladder_plan *p, const struct machine *m, const struct gpu *g)
{
	const struct cpu *cpu = machine_cpu(m);

	if (p->gpu)
		snprintf(p->host, sizeof(p->host), "%s", g && *g->name ? g->name : "a GPU");
	else
		snprintf(p->host, sizeof(p->host), "%s, %u CPU%s",
			 cpu->model[0] ? cpu->model : "CPU model hidden", cpu->usable,
			 cpu->usable == 1 ? "" : "s");
}

static enum status absolute(char out[PATH_MAX], const char *path, struct error *err)
{
	return !path || realpath(path, out) ? STATUS_OK : error_errno(err, errno, "%s", path);
}

static enum status set_plan(struct ladder *l, const struct machine *m, struct error *err)
{
	const struct ladder_opts *o = l->o;
	struct ladder_plan *p = &l->plan;
	const struct gpu *g = usable_gpu(m, &p->gpus);
	const bool large = g && gpu_get(g, GPU_FACT_memory_bytes, 0) >= GPU_LARGE_BYTES;
	enum status st = absolute(p->given, o->config, err);

	p->gpu = o->device == DEVICE_GPU || (o->device == DEVICE_AUTO && g);
	p->cc = p->gpu && g ? (unsigned)gpu_get(g, GPU_FACT_cc, 0) : 0;
	p->own = !o->config;
	p->random = !o->config && !o->model;
	p->steps = o->steps ? o->steps : p->gpu ? GPU_STEPS : CPU_STEPS;
	p->rounds = o->rounds ? o->rounds : ROUNDS;
	p->length = o->length ? o->length : p->gpu ? GPU_LENGTH : CPU_LENGTH;
	p->within_s = o->within_s;
	if (p->random)
		text_copy(p->shape, sizeof(p->shape),
			  o->shape	    ? o->shape
			  : p->gpu && large ? "qwen2-7b"
					    : "smollm2-135m");
	set_host(p, m, g);
	clock_wall_text(p->began, sizeof(p->began));
	if (!st)
		st = absolute(p->model, o->model, err);
	return st ? st : absolute(p->loss_model, o->loss_model, err);
}

static enum status set_dir(struct ladder *l, struct error *err)
{
	if (!l->o->plan)
		return run_dirs_fresh(l->dir, l->o->out, "ladder", err);
	if (l->o->out)
		text_copy(l->dir, sizeof(l->dir) / 2, l->o->out);
	else
		run_dirs_next(l->dir, "ladder");
	return STATUS_OK;
}

static enum status begin(struct ladder *l, struct error *err)
{
	const struct machine_scope scope = {.up_to = LAYER_NVML, .stop = l->c->stop};
	struct machine *m = NULL;
	enum status st = machine_read_scope(&m, &scope, NULL, l->c->log, err);

	if (!st)
		st = set_plan(l, m, err);
	machine_free(m);
	if (!st && *l->plan.given) /* a mistake in CONFIG leaves no folder behind */
		st = ladder_base(l, err);
	if (!st)
		st = set_dir(l, err);
	config_release(&l->base);
	if (!st)
		st = ladder_base(l, err);
	if (st || l->o->plan)
		return st;
	st = ladder_write_inputs(l, err);
	return st ? st : ladder_journal_begin(l, err);
}

static enum status go_on(struct ladder *l, struct error *err)
{
	enum status st = ladder_journal_read(l, l->o->resume, err);

	if (!st && !realpath(l->o->resume, l->dir))
		st = error_errno(err, errno, "%s", l->o->resume);
	return st ? st : ladder_base_again(l, err);
}

static void show(const struct ladder *l)
{
	struct text out = {0};
	json_t *all;

	if (l->o->json) {
		all = ladder_json(l);
		show_json(all, JSON_INDENT(1) | JSON_REAL_PRECISION(12));
		json_decref(all);
		return;
	}
	ladder_add_summary(&out, l);
	show_text(&out, UTF8_KEEP_NOTHING);
	text_release(&out);
}

static int climb(struct ladder *l, struct error *err)
{
	ladder_find_rungs(l);
	if (l->o->plan) {
		ladder_show_plan(l);
		return EXIT_PASS;
	}
	ladder_run(l);
	ladder_judge(l);
	if (ladder_write(l, err))
		return command_complain(l->c, err);
	show(l);
	log_info(l->c->log, LOG_TOPIC_RUN, "report: %s/report.html; summary: %s/SUMMARY.md", l->dir, l->dir);
	if (l->stopped)
		log_info(l->c->log, LOG_TOPIC_RUN, "stopped; continue with assay ladder --resume %s", l->dir);
	return ladder_code(l);
}

static int run(const struct command_context *c, const void *opts_)
{
	struct ladder *l = calloc(1, sizeof(*l));
	struct error err = {0};
	enum status st;
	int code;

	if (!l)
		return EXIT_INCONCLUSIVE;
	l->c = c;
	l->o = opts_;
	st = check(opts_, &err);
	if (!st)
		st = l->o->resume ? go_on(l, &err) : begin(l, &err);
	code = st ? command_complain(c, &err) : climb(l, &err);
	config_release(&l->base);
	text_release(&l->lines);
	free(l);
	return code;
}

const struct command command_ladder = {
	.name = "ladder",
	.summary =
		"measure how much each optimization of training gains here: batch size, TF32, BF16, fusion, "
		"packing, ..",
	.example = "assay ladder   # 5 minutes; the waterfall is in assay-runs/DATE-ladder/report.html",
	.help = "Measures on this machine how much faster each usual optimization makes training. It begins "
		"with FP32 as eager PyTorch runs it and adds one optimization after the other. Each of these "
		"steps is a rung: one more setting of assay train. For each rung, assay runs a short "
		"training (a job), whose folder has its configuration. All jobs run in turns, in several "
		"rounds. The factor of a rung is its rate divided by the rate of the rung below. The table "
		"shows the median of the rounds, with the lowest and the highest. If a rung has no effect on "
		"this machine, the table gives the reason.\n\n"
		"The held-out loss of each rung must agree with that of the first one (the baseline). With "
		"CONFIG, the jobs use the model, adapter and rows of your configuration, and the report "
		"prints the lines to change in it. Ctrl-C ends the current job, and assay writes the report "
		"from the jobs that have ended. --resume runs the missing jobs.\n\n"
		"Exit codes: 0 all rungs were measured. 1 a rung changes the loss. 2 a rung could not be "
		"measured. 64 wrong usage.",
	.check = check,
	.opts = {opts, sizeof(opts) / sizeof(opts[0]), sizeof(struct ladder_opts)},
	.single = true,
	.run = run,
};
