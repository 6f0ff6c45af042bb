/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/running/running.h"
#include "cmd/running/plan_preview.h"
#include <errno.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cmd/shared/judged.h"
#include "cmd/shared/input_hashes.h"
#include "cmd/running/plan.h"
#include "cmd/running/team.h"
#include "cmd/shared/run_dirs.h"
#include "cmd/shared/show.h"
#include "cmd/shared/checked_expectations.h"
#include "core/file/file.h"
#include "core/process/process.h"
#include "journal/journal.h"
#include "journal/record/record.h"
#include "judge/judge.h"
#include "machine/cpu_use.h"
#include "probe/registry.h"
#include "report/report.h"
#include "run/worker/fault_injection.h"
#include "run/run.h"
#include "run/suite/facts_needed.h"

/* Draws the progress on stderr, always on the same line. */
static void draw(void *arg, size_t done, size_t total, const char *what, double seconds_left)
{
	(void)arg;
	fprintf(stderr, "\r\033[K[%zu/%zu] %.60s, about %.0f s left", done, total, what, seconds_left);
	fflush(stderr);
}

static enum report_format running_format(const struct running_opts *o)
{
	return o->json ? REPORT_JSON : (enum report_format)o->format;
}

/* Refuses options that contradict each other. */
static enum status check_wishes(const struct running_opts *o, struct error *err)
{
	enum report_format format = running_format(o);
	struct fault_injection plant;

	if (o->out && !*o->out) /* an unset variable in a script */
		return error_set(err, STATUS_BAD_INPUT, "--out is empty");
	if (fault_injection_asked(&plant, err))
		return err->status;
	if (o->wait && o->beside)
		return error_set(
			err, STATUS_BAD_INPUT,
			"--wait and --beside cannot be combined: wait until the GPUs are free, or run while others use them");
	if (o->plan && format != REPORT_TEXT && format != REPORT_JSON)
		return error_set(err, STATUS_BAD_INPUT, "--plan supports --format text and json, not %s",
				 report_formats[format]);
	return show_one_form(o->format, o->json, o->columns, err);
}

/* A resumed run uses the expectations and the site file saved with it. If one of them is missing, that is
 * an error before the run continues. */
static enum status read_kept(const char *dir, struct expectations **e, struct error *err)
{
	struct record earlier;
	enum status st = record_read_run(&earlier, dir, err);

	if (st)
		return st;
	st = judged_expectations(e, &earlier, NULL, err);
	if (!st)
		st = input_hashes_check(&earlier, JUDGE_SITE_FILE, err);
	record_release(&earlier);
	return st;
}

/* Reads what the run will be judged by, so that errors in it are reported before anything is measured.
 * `stated`: the text of the site file as saved in the run directory. */
static enum status read_statement(const struct running_opts *o, struct expectations **e, struct text *stated,
				  struct error *err)
{
	const struct judge_site site = {.expect = o->expect, .file = o->site};
	enum status st;

	if ((o->expect && !*o->expect) || (o->site && !*o->site)) /* an unset variable in a script */
		return error_set(err, STATUS_BAD_INPUT, "--%s is empty",
				 o->expect && !*o->expect ? "expect" : "site");
	if (o->resume)
		return read_kept(o->resume, e, err);
	st = checked_expectations_load(e, o->expectations, err);
	if (!st)
		st = judge_site_text(stated, &site, *e, err);
	if (st == STATUS_UNAVAILABLE) /* a file that the command names does not exist or cannot be read */
		st = err->status = STATUS_BAD_INPUT;
	return st;
}

static bool has_file(const char *dir, const char *name)
{
	char path[PATH_MAX + 32];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return !access(path, F_OK);
}

static enum status keep(const char *dir, const char *name, const struct text *what, struct error *err)
{
	char path[PATH_MAX + 32];
	enum status st;

