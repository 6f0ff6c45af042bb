/* SPDX-License-Identifier: Apache-2.0 */
/* assay demo: a guided tour of this machine. */
#include <stdlib.h>
#include <unistd.h>
#include "cmd/demo/demo.h"
#include "cmd/shared/run_dirs.h"
#include "cmd/shared/show.h"
#include "core/clock.h"

static const struct opt opts[] = {
	OPT_ROW(struct demo_opts, action, .name = "what", .positional = true, .preset = "quick",
		.choices = demo_words,
		.help = "the tour to run. start: run a tour in four panes of tmux; attach: show these panes; kill: "
			"end the tour"),
	OPT_ROW(struct demo_opts, tour, .name = "tour", .positional = true, .choices = tour_words,
		.help = "with start: the tour to run (default: quick)"),
	OPT_ROW(struct demo_opts, steps, .name = "steps", .also = "only stages", .shown = "LIST",
		.help = "run only these steps: numbers or words, separated by commas. Steps that they need run too"),
	OPT_ROW(struct demo_opts, pause, .name = "pause", .also = "wait interactive",
		.help = "wait for Enter before each step"),
	OPT_ROW(struct demo_opts, plan, .name = "plan", .also = "dry-run",
		.help = "print steps, commands and the expected time; run nothing"),
	OPT_ROW(struct demo_opts, model, .name = "model", .shown = "MODEL",
		.help = "model to serve, a folder or GGUF file (default: assay makes one with random weights)"),
	OPT_ROW(struct demo_opts, duration, .name = "duration", .also = "time", .preset = "0", .unit = "s",
		.max = 86400, .help = "length of the load test; 0: 30 s on a GPU, 10 s on a CPU"),
	OPT_ROW(struct demo_opts, train_steps, .name = "train-steps", .also = "max-steps", .preset = "80",
		.min = 1, .max = 100000, .help = "optimizer steps of the training of three sentences"),
	OPT_ROW(struct demo_opts, price_per_hour, .name = "price-per-hour", .preset = "0", .max = 1e6,
		.shown = "DOLLARS",
		.help = "price of the whole machine per hour, to compute the price of a token"),
	OPT_ROW(struct demo_opts, keep_model, .name = "keep-model",
		.help = "keep the model that assay made for the server"),
	OPT_ROW(struct demo_opts, detach, .name = "detach", .also = "detached",
		.help = "with start: do not show the panes now"),
	OPT_ROW(struct demo_opts, out, .name = "out", .also = "output-dir o", .shown = "DIR",
		.help = "folder for all results; new or empty (default: assay-runs/DATE-demo-TOUR)"),
};

static enum status check(const void *opts_, struct error *err)
{
	const struct demo_opts *o = opts_;

	if (o->tour && o->action != ACTION_START)
		return error_set(err, STATUS_BAD_INPUT, "demo: \"%s\" follows only the word start", o->tour);
	if (o->detach && o->action != ACTION_START)
		return error_set(err, STATUS_BAD_INPUT, "--detach is for assay demo start");
	if (o->model && access(o->model, R_OK))
		return error_set(err, STATUS_BAD_INPUT, "--model %.200s: there is no such file or folder",
				 o->model);
	return STATUS_OK;
}

/* The machine in one line: "2 x NVIDIA H200; AMD EPYC, 96 cores". Nothing that names it. */
static void set_host(struct demo *d, const struct machine *m)
{
	const struct cpu *cpu = machine_cpu(m);
	const struct gpu *g = NULL;

	for (unsigned i = 0; !g && i < machine_gpu_count(m); i++)
		if (machine_gpu(m, i)->granted && !machine_gpu(m, i)->status)
			g = machine_gpu(m, i);
	snprintf(d->host, sizeof(d->host), "%s, %u CPU%s; ", cpu->model[0] ? cpu->model : "CPU model hidden",
		 cpu->usable, cpu->usable == 1 ? "" : "s");
	if (g)
		snprintf(d->host + strlen(d->host), sizeof(d->host) - strlen(d->host), "%u GPU%s: %s",
			 d->size.gpus, d->size.gpus == 1 ? "" : "s", *g->name ? g->name : "name unreadable");
	else
		snprintf(d->host + strlen(d->host), sizeof(d->host) - strlen(d->host), "no usable GPU");
}

/* The load that a tour shows: that of `comprehensive --quick`, but on a CPU shorter and with more requests.
 */
static enum status set_size(struct demo *d, struct error *err)
{
	const struct machine_scope scope = {.up_to = LAYER_NVML, .stop = d->c->stop};
	struct comprehensive_opts load = {.quick = true, .duration = d->o->duration};
	struct machine *m = NULL;
	enum status st = machine_read_scope(&m, &scope, NULL, d->c->log, err);

	if (st)
		return st;
	comprehensive_size_set(&d->size, m, &load);
	if (!d->size.gpus) {
		load.rate = 1;
		load.duration = d->o->duration > 0 ? d->o->duration : 10;
		comprehensive_size_set(&d->size, m, &load);
	}
	set_host(d, m);
	machine_free(m);
	return STATUS_OK;
}

