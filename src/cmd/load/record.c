/* SPDX-License-Identifier: Apache-2.0 */
/* The run directory of a load test: journal, telemetry, and the report at its end. */
#include <limits.h>
#include <unistd.h>
#include "cmd/load/load.h"
#include "cmd/shared/checked_expectations.h"
#include "cmd/shared/input_hashes.h"
#include "cmd/shared/judged.h"
#include "cmd/shared/run_dirs.h"
#include "cmd/shared/show.h"
#include "core/clock.h"
#include "core/file/file.h"
#include "load/measure/fields.h"
#include "machine/machine.h"

static const struct field fields[] = {
#define X(name, unit, better, help) {#name, unit, help, FIELD_F64, better},
	LOAD_FIELDS(X)
#undef X
};

static uint64_t now_ns(void)
{
	return clock_now_ns(clock_monotonic());
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Runs are comparable if they ask for the same: the shape of the load, not the server's address. */
static void make_key(const struct loading *l, struct text *out)
{
	const struct load_opts *o = l->o;

	if (o->trace)
		text_addf(out, "load trace=%.60s speed=%g", base_name(o->trace), o->speed);
	else if (o->users)
		text_addf(out, "load users=%llu think=%g", (unsigned long long)o->users, o->think);
	else if (o->sweep)
		text_add(out, "load sweep");
	else
		text_addf(out, "load rate=%g arrival=%u", o->rate, (unsigned)o->arrival);
	if (o->steps)
		text_addf(out, " steps=%.60s", o->steps);
	if (o->rate_end > 0)
		text_addf(out, " end=%g", o->rate_end);
	if (o->burstiness < 1 || o->burstiness > 1)
		text_addf(out, " burstiness=%g", o->burstiness);
	if (o->dataset)
		text_addf(out, " dataset=%.60s", base_name(o->dataset));
	else if (!o->trace)
		text_addf(out, " input=%.40s", o->input);
	text_addf(out, " output=%.40s turns=%llu prefix=%llu", o->output, (unsigned long long)o->turns,
		  (unsigned long long)o->prefix);
	text_addf(out, "%s%s%s", o->endpoint ? " completions" : "", o->stream ? "" : " whole",
		  o->warm ? " warm" : "");
}

static bool samples_here(const struct loading *l)
{
	return l->o->sample && !l->o->node;
}

static enum status begin_job(struct loading *l, json_t *kept, struct error *err)
{
	const struct machine_scope scope = {
		.up_to = samples_here(l) ? LAYER_NVML : LAYER_HOST, .out = l->dir, .stop = l->c->stop};
	struct machine *m = NULL;
	struct text key = {0};
	struct job_spec spec = {.dir = l->dir,
				.command = (const char *const *)l->c->argv,
				.name = "load",
				.fields = fields,
				.field_count = sizeof(fields) / sizeof(fields[0]),
				.expectations = l->o->expectations,
				.kept = kept,
				.sample = samples_here(l),
				.real_names = l->o->real_names,
				.started_ns = process_started_ns(),
				.log = l->c->log,
				.clock = clock_monotonic()};
	enum status st = machine_read_scope(&m, &scope, NULL, l->c->log, err);

	make_key(l, &key);
	spec.key = text_str(&key);
	if (!st)
		st = job_begin(&l->job, &spec, m, err);
	text_release(&key);
	machine_free(m);
	return st;
}

/* Saves the given expectations with the run, so that they judge it from now on. */
static enum status keep_expectations(const struct loading *l, const struct expectations *e, struct error *err)
{
	const struct text *set = expectations_text(e);
	char path[PATH_MAX + 32];

	if (!l->o->expectations)
		return STATUS_OK;
	snprintf(path, sizeof(path), "%s/" JUDGE_EXPECTATIONS_FILE, l->dir);
	return file_write(path, text_str(set), set->size, err);
}

enum status load_record_begin(struct loading *l, struct error *err)
{
	struct expectations *e = NULL;
	json_t *kept = NULL;
	enum status st = checked_expectations_load(&e, l->o->expectations, err);

	if (st == STATUS_UNAVAILABLE) /* a folder that the command names cannot be read */
		st = err->status = STATUS_BAD_INPUT;
	if (!st)
		st = run_dirs_make(l->dir, l->o->out, "load", err);
	if (!st)
		st = keep_expectations(l, e, err);
	if (!st)
		st = input_hashes_read(&kept, l->dir, err);
	l->began_ns = now_ns();
	if (!st)
		st = begin_job(l, kept, err);
	json_decref(kept);
	expectations_free(e);
	return st;
}

static enum ending ending_of(const struct loading *l)
{
	if (l->end.status == STATUS_CANCELLED)
		return ENDING_CANCELLED;
	return l->end.said ? ENDING_DONE : ENDING_CRASHED;
}

void load_record_window(struct loading *l, const char *name, json_t *values, bool with_values)
{
	const uint64_t from_ns = (uint64_t)json_integer_value(json_object_get(values, "from_ns"));
	const uint64_t to_ns = (uint64_t)json_integer_value(json_object_get(values, "to_ns"));

	json_object_del(values, "from_ns");
	json_object_del(values, "to_ns");
	if (to_ns > from_ns)
		job_phase(l->job, name, from_ns, to_ns, with_values ? json_incref(values) : NULL);
}

/* Only what is known: the user's word, our own server, which may be on a CPU, or the node's telemetry. A node
 * can have more GPUs than our server uses. */
static void add_server_gpus(const struct loading *l)
{
	const size_t gpus = l->o->gpus ? l->o->gpus : l->own_loaded ? l->own_gpus : load_node_gpus(l);

	if (l->end.values && (gpus || l->own_loaded))
		json_object_set_new(l->end.values, "server_gpus", json_integer((json_int_t)gpus));
}

static void add_silences(const struct loading *l)
{
	if (l->node.silence.list && l->end.values)
		json_object_set(l->end.values, "node_silences", l->node.silence.list);
}

int load_record_end(struct loading *l, struct error *err)
{
	static const struct judge_site site = {0};
	struct judged judged = {0};
	struct text note = {0};
	struct error journal = {0};
	int code;
	enum status st;

	job_quiet(l->job);
	if (l->end.values)
		load_record_window(l, "window", l->end.values, false);
	if (l->node.samples)
		job_phase(l->job, "node", l->began_ns, now_ns(), load_node_values(l));
	add_server_gpus(l);
	add_silences(l);
	job_phase(l->job, "once", l->began_ns, now_ns(), json_incref(l->end.values));
	st = job_end(&l->job, ending_of(l), l->end.status, l->end.cause, l->end.text, &journal);
	if (st)
		return command_complain(l->c, &journal);
	st = judged_read(&judged, l->dir, NULL, &site, l->o->real_names, err);
	if (!st)
		st = report_write(l->dir, &judged.in, &note, err);
	code = st				   ? command_complain(l->c, err)
	       : l->end.status == STATUS_BAD_INPUT ? EXIT_USAGE
						   : judged.judgements.exit_code;
	if (!st && l->o->json)
		show_json(l->end.values, JSON_INDENT(2));
	else if (!st)
		st = show_report(&judged.in, REPORT_TEXT, NULL, l->c->colour, err);
	if (!st)
		log_info(l->c->log, LOG_TOPIC_RUN, "report: %s/report.html; summary: %s/SUMMARY.md", l->dir,
			 l->dir);
	text_release(&note);
	judged_release(&judged);
	return code;
}