	if (!what->size && has_file(dir, name))
		return error_set(
			err, STATUS_BAD_INPUT,
			"%s/%s is left from another run and would affect this one: remove it, or choose another folder",
			dir, name);
	if (!what->size)
		return STATUS_OK;
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	st = file_make_dir(dir, err);
	return st ? st : file_write(path, text_str(what), what->size, err);
}

/* Saves what judges the run, so that it is judged the same way later and elsewhere. A finished run is not
 * overwritten: run_plan refuses it. */
static enum status keep_statement(const char *dir, const struct text *stated, const struct expectations *e,
				  struct error *err)
{
	enum status st;

	if (journal_exists(dir))
		return STATUS_OK;
	st = keep(dir, JUDGE_SITE_FILE, stated, err);
	return st ? st : keep(dir, JUDGE_EXPECTATIONS_FILE, expectations_text(e), err);
}

/* If the run directory was removed during the run, it is created again with its journal only. The run's
 * own error is reported. */
static void keep_statement_again(const char *dir, const struct text *stated, const struct expectations *e)
{
	if (!has_file(dir, JOURNAL_FILE))
		return;
	if (!has_file(dir, JUDGE_SITE_FILE))
		keep(dir, JUDGE_SITE_FILE, stated, NULL);
	if (!has_file(dir, JUDGE_EXPECTATIONS_FILE))
		keep(dir, JUDGE_EXPECTATIONS_FILE, expectations_text(e), NULL);
}

/* On a terminal, shows nodes by their real names. Output for other programs is the same as in the files. */
static enum status show_with_names(const struct report_input *in, const struct running_team *team,
				   const struct running_opts *o, bool colour, struct error *err)
{
	const enum report_format format = running_format(o);
	struct report_input named = *in;
	struct report_called *called =
		format == REPORT_TEXT ? running_team_called(team, &named.called_count) : NULL;
	enum status st;

	named.called = called;
	st = show_report(&named, format, o->columns, colour, err);
	free(called);
	return st;
}

/* Shows the results even if the report cannot be written to the run directory. */
static enum status judge_and_report(const struct command_context *c, const struct running_opts *o,
				    const struct running_team *team, const char *dir, int *code,
				    struct error *err)
{
	static const struct judge_site kept = {0};
	struct judged judged = {0};
	struct text note = {0};
	enum status st = judged_read(&judged, dir, NULL, &kept, o->real_names, err), shown;

	if (st)
		goto out;
	st = report_write(dir, &judged.in, &note, err);
	if (note.size)
		log_info(c->log, LOG_TOPIC_RUN, "%.*s", (int)(note.size - 1), text_str(&note));
	shown = show_with_names(&judged.in, team, o, c->colour, err);
	st = st ? st : shown;
	*code = judged.judgements.exit_code;
out:
	if (st == STATUS_BAD_INPUT) /* an error after the measurement is not wrong usage */
		st = err->status = STATUS_UNAVAILABLE;
	text_release(&note);
	judged_release(&judged);
	return st;
}

static enum status run_it(const struct command_context *c, const struct plan *plan, const struct machine *m,
			  const struct running_opts *o, const struct expectations *e,
			  const struct running_team *team, const char *dir, struct run_summary *summary,
			  struct error *err)
{
	struct run_options ro = {
		.dir = dir,
		.command = (const char *const *)c->argv,
		.resume = o->resume,
		.sample = o->sample && machine_is_live(m),
		.seed = o->seed,
		.beside = o->beside,
		.wait = o->wait,
		.price_per_hour = o->price,
		.real_names = o->real_names,
		.started_ns = process_started_ns(),
		.stop = c->stop,
		.log = c->log,
		.clock = clock_monotonic(),
		.expectations = o->expectations,
		.isolate = o->isolate,
	};
	json_t *kept = NULL;
	struct expected_before_run *expected = NULL;
	enum status st = o->resume ? STATUS_OK : input_hashes_read(&kept, dir, err);

