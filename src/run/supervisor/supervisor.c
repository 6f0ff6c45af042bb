/* SPDX-License-Identifier: Apache-2.0 */
/* A run from open to close. Only this process writes its journal, and it never opens a vendor library. */
#include "run/supervisor/supervisor.h"
#include <inttypes.h>
#include <errno.h>
#include <signal.h>
#include <unistd.h>
#include "core/math/random.h"
#include "journal/record/record.h"
#include "kernel/fatbin.h"
#include "machine/machine.h"
#include "team/control/control.h"

bool run_stopping(const struct run *r)
{
	return r->o->stop && *r->o->stop;
}

void run_used_gpus(const struct run *r, bool used[RUN_GPUS])
{
	memset(used, 0, RUN_GPUS * sizeof(*used));
	for (size_t i = 0; i < r->plan->count; i++)
		for (size_t k = 0; k < r->plan->steps[i].count; k++) {
			const struct bench_case *c = &r->plan->steps[i].cases[k];

			for (unsigned g = 0; !c->skip && g < c->target.gpu_count; g++)
				if (c->target.gpu[g] < RUN_GPUS)
					used[c->target.gpu[g]] = true;
		}
}

void run_journal(struct run *r, enum journal_type type, json_t *body)
{
	if (!r->status && !body)
		r->status = error_errno(r->err, ENOMEM, "a journal line of type %s", journal_type_name(type));
	if (!r->status)
		r->status = journal_append(r->journal, type, body, r->err);
	json_decref(body);
}

void run_progress(struct run *r, const struct bench_case *c, const char *phase)
{
	const struct run_progress *p = &r->o->progress;
	double share = r->out->cases ? (double)r->case_done / (double)r->out->cases : 1;
	char what[160];

	if (!p->update)
		return;
	snprintf(what, sizeof(what), "%s on %s: %s", c->probe->name, c->target_text, phase);
	p->update(p->arg, r->case_done, r->out->cases, what, r->plan->seconds_expected * (1 - share));
}

void run_end(struct run *r, const struct bench_case *c, enum ending ending, enum status status,
	     enum cause cause, const char *text, const char *place)
{
	json_t *body;

	r->last_ending = ending;
	body = json_pack("{s:i, s:s, s:s, s:s, s:o}", "case", (int)c->id, "ending", ending_name(ending),
			 "status", status_name(status), "cause", cause_name(cause), "text",
			 field_string(text));

	if (body && *place)
		json_object_set_new(body, "place", field_string(place));
	r->note[c->id].done = ending == ENDING_DONE;
	r->note[c->id].status = status;
	r->note[c->id].cause = cause;
	telemetry_reader_write(r); /* the end is synced, and so are the readings before it */
	run_journal(r, JOURNAL_END, body);
	log_debug(r->o->log, LOG_TOPIC_RUN, "case %u %s: %s, %s %s", c->id, c->key, ending_name(ending),
		  status_name(status), text);
	if (ending == ENDING_NOT_RUN)
		r->out->not_run++;
	else if (ending == ENDING_DONE && !status)
		r->out->done++;
	else
		r->out->failed++;
	r->case_done++;
	run_progress(r, c, ending_name(ending));
}

/* The machine as the journal shows it. The caller owns it; NULL: out of memory. */
static json_t *shown_facts(const struct run *r, bool real_names)
{
	return real_names ? json_deep_copy(machine_json(r->machine)) : machine_json_shared(r->machine);
}

