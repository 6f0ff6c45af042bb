/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/health/look.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cmd/health/baseline.h"
#include "cmd/health/lock.h"
#include "cmd/health/silent.h"
#include "cmd/shared/checked_expectations.h"
#include "cmd/shared/judged.h"
#include "core/file/file.h"
#include "core/process/process.h"
#include "probe/registry.h"
#include "run/run.h"
#include "run/suite/facts_needed.h"
#include "run/suite/target.h"

enum { DIR_MAX = 256 };

/* Makes a private temporary folder. A small in-memory file system is the second choice, for a full disk. */
static enum status temporary(char out[DIR_MAX], struct error *err)
{
	const char *stated = getenv("TMPDIR");
	const char *const places[] = {stated && *stated ? stated : "/tmp", "/dev/shm"};

	for (size_t i = 0; i < 2; i++) {
		snprintf(out, DIR_MAX, "%.200s/assay-health-XXXXXX", places[i]);
		if (mkdtemp(out))
			return STATUS_OK;
	}
	return error_set(err, STATUS_NO_RESOURCE, "no temporary folder can be made in %.200s or /dev/shm",
			 places[0]);
}

/* Saves the stated machine in the run directory, where the judge finds it. */
static enum status state_site(const struct look *l, const char *dir, struct error *err)
{
	struct expectations *e = NULL;
	struct text text = {0};
	char path[DIR_MAX + 32];
	enum status st;

	if (!l->site.expect && !l->site.file)
		return STATUS_OK;
	st = checked_expectations_load(&e, l->expectations, err);
	if (!st)
		st = judge_site_text(&text, &l->site, e, err);
	snprintf(path, sizeof(path), "%s/" JUDGE_SITE_FILE, dir);
	if (!st)
		st = file_write(path, text_str(&text), text.size, err);
	text_release(&text);
	expectations_free(e);
	return st == STATUS_UNAVAILABLE ? (err->status = STATUS_BAD_INPUT) : st;
}

/* Runs the plan in `dir` and judges it. */
static enum status run_and_judge(const struct look *l, const struct plan *plan, const struct machine *m,
				 const char *dir, struct judged *j, struct error *err)
{
	static const struct judge_site kept = {0};
	struct run_options o = {
		.dir = dir,
		.command = (const char *const *)l->c->argv,
		.sample = machine_is_live(m),
		.seed = 1,
		.started_ns = process_started_ns(),
		.stop = l->stop,
		.log = machine_is_live(m) ? l->c->log : NULL, /* readings need no binding and no telemetry */
		.clock = clock_monotonic(),
		.expectations = l->expectations,
	};
	struct run_summary summary = {0};
	enum status st = state_site(l, dir, err);

	if (!st)
		st = run_plan(plan, m, probe_list, &o, &summary, err);
	if (!st)
		st = judged_read(j, dir, l->expectations, &kept, false, err);
	return st;
}

/* The readings sample nothing, so they pass for those of a recorded machine: then nobody measures. */
static enum status not_live(struct machine **m, struct error *err)
{
	json_t *facts = json_deep_copy(machine_json(*m));
	enum status st;

	if (!facts)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "no memory for the machine");
	machine_free(*m);
	*m = NULL;
	json_object_set_new(facts, "live", json_false());
	st = machine_from_json(m, facts, err);
	json_decref(facts);
	return st;
}

static enum status judge_readings(const struct look *l, struct machine **m, struct health_finding *f,
				  struct error *err)
{
	struct suite *suite = NULL;
	struct judged j = {0};
	struct plan plan = {0};
	char dir[DIR_MAX] = "";
	enum status st = not_live(m, err);

	if (!st)
		st = suite_read(&suite, "health", err);
	if (!st)
		st = plan_build(&plan, suite, *m, probe_list, &(struct plan_options){.stop = l->stop}, err);
	if (!st)
		st = temporary(dir, err);
	if (!st)
		st = run_and_judge(l, &plan, *m, dir, &j, err);
	if (!st)
		health_finding_take(f, &j);
	if (*dir)
		file_remove_tree(dir);
	judged_release(&j);
	plan_release(&plan);
	suite_free(suite);
	return st;
}

/* Reads this machine one layer after the other, so that no helper starts after one that hangs. *m stays NULL
 * if the finding says why there are no facts. */
static enum status read_live(const struct look *l, struct machine **m, struct health_finding *f,
			     struct error *err)
{
	struct machine_scope scope = {.up_to = LAYER_NVML, .stop = l->stop};
	struct silent_gpus listed = {0};
	enum status st;

