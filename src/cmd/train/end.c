/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a training run: last journal lines, the report, and one message that says what happened and
 * how to continue. */
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include "cmd/info/info.h"
#include "cmd/shared/judged.h"
#include "cmd/shared/show.h"
#include "cmd/train/train.h"
#include "core/file/file.h"
#include "journal/journal.h"
#include "journal/record/record.h"
#include "train/checkpoint/names.h"

enum { CONFIG_MAX = 16 << 20, SETTLE_LOOKS = 5, SETTLE_NS = 100000000 };

enum status train_report(const struct training *t, struct error *err)
{
	static const struct judge_site site = {0};
	struct judged judged = {0};
	struct text note = {0};
	enum status st = judged_read(&judged, t->dir, NULL, &site, t->o->real_names, err);

	if (!st)
		st = report_write(t->dir, &judged.in, &note, err);
	if (!st && !t->o->json)
		st = show_report(&judged.in, REPORT_TEXT, NULL, t->c->colour, err);
	if (!st && !t->o->json)
		log_info(t->c->log, LOG_TOPIC_RUN, "report: %s/report.html", t->dir);
	text_release(&note);
	judged_release(&judged);
	return st;
}

/* True if the directory still has the journal of this run. */
static bool has_journal(const struct training *t, const char *dir)
{
	struct record r;
	const char *hash;
	bool ours;

	if (record_read_run(&r, dir, NULL))
		return false;
	hash = json_string_value(json_object_get(r.plan, "hash"));
	ours = r.case_count == 1 && hash && !strcmp(hash, t->run_hash);
	record_release(&r);
	return ours;
}

/* True if the configuration after its first line is still that of this run. */
static bool has_config(const struct training *t, const char *dir)
{
	char path[PATH_MAX + 32], *text = NULL;
	const char *body;
	size_t size;
	bool ours;

	snprintf(path, sizeof(path), "%s/" TRAIN_CONFIG, dir);
	if (file_read(&text, &size, path, CONFIG_MAX, NULL))
		return false;
	body = strchr(text, '\n');
	ours = body && !strcmp(body + 1, text_str(&t->written));
	free(text);
	return ours;
}

/* Sets *step to the step of the newest checkpoint, by name. False if there is none. */
static bool newest_checkpoint(const char *dir, uint64_t *step)
{
	struct checkpoint_list list;
	bool found = false;

	if (checkpoint_list_read(&list, dir, NULL))
		return false;
	for (size_t i = 0; i < list.count && !found; i++) {
		found = list.entry[i].state == CHECKPOINT_NAMED;
		*step = list.entry[i].step;
	}
	checkpoint_list_release(&list);
	return found;
}

/* Says how to continue, based on the present content of the directory. */
static void say_how_to_go_on(struct text *out, const struct training *t, const char *dir)
{
	uint64_t step;

	if (!has_config(t, dir) || !has_journal(t, dir))
		text_addf(out, "the run cannot be resumed: %s no longer has its configuration and journal",
			  dir);
	else if (newest_checkpoint(dir, &step))
		text_addf(out,
			  "assay train --resume %s continues from the newest checkpoint, of step %" PRIu64,
			  dir, step);
	else
		text_addf(out,
			  "assay train --resume %s begins at the first step, because there is no checkpoint",
			  dir);
}

/* Says what happened to the run directory. `journal`: the error of writing the journal. */
static void say_lost(struct text *out, const struct training *t, const struct error *journal)
{
	char now[PATH_MAX];
	int why;
	enum run_dir_state state = run_dir_look(&t->home, now, &why);

	if (state == RUN_DIR_HERE || (state == RUN_DIR_REMOVED && journal->status))
		text_add(out, journal->text);
	else if (state == RUN_DIR_REMOVED)
		text_addf(out, "%s was removed during the run", t->dir);
	else if (state == RUN_DIR_MOVED)
		text_addf(out, "%s was moved to %s during the run", t->dir, now);
	else
		text_addf(out, "%s is no longer writable (%s)", t->dir, strerror(why));
	text_addf(out, "; training stopped after step %" PRIu64 "; ", t->step);
	if (state == RUN_DIR_REMOVED)
		text_add(out, "the run cannot be resumed: its checkpoints are gone");
	else if (state == RUN_DIR_SHUT)
		text_add(out, "make it writable again, then ");
	if (state != RUN_DIR_REMOVED)
		say_how_to_go_on(out, t, now);
}

/* Checks the run directory once the job has ended. */
static void train_look_again(struct training *t)
{
	char now[PATH_MAX];
	int why;

	t->lost = t->lost || run_dir_look(&t->home, now, &why) != RUN_DIR_HERE;
}

void train_check_run_dir(struct training *t)
{
	t->lost = t->lost || job_state(t->job, NULL);
	train_look_again(t);
}