static void write_open(struct run *r, const json_t *facts)
{
	const struct run_options *o = r->o;
	const char *node = json_string_value(json_object_get(json_object_get(facts, "system"), "hostname"));
	const json_t *boot = json_object_get(json_object_get(facts, "system"), "boot_id");
	char wall[32], build[PROCESS_BUILD], salt[33];
	json_t *body;

	process_build(build);
	clock_wall_text(wall, sizeof(wall));
	body = json_pack("{s:i, s:s, s:o, s:s, s:s, s:o, s:I, s:s, s:s, s:{s:b, s:b, s:b, s:b}}", "schema",
			 JOURNAL_SCHEMA, "program", ASSAY_VERSION, "command", field_command(o->command),
			 "build", build, "wall", wall, "node", field_string(node ? node : ""), "seed",
			 (json_int_t)o->seed, "suite", r->plan->suite, "expectations",
			 o->expectations ? o->expectations : "builtin", "options", "resume", o->resume,
			 "beside", o->beside, "sample", o->sample, "real_names", o->real_names);
	if (body && boot)
		json_object_set(body, "boot", (json_t *)boot);
	if (body && !o->resume && random_hex(salt, sizeof(salt)))
		json_object_set_new(body, "salt", json_string(salt));
	if (body && o->started_ns)
		json_object_set_new(body, "started", json_integer((json_int_t)o->started_ns));
	if (body && o->kept)
		json_object_set(body, "kept", (json_t *)o->kept);
	if (body && getenv("ASSAY_TEST_PLANT")) /* checked by fault_injection_asked */
		json_object_set_new(body, "planted", field_string(getenv("ASSAY_TEST_PLANT")));
	if (body && o->price_per_hour > 0)
		json_object_set_new(body, "price_per_hour", json_real(o->price_per_hour));
	if (body && o->control)
		json_object_set_new(body, "team",
				    control_team_json(control_shape(o->control), o->rank, false));
	run_journal(r, JOURNAL_OPEN, body);
}

/* The same machine has the same CPU model and the same GPUs by address and UUID. */
static bool same_machine(const struct machine *a, const struct machine *b)
{
	if (machine_gpu_count(a) != machine_gpu_count(b) ||
	    strcmp(machine_cpu(a)->model, machine_cpu(b)->model) ||
	    machine_cpu(a)->threads != machine_cpu(b)->threads)
		return false;
	for (unsigned i = 0; i < machine_gpu_count(a); i++)
		if (strcmp(machine_gpu(a, i)->pci, machine_gpu(b, i)->pci) ||
		    strcmp(machine_gpu(a, i)->uuid, machine_gpu(b, i)->uuid))
			return false;
	return true;
}

/* Figures of two builds, or of two sets of random data, must not be in one table. */
static enum status check_begun(const struct run *r, const json_t *open, struct error *err)
{
	const char *program = json_string_value(json_object_get(open, "program"));
	const char *build = json_string_value(json_object_get(open, "build"));
	json_int_t seed = json_integer_value(json_object_get(open, "seed"));
	char ours[PROCESS_BUILD];

	process_build(ours);
	if (!program || !build || strcmp(program, ASSAY_VERSION) || strcmp(build, ours))
		return error_set(
			err, STATUS_BAD_INPUT,
			"%s: it was begun by another build, assay %.20s (%.16s), and this is %s (%s): start "
			"a new run in another directory",
			r->o->dir, program ? program : "?", build ? build : "unnamed", ASSAY_VERSION, ours);
	if (seed != (json_int_t)r->o->seed)
		return error_set(err, STATUS_BAD_INPUT, "%s: it was begun with --seed %lld, not %lld",
				 r->o->dir, (long long)seed, (long long)r->o->seed);
	return STATUS_OK;
}

static enum status check_same(const struct run *r, const struct record *earlier, struct error *err)
{
	const char *hash = json_string_value(json_object_get(earlier->plan, "hash"));
	struct machine *m = NULL, *now = NULL;
	json_t *facts;
	enum status st;
	bool same;

	if (!hash || strcmp(hash, r->plan->hash))
		return error_set(
			err, STATUS_BAD_INPUT,
			"%s: its plan differs (%.12s, now %.12s): resume with the same suite, target, "
			"seconds and devices, or start a new run in another directory",
			r->o->dir, hash ? hash : "none", r->plan->hash);
	st = machine_from_json(&m, earlier->machine, err);
	if (st)
		return st;
	facts = shown_facts(r, json_is_true(json_object_get(json_object_get(earlier->open, "options"),
							    /* in the form that the earlier run wrote */
							    "real_names")));
	st = machine_from_json(&now, facts, err);
	same = !st && same_machine(m, now);
	json_decref(facts);
	machine_free(now);
	machine_free(m);
	if (st)
		return st;
	if (!same)
		return error_set(err, STATUS_BAD_INPUT, "%s: it was begun on another machine", r->o->dir);
	return STATUS_OK;
}

