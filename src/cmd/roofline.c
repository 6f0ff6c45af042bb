/* SPDX-License-Identifier: Apache-2.0 */
/* assay roofline: one roofline plot for the devices of one or several runs. */
#include <errno.h>
#include <limits.h>
#include <unistd.h>
#include "cmd/shared/judged.h"
#include "cmd/running/running.h"
#include "cmd/shared/run_dirs.h"
#include "cmd/shared/show.h"
#include "core/file/file.h"

enum { RUNS_MAX = 64 };

struct roofline_opts {
	struct opt_words runs;
	const char *out, *expectations, *prices;
	uint32_t plot;
	double seconds, price;
	bool real_names;
};

static const char *const forms[] = {"svg", "png", "pdf", NULL}; /* enum plot_format */

static const struct opt opts[] = {
	OPT_ROW(struct roofline_opts, out, .name = "out", .shown = "DIR",
		.help = "folder for the files (default: assay-runs/DATE-roofline)"),
	OPT_ROW(struct roofline_opts, plot, .name = "plot", .preset = "svg", .choices = forms,
		.help = "format of the plot; the SVG is always written"),
	OPT_ROW(struct roofline_opts, expectations, .name = "expectations", .shown = "DIR",
		.help = "judge by these expectations instead of the built-in ones"),
	OPT_ROW(struct roofline_opts, prices, .name = "prices", .shown = "FILE",
		.help = "file of prices, instead of the built-in ones"),
	OPT_ROW(struct roofline_opts, seconds, .name = "seconds", .preset = "0", .unit = "s", .min = 0,
		.max = 1e7, .help = "without RUN: length of the measured windows; 0: the suite's value"),
	OPT_ROW(struct roofline_opts, price, .name = "price", .preset = "0", .min = 0, .max = 1e6,
		.help = "without RUN: price of the machine per hour, saved with the run"),
	OPT_ROW(struct roofline_opts, real_names, .name = "real-names",
		.help = "show serial numbers, addresses and host names instead of pseudonyms"),
	OPT_ROW(struct roofline_opts, runs, .name = "runs", .positional = true, .many = true, .shown = "RUN",
		.help = "run directories; without any, the suite roofline runs on this machine"),
};

/* Runs the suite in DIR/run and saves its exit code. */
static enum status measure(const struct command_context *c, const struct roofline_opts *o, const char *dir,
			   int *code, struct error *err)
{
	struct running_opts ro = {.out = dir,
				  .seconds = o->seconds,
				  .price = o->price,
				  .seed = 1,
				  .sample = true,
				  .expectations = o->expectations};
	struct suite *s = NULL;
	enum status st = suite_read(&s, "roofline", err);

	if (st)
		return st;
	*code = running_do(c, s, &ro);
	suite_free(s);
	return *code == EXIT_USAGE
		       ? error_set(err, STATUS_BAD_INPUT, "%s: cannot run the suite roofline", dir)
		       : STATUS_OK;
}

struct merged {
	const struct prices *prices; /* of --prices; NULL: each run has the built-in ones */
	struct judged judged[RUNS_MAX];
	struct report_input in[RUNS_MAX];
	size_t count;
};

static enum status read_runs(struct merged *m, const struct roofline_opts *o, struct error *err)
{
	struct judge_site site = {0};
	enum status st;

	if (o->runs.count > RUNS_MAX)
		return error_set(err, STATUS_BAD_INPUT, "%zu runs given; one plot accepts at most %d",
				 o->runs.count, RUNS_MAX);
	for (; m->count < o->runs.count; m->count++) {
		st = judged_read(&m->judged[m->count], o->runs.word[m->count], o->expectations, &site,
				 o->real_names, err);
		if (st)
			return st;
		m->in[m->count] = m->judged[m->count].in;
		if (m->prices)
			m->in[m->count].prices = m->prices;
	}
	return STATUS_OK;
}

static enum status merge(const struct command_context *c, const struct roofline_opts *o, const char *dir,
			 const struct prices *prices, struct error *err)
{
	struct merged *m = calloc(1, sizeof(*m));
	struct text note = {0};
	enum status st;

	if (m)
		m->prices = prices;
	st = m ? read_runs(m, o, err) : error_errno(err, ENOMEM, "%s: the runs", dir);

	if (!st)
		st = file_make_dir(dir, err);
	if (!st)
		st = report_write_merged(dir, m->in, m->count, (enum plot_format)o->plot, &note, err);
	if (note.size)
		log_info(c->log, LOG_TOPIC_RUN, "%.*s", (int)(note.size - 1), text_str(&note));
	for (size_t i = 0; m && i < m->count; i++)
		judged_release(&m->judged[i]);
	free(m);
	text_release(&note);
	return st;
}

/* Makes the output folder: `given`, which must not be a run directory, because its report would be
 * overwritten; without it, the next free name. */
static enum status out_dir(char dir[PATH_MAX], const char *given, struct error *err)
{
	if (!given) {
		*dir = '\0';
		return run_dirs_claim(dir, "roofline", err);
	}
	text_copy(dir, PATH_MAX, given);
	return run_dirs_is(given)
		       ? error_set(
				 err, STATUS_BAD_INPUT,
				 "--out %s is a run directory, and its report would be overwritten; name another folder",
				 given)
		       : STATUS_OK;
}

static int run(const struct command_context *c, const void *opts_)
{
	struct roofline_opts o = *(const struct roofline_opts *)opts_;
	char dir[PATH_MAX], measured[PATH_MAX + 8];
	struct opt_words picked = {0};
	const char *word = measured;
	struct text said = {0};
	struct error err = {0};
	int code = EXIT_PASS;
	struct prices *prices = NULL;
	/* A wrong file of prices ends the command before it measures. */
	enum status st = o.prices ? prices_load(&prices, o.prices, &err) : STATUS_OK;

	*dir = '\0';
	if (!st)
		st = out_dir(dir, o.out, &err);
	if (!st && o.runs.count)
		st = run_dirs_pick(&picked, &o.runs, c->log, &err);
	if (picked.count)
		o.runs = picked;
	if (!st && !o.runs.count) {
		snprintf(measured, sizeof(measured), "%s/run", dir);
		st = measure(c, &o, measured, &code, &err);
		o.runs = (struct opt_words){.word = &word, .count = 1};
	}
	if (!st)
		st = merge(c, &o, dir, prices, &err);
	if (st) {
		code = command_complain(c, &err);
		if (!o.out && *dir)
			rmdir(dir); /* only if it is empty */
	} else {
		text_addf(&said, "%s/REPORT.md\n%s/roofline.%s\n", dir, dir, forms[o.plot]);
		show_text(&said, UTF8_KEEP_NOTHING);
	}
	text_release(&said);
	prices_free(prices);
	free((void *)picked.word);
	return code;
}

const struct command command_roofline = {
	.name = "roofline",
	.summary = "draw a roofline plot of one or several runs and explain the gaps",
	.example = "assay roofline h200-run h100-run laptop-run --out roofline",
	.help = "Draws the memory, cache and compute limits of each device, measured and computed from the "
		"facts about the device. Each case is one point. Writes manifest.json, results.csv, "
		"REPORT.md and roofline.svg (and .png if the plot module is installed). The runs may come "
		"from different machines. Without RUN, it measures the suite roofline on this machine.",
	.opts = {opts, sizeof(opts) / sizeof(opts[0]), sizeof(struct roofline_opts)},
	.alone = true,
	.run = run,
};
