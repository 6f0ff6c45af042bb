/* SPDX-License-Identifier: Apache-2.0 */
/* assay probe NAME: runs one case, or a cross product of option values. */
#include "cmd/running/resume.h"
#include "cmd/help/help.h"
#include "cmd/running/running.h"
#include "run/probe.h"
#include "run/suite/target.h"

struct probe_opts {
	struct running_opts running;
	const char *name, *engine, *preset;
	struct opt_words options;
};

static const struct opt opts[] = {
	RUNNING_ROWS(struct probe_opts),
	OPT_ROW(struct probe_opts, engine, .name = "engine", .shown = "NAME|all",
		.help = "engine to use (default: the first one that this machine supports)"),
	OPT_ROW(struct probe_opts, preset, .name = "preset", .shown = "NAME",
		.help = "a named set of options (assay probe NAME --help); options given explicitly take precedence"),
	OPT_ROW(struct probe_opts, name, .name = "name", .positional = true, .shown = "NAME",
		.help = "name of the probe (assay list probes)"),
	OPT_ROW(struct probe_opts, options, .name = "options", .positional = true, .many = true,
		.shown = "name=value[,value..]",
		.help = "options of the probe; with several values, assay runs a case for each combination"),
};

extern const struct command command_probe;

static enum status preset_named(const struct probe_preset **out, const struct probe *p, const char *name,
				struct error *err)
{
	const char *known[16], *near;
	size_t count = 0;

	for (const struct probe_preset *at = p->presets; at && at->name; at++) {
		if (!strcmp(at->name, name)) {
			*out = at;
			return STATUS_OK;
		}
		if (count < sizeof(known) / sizeof(known[0]))
			known[count++] = at->name;
	}
	near = opt_nearest(name, known, count);
	return error_set(err, STATUS_BAD_INPUT,
			 near ? "probe %s has no preset '%.40s': did you mean '%s'?"
			      : "probe %s has no preset '%.40s'",
			 p->name, name, near);
}

/* True if the user gave the preset's "name=.." as well. */
static bool given(const struct opt_words *words, const char *option)
{
	size_t length = strcspn(option, "=") + 1;

	for (size_t i = 0; i < words->count; i++)
		if (!strncmp(words->word[i], option, length))
			return true;
	return false;
}

/* Builds a suite from a preset and the user's own options, which take precedence. */
static enum status preset_suite(struct suite **s, const struct probe_opts *o, const char *target,
				struct error *err)
{
	const struct probe *p = help_probe_named(o->name, err);
	const struct probe_preset *preset = NULL;
	const char *option[64];
	size_t count = 0;
	enum status st = p ? preset_named(&preset, p, o->preset, err) : err->status;

	if (st)
		return st;
	for (size_t i = 0; preset->options[i] && count < 64; i++)
		if (!given(&o->options, preset->options[i]))
			option[count++] = preset->options[i];
	for (size_t i = 0; i < o->options.count && count < 64; i++)
		option[count++] = o->options.word[i];
	return suite_of_probe(s, o->name, o->engine ? o->engine : preset->engine,
			      target ? target : preset->target, option, count, err);
}

/* Builds the suite. If no target is given, it uses the default target of all cases. */
static enum status read_suite(struct suite **s, struct running_opts *running, const struct probe_opts *o,
			      struct error *err)
{
	if (!o->name)
		return error_set(err, STATUS_BAD_INPUT, "no probe given; assay list probes shows all probes");
	if (running->target && !strcmp(running->target, "all"))
		running->target = NULL;
	if (o->preset)
		return preset_suite(s, o, running->target, err);
	return suite_of_probe(s, o->name, o->engine, running->target, o->options.word, o->options.count, err);
}

static enum status check_words(const void *opts_, struct error *err)
{
	const struct probe_opts *o = opts_;
	struct running_opts running = o->running;
	struct suite *s = NULL;
	enum status st = STATUS_OK;

	if (!running.resume && o->name && !help_probe_named(o->name, err))
		return err->status;
	if (!running.resume)
		st = read_suite(&s, &running, o, err);
	suite_free(s);
	if (!st && running.target)
		st = target_word(running.target, err);
	return st;
}

static int probe(const struct command_context *c, const struct probe_opts *o)
{
	struct running_opts running = o->running;
	struct suite *s = NULL;
	struct error err = {0};
	int code;

	if (read_suite(&s, &running, o, &err))
		return command_complain(c, &err);
	code = running_do(c, s, &running);
	suite_free(s);
	return code;
}

static int run(const struct command_context *c, const void *opts_)
{
	const struct probe_opts *o = opts_;
	struct resume again = {0};
	struct error err = {0};
	int code;

	if (!o->running.resume)
		return probe(c, o);
	if (resume_read(&again, c, &command_probe, o->running.resume, &err))
		return command_complain(c, &err);
	code = probe(c, again.values);
	resume_release(&again);
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

/* The options of the probe that the first word names. */
static const struct opt_table *word_opts(int argc, char *const *argv)
{
	struct error err = {0};
	const struct probe *p = NULL;

	for (int i = 0; i < argc && !p; i++)
		if (*argv[i] != '-' && !strchr(argv[i], '='))
			p = help_probe_named(argv[i], &err);
	return p ? &p->opts : NULL;
}

const struct command command_probe = {
	.name = "probe",
	.summary = "run one measurement or health check",
	.example = "assay probe gemm m=2048 n=2048 k=2048 type=fp32   # one matrix multiplication",
	.help_topic = help_topic,
	.help = "Runs one case with the given options and reports it like a case of a suite. If assay knows "
		"an expected range for the case, it judges the figure. Otherwise it only measures. In both "
		"cases, a valid figure gives exit code 0.\n\n"
		"`assay probe NAME --help` shows the probe's own options.",
	.opts = {opts, sizeof(opts) / sizeof(opts[0]), sizeof(struct probe_opts)},
	.check = check_words,
	.word_opts = word_opts,
	.run = run,
};