/* The machine was rebooted since the run began, in or after the case that began last. */
static void tell_reboot(const struct run *r, const struct record *earlier)
{
	bool real = json_is_true(json_object_get(json_object_get(earlier->open, "options"), "real_names"));
	json_t *facts = shown_facts(r, real);
	const char *boot = json_string_value(json_object_get(json_object_get(facts, "system"), "boot_id"));
	const struct record_case *c = NULL;

	for (size_t i = 0; i < earlier->case_count; i++)
		if (earlier->cases[i].begun && (!c || earlier->cases[i].t0_ns >= c->t0_ns))
			c = &earlier->cases[i];
	if (c && boot && *earlier->boot && strcmp(boot, earlier->boot))
		log_warn(r->o->log, LOG_TOPIC_RUN,
			 "the machine was rebooted since this run began: %s case %u (%s on %s)",
			 c->ended ? "after" : "during", c->id, c->key, c->target);
	json_decref(facts);
}

/* Cases that an earlier run ended stay done. A case that began and did not end is reported and runs again. */
static enum status take_up(struct run *r, struct error *err)
{
	struct record earlier;
	enum status st = record_read(&earlier, r->o->dir, err);

	if (st)
		return st;
	if (earlier.cut_bytes)
		log_warn(r->o->log, LOG_TOPIC_RUN,
			 "%s/" JOURNAL_FILE ": %" PRIu64 " bytes from line %" PRIu64
			 " could not be read and are cut; they are saved in " JOURNAL_FILE JOURNAL_CUT,
			 r->o->dir, earlier.cut_bytes, earlier.cut_line);
	st = check_begun(r, earlier.open, err);
	if (!st)
		st = check_same(r, &earlier, err);
	if (!st)
		tell_reboot(r, &earlier);
	for (size_t i = 0; !st && i < earlier.case_count && i < r->plan->case_count; i++) {
		const struct record_case *c = &earlier.cases[i];
		bool again = c->begun && !c->ended;

		r->attempt[i] = c->begun;
		r->done[i] = c->ended && c->ending != ENDING_CANCELLED && c->ending != ENDING_NOT_RUN &&
			     c->ending != ENDING_CUT;
		r->case_done += r->done[i];
		if (r->done[i]) {
			case_outcome_record(&r->note[i], c);
			r->searched = r->searched || record_phase(c, "isolated");
		}
		if (r->done[i])
			c->ending == ENDING_DONE && !c->status ? r->out->done++ : r->out->failed++;
		if (again)
			log_warn(r->o->log, LOG_TOPIC_RUN,
				 "case %u began but did not end, and runs again: %s on %s", c->id, c->key,
				 c->target);
	}
	for (size_t i = r->plan->case_count; !st && i < earlier.case_count; i++) {
		r->repeated = r->repeated || json_object_get(earlier.cases[i].plan, "again");
		if (!st)
			st = blas_search_take_up(r, &earlier.cases[i], err);
	}
	r->next_id = (unsigned)earlier.case_count;
	record_release(&earlier);
	return st;
}

static enum status open_run(struct run *r, struct error *err)
{
	size_t count = r->plan->case_count ? r->plan->case_count : 1;
	enum status st = run_reserve(r, count, err);
	json_t *facts;

	if (st)
		return st;
	r->next_id = (unsigned)r->plan->case_count;
	r->disturbed = calloc(count, sizeof(*r->disturbed));
	if (!r->disturbed)
		return error_errno(err, ENOMEM, "%s: %zu cases", r->o->dir, count);
	if (r->o->resume)
		st = take_up(r, err);
	if (!st)
		st = journal_create(&r->journal, r->o->dir, r->o->resume, r->o->clock, err);
	if (st)
		return st;
	r->err = err;
	facts = shown_facts(r, r->o->real_names);
	write_open(r, facts);
	if (!r->o->resume) {
		run_journal(r, JOURNAL_MACHINE, json_pack("{s:O}", "facts", facts));
		run_journal(r, JOURNAL_PLAN, plan_json(r->plan, r->machine));
	}
	json_decref(facts);
	return r->status;
}