/* A file of the worker was missing: somebody may be removing the directory at this moment, so look again. */
static void settle(struct training *t)
{
	for (unsigned i = 0; i < SETTLE_LOOKS && t->end.status == STATUS_UNAVAILABLE && !t->lost; i++) {
		clock_sleep_ns(clock_monotonic(), SETTLE_NS);
		train_look_again(t);
	}
}

/* Writes the configuration again if the directory exists without it, because checkpoint and journal are
 * useless without it. */
static void write_config_again(const struct training *t)
{
	char now[PATH_MAX], path[PATH_MAX + 32];
	int why;

	snprintf(path, sizeof(path), "%s/" TRAIN_CONFIG, t->dir);
	if (run_dir_look(&t->home, now, &why) == RUN_DIR_HERE && access(path, F_OK) && errno == ENOENT)
		train_save_config(t, path, NULL);
}

/* True if the run may be resumed: a failed card or disk, or a crashed worker, is not an error of the run. */
static bool may_go_on(const struct training *t)
{
	return !t->end.said || t->end.status == STATUS_CANCELLED ||
	       ((t->saved || (t->goes_on && t->ready)) &&
		(t->end.status == STATUS_LOST || t->end.status == STATUS_VENDOR ||
		 t->end.status == STATUS_NO_RESOURCE || t->end.status == STATUS_UNAVAILABLE));
}

/* For example "18112 tokens/s steady, of 28 steps; 2.31 s to the first step, 3.12 s tuning"; over all
 * processes of the run. */
static void say_rate(const struct training *t)
{
	const double steady = info_number(t->end.values, "steady_steps"),
		     steps = info_number(t->end.values, "steps");
	struct text out = {0};

	if (t->o->json || !(steps > 0))
		return;
	if (steady > 0)
		text_addf(&out, "%.0f tokens/s steady, over %.0f steps",
			  info_number(t->end.values, "tokens_per_s"), steady);
	else
		text_addf(&out, "no steady rate: all %.0f steps belong to start-up and tuning", steps);
	if (json_object_get(t->end.values, "start_s"))
		text_addf(&out, "; %.2f s to the first step", info_number(t->end.values, "start_s"));
	text_addf(&out, ", %.2f s tuning", info_number(t->end.values, "tuning_s"));
	log_info(t->c->log, LOG_TOPIC_RUN, "%s", text_str(&out));
	text_release(&out);
}

static void tell(const struct training *t, const struct error *journal)
{
	struct text out = {0};
	const bool cancelled = t->end.status == STATUS_CANCELLED && !t->lost;

	if (t->lost || t->end.status)
		write_config_again(t);
	if (t->lost)
		say_lost(&out, t, journal);
	else if (t->end.status)
		text_add(&out, cancelled ? "stopped on request" : t->end.text);
	if (!t->lost && t->end.status && may_go_on(t)) {
		text_add(&out, "; ");
		say_how_to_go_on(&out, t, t->dir);
	}
	if (out.size)
		log_line(t->c->log, cancelled ? LOG_INFO : LOG_ERROR, LOG_TOPIC_RUN, "%s", text_str(&out));
	text_release(&out);
}

/* True if a scheduler or launcher stopped the run, here or through another rank, and it is saved. */
static bool is_saved(const struct training *t)
{
	uint64_t step;

	return (!*t->c->stop || *t->c->preempted) &&
	       (!train_ranks_leads(t) || newest_checkpoint(t->dir, &step));
}

static int exit_code(const struct training *t)
{
	if (t->lost)
		return EXIT_INCONCLUSIVE;
	switch (t->end.status) {
	case STATUS_OK:
		return EXIT_PASS;
	case STATUS_CANCELLED:
		return is_saved(t) ? EXIT_SAVED : EXIT_INCONCLUSIVE;
	case STATUS_BAD_INPUT:
		return EXIT_USAGE;
	case STATUS_MISMATCH:
		return EXIT_FAILED;
	default:
		return EXIT_INCONCLUSIVE;
	}
}

int train_conclude(struct training *t, struct error *err)
{
	enum ending ending = t->end.status == STATUS_CANCELLED ? ENDING_CANCELLED
			     : t->end.said		       ? ENDING_DONE
			     : t->hung			       ? ENDING_TIMED_OUT
							       : ENDING_CRASHED;
	uint64_t now_ns = clock_now_ns(clock_monotonic());
	struct error journal = {0};
	enum status reported = STATUS_OK;

	job_quiet(t->job);
	train_watch_run(t);
	job_phase(t->job, "once", t->start_ns, now_ns, json_incref(t->end.values));
	train_check_run_dir(t);
	if (job_end(&t->job, ending, t->end.status, t->end.cause, t->end.text, &journal))
		t->lost = true;
	settle(t);
	train_ranks_collect(t);
	if (!train_ranks_leads(t))
		return exit_code(t);
	if (!t->lost)
		reported = train_report(t, err);
	train_look_again(t);
	say_rate(t);
	tell(t, &journal);
	if (!t->lost && reported)
		return command_complain(t->c, err);
	return exit_code(t);
}
