/* SPDX-License-Identifier: Apache-2.0 */
/* assay health: may this node take work? docs/explanation/design/health.md. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cmd/command.h"
#include "cmd/health/deadline.h"
#include "cmd/health/hook.h"
#include "cmd/health/lock.h"
#include "cmd/health/look.h"
#include "cmd/health/state_place.h"
#include "cmd/shared/show.h"

struct health_opts {
	const char *state, *drain_with, *resume_with, *node, *run, *suite, *out, *machine, *expect, *site,
		*expectations;
	double within;
	uint32_t caller;
	bool active, json, new_baseline;
};

static const struct opt opts[] = {
	OPT_ROW(struct health_opts, caller, .name = "for", .preset = "nobody", .choices = health_caller_words,
		.help = "use the exit codes that this caller needs. The modes for Slurm always end with 0"),
	OPT_ROW(struct health_opts, active, .name = "active",
		.help = "load all GPUs together for at most 30 s, if no other process uses one"),
	OPT_ROW(struct health_opts, run, .name = "run", .shown = "DIR",
		.help = "compare the figures of this finished run with earlier ones, and keep them as baseline"),
	OPT_ROW(struct health_opts, drain_with, .name = "drain-with", .shown = "CMD",
		.help = "run CMD if two runs found the same hardware failure. assay replaces %n with the node and %r "
			"with the reason"),
	OPT_ROW(struct health_opts, resume_with, .name = "resume-with", .shown = "CMD",
		.help = "run CMD after a node that --drain-with drained has passed twice"),
	OPT_ROW(struct health_opts, node, .name = "node", .shown = "NAME",
		.help = "name of the node for CMD (default: SLURMD_NODENAME, else the host name)"),
	OPT_ROW(struct health_opts, state, .name = "state", .shown = "FILE",
		.help = "state file (default: /var/lib/assay/health.json for root, else below ~/.local/state)"),
	OPT_ROW(struct health_opts, new_baseline, .name = "new-baseline",
		.help = "forget the figures of earlier runs, for example after a repair"),
	OPT_ROW(struct health_opts, within, .name = "within", .also = "timeout", .preset = "40s", .unit = "s",
		.min = 1, .max = 600,
		.help = "time limit for reading all values. If it is exceeded, the result is unknown"),
	OPT_ROW(struct health_opts, expect, .name = "expect", .shown = "SKU:N",
		.help = "GPU type and count that the node must have, as in h100-sxm:8"),
	OPT_ROW(struct health_opts, site, .name = "site", .shown = "FILE",
		.help = "YAML file with the agreed properties of the machine"),
	OPT_ROW(struct health_opts, expectations, .name = "expectations", .shown = "DIR",
		.help = "judge by these expectations instead of the built-in ones"),
	OPT_ROW(struct health_opts, suite, .name = "suite", .preset = "health-active", .shown = "NAME|FILE",
		.help = "with --active: the suite to run, built-in or a YAML file"),
	OPT_ROW(struct health_opts, out, .name = "out", .shown = "DIR",
		.help = "with --active: keep the run directory here"),
	OPT_ROW(struct health_opts, machine, .name = "machine", .shown = "DIR",
		.help = "judge a recorded machine; keep no state"),
	OPT_ROW(struct health_opts, json, .name = "json",
		.help = "one JSON object instead of a line of text"),
};

/* One run of the command. */
struct gate_run {
	const struct command_context *c;
	const struct health_opts *o;
	struct state_place place;
	struct health_finding finding;
	struct hook_values values;
	const char *action; /* "drained", "resumed", "" */
};

static enum status check_command(const char *option, const char *command, struct error *err)
{
	static const struct hook_values example = {.node = "node", .reason = "reason"};
	struct command_words words;
	enum status st = command ? hook_words(&words, option, command, &example, err) : STATUS_OK;

	if (command && !st)
		command_words_release(&words);
	return st;
}

static enum status check_options(const struct health_opts *o, struct error *err)
{
	if (o->machine &&
	    (o->active || o->run || o->state || o->drain_with || o->resume_with || o->new_baseline))
		return error_set(
			err, STATUS_BAD_INPUT,
			"--machine cannot be combined with --active, --run, --state, --new-baseline, --drain-with or --resume-with: a recording is not this node");
	if (o->active && o->run)
		return error_set(err, STATUS_BAD_INPUT,
				 "--active and --run cannot be combined: measure, or use a finished run");
	if (o->out && !o->active)
		return error_set(err, STATUS_BAD_INPUT,
				 "--out needs --active: readings keep no run directory");
	if (strcmp(o->suite, "health-active") != 0 && !o->active)
		return error_set(err, STATUS_BAD_INPUT,
				 "--suite needs --active: readings have their own suite");
	if (o->node && !*o->node)
		return error_set(err, STATUS_BAD_INPUT, "--node is empty");
	if (check_command("drain-with", o->drain_with, err))
		return err->status;
	return check_command("resume-with", o->resume_with, err);
}