	if (!st && o->isolate)
		st = plan_preview_expected(&expected, plan, m, e, err);
	ro.kept = kept;
	ro.expected = expected;
	ro.control = team->control;
	ro.rank = team->place.rank;
	if (c->terminal && !ro.rank)
		ro.progress.update = draw;
	if (!st)
		st = run_plan(plan, m, probe_list, &ro, summary, err);
	free(expected);
	json_decref(kept);
	if (ro.progress.update)
		fprintf(stderr, "\r\033[K");
	return st;
}

/* Reads the machine and makes the plan. With --wait, repeats both until no GPU is busy. */
static enum status prepare(const struct command_context *c, const struct suite *s,
			   const struct running_opts *o, struct running_team *team, struct machine **m,
			   struct plan *plan, struct error *err)
{
	struct plan_options wishes = {.target = o->target,
				      .seconds = o->seconds,
				      .rounds = (unsigned)o->rounds,
				      .search_seconds = o->search_seconds,
				      .beside = o->beside,
				      .stop = c->stop};
	const char *out = o->resume ? o->resume : o->out;
	const struct machine_scope whole = {.up_to = LAYER_SOFTWARE, .out = out, .stop = c->stop};
	/* compare the order with the whole machine */
	bool all = o->machine || o->expect || o->site, said = false;
	struct facts_needed scope;

	facts_needed_of(&scope, s, probe_list);
	scope.machine.out = out;
	scope.machine.stop = c->stop;
	for (;;) {
		/* read it before our own helpers and ranks use the CPU */
		json_t *cpu_use = o->machine || o->plan ? NULL : cpu_use_watch();
		const struct bench_case *busy;
		enum status st =
			machine_read_scope(m, all ? &whole : &scope.machine, o->machine, c->log, err);

		if (!st && cpu_use)
			json_object_set((json_t *)json_object_get(machine_json(*m), "system"), "cpu_use",
					cpu_use);
		json_decref(cpu_use);

		if (st && o->machine) /* the user named a wrong folder */
			return err->status = STATUS_BAD_INPUT;
		if (!st)
			st = running_team_join(team, c, o, *m, err);
		wishes.team = control_shape(team->control);
		wishes.rank = team->place.rank;
		if (!st)
			st = plan_build(plan, s, *m, probe_list, &wishes, err);
		busy = st ? NULL : running_busy(plan);
		if (st || !o->wait || !busy || *c->stop)
			return st;
		if (!said)
			log_info(c->log, LOG_TOPIC_RUN, "waiting: %s", busy->skip_reason);
		said = true;
		plan_release(plan);
		machine_free(*m);
		*m = NULL;
		clock_sleep_ns(clock_monotonic(), 2000000000u);
		if (*c->stop)
			return error_set_cause(err, STATUS_CANCELLED, CAUSE_INTERRUPTED,
					       "stopped while waiting for a GPU");
	}
}

/* A rank other than 0 prints nothing, because rank 0's report has its cases. A failure on this rank still
 * determines its exit code. It is inconclusive if a case did not finish, or if a case of the team could
 * not begin here. */
static enum status judge_silently(const struct running_opts *o, const char *dir, const struct plan *plan,
				  const struct run_summary *summary, int *code, struct error *err)
{
	static const struct judge_site kept = {0};
	struct judged judged = {0};
	enum status st = judged_read(&judged, dir, NULL, &kept, o->real_names, err);

	if (!st && judged.judgements.exit_code == EXIT_FAILED)
		*code = EXIT_FAILED;
	else if (!st)
		*code = summary->failed || summary->not_run || summary->cancelled || running_lacks(plan)
				? EXIT_INCONCLUSIVE
				: EXIT_PASS;
	judged_release(&judged);
	return st;
}

/* The state of one run of the command. */
struct doing {
	const struct command_context *c;
	const struct suite *suite;
	const struct running_opts *o;
	struct expectations *expectations;
	struct machine *machine;
	struct text stated;
	struct plan plan;
	struct running_team team;
	char dir[PATH_MAX];
	bool named; /* the command names the directory */
};

