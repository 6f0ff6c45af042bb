/* SPDX-License-Identifier: Apache-2.0 */
/* assay probe NAME: one case, or a cross product. */
#include "cmd/again.h"
#include "cmd/help.h"
#include "cmd/running.h"

struct probe_opts {
	struct running_opts running;
	const char *name, *engine;
	struct opt_words options;
};

static const struct opt opts[] = {
	RUNNING_ROWS(struct probe_opts),
	OPT_ROW(struct probe_opts, engine, .name = "engine", .shown = "NAME|all",
		.help = "the engine; else the first that can do it here"),
	OPT_ROW(struct probe_opts, name, .name = "name", .positional = true, .shown = "NAME",
		.help = "the probe (assay list probes)"),
	OPT_ROW(struct probe_opts, options, .name = "options", .positional = true, .many = true,
		.shown = "name=value[,value..]", .help = "its options; several values are a cross product"),
};

extern const struct command command_probe;

static int probe(const struct command_context *c, const struct probe_opts *o)
{
	struct running_opts running = o->running;
	struct suite *s = NULL;
	struct error err = {0};
	int code;

	if (!o->name) {
		error_set(&err, STATUS_BAD_INPUT, "which probe? assay list probes shows them");
		return running_complain(c, &err);
	}
	if (running.target && !strcmp(running.target, "all"))
		running.target = NULL;
	if (suite_of_probe(&s, o->name, o->engine, running.target, o->options.word, o->options.count, &err))
		return running_complain(c, &err);
	code = running_do(c, s, &running);
	suite_free(s);
	return code;
}

static int run(const struct command_context *c, const void *opts_)
{
	const struct probe_opts *o = opts_;
	struct again again = {0};
	struct error err = {0};
	int code;

	if (!o->running.resume)
		return probe(c, o);
	if (again_read(&again, c, &command_probe, o->running.resume, &err))
		return running_complain(c, &err);
	code = probe(c, again.values);
	again_release(&again);
	return code;
}

static bool help_topic(FILE *to, const char *word)
{
	struct error err = {0};
	const struct probe *p = help_probe_named(word, &err);

	if (p)
		help_probe(to, p);
	return p;
}

const struct command command_probe = {
	.name = "probe",
	.summary = "run one probe",
	.example = "assay probe gemm m=2048 n=2048 k=2048 type=fp32",
	.help_topic = help_topic,
	.help = "One case with the options given, reported as a suite's case is: judged where a reference "
		"for it is known, else measured (exit code 0 either way, where the figure is sound). "
		"`assay probe NAME --help` shows the probe's own options.",
	.opts = {opts, sizeof(opts) / sizeof(opts[0]), sizeof(struct probe_opts)},
	.run = run,
};
