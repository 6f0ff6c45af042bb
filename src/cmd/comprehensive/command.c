/* SPDX-License-Identifier: Apache-2.0 */
/* assay comprehensive: ten stages in one run, from the health of the devices to power per token. */
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include "cmd/comprehensive/comprehensive.h"
#include "cmd/shared/run_dirs.h"
#include "cmd/shared/show.h"
#include "core/clock.h"
#include "core/file/file.h"
#include "report/files/pack.h"

static const struct opt opts[] = {
	OPT_ROW(struct comprehensive_opts, quick, .name = "quick", .also = "fast smoke",
		.help = "a small model and short stages: under five minutes on one GPU"),
	OPT_ROW(struct comprehensive_opts, plan, .name = "plan", .also = "dry-run",
		.help = "print stages, commands and the expected time; run nothing"),
	OPT_ROW(struct comprehensive_opts, only, .name = "only", .also = "stages stage", .shown = "LIST",
		.help = "run only these stages: numbers or words, separated by commas. Stages that they need run too"),
	OPT_ROW(struct comprehensive_opts, model, .name = "model", .shown = "MODEL",
		.help = "model to serve, a folder or GGUF file (default: assay makes one with random weights)"),
	OPT_ROW(struct comprehensive_opts, data, .name = "data", .also = "dataset", .shown = "FILE",
		.help = "data for the stage accuracy, as for assay eval (default: a short built-in text)"),
	OPT_ROW(struct comprehensive_opts, rate, .name = "rate", .also = "qps request-rate", .preset = "0",
		.max = 1e6,
		.help = "requests per second of the load test; 0: 100 on a GPU, 20 with --quick, 0.25 on a CPU"),
	OPT_ROW(struct comprehensive_opts, duration, .name = "duration", .also = "time", .preset = "0",
		.unit = "s", .max = 86400, .help = "length of the load test; 0: 120 s, 30 s with --quick"),
	OPT_ROW(struct comprehensive_opts, input, .name = "input", .also = "input-len isl", .shown = "TOKENS",
		.help = "tokens per prompt, written as for assay load (default on a GPU: uniform:64,2048)"),
	OPT_ROW(struct comprehensive_opts, output, .name = "output", .also = "output-len osl",
		.shown = "TOKENS",
		.help = "tokens per answer, written as for assay load (default on a GPU: 128)"),
	OPT_ROW(struct comprehensive_opts, stress, .name = "stress", .preset = "0", .unit = "s", .max = 86400,
		.help = "length of the stress stage; 0: 60 s, less with --quick"),
	OPT_ROW(struct comprehensive_opts, out, .name = "out", .also = "output-dir o", .shown = "DIR",
		.help = "folder for all results; new or empty (default: assay-runs/DATE-comprehensive)"),
	OPT_ROW(struct comprehensive_opts, archive, .name = "archive", .preset = "true",
		.help = "pack the folder into a dated tar.zst at the end"),
	OPT_ROW(struct comprehensive_opts, keep_model, .name = "keep-model",
		.help = "keep the model that assay made; the archive does not contain it"),
	OPT_ROW(struct comprehensive_opts, json, .name = "json", .help = "print the summary as JSON"),
};

static enum status check_file(const char *option, const char *path, struct error *err)
{
	if (!path || !access(path, R_OK))
		return STATUS_OK;
	return error_set(err, STATUS_BAD_INPUT, "%s %.200s: there is no such file or folder", option, path);
}

static enum status check(const void *opts_, struct error *err)
{
	const struct comprehensive_opts *o = opts_;
	enum status st = STATUS_OK;

	if (o->plan && o->json)
		st = error_set(err, STATUS_BAD_INPUT, "--plan prints text: leave out --json");
	if (!st)
		st = check_file("--model", o->model, err);
	return st ? st : check_file("--data", o->data, err);
}

/* The archive's name has a date: the folder's own, or today's. */
static void name_archive(struct comprehensive *s)
{
	char date[16];
	time_t now = time(NULL);
	struct tm day;

	localtime_r(&now, &day);
	strftime(date, sizeof(date), "%Y-%m-%d", &day);
	while (strlen(s->dir) > 1 && s->dir[strlen(s->dir) - 1] == '/')
		s->dir[strlen(s->dir) - 1] = '\0';
	if (strstr(s->dir, date))
		snprintf(s->archive, sizeof(s->archive), "%s.tar.zst", s->dir);
	else
		snprintf(s->archive, sizeof(s->archive), "%s-%s.tar.zst", s->dir, date);
}

static enum status prepare(struct comprehensive *s, struct error *err)
{
	const struct machine_scope scope = {.up_to = LAYER_NVML, .stop = s->c->stop};
	struct machine *m = NULL;
	enum status st = check(s->o, err);

