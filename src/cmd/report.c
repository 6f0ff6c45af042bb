/* SPDX-License-Identifier: Apache-2.0 */
/* assay report: judge a run directory and render it again. Nothing in it is changed unless --write says so.
 */
#include <errno.h>
#include "cmd/judged.h"

struct report_opts {
	const char *dir, *expectations, *expect, *site;
	uint32_t format;
	bool json, real_names, write;
};

enum { FORMAT_TERMINAL, FORMAT_MARKDOWN, FORMAT_HTML, FORMAT_JSON, FORMAT_CSV };
static const char *const formats[] = {"terminal", "markdown", "html", "json", "csv", NULL};

static const struct opt opts[] = {
	OPT_ROW(struct report_opts, dir, .name = "dir", .positional = true, .shown = "DIR",
		.help = "a run directory, from this machine or another"),
	OPT_ROW(struct report_opts, format, .name = "format", .preset = "terminal", .choices = formats,
		.help = "form of the report on stdout"),
	OPT_ROW(struct report_opts, json, .name = "json", .help = "the same as --format json"),
	OPT_ROW(struct report_opts, expectations, .name = "expectations", .shown = "DIR",
		.help = "expectations instead of the built-in ones"),
	OPT_ROW(struct report_opts, expect, .name = "expect", .shown = "SKU:N",
		.help = "what was bought: h100-sxm:8"),
	OPT_ROW(struct report_opts, site, .name = "site", .shown = "FILE",
		.help = "what the operator states of this site"),
	OPT_ROW(struct report_opts, real_names, .name = "real-names",
		.help = "serials, addresses and host names as they are, not as pseudonyms"),
	OPT_ROW(struct report_opts, write, .name = "write",
		.help = "write the run directory's report files anew as well"),
};

static enum status render(struct text *out, const struct command_context *c, const struct report_opts *o,
			  const struct report_input *in, struct error *err)
{
	struct report_style style = {.colour = c->colour, .columns = judged_columns()};
	enum status st = STATUS_OK;

	switch (o->json ? FORMAT_JSON : (int)o->format) {
	case FORMAT_MARKDOWN:
		report_markdown(out, in);
		break;
	case FORMAT_HTML:
		report_html(out, in);
		break;
	case FORMAT_JSON:
		st = report_json(out, in, err);
		break;
	case FORMAT_CSV:
		report_csv(out, in);
		break;
	default:
		report_terminal(out, in, &style);
	}
	return !st && out->failed ? error_errno(err, ENOMEM, "%s: rendering it", o->dir) : st;
}

static int run(const struct command_context *c, const void *opts_)
{
	const struct report_opts *o = opts_;
	struct judge_site site = {.expect = o->expect, .file = o->site};
	struct expectations *expectations = NULL;
	struct text out = {0}, note = {0};
	struct judged judged = {0};
	struct error err = {0};
	int code = EXIT_INCONCLUSIVE;
	enum status st;

	if (!o->dir) {
		error_set(&err, STATUS_BAD_INPUT, "report needs the run directory");
		return judged_complain(c, &err);
	}
	st = expectations_load(&expectations, o->expectations, &err);
	if (!st)
		st = judged_read(&judged, o->dir, expectations, &site, o->real_names, &err);
	if (!st)
		st = render(&out, c, o, &judged.in, &err);
	if (!st)
		fputs(text_str(&out), stdout);
	if (!st && o->write)
		st = report_write(o->dir, &judged.in, &note, &err);
	if (note.size)
		log_info(c->log, LOG_TOPIC_RUN, "%.*s", (int)(note.size - 1), text_str(&note));
	code = st ? judged_complain(c, &err) : judged.judgements.exit_code;
	text_release(&out);
	text_release(&note);
	judged_release(&judged);
	expectations_free(expectations);
	return code;
}

const struct command command_report = {
	.name = "report",
	.summary = "judge and render a run directory again",
	.example = "assay report assay-runs/2026-11-21-quick --format html > report.html",
	.help = "Reads a run directory, judges it by the built-in expectations or those of --expectations, "
		"and prints "
		"the report. The same directory and the same expectations give the same bytes on any "
		"machine. The exit "
		"code is the run's: 0 all that is required was reached, 1 something failed, 2 inconclusive.",
	.opts = {opts, sizeof(opts) / sizeof(opts[0]), sizeof(struct report_opts)},
	.run = run,
};