	if (!silent_ask_driver(&listed, l->stop, f))
		return STATUS_OK;
	st = machine_read_scope(m, &scope, NULL, l->c->log, err);
	if (st)
		return st;
	if (!silent_name_hanging(&listed, *m, l->stop, f)) {
		silent_ask_cuda(*m, l->stop, f);
		machine_free(*m);
		*m = NULL;
		scope.up_to = LAYER_CUDA;
		return machine_read_scope(m, &scope, NULL, l->c->log, err);
	}
	machine_free(*m);
	*m = NULL;
	return STATUS_OK;
}

enum status look_read(const struct look *l, struct health_finding *f, struct error *err)
{
	const struct machine_scope recorded = {.up_to = LAYER_CUDA, .stop = l->stop};
	struct machine *m = NULL;
	enum status st;

	if (l->machine) {
		st = machine_read_scope(&m, &recorded, l->machine, l->c->log, err);
		if (st) /* the user named a wrong folder */
			err->status = st = STATUS_BAD_INPUT;
	} else {
		st = read_live(l, &m, f, err);
	}
	if (!st && m)
		st = judge_readings(l, &m, f, err);
	machine_free(m);
	return st;
}

/* The first GPU that another process uses; NULL: none. */
static const struct gpu *busy_gpu(const struct machine *m, char *why, size_t size)
{
	for (unsigned i = 0; i < machine_gpu_count(m); i++)
		if (gpu_busy(machine_gpu(m, i), why, size))
			return machine_gpu(m, i);
	return NULL;
}

/* Takes a judged load: its faults, and its figures. */
static enum status take_figures(const struct judged *j, struct health_state *state, struct health_finding *f,
				struct error *err)
{
	size_t figures, judged;
	enum status st = baseline_take(state, f, j, &figures, &judged, err);

	if (!st && !figures)
		health_finding_add(f, HEALTH_UNKNOWN, CAUSE_NONE, false, NULL,
				   "the run has no sound figure of one GPU: %s", j->judgements.headline);
	else if (!st && f->verdict == HEALTH_PASS)
		snprintf(f->text, sizeof(f->text),
			 "%zu figures, %zu compared with earlier runs, none below them", figures, judged);
	return st;
}

static enum status load_gpus(const struct look *l, const struct suite *suite, const struct machine *m,
			     struct health_state *state, struct health_finding *f, struct error *err)
{
	struct plan_options wishes = {.stop = l->stop};
	struct plan plan = {0};
	struct judged j = {0};
	char dir[DIR_MAX] = "";
	enum status st = plan_build(&plan, suite, m, probe_list, &wishes, err);

	if (!st && l->out && strlen(l->out) >= sizeof(dir))
		st = error_set(err, STATUS_BAD_INPUT, "--out: the path is too long");
	else if (!st && l->out) {
		text_copy(dir, sizeof(dir), l->out);
		st = file_make_dir(dir, err);
	} else if (!st)
		st = temporary(dir, err);
	if (!st)
		st = run_and_judge(l, &plan, m, dir, &j, err);
	if (!st) {
		health_finding_take(f, &j);
		st = take_figures(&j, state, f, err);
	}
	if (*dir && !l->out)
		file_remove_tree(dir);
	judged_release(&j);
	plan_release(&plan);
	return st;
}

enum status look_active(const struct look *l, struct health_state *state, struct health_finding *f,
			struct error *err)
{
	struct facts_needed scope;
	struct suite *suite = NULL;
	struct machine *m = NULL;
	char why[160];
	enum status st = suite_read(&suite, l->suite, err);

	if (st) /* the user named a wrong file */
		return err->status = STATUS_BAD_INPUT;
	facts_needed_of(&scope, suite, probe_list);
	scope.machine.stop = l->stop;
	st = machine_read_scope(&m, &scope.machine, NULL, l->c->log, err);
	if (!st && !machine_gpu_count(m))
		health_finding_add(f, HEALTH_UNKNOWN, CAUSE_NO_HARDWARE, false, NULL,
				   "--active: this machine has no GPU to load");
	else if (!st && busy_gpu(m, why, sizeof(why)))
		health_finding_add(f, HEALTH_UNKNOWN, CAUSE_BUSY, false, NULL,
				   "--active: nothing was measured: %s", why);
	else if (!st)
		st = load_gpus(l, suite, m, state, f, err);
	machine_free(m);
	suite_free(suite);
	return st;
}

enum status look_run(const char *dir, struct health_state *state, struct health_finding *f, struct error *err)
{
	static const struct judge_site kept = {0};
	struct judged j = {0};
	enum status st = judged_read(&j, dir, NULL, &kept, false, err);

	if (!st && j.record.node_count > 1)
		st = error_set(err, STATUS_BAD_INPUT,
			       "--run: %s is a run of %zu nodes; a baseline belongs to one node", dir,
			       j.record.node_count);
	if (!st)
		st = take_figures(&j, state, f, err);
	judged_release(&j);
	return st;
}