	if (!st)
		st = comprehensive_only(s, err);
	if (!st)
		st = machine_read_scope(&m, &scope, NULL, s->c->log, err);
	if (!st)
		comprehensive_size_set(&s->size, m, s->o);
	machine_free(m);
	if (!st && s->o->plan && !s->o->out)
		run_dirs_next(s->dir, "comprehensive");
	else if (!st && s->o->plan)
		text_copy(s->dir, sizeof(s->dir) / 2, s->o->out);
	else if (!st)
		st = run_dirs_fresh(s->dir, s->o->out, "comprehensive", err);
	if (st)
		return st;
	name_archive(s);
	s->own_model = !s->o->model;
	if (s->own_model)
		snprintf(s->model, sizeof(s->model), "%s/model", s->dir);
	else
		text_copy(s->model, sizeof(s->model), s->o->model);
	for (int i = 0; i < STAGE_COUNT; i++)
		if (s->result[i].asked && !(stage_list[i].skip && stage_list[i].skip(s)))
			s->result[i].expected_s = stage_list[i].expected_s(s);
	return STATUS_OK;
}

/* An archive that cannot be made is no reason to lose the summary. */
static void pack(const struct comprehensive *s)
{
	struct error err = {0};
	size_t files = 0;
	enum status st;

	if (!s->o->archive)
		return;
	st = pack_write(s->archive, s->dir, NULL, &err);
	if (!st)
		st = pack_verify(s->archive, &files, &err);
	if (st)
		log_warn(s->c->log, LOG_TOPIC_RUN, "no archive: %s", err.text);
	else
		log_info(s->c->log, LOG_TOPIC_RUN, "archive: %s, %zu files", s->archive, files);
}

static void show(const struct comprehensive *s)
{
	struct text out = {0};
	json_t *all;

	if (s->o->json) {
		all = comprehensive_json(s);
		show_json(all, JSON_INDENT(1) | JSON_REAL_PRECISION(12));
		json_decref(all);
		return;
	}
	comprehensive_add_summary(&out, s);
	show_text(&out, UTF8_KEEP_NOTHING);
	text_release(&out);
}

static int perform(struct comprehensive *s, struct error *err)
{
	if (s->o->plan) {
		comprehensive_show_plan(s);
		return EXIT_PASS;
	}
	clock_wall_text(s->began, sizeof(s->began));
	comprehensive_run(s);
	if (comprehensive_write(s, err))
		return command_complain(s->c, err);
	show(s);
	log_info(s->c->log, LOG_TOPIC_RUN, "report: %s/index.html; summary: %s/SUMMARY.md", s->dir, s->dir);
	pack(s);
	return comprehensive_code(s);
}

static int run(const struct command_context *c, const void *opts_)
{
	struct comprehensive *s = calloc(1, sizeof(*s));
	struct error err = {0};
	int code;

	if (!s)
		return EXIT_INCONCLUSIVE;
	s->c = c;
	s->o = opts_;
	code = prepare(s, &err) ? command_complain(c, &err) : perform(s, &err);
	for (int i = 0; i < STAGE_COUNT; i++)
		json_decref(s->result[i].figures);
	free(s);
	return code;
}

const struct command command_comprehensive = {
	.name = "comprehensive",
	.summary = "acceptance test (burn-in) of ten stages: devices, load, links, memory, accuracy, stress, "
		   "power",
	.example = "assay comprehensive --quick   # one page: assay-runs/DATE-comprehensive/SUMMARY.md",
	.help = "Runs ten stages one after the other. Stages 1 to 4: validation of all GPUs, a load test of "
		"two minutes at 100 requests/s, link bandwidth, memory. Stages 5 to 7: accuracy, mixture of "
		"experts, a 40B shape. Stages 8 to 10: stress, power efficiency, NVLink during the stress. "
		"Each stage runs another assay command, which has its own run directory and page. --plan "
		"prints these commands.\n\n"
		"The core stages 1, 2, 4 and 8 always run. If an optional stage cannot run here, assay skips "
		"it and prints the reason. If a stage fails, the next one runs all the same. Without a GPU, "
		"the engine runs on the CPUs with a small model and a small load. Ctrl-C ends the current "
		"stage, and assay still writes the summary.\n\n"
		"Exit codes: 1 a stage failed, 2 a core stage is inconclusive or did not run, otherwise 0; "
		"64 wrong usage.",
	.check = check,
	.opts = {opts, sizeof(opts) / sizeof(opts[0]), sizeof(struct comprehensive_opts)},
	.single = true,
	.run = run,
};
