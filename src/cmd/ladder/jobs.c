/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the jobs in rounds: down, up, down, .. A job that fails does not stop the next one. */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "cmd/ladder/ladder.h"
#include "core/clock.h"
#include "core/file/file.h"
#include "core/json/member.h"

/* A job gets the whole ladder's time and this on top; it is for a hang of the job itself. */
enum { LIMIT_MORE_S = 900, LOOK_NS = 20000000, LIVE_NS = 1000000000 };

void ladder_job_dir(const struct ladder *l, unsigned round, enum rung_id id, char out[PATH_MAX + 96])
{
	if (round == ROUND_LOSS)
		snprintf(out, PATH_MAX + 96, "%s/jobs/loss-%s", l->dir, rung_list[id].word);
	else
		snprintf(out, PATH_MAX + 96, "%s/jobs/round-%u-%s", l->dir, round + 1, rung_list[id].word);
}

/* The command of a job. */
static void job_command(const struct ladder *l, unsigned round, enum rung_id id, struct stage_command *k)
{
	char dir[PATH_MAX + 96];

	ladder_job_dir(l, round, id, dir);
	stage_command_add(k, "train");
	stage_command_add(k, "%s/config.yaml", dir);
	stage_command_add(k, "--out");
	stage_command_add(k, "%s/run", dir);
}

/* -- what a job left -- */

static struct ladder_values nothing(void)
{
	struct ladder_values v;
	double *each = (double *)&v;

	for (size_t i = 0; i < sizeof(v) / sizeof(*each); i++)
		each[i] = (double)NAN;
	return v;
}

static struct ladder_values values_of(const json_t *results)
{
	const json_t *from = stage_job_values(results);
	struct ladder_values v = nothing();

	v.tokens_per_s = json_member_number(from, "tokens_per_s");
	v.step_s = json_member_number(from, "step_s");
	v.half_width_share = json_member_number(from, "half_width_share");
	v.memory_bytes = json_member_number(from, "memory_bytes");
	v.sm_active_share = json_member_number(from, "sm_active_share");
	v.tensor_active_share = json_member_number(from, "tensor_active_share");
	v.power_w = json_member_number(from, "power_integral_w");
	v.mfu = json_member_number(from, "mfu");
	v.loss_first = json_member_number(from, "eval_loss_first");
	v.loss_last = json_member_number(from, "eval_loss");
	v.steady_steps = json_member_number(from, "steady_steps");
	return v;
}

/* Whether the results say that the rung's settings took effect. */
static bool took_effect(const struct rung_effect *e, const json_t *results)
{
	const json_t *from = stage_phase_values(results, e->phase);

	if (!json_object_get(from, e->field))
		return false;
	return e->value ? !strcmp(json_member_text(from, e->field), e->value) != e->differs
			: json_member_number(from, e->field) > 0;
}

static void tell_idle(struct ladder_job *job, const struct rung_effect *e, const json_t *results)
{
	const json_t *value = json_object_get(stage_phase_values(results, e->phase), e->field);
	struct text t = {0};

	text_addf(&t, "its settings had no effect, because its job recorded %s: ", e->field);
	if (json_is_number(value))
		text_addf(&t, "%.6g", json_number_value(value));
	else
		text_add(&t, json_is_string(value) ? json_string_value(value) : "nothing");
	if (e->demanded)
		text_addf(&t, " instead of %s", e->value);
	if (e->hint)
		text_addf(&t, "; %s", e->hint);
	text_copy(job->why, sizeof(job->why), text_str(&t));
	text_release(&t);
	job->idle = true;
	job->code = EXIT_INCONCLUSIVE;
}

/* The loss model's job shows its losses. Whether a choice that is left to assay pays, the timed ones show. */
static void judge_effect(struct ladder_job *job, unsigned round, enum rung_id id, const json_t *results)
{
	const struct rung_effect *e = &rung_list[id].effect;

	if (job->code || !e->field || (round == ROUND_LOSS && !e->demanded) || took_effect(e, results))
		return;
	tell_idle(job, e, results);
}