static enum demo_tour tour_of(const struct demo_opts *o)
{
	unsigned i = 0;

	if (o->action != ACTION_START)
		return (enum demo_tour)o->action;
	while (o->tour && tour_words[i] && strcmp(tour_words[i], o->tour))
		i++;
	return (enum demo_tour)i;
}

static enum status set_dir(struct demo *d, struct error *err)
{
	char name[32];

	snprintf(name, sizeof(name), "demo-%s", tour_words[d->tour]);
	if (!d->o->plan)
		return run_dirs_fresh(d->dir, d->o->out, name, err);
	if (d->o->out)
		text_copy(d->dir, sizeof(d->dir) / 2, d->o->out);
	else
		run_dirs_next(d->dir, name);
	return STATUS_OK;
}

static enum status prepare(struct demo *d, struct error *err)
{
	enum status st;

	d->tour = tour_of(d->o);
	d->log = -1;
	tour_fill(d);
	st = tour_choose(d, err);
	if (!st)
		st = set_size(d, err);
	if (!st)
		st = set_dir(d, err);
	if (st)
		return st;
	snprintf(d->learner, sizeof(d->learner), "%s/learner", d->dir);
	snprintf(d->weights, sizeof(d->weights), "%s/weights", d->dir);
	if (d->o->model)
		text_copy(d->weights, sizeof(d->weights), d->o->model);
	return STATUS_OK;
}

static void show_plan(const struct demo *d)
{
	struct text out = {0};

	tell_plan(&out, d);
	show_text(&out, UTF8_KEEP_COLOUR);
	text_release(&out);
}

static int tour(struct demo *d, struct error *err)
{
	plan_fill(d);
	if (d->o->plan) {
		show_plan(d);
		return EXIT_PASS;
	}
	clock_wall_text(d->began, sizeof(d->began));
	demo_run(d);
	if (demo_write_page(d, err)) {
		log_error(d->c->log, LOG_TOPIC_RUN, "no page: %s; the folders of the steps are complete",
			  err->text);
		return demo_code(d) == EXIT_FAILED ? EXIT_FAILED : EXIT_INCONCLUSIVE;
	}
	log_info(d->c->log, LOG_TOPIC_RUN, "page: %s/demo.html", d->dir);
	return demo_code(d);
}

static int begin(struct demo *d, struct error *err)
{
	const bool start = d->o->action == ACTION_START && !d->o->plan, there = start && tmux_there(d->c);

	if (d->o->action == ACTION_ATTACH)
		return tmux_attach(d->c);
	if (d->o->action == ACTION_KILL)
		return tmux_kill(d->c);
	if (there && !tmux_free(d->c))
		return EXIT_INCONCLUSIVE;
	if (prepare(d, err))
		return command_complain(d->c, err);
	if (there)
		return tmux_start(d);
	if (start)
		log_warn(
			d->c->log, LOG_TOPIC_RUN,
			"tmux is not installed, so the tour runs in this terminal; the package is named tmux");
	return tour(d, err);
}

static int run(const struct command_context *c, const void *opts_)
{
	struct demo *d = calloc(1, sizeof(*d));
	struct error err = {0};
	int code;

	if (!d)
		return EXIT_INCONCLUSIVE;
	d->c = c;
	d->o = opts_;
	code = check(opts_, &err) ? command_complain(c, &err) : begin(d, &err);
	for (int i = 0; i < STEP_COUNT; i++)
		json_decref(d->result[i].figures);
	free(d);
	return code;
}

const struct command command_demo = {
	.name = "demo",
	.summary = "guided tour of this machine: check, training, serving and cost, with one page at the end",
	.example = "assay demo quick   # one to three minutes on two CPU cores; one page: "
		   "assay-runs/DATE-demo-quick/demo.html",
	.help = "Runs other assay commands one after the other and explains what each command proves. It "
		"shows each command before it runs, then its progress and the time left. If this machine "
		"cannot run a step, assay skips it and prints the reason. demo.html shows the whole tour on "
		"one page, with links to the reports.\n\n"
		"The tours: quick runs check, training and serving. full runs them with longer measurements. "
		"benchmark runs measurements only. training teaches a small model three sentences. serve "
		"runs a server under load.\n\n"
		"start runs a tour in four panes of tmux: machine, tour, messages, and links or loss. attach "
		"shows it again, and kill ends it. Without tmux, start runs the tour in this terminal.\n\n"
		"If a step fails, the next one runs all the same. Ctrl-C ends the current step, and assay "
		"still writes the page.\n\n"
		"Exit codes: 1 a step failed, 2 a step is inconclusive or did not run because of a stop, "
		"otherwise 0; 64 wrong usage.",
	.check = check,
	.opts = {opts, sizeof(opts) / sizeof(opts[0]), sizeof(struct demo_opts)},
	.single = true,
	.run = run,
};
