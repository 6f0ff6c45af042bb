/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/serve/record.h"
#include <math.h>
#include <sys/stat.h>
#include "cmd/serve/serve.h"
#include "cmd/shared/judged.h"
#include "cmd/shared/run_dirs.h"
#include "core/clock.h"
#include "core/file/file.h"
#include "core/text/text.h"
#include "machine/machine.h"
#include "report/report.h"
#include "serve/fields.h"

enum { ENGINES_MOST = 100 };	 /* starts whose phases are recorded, src/report/serving/serving.c */
#define TELEMETRY_NS 1000000000u /* a server runs for days */
#define READING_NS 10000000000u	 /* between two readings of the engine */

static const struct field fields[] = {
#define X(name, unit, better, help) {#name, unit, help, FIELD_F64, better},
	SERVE_FIELDS(X)
#undef X
};

static uint64_t now_ns(void)
{
	return clock_now_ns(clock_monotonic());
}

/* The key by which runs are comparable: the model's name and the device. */
static enum status begin_job(struct serving *s, struct error *err)
{
	struct serve_record *r = &s->record;
	const struct machine_scope scope = {
		.up_to = s->o->sample ? LAYER_NVML : LAYER_HOST, .out = r->dir, .stop = s->c->stop};
	struct machine *m = NULL;
	char key[200];
	const struct job_spec spec = {.dir = r->dir,
				      .command = (const char *const *)s->c->argv,
				      .name = "serve",
				      .key = key,
				      .fields = fields,
				      .field_count = sizeof(fields) / sizeof(fields[0]),
				      .sample = s->o->sample,
				      .real_names = s->o->real_names,
				      .every_ns = TELEMETRY_NS,
				      .started_ns = process_started_ns(),
				      .log = s->c->log,
				      .clock = clock_monotonic()};
	enum status st = machine_read_scope(&m, &scope, NULL, s->c->log, err);

	snprintf(key, sizeof(key), "serve %.150s", serve_name(s->o, (char[256]){0}));
	if (!st)
		st = job_begin(&r->job, &spec, m, err);
	machine_free(m);
	return st;
}

enum status serve_record_begin(struct serving *s, struct error *err)
{
	struct serve_record *r = &s->record;
	struct stat log;
	enum status st = run_dirs_make(r->dir, s->o->out, "serve", err);

	if (st)
		return st;
	if (s->o->request_log)
		text_copy(r->request_log, sizeof(r->request_log), s->o->request_log);
	else
		snprintf(r->request_log, sizeof(r->request_log), "%s/requests.jsonl", r->dir);
	r->log_begin = stat(r->request_log, &log) ? 0 : (uint64_t)log.st_size;
	r->began_ns = now_ns();
	return begin_job(s, err);
}

/* Warns once when the journal can no longer be written. */
static void look(struct serving *s)
{
	struct error why = {0};

	if (!s->record.failed && job_state(s->record.job, &why)) {
		s->record.failed = true;
		log_warn(s->c->log, LOG_TOPIC_RUN,
			 "the server continues, but it can no longer write its journal: %s", why.text);
	}
}

/* Phases of later engines have a number: names are unique. */
static void end_phase(struct serving *s, const char *name, json_t *values)
{
	struct serve_record *r = &s->record;
	const uint64_t now = now_ns();
	char text[16];

	snprintf(text, sizeof(text), s->epoch > 1 ? "%s %u" : "%s", name, (unsigned)s->epoch);
	if (s->epoch <= ENGINES_MOST)
		job_phase(r->job, text, r->phase_ns, now, values);
	else
		json_decref(values);
	r->phase_ns = now;
	look(s);
}

void serve_record_start(struct serving *s)
{
	s->record.phase_ns = now_ns();
}

void serve_record_ready(struct serving *s)
{
	json_t *values = json_deep_copy(s->ready);

	json_object_del(values, "type");
	end_phase(s, "load", values);
}

void serve_record_engine_end(struct serving *s, const char *how)
{
	if (!s->record.job)
		return;
	if (s->engine_ready)
		s->record.served_ns += now_ns() - s->record.phase_ns;
	end_phase(s, s->engine_ready ? "serve" : "load",
		  json_pack("{s:o, s:o*}", "engine_end", field_string(how), "memory", s->record.memory));
	s->record.memory = NULL;
}

void serve_record_reading(struct serving *s, const json_t *line)
{
	static const char *const names[] = {"running",	     "waiting",	      "tokens", "tokens_per_s",
					    "prompt_tokens", "cached_tokens", "ended",	"preemptions",
					    "pages_used",    "pages_cached",  "steps"};
	enum { NAMES = sizeof(names) / sizeof(names[0]) };
	struct job_reading readings[NAMES];
	struct serve_record *r = &s->record;
	const uint64_t now = now_ns();

	json_decref(r->memory);
	r->memory = json_incref(json_object_get(line, "memory"));
	if (!r->job || (r->reading_ns && now - r->reading_ns < READING_NS))
		return;
	r->reading_ns = now;
	for (size_t i = 0; i < NAMES; i++) {
		const json_t *value = json_object_get(line, names[i]);

		readings[i] = (struct job_reading){names[i], value ? json_number_value(value) : (double)NAN};
	}
	job_report(r->job, "serve", now, readings, NAMES);
	look(s);
}

void serve_record_end(struct serving *s, const json_t *summary, const struct error *err)
{
	struct serve_record *r = &s->record;
	json_t *values = summary ? json_deep_copy(summary) : json_object();
	struct error why = {0};

	json_decref(r->memory);
	r->memory = NULL;
	if (!r->job) {
		json_decref(values);
		return;
	}
	json_object_del(values, "type");
	json_object_set_new(values, "engine_starts", json_real(s->epoch));
	json_object_set_new(values, "served_s", json_real((double)r->served_ns * 1e-9));
	job_quiet(r->job);
	serve_note_xids(s);
	if (r->drain_ns)
		job_phase(r->job, "drain", r->drain_ns, now_ns(), NULL);
	job_phase(r->job, "once", r->began_ns, now_ns(), values);
	look(s);
	if (!job_end(&r->job, ENDING_DONE, err->status, err->cause, err->text, &why))
		judged_write_report(s->c->log, r->dir, s->o->real_names);
}