/* Removes checkpoints and adapter: a job exists to be timed. */
static void remove_weights(const char *run)
{
	static const char *const kept[] = {"checkpoint-", "adapter", "model"};
	DIR *folder = opendir(run);
	char path[PATH_MAX + 512];

	for (struct dirent *e; folder && (e = readdir(folder));)
		for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
			if (strncmp(e->d_name, kept[i], strlen(kept[i])) || e->d_type != DT_DIR)
				continue;
			snprintf(path, sizeof(path), "%s/%s", run, e->d_name);
			file_remove_tree(path);
		}
	if (folder)
		closedir(folder);
}

/* -- one job -- */

static enum status prepare(const struct ladder *l, unsigned round, enum rung_id id, char dir[PATH_MAX + 96],
			   struct error *err)
{
	char path[PATH_MAX + 128];
	struct text text = {0};
	enum status st = ladder_config(l, &text, id, round == ROUND_LOSS, err);

	ladder_job_dir(l, round, id, dir);
	file_remove_tree(dir); /* what a job left that did not end */
	if (!st)
		st = file_make_dir(dir, err);
	snprintf(path, sizeof(path), "%s/config.yaml", dir);
	if (!st)
		st = file_write(path, text_str(&text), text.size, err);
	text_release(&text);
	return st;
}

static void show_live(const struct ladder *l, unsigned round, enum rung_id id, uint64_t began_ns,
		      uint64_t *shown_ns)
{
	const uint64_t now_ns = clock_now_ns(clock_monotonic());

	if (!l->c->terminal || now_ns - *shown_ns < LIVE_NS)
		return;
	*shown_ns = now_ns;
	fprintf(stderr, "\r\033[Kround %u of %llu, %s: %.0f s", round == ROUND_LOSS ? 1 : round + 1,
		(unsigned long long)l->plan.rounds, rung_list[id].word, (double)(now_ns - began_ns) * 1e-9);
}

static void follow(const struct ladder *l, unsigned round, enum rung_id id, struct stage_child *child)
{
	const uint64_t began_ns = clock_now_ns(clock_monotonic());
	uint64_t shown_ns = 0;

	while (!stage_child_poll(child)) {
		show_live(l, round, id, began_ns, &shown_ns);
		if (stage_child_over(child, l->plan.within_s + LIMIT_MORE_S, l->c->stop)) {
			stage_child_force(child);
			break;
		}
		clock_sleep_ns(clock_monotonic(), LOOK_NS);
	}
	if (shown_ns)
		fputs("\r\033[K", stderr);
}

/* Says why a job is no measurement, in its own words. */
static void explain(struct ladder_job *job, const char *dir, const struct stage_child *child, const char *how)
{
	struct stage_result lost = {0};

	if (child->late) {
		text_copy(job->why, sizeof(job->why), "it took too long and was ended");
		job->code = EXIT_INCONCLUSIVE;
	} else if (job->code < 0) {
		snprintf(job->why, sizeof(job->why), "the job was ended by %s", how);
		job->code = EXIT_INCONCLUSIVE;
	} else if (job->code) {
		stage_say_lost(&lost, dir, "assay train did not finish", job->code);
		text_copy(job->why, sizeof(job->why), lost.reason);
	} else if (!isfinite(job->v.tokens_per_s)) {
		text_copy(job->why, sizeof(job->why), "the job reported no rate of steady steps");
		job->code = EXIT_INCONCLUSIVE;
	}
}