/* The node's name: stated, else Slurm's, else the host name up to the first dot. */
static void name_node(struct hook_values *v, const char *given)
{
	const char *slurm = getenv("SLURMD_NODENAME");

	if (given || (slurm && *slurm)) {
		text_copy(v->node, sizeof(v->node), given ? given : slurm);
		return;
	}
	if (gethostname(v->node, sizeof(v->node) - 1))
		text_copy(v->node, sizeof(v->node), "localhost");
	v->node[strcspn(v->node, ".")] = '\0';
}

/* Puts an error into the finding, unless it is wrong usage. */
static enum status as_unknown(struct health_finding *f, enum status st, struct error *err)
{
	if (!st || st == STATUS_BAD_INPUT)
		return st;
	health_finding_add(f, HEALTH_UNKNOWN, err->cause, false, NULL, "%s", err->text);
	error_clear(err);
	return STATUS_OK;
}

static enum status read_within(struct gate_run *r, struct look *l, struct error *err)
{
	struct deadline d;
	enum status st = deadline_begin(&d, r->c->stop, (unsigned)(r->o->within * 1000), err);

	if (st)
		return as_unknown(&r->finding, st, err);
	l->stop = &d.stop;
	st = look_read(l, &r->finding, err);
	if (deadline_end(&d) && st) {
		error_clear(err);
		st = error_set_cause(err, STATUS_CANCELLED, CAUSE_TIMED_OUT,
				     "the readings did not end within %.0f s", r->o->within);
	}
	return as_unknown(&r->finding, st, err);
}

static enum status load_within(struct gate_run *r, struct look *l, struct error *err)
{
	struct deadline d;
	enum status st = deadline_begin(&d, r->c->stop, LOOK_ACTIVE_MS, err);

	if (st)
		return as_unknown(&r->finding, st, err);
	l->stop = &d.stop;
	st = look_active(l, &r->place.state, &r->finding, err);
	if (deadline_end(&d)) {
		if (r->finding.verdict ==
		    HEALTH_UNKNOWN) /* "interrupted" by this limit, which is the reason */
			*r->finding.text = '\0';
		health_finding_add(&r->finding, HEALTH_UNKNOWN, CAUSE_TIMED_OUT, false, NULL,
				   "--active did not end within %d s", LOOK_ACTIVE_MS / 1000);
	}
	return as_unknown(&r->finding, st, err);
}

/* Reads, and measures if that is asked for and nothing failed. */
static enum status look(struct gate_run *r, struct error *err)
{
	const struct health_opts *o = r->o;
	struct look l = {.c = r->c,
			 .machine = o->machine,
			 .expectations = o->expectations,
			 .site = {.expect = o->expect, .file = o->site},
			 .suite = o->suite,
			 .out = o->out};
	pid_t stuck = o->machine ? 0 : health_stuck_helper("/proc", clock_monotonic());
	enum status st;

	if (stuck) {
		health_finding_add(
			&r->finding, HEALTH_UNKNOWN, CAUSE_STUCK, false, NULL,
			"helper process %ld of an earlier run hangs in the kernel (state D), so no new one starts",
			(long)stuck);
		return STATUS_OK;
	}
	st = read_within(r, &l, err);
	if (!st && o->active && r->finding.verdict == HEALTH_PASS)
		st = load_within(r, &l, err);
	if (!st && o->run)
		st = as_unknown(&r->finding, look_run(o->run, &r->place.state, &r->finding, err), err);
	return st;
}

/* Runs the user's command. False: there is none, or it failed, which is logged. */
static bool act(const struct gate_run *r, const char *option, const char *command)
{
	struct error err = {0};

	if (!command)
		return false;
	if (!hook_run(option, command, &r->values, r->c->stop, &err))
		return true;
	log_error(r->c->log, LOG_TOPIC_RUN, "%s; the next run tries again", err.text);
	return false;
}

static void drain_or_resume(struct gate_run *r, const char *line)
{
	struct gate *g = &r->place.state.gate;
	enum gate_action action = gate_step(g, &r->finding);
	bool done = false;

	/* Saved before the command, because the next run knows the command only from the state. */
	if (!state_place_save(&r->place, r->c->log) || action == GATE_NOTHING)
		return;
	r->values.cause = g->cause;
	if (action == GATE_DRAIN) {
		hook_reason(r->values.reason, line);
		done = act(r, "drain-with", r->o->drain_with);
	} else {
		text_copy(r->values.reason, sizeof(r->values.reason), g->reason);
		done = act(r, "resume-with", r->o->resume_with);
	}
	if (!done)
		return;
	r->action = action == GATE_DRAIN ? "drained" : "resumed";
	log_info(r->c->log, LOG_TOPIC_RUN, "%s node %s: %s", r->action, r->values.node, r->values.reason);
	gate_did(g, action, r->values.reason);
	state_place_save(&r->place, r->c->log);
}