/* Takes the run directory: the named one, or the next free one. Ranks other than 0 use one next to rank
 * 0's. */
static enum status claim(struct doing *d, struct error *err)
{
	enum status st = d->named || d->team.place.rank ? STATUS_OK
							: run_dirs_claim(d->dir, suite_name(d->suite), err);

	if (!st)
		st = running_team_dir(&d->team, d->dir, err);
	if (!st && d->o->real_names) /* serial numbers and host names are private */
		st = file_make_private_dir(d->dir, err);
	if (!st && d->o->real_names && !d->named && chmod(d->dir, 0700))
		st = error_errno(err, errno, "cannot make %s private (mode 0700)", d->dir);
	return st ? st : keep_statement(d->dir, &d->stated, d->expectations, err);
}

static enum status measure_and_tell(struct doing *d, int *code, struct error *err)
{
	struct run_summary summary = {0};
	bool taken = false;
	enum status st = claim(d, err);

	if (!st) {
		st = run_it(d->c, &d->plan, d->machine, d->o, d->expectations, &d->team, d->dir, &summary,
			    err);
		if (st)
			keep_statement_again(d->dir, &d->stated, d->expectations);
	}
	if (!st && !summary.cancelled)
		taken = running_team_collect(&d->team, d->c, d->dir);
	if (!st && d->team.place.rank)
		st = judge_silently(d->o, d->dir, &d->plan, &summary, code, err);
	else if (!st)
		st = judge_and_report(d->c, d->o, &d->team, d->dir, code, err);
	if (!st && taken)
		running_team_clear(d->dir);
	if (!st && *code == EXIT_PASS && summary.team_over.status)
		*code = EXIT_INCONCLUSIVE;
	if (d->team.place.rank)
		running_team_await(&d->team);
	if (st || d->team.place.rank)
		return st;
	log_info(d->c->log, LOG_TOPIC_RUN, "report: %s/report.html", d->dir);
	if (summary.cancelled && !d->team.control)
		log_info(d->c->log, LOG_TOPIC_RUN, "stopped; continue with: assay %s --resume %s",
			 d->c->argv[1], d->dir);
	return STATUS_OK;
}

int running_do(const struct command_context *c, const struct suite *s, const struct running_opts *o)
{
	struct doing d = {.c = c, .suite = s, .o = o, .named = o->resume || o->out};
	struct error err = {0};
	int code = EXIT_INCONCLUSIVE;
	enum status st;

	if (d.named)
		text_copy(d.dir, sizeof(d.dir), o->resume ? o->resume : o->out);
	else
		run_dirs_next(d.dir, suite_name(s));
	st = check_wishes(o, &err);
	if (!st && d.named && strcmp(d.dir, o->resume ? o->resume : o->out) != 0)
		st = error_set(&err, STATUS_BAD_INPUT, "--%s: the path is too long",
			       o->resume ? "resume" : "out");
	if (!st)
		st = running_team_place(&d.team, o, &err);
	if (!st)
		st = running_team_check(&d.team, o, &err);
	if (!st)
		st = read_statement(o, &d.expectations, &d.stated, &err);
	if (!st)
		st = prepare(c, s, o, &d.team, &d.machine, &d.plan, &err);
	if (!st && o->plan) {
		running_print_plan(&d.plan, d.machine, d.dir, running_format(o) == REPORT_JSON);
		code = EXIT_PASS;
	} else if (!st) {
		st = measure_and_tell(&d, &code, &err);
	}
	if (st) {
		code = command_complain(c, &err);
		if (!d.named && !d.team.place.rank)
			rmdir(d.dir); /* only if it is empty */
	}
	code = running_team_code(&d.team, c, code);
	running_team_leave(&d.team);
	plan_release(&d.plan);
	machine_free(d.machine);
	text_release(&d.stated);
	expectations_free(d.expectations);
	return code;
}
