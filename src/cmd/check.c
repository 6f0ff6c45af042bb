/* SPDX-License-Identifier: Apache-2.0 */
/* assay check: runs a suite, judges it and prints the report. This is the main command. */
#include "cmd/running/resume.h"
#include "cmd/running/running.h"
#include "run/suite/target.h"

struct check_opts {
	struct running_opts running;
	const char *word, *suite;
};

static const struct opt opts[] = {
	OPT_ROW(struct check_opts, word, .name = "name", .positional = true, .shown = "SUITE",
		.help = "a built-in suite (assay list suites); quick if none is given"),
	OPT_ROW(struct check_opts, suite, .name = "suite", .shown = "SUITE|FILE",
		.help = "a built-in suite or a suite file of your own"),
	RUNNING_ROWS(struct check_opts),
};

extern const struct command command_check;

static enum status read_suite(struct suite **s, const struct check_opts *o, struct error *err)
{
	const char *name = o->suite ? o->suite : o->word ? o->word : "quick";

	if (o->suite && o->word)
		return error_set(err, STATUS_BAD_INPUT,
				 "two suites given, \"%.64s\" and --suite %.64s: give one", o->word,
				 o->suite);
	if (!strcmp(name, "comprehensive"))
		return error_set(
			err, STATUS_BAD_INPUT,
			"comprehensive is a command, because its stages are more than cases of a suite: assay comprehensive");
	return suite_read(s, name, err);
}

static enum status check_words(const void *opts_, struct error *err)
{
	const struct check_opts *o = opts_;
	struct suite *s = NULL;
	enum status st = o->running.resume ? STATUS_OK : read_suite(&s, o, err);

	suite_free(s);
	if (!st && o->running.target)
		st = target_word(o->running.target, err);
	return st;
}

static int check(const struct command_context *c, const struct check_opts *o)
{
	struct suite *s = NULL;
	struct error err = {0};
	int code;

	if (read_suite(&s, o, &err)) {
		if (err.status == STATUS_UNAVAILABLE) /* a file that the command names does not exist */
			err.status = STATUS_BAD_INPUT;
		return command_complain(c, &err);
	}
	code = running_do(c, s, &o->running);
	suite_free(s);
	return code;
}

static int run(const struct command_context *c, const void *opts_)
{
	const struct check_opts *o = opts_;
	struct resume again = {0};
	struct error err = {0};
	int code;

	if (!o->running.resume)
		return check(c, o);
	if (resume_read(&again, c, &command_check, o->running.resume, &err))
		return command_complain(c, &err);
	code = check(c, again.values);
	resume_release(&again);
	return code;
}

const struct command command_check = {
	.name = "check",
	.summary = "measure this machine, judge the results and write a report (the main command)",
	.example = "assay check quick   # the report goes to assay-runs/DATE-quick",
	.help = "Runs every case of the suite, compares each result with its expected range, and explains what keeps "
		"it below the physical bound. The run directory holds the journal and all reports. "
		"Ctrl-C stops the run and leaves a readable run directory; --resume DIR continues it.\n\n"
		"Exit codes: 0 all requirements are met, 1 something failed, 2 inconclusive, "
		"64 wrong usage.",
	.opts = {opts, sizeof(opts) / sizeof(opts[0]), sizeof(struct check_opts)},
	.check = check_words,
	.run = run,
};
