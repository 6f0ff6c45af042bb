/* SPDX-License-Identifier: Apache-2.0 */
/* assay report: judges a run directory again and renders its report. It changes nothing in the directory
 * without --write. */
#include "cmd/shared/judged.h"
#include "cmd/profile/files.h"
#include "cmd/shared/run_dirs.h"
#include "cmd/shared/show.h"

struct report_opts {
	const char *dir, *expectations, *expect, *site, *columns;
	uint32_t format;
	bool json, real_names, write;
};

static const struct opt opts[] = {
	OPT_ROW(struct report_opts, dir, .name = "dir", .positional = true, .shown = "DIR",
		.help = "a run directory, from this or another machine"),
	OPT_ROW(struct report_opts, format, .name = "format", .also = "output-format", .preset = "text",
		.choices = report_formats, .help = "format of the report on stdout"),
	OPT_ROW(struct report_opts, columns, .name = "columns", .shown = "LIST", .help = SHOW_COLUMNS_HELP),
	OPT_ROW(struct report_opts, json, .name = "json", .help = "the same as --format json"),
	OPT_ROW(struct report_opts, expectations, .name = "expectations", .shown = "DIR",
		.help = "judge by these expectations, not by those saved with the run or the built-in ones"),
	OPT_ROW(struct report_opts, expect, .name = "expect", .shown = "SKU:N",
		.help = "the GPUs that were ordered, as type and number, for example h100-sxm:8"),
	OPT_ROW(struct report_opts, site, .name = "site", .shown = "FILE",
		.help = "YAML file with the agreed properties of the machine"),
	OPT_ROW(struct report_opts, real_names, .name = "real-names",
		.help = "show serial numbers, addresses and host names instead of pseudonyms"),
	OPT_ROW(struct report_opts, write, .name = "write",
		.help = "also write the report files in the run directory again"),
};

static int run(const struct command_context *c, const void *opts_)
{
	const struct report_opts *o = opts_;
	struct judge_site site = {.expect = o->expect, .file = o->site};
	struct text note = {0};
	struct judged judged = {0};
	struct error err = {0};
	int code = EXIT_INCONCLUSIVE;
	enum status st;

	if (!o->dir) {
		error_set(&err, STATUS_BAD_INPUT, "no run directory given: assay report DIR");
		return command_complain(c, &err);
	}
	st = show_one_form(o->format, o->json, o->columns, &err);
	if (!st)
		st = run_dirs_whole(o->dir, &err);
	if (st)
		return command_complain(c, &err);
	st = judged_read(&judged, o->dir, o->expectations, &site, o->real_names, &err);
	if (!st)
		st = show_report(&judged.in, o->json ? REPORT_JSON : (enum report_format)o->format,
				 o->columns, c->colour, &err);
	if (!st && o->write)
		st = report_write(o->dir, &judged.in, &note, &err);
	if (!st && o->write)
		st = profile_files_rewrite(&judged.record, judged.machine, &err);
	if (note.size)
		log_info(c->log, LOG_TOPIC_RUN, "%.*s", (int)(note.size - 1), text_str(&note));
	code = st ? command_complain(c, &err) : judged.judgements.exit_code;
	text_release(&note);
	judged_release(&judged);
	return code;
}

const struct command command_report = {
	.name = "report",
	.summary = "judge a run directory again and print its report",
	.example = "assay report assay-runs/2026-11-21-quick --format html > report.html",
	.help = "Reads a run directory, judges it and prints the report. It uses the expectations of --expectations, "
		"or else those saved with the run, or else the built-in ones. The "
		"same directory and the same expectations give the same bytes on any machine.\n\n"
		"The exit code is that of the run: 0 all requirements are met, 1 something failed, 2 inconclusive.",
	.opts = {opts, sizeof(opts) / sizeof(opts[0]), sizeof(struct report_opts)},
	.alone = true,
	.run = run,
};