static void count_cases(struct run *r)
{
	for (size_t i = 0; i < r->plan->count; i++)
		for (size_t k = 0; k < r->plan->steps[i].count; k++) {
			if (r->plan->steps[i].cases[k].team)
				r->team_cases++;
			if (r->plan->steps[i].cases[k].skip) {
				r->out->skipped++;
				r->case_done++;
			}
		}
}

static bool kernels_ran_on(unsigned cc)
{
	const struct kernel_fatbin *f;
	size_t count = 0;

	while ((f = kernel_fatbin_at(count)) && !kernel_fatbin_ran(f, cc))
		count++;
	return f || !count; /* without kernels nothing needs a warning */
}

/* Kernels are built for more architectures than the developers' devices. Warns if a device has such an
 * architecture. */
static void name_untried(const struct run *r)
{
	bool used[RUN_GPUS];

	run_used_gpus(r, used);
	for (unsigned i = 0; i < RUN_GPUS && i < machine_gpu_count(r->machine); i++) {
		unsigned cc = (unsigned)gpu_get(machine_gpu(r->machine, i), GPU_FACT_cc, 0);

		if (!used[i] || !cc || kernels_ran_on(cc))
			continue;
		log_warn(r->o->log, LOG_TOPIC_RUN,
			 "gpu%u is sm_%u: this program's kernels were never tested on this architecture "
			 "(assay list kernels)",
			 i, cc);
		return; /* once is enough */
	}
}

static void close_run(struct run *r)
{
	bool cancelled = run_stopping(r), parted;
	json_t *body;

	worker_pool_dismiss(r, &r->keeper);
	health_end(r);
	telemetry_reader_stop(r);
	parted = team_part(r);
	/* before the close: engines that started on all ranks together end together */
	worker_pool_dismiss(r, &r->slot);
	r->out->cancelled = cancelled;
	body = json_pack("{s:s, s:s}", "ending", ending_name(cancelled ? ENDING_CANCELLED : ENDING_DONE),
			 "text", cancelled ? "stopped on request" : "");
	if (body && r->o->control)
		json_object_set_new(body, "team",
				    control_team_json(control_shape(r->o->control), r->o->rank, parted));
	run_journal(r, JOURNAL_CLOSE, body);
}

enum status run_plan(const struct plan *p, const struct machine *m, const struct probe *const *registry,
		     const struct run_options *o, struct run_summary *out, struct error *err)
{
	struct run *r = calloc(1, sizeof(*r));
	enum status st;

	if (!r)
		return error_errno(err, ENOMEM, "a run in %s", o->dir);
	*out = (struct run_summary){.cases = p->case_count};
	text_copy(out->dir, sizeof(out->dir), o->dir);
	r->plan = p;
	r->machine = m;
	r->registry = registry;
	r->o = o;
	r->out = out;
	r->keeper = r->slot = (struct worker){.p = {.channel = -1, .output = -1}, .run = r};
	r->team = r->teams;
	st = open_run(r, err);
	if (!st) {
		count_cases(r);
		name_untried(r);
		r->t0_ns = clock_now_ns(o->clock);
		health_begin(r);
		telemetry_reader_start(r);
		for (size_t i = 0; i < p->count && !run_stopping(r) && !r->status; i++)
			worker_pool_step(r, &p->steps[i]);
		repeat_disturbed(r);
		blas_search_round(r);
		isolate_search_searches(r);
		close_run(r);
		st = r->status;
	}
	journal_close(&r->journal);
	free(r->attempt);
	free(r->tries);
	free(r->done);
	free(r->note);
	free(r->disturbed);
	free(r);
	return st;
}