static void run_job(struct ladder *l, unsigned round, enum rung_id id)
{
	struct ladder_job *job = &l->job[round][id];
	struct stage_command k = {0};
	struct stage_child child = {0};
	struct error err = {0};
	char dir[PATH_MAX + 96], run[PATH_MAX + 112], how[128] = "";
	const double began_s = clock_now_s();
	json_t *results;

	*job = (struct ladder_job){.v = nothing()};
	job_command(l, round, id, &k);
	if (prepare(l, round, id, dir, &err) || stage_child_start(&child, &k, dir, NULL, &err)) {
		job->code = EXIT_INCONCLUSIVE;
		text_copy(job->why, sizeof(job->why), err.text);
		job->ended = true;
		return;
	}
	follow(l, round, id, &child);
	job->code = stage_child_release(&child, how, sizeof(how));
	job->seconds = clock_now_s() - began_s;
	if (child.asked_ns) /* it ended because the user asked, so it is run again */
		return;
	snprintf(run, sizeof(run), "%s/run", dir);
	results = stage_read_json(run, "results.json");
	job->v = values_of(results);
	explain(job, dir, &child, how);
	judge_effect(job, round, id, results);
	json_decref(results);
	if (!l->o->keep)
		remove_weights(run);
	job->ended = true;
}

static void tell(const struct ladder *l, unsigned round, enum rung_id id)
{
	const struct ladder_job *job = &l->job[round][id];
	char which[48];

	if (round == ROUND_LOSS)
		snprintf(which, sizeof(which), "losses");
	else
		snprintf(which, sizeof(which), "round %u of %llu", round + 1,
			 (unsigned long long)l->plan.rounds);
	if (!job->ended)
		log_info(l->c->log, LOG_TOPIC_RUN, "%s, %s: stopped", which, rung_list[id].word);
	else if (job->code)
		log_warn(l->c->log, LOG_TOPIC_RUN, "%s, %s: %s", which, rung_list[id].word, job->why);
	else
		log_info(l->c->log, LOG_TOPIC_RUN,
			 "%s, %s: %.4g tokens/s, held-out loss %.5g to %.5g, %.0f s", which,
			 rung_list[id].word, job->v.tokens_per_s, job->v.loss_first, job->v.loss_last,
			 job->seconds);
}

/* -- rounds -- */

static void run_one(struct ladder *l, unsigned round, enum rung_id id)
{
	struct error err = {0};

	if (l->job[round][id].ended || *l->c->stop || *l->rung[id].lacks ||
	    (round && l->job[0][id].ended && l->job[0][id].code))
		return;
	run_job(l, round, id);
	tell(l, round, id);
	if (l->job[round][id].ended && ladder_journal_add(l, round, id, &err))
		log_warn(l->c->log, LOG_TOPIC_RUN, "%s; --resume will run this job again", err.text);
}

static void run_round(struct ladder *l, unsigned round)
{
	const bool up = round % 2 == 0;

	for (int i = 0; i < RUNG_COUNT; i++)
		run_one(l, round, (enum rung_id)(up ? i : RUNG_COUNT - 1 - i));
}

/* Seconds of the ended jobs of a round. */
static double round_s(const struct ladder *l, unsigned round)
{
	double sum = 0;

	for (int i = 0; i < RUNG_COUNT; i++)
		sum += l->job[round][i].ended ? l->job[round][i].seconds : 0;
	return sum;
}

/* Whether another round ends within the time, if it takes as long as the longest one. */
static bool has_time(const struct ladder *l, unsigned round)
{
	double spent_s = round_s(l, ROUND_LOSS), longest_s = 0;

	if (!round || round_s(l, round) > 0) /* the first one always runs, and one that began goes on */
		return true;
	for (unsigned i = 0; i < round; i++) {
		spent_s += round_s(l, i);
		longest_s = fmax(longest_s, round_s(l, i));
	}
	return spent_s + longest_s <= l->plan.within_s;
}

void ladder_run(struct ladder *l)
{
	const double began_s = clock_now_s();

	for (unsigned round = 0; round < l->plan.rounds && !*l->c->stop && has_time(l, round); round++) {
		run_round(l, round);
		if (round == 0 && *l->plan.loss_model)
			run_round(l, ROUND_LOSS);
	}
	l->stopped = *l->c->stop != 0;
	l->seconds = clock_now_s() - began_s;
}
