/* SPDX-License-Identifier: Apache-2.0 */
/* assay history: this machine's runs over time, with significant changes marked. */
#include <glob.h>
#include <stdlib.h>
#include "cmd/command.h"
#include "cmd/history/history.h"
#include "cmd/shared/loaded_runs.h"
#include "cmd/shared/run_dirs.h"
#include "cmd/shared/show.h"

struct history_opts {
	struct opt_words runs;
	const char *plot, *expectations;
	bool all, json;
};

static const struct opt opts[] = {
	OPT_ROW(struct history_opts, runs, .name = "run", .positional = true, .many = true, .shown = "DIR",
		.help = "run directories, oldest first (default: all below assay-runs/, by their start)"),
	OPT_ROW(struct history_opts, plot, .name = "plot", .shown = "FILE",
		.help = "also draw the figures to a file .svg, .png or .pdf"),
	OPT_ROW(struct history_opts, all, .name = "all",
		.help = "all timed cases, not only those with a sustained window"),
	OPT_ROW(struct history_opts, json, .name = "json", .help = "the history as JSON instead of tables"),
	OPT_ROW(struct history_opts, expectations, .name = "expectations", .shown = "DIR",
		.help = "judge by these expectations, not by those saved with each run or the built-in ones"),
};

static int by_start(const void *a, const void *b)
{
	return strcmp(history_wall(a), history_wall(b));
}

/* The run directories below assay-runs. globfree() frees their names. */
static enum status list_runs(struct opt_words *out, glob_t *found, struct error *err)
{
	const char **word;
	size_t count = 0;

	*out = (struct opt_words){0};
	if (glob("assay-runs/*", 0, NULL, found))
		return error_set(err, STATUS_BAD_INPUT,
				 "assay-runs: there are no runs here; name the run directories");
	word = calloc(found->gl_pathc + 1, sizeof(*word));
	if (!word)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "out of memory for %zu runs",
				       found->gl_pathc);
	for (size_t i = 0; i < found->gl_pathc; i++)
		if (run_dirs_is(found->gl_pathv[i]))
			word[count++] = found->gl_pathv[i];
	*out = (struct opt_words){.word = word, .count = count};
	return count ? STATUS_OK
		     : error_set(err, STATUS_BAD_INPUT, "assay-runs: no folder in it is a run directory");
}

/* Keeps the runs of the machine of the last run. Returns how many others there were. */
static size_t one_machine(struct loaded_runs *l)
{
	const struct record *last = l->run[l->count - 1].record;
	size_t kept = 0, all = l->count;

	for (size_t i = 0; i < all; i++)
		if (compare_same_machine(l->run[i].record, last) || i + 1 == all)
			l->run[kept++] = l->run[i];
	l->count = kept;
	return all - kept;
}

static enum status show(const struct command_context *c, const struct history_opts *o,
			const struct history *h, struct error *err)
{
	struct text t = {0};
	size_t left_out = 0;
	json_t *j = o->json ? history_json(h) : NULL;
	enum status st;

	if (o->json) {
		show_json(j, JSON_INDENT(2) | JSON_REAL_PRECISION(12));
	} else {
		history_show(&t, h);
		show_text(&t, UTF8_KEEP_NOTHING);
	}
	json_decref(j);
	text_release(&t);
	st = o->plot ? history_plot(o->plot, h, &left_out, err) : STATUS_OK;
	if (left_out)
		log_warn(c->log, LOG_TOPIC_JUDGE, "the plot leaves out %zu cases; it has room for %d",
			 left_out, 15);
	return st;
}

static int run(const struct command_context *c, const void *opts_)
{
	const struct history_opts *o = opts_;
	struct opt_words words = {0};
	struct loaded_runs l = {0};
	struct history h = {0};
	struct error err = {0};
	glob_t found = {0};
	size_t others;
	enum status st = o->runs.count ? run_dirs_pick(&words, &o->runs, c->log, &err)
				       : list_runs(&words, &found, &err);
	int code;

	if (!st)
		st = loaded_runs_read(&l, &words, o->expectations, &err);
	if (!st && !o->runs.count)
		qsort(l.run, l.count, sizeof(*l.run), by_start);
	others = st ? 0 : one_machine(&l);
	if (others)
		log_info(c->log, LOG_TOPIC_JUDGE, "%zu run%s of another machine than the last one left out",
			 others, others == 1 ? "" : "s");
	if (!st)
		st = history_collect(&h, l.run, l.count, o->all, &err);
	if (!st)
		st = show(c, o, &h, &err);
	code = st ? command_complain(c, &err) : h.exit_code;
	history_release(&h);
	loaded_runs_release(&l);
	free((void *)words.word);
	globfree(&found);
	return code;
}

const struct command command_history = {
	.name = "history",
	.summary = "show this machine's runs over time, and mark significant changes",
	.example =
		"assay history --plot history.svg   # all runs below assay-runs/; exit code 1 if a judged case became slower",
	.help = "Shows one line for each case with a long (sustained) measurement: the first and the last "
		"figure, and a sparkline of all runs. assay compares each figure with the median of the runs "
		"since the last change, by the same statistic as assay compare. If the difference exceeds "
		"the noise, assay marks the figure, and later runs are compared with the new level.\n\n"
		"Exit codes: 0 no judged case is on a worse level than before. 1 a judged case is. 2 there "
		"is nothing to compare.",
	.opts = {opts, sizeof(opts) / sizeof(opts[0]), sizeof(struct history_opts)},
	.alone = true,
	.run = run,
};