static void print(const struct gate_run *r, const char *line)
{
	const struct health_finding *f = &r->finding;
	const struct gate *g = &r->place.state.gate;
	struct text t = {0};
	json_t *j;

	if (!r->o->json) {
		text_addf(&t, "%s\n", line);
		show_text(&t, UTF8_KEEP_NOTHING);
		text_release(&t);
		return;
	}
	j = json_pack("{s:s, s:b, s:s, s:s, s:s, s:s, s:s, s:{s:s, s:i, s:i}}", "verdict",
		      health_verdict_name(f->verdict), "hardware", f->hardware, "cause", cause_name(f->cause),
		      "part", *f->part ? f->part : HEALTH_NODE, "text", line, "node", r->values.node,
		      "action", r->action, "gate", "state", gate_state_words[g->state], "sightings",
		      (int)g->sightings, "passes", (int)g->passes);
	show_json(j, JSON_COMPACT);
	json_decref(j);
}

static enum status go(struct gate_run *r, char *line, size_t size, struct error *err)
{
	enum status st = r->o->machine ? STATUS_OK : state_place_open(&r->place, r->c->log, r->c->stop, err);

	if (st && err->cause == CAUSE_BUSY) {
		st = as_unknown(&r->finding, st, err);
		health_line(line, size, (enum health_caller)r->o->caller, &r->finding);
		return st;
	}
	if (r->o->new_baseline) {
		struct gate gate = r->place.state.gate;

		health_state_release(&r->place.state);
		r->place.state.gate = gate;
	}
	st = look(r, err);
	if (st)
		return st;
	health_line(line, size, HEALTH_FOR_NOBODY, &r->finding);
	if (!r->o->machine && !*r->c->stop)
		drain_or_resume(r, line);
	health_line(line, size, (enum health_caller)r->o->caller, &r->finding);
	return STATUS_OK;
}

static int run(const struct command_context *c, const void *opts_)
{
	const struct health_opts *o = opts_;
	struct gate_run r = {.c = c, .o = o, .action = "", .place = {.lock = -1}};
	char line[HEALTH_TEXT + 64] = "";
	struct error err = {0};
	enum status st = check_options(o, &err);

	name_node(&r.values, o->node);
	if (!st && !o->machine)
		st = state_place_find(r.place.path, o->state, &err);
	if (health_caller_is_slurm((enum health_caller)o->caller))
		unsetenv(
			"CUDA_VISIBLE_DEVICES"); /* the job's GPUs; a fault of any GPU matters for the node */
	if (!getenv("ASSAY_FACTS_LIMIT_MS")) {
		char ms[16];

		snprintf(ms, sizeof(ms), "%d", LOOK_FACTS_MS);
		setenv("ASSAY_FACTS_LIMIT_MS", ms, 1);
	}
	if (!st && !o->machine)
		machine_tell_suspended(c->log);
	if (!st)
		st = go(&r, line, sizeof(line), &err);
	if (!st)
		print(&r, line);
	else
		log_error(c->log, LOG_TOPIC_RUN, "%s", err.text);
	state_place_close(&r.place);
	if (st)
		return command_code(st);
	return health_exit_code(r.finding.verdict);
}

const struct command command_health = {
	.name = "health",
	.summary =
		"check within seconds whether this node is healthy enough for jobs (for Slurm and Kubernetes)",
	.example = "assay health   # one line: pass, fail or unknown, and the reason; exit code 0, 1 or 2",
	.help = "Reads the state of the GPUs and the host within seconds, and judges it by the rules of "
		"`assay check`. It puts no load on the node. The result is one line on stdout. --active also "
		"loads all GPUs together for at most 30 s.\n\n"
		"Exit codes: 0 pass, 1 fail, 2 unknown, 64 wrong usage. --for selects the exit codes that a "
		"caller needs. The modes slurm-prolog, slurm-epilog and slurm-healthcheck always end with 0. "
		"On any other exit code Slurm would drain the node, that is, give it no new jobs. The mode "
		"npd (node-problem-detector) uses 0, 1 and 2. The mode readiness ends with 1 for fail, "
		"otherwise with 0.\n\n"
		"assay drains a node only with the command of --drain-with, only for a hardware failure, and "
		"only if two runs found it. After two passes, the command of --resume-with makes the node "
		"available again, if assay itself drained it. assay splits both commands into words without "
		"a shell. Their environment has ASSAY_HEALTH_NODE, ASSAY_HEALTH_REASON and "
		"ASSAY_HEALTH_CAUSE.\n\n"
		"assay keeps the figures of --active and --run for each combination of GPU, driver and power "
		"limit. If a figure is clearly below this node's own history, the result is a failure. Such "
		"a failure does not drain the node.",
	.opts = {opts, sizeof(opts) / sizeof(opts[0]), sizeof(struct health_opts)},
	.code_for_caller = health_code_for_caller,
	.run = run,
};
