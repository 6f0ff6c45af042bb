/* SPDX-License-Identifier: Apache-2.0 */
#include "run/supervisor/job.h"
#include <errno.h>
#include <math.h>
#include <poll.h>
#include "core/file/file.h"
#include "core/process/process.h"
#include "core/math/random.h"
#include "core/text/text.h"
#include "journal/telemetry/telemetry_block.h"
#include "journal/journal.h"
#include "journal/record/record.h"
#include "machine/machine.h"
#include "run/supervisor/lines.h"
#include "telemetry/telemetry.h"

#define BLOCK_NS 1000000000u /* longest time that readings wait to be journaled together */
#define LINGER_NS 600000000u /* GPM reports an interval after its end */
enum {
	DIFFERENCES_SHOWN = 3,
	GPUS_MAX = 64,
	READINGS_MAX = 1 << 22 /* readings per series; beyond it, every second one is dropped from memory */
};

struct job {
	struct job_spec spec;
	struct journal *journal;
	struct process sampler;
	struct sampler_life life;
	char pci[GPUS_MAX][sizeof(((struct gpu *)0)->pci)];
	unsigned gpu_count;
	bool sampling;
	struct lines in;
	struct telemetry_block block;
	uint64_t block_since_ns;
	struct series *series;
	size_t series_count;
	enum status status;
	struct error err;
};

static void write_line(struct job *j, enum journal_type type, json_t *body)
{
	if (!j->status && !body)
		j->status =
			error_errno(&j->err, ENOMEM, "a journal line of type %s", journal_type_name(type));
	if (!j->status)
		j->status = journal_append(j->journal, type, body, &j->err);
	json_decref(body);
}

static void write_open(struct job *j, const json_t *facts)
{
	const struct job_spec *s = &j->spec;
	const char *node = json_string_value(json_object_get(json_object_get(facts, "system"), "hostname"));
	const json_t *boot = json_object_get(json_object_get(facts, "system"), "boot_id");
	char wall[32], build[PROCESS_BUILD], salt[33];
	json_t *body;

	process_build(build);
	clock_wall_text(wall, sizeof(wall));
	body = json_pack("{s:i, s:s, s:o, s:s, s:s, s:o, s:s, s:s, s:{s:b, s:b}}", "schema", JOURNAL_SCHEMA,
			 "program", ASSAY_VERSION, "command", field_command(s->command), "build", build,
			 "wall", wall, "node", field_string(node ? node : ""), "suite", s->name,
			 "expectations", s->expectations ? s->expectations : "builtin", "options", "sample",
			 s->sample, "real_names", s->real_names);
	if (body && s->resume)
		json_object_set_new(json_object_get(body, "options"), "resume", json_true());
	if (body && !s->resume && random_hex(salt, sizeof(salt)))
		json_object_set_new(body, "salt", json_string(salt));
	if (body && s->kept)
		json_object_set(body, "kept", s->kept);
	if (body && boot)
		json_object_set(body, "boot", (json_t *)boot);
	if (body && getenv("ASSAY_TEST_PLANT")) /* checked by planted_put, if the job has ranks */
		json_object_set_new(body, "planted", field_string(getenv("ASSAY_TEST_PLANT")));
	if (body && s->started_ns)
		json_object_set_new(body, "started", json_integer((json_int_t)s->started_ns));
	write_line(j, JOURNAL_OPEN, body);
}

static void write_plan(struct job *j, const struct machine *m)
{
	const struct job_spec *s = &j->spec;
	json_t *gpus = json_array(), *one, *body;

	for (unsigned i = 0; i < machine_gpu_count(m); i++)
		if (machine_gpu(m, i)->granted)
			json_array_append_new(gpus, json_string(machine_gpu(m, i)->pci));
	one = json_pack("{s:i, s:o, s:s, s:s, s:{}, s:s, s:s, s:o, s:s, s:s, s:i, s:s, s:{s:s}, s:n}", "case",
			0, "key", field_string(s->key), "probe", s->name, "engine", "", "options", "kind",
			"job", "target", "node", "gpus", gpus, "phases", "once", "require", "measured",
			"limit_ms", 0, "group", s->name, "work", "limit", s->limit ? s->limit : "", "skip");
	body = json_pack("{s:s, s:s, s:{s:o}, s:[{s:b, s:[o]}]}", "hash", s->hash ? s->hash : "", "suite",
			 s->name, "fields", s->name, field_rows_json(s->fields, s->field_count), "steps",
			 "together", 0, "cases", one);
	if (body && s->settings)
		json_object_set(body, "settings", s->settings);
	write_line(j, JOURNAL_PLAN, body);
}

static void note_gpus(struct job *j, const struct machine *m)
{
	for (unsigned i = 0; i < machine_gpu_count(m) && j->gpu_count < GPUS_MAX; i++)
		if (machine_gpu(m, i)->granted)
			text_copy(j->pci[j->gpu_count++], sizeof(j->pci[0]), machine_gpu(m, i)->pci);
}

static void start_sampler(struct job *j)
{
	const char *pci[GPUS_MAX];
	const struct telemetry_spec spec = {.gpu_pci = pci, .gpu_count = j->gpu_count, .host = true};
	struct error err = {0};

	for (unsigned i = 0; i < j->gpu_count; i++)
		pci[i] = j->pci[i];
	j->sampling = !sampler_start(&j->sampler, &spec, &err);
	j->life.started_ns = clock_now_ns(j->spec.clock);
	if (!j->sampling)
		log_warn(j->spec.log, LOG_TOPIC_RUN, "no telemetry: %s", err.text);
}

static void free_job(struct job *j)
{
	for (size_t i = 0; i < j->series_count; i++)
		series_release(&j->series[i]);
	free(j->series);
	telemetry_block_release(&j->block);
	lines_release(&j->in);
	journal_close(&j->journal);
	free(j);
}

/* Appends the settings that differ: ": training: precision was fp8 and is fp32". Nothing if an older run
 * saved none. */
static void add_differences(struct text *out, const json_t *was, const json_t *is)
{
	const json_t *section, *value;
	const char *name, *setting;
	unsigned count = 0;

	json_object_foreach((json_t *)is, name, section)
		json_object_foreach((json_t *)section, setting, value)
	{
		const char *now = json_string_value(value);
		const char *before = json_string_value(json_object_get(json_object_get(was, name), setting));

		if (before && now && strcmp(before, now) && count < DIFFERENCES_SHOWN)
			text_addf(out, "%s%s: %s was %s and is %s", count++ ? ", " : ": ", name, setting,
				  before, now);
	}
}

/* Checks that the directory has the same job with the same settings. *attempt: number of this attempt. */
static enum status take_up(const struct job_spec *s, int *attempt, struct error *err)
{
	struct record earlier;
	struct text other = {0};
	enum status st = record_read_run(&earlier, s->dir, err);
	const char *hash;

	if (st)
		return st;
	hash = json_string_value(json_object_get(earlier.plan, "hash"));
	if (!earlier.case_count || strcmp(earlier.cases[0].probe, s->name))
		st = error_set(err, STATUS_BAD_INPUT, "%s: the run there is not a run of %s", s->dir,
			       s->name);
	else if (s->hash && (!hash || strcmp(hash, s->hash))) {
		add_differences(&other, json_object_get(earlier.plan, "settings"), s->settings);
		st = error_set(
			err, STATUS_BAD_INPUT,
			"%s: it was begun with another configuration%s; start a new run in another directory",
			s->dir, text_str(&other));
	}
	if (!st && earlier.cut_bytes)
		log_warn(s->log, LOG_TOPIC_RUN,
			 "%s/" JOURNAL_FILE ": %llu bytes from line %llu could not be read and are cut; they "
			 "are saved in " JOURNAL_FILE JOURNAL_CUT,
			 s->dir, (unsigned long long)earlier.cut_bytes, (unsigned long long)earlier.cut_line);
	*attempt = 2;
	text_release(&other);
	record_release(&earlier);
	return st;
}

enum status job_begin(struct job **out, const struct job_spec *s, const struct machine *m, struct error *err)
{
	struct job *j = calloc(1, sizeof(*j));
	json_t *facts = NULL;
	enum status st = STATUS_OK;
	int attempt = 1;

	*out = NULL;
	if (!j)
		return error_errno(err, ENOMEM, "a job");
	j->spec = *s;
	j->sampler = (struct process){.channel = -1, .output = -1};
	if (s->resume)
		st = take_up(s, &attempt, err);
	if (!st)
		st = journal_create(&j->journal, s->dir, s->resume, s->clock, err);
	if (st) {
		free_job(j);
		return st;
	}
	facts = s->real_names ? json_deep_copy(machine_json(m)) : machine_json_shared(m);
	write_open(j, facts);
	if (!s->resume) {
		write_line(j, JOURNAL_MACHINE, json_pack("{s:O}", "facts", facts));
		write_plan(j, m);
	}
	json_decref(facts);
	write_line(j, JOURNAL_BEGIN, json_pack("{s:i, s:i, s:i}", "case", 0, "attempt", attempt, "pid", 0));
	if (j->status) {
		st = error_set_cause(err, j->status, j->err.cause, "%s", j->err.text);
		free_job(j);
		return st;
	}
	note_gpus(j, m);
	if (s->sample)
		start_sampler(j);
	*out = j;
	return STATUS_OK;
}

int job_channel(const struct job *j)
{
	return j->sampling ? j->sampler.channel : -1;
}

enum status job_state(const struct job *j, struct error *why)
{
	return j->status ? error_set_cause(why, j->status, j->err.cause, "%s", j->err.text) : STATUS_OK;
}

static void write_block(struct job *j)
{
	json_t *body;

	while ((body = telemetry_block_take(&j->block)))
		write_line(j, JOURNAL_TELEMETRY, body);
}

/* A job of days must not fill the memory, so every second reading of a long series is dropped. */
static void thin(struct series *s)
{
	size_t kept = 0;

	if (s->count < READINGS_MAX)
		return;
	for (size_t i = 0; i < s->count; i += 2, kept++) {
		s->t_ns[kept] = s->t_ns[i];
		s->value[kept] = s->value[i];
	}
	s->count = kept;
}

/* True if the job keeps fewer readings, and the last one is recent. Each event is kept. */
static bool is_early(const struct job *j, const struct series *s, uint64_t t_ns)
{
	return s->count && t_ns - s->t_ns[s->count - 1] < j->spec.every_ns && s->kind != SIGNAL_EVENT;
}

bool job_take_line(void *arg, const char *line, size_t size)
{
	struct job *j = arg;
	json_t *body = json_loadb(line, size, 0, NULL);
	const char *source = json_string_value(json_object_get(body, "source"));
	const char *signal = json_string_value(json_object_get(body, "signal"));
	const json_t *at = json_object_get(body, "at"), *v = json_object_get(body, "v");
	enum signal_kind kind = telemetry_block_kind(body);
	struct series *s;

	if (!json_is_array(at) || json_array_size(at) != json_array_size(v) ||
	    series_find(&s, &j->series, &j->series_count, source, signal, kind, NULL)) {
		json_decref(body);
		return true;
	}
	if (!j->block.readings)
		j->block_since_ns = clock_now_ns(j->spec.clock);
	for (size_t i = 0; i < json_array_size(at); i++) {
		const json_t *time = json_array_get(at, i), *value = json_array_get(v, i);

		if (!json_is_integer(time) || json_integer_value(time) < 0 || !json_is_number(value) ||
		    is_early(j, s, (uint64_t)json_integer_value(time)))
			continue;
		series_add(s, (uint64_t)json_integer_value(time), json_number_value(value), NULL);
		telemetry_block_add(&j->block, source, signal, kind, (uint64_t)json_integer_value(time),
				    json_number_value(value));
	}
	thin(s);
	json_decref(body);
	return true;
}

static void lose_sampler(struct job *j)
{
	sampler_stop(&j->sampler);
	process_release(&j->sampler);
	lines_release(&j->in);
	j->sampling = false;
}

/* The sampler starts again, unless it dies over and over. */
static void tell_loss(struct job *j)
{
	static const char why[] = "the sampler died or wrote invalid lines";

	if (sampler_died(&j->life, clock_now_ns(j->spec.clock)))
		log_warn(j->spec.log, LOG_TOPIC_RUN, "telemetry has a gap: %s; it starts again in %u s", why,
			 1u << (j->life.deaths - 1));
	else
		log_warn(j->spec.log, LOG_TOPIC_RUN, "telemetry ends here: %s %u times", why, j->life.deaths);
}

void job_receive(struct job *j)
{
	if (!j->sampling && j->life.again_ns && clock_now_ns(j->spec.clock) >= j->life.again_ns) {
		j->life.again_ns = 0;
		start_sampler(j);
	}
	if (j->sampling && lines_read(&j->in, j->sampler.channel, job_take_line, j) != LINES_MORE) {
		tell_loss(j);
		lose_sampler(j);
	}
	if (j->block.readings && clock_now_ns(j->spec.clock) - j->block_since_ns >= BLOCK_NS)
		write_block(j);
}

void job_report(struct job *j, const char *source, uint64_t t_ns, const struct job_reading *readings,
		size_t count)
{
	struct telemetry_block one = {0};
	json_t *body;

	for (size_t i = 0; i < count; i++)
		if (isfinite(readings[i].value))
			telemetry_block_add(&one, source, readings[i].signal, SIGNAL_GAUGE, t_ns,
					    readings[i].value);
	while ((body = telemetry_block_take(&one)))
		write_line(j, JOURNAL_TELEMETRY, body);
	telemetry_block_release(&one);
}

void job_phase(struct job *j, const char *phase, uint64_t t0_ns, uint64_t t1_ns, json_t *values)
{
	write_line(j, JOURNAL_PHASE,
		   json_pack("{s:i, s:s, s:I, s:I}", "case", 0, "phase", phase, "t0", (json_int_t)t0_ns, "t1",
			     (json_int_t)t1_ns));
	if (values)
		write_line(j, JOURNAL_RESULT,
			   json_pack("{s:i, s:s, s:o}", "case", 0, "phase", phase, "values", values));
}

void job_quiet(struct job *j)
{
	uint64_t end_ns = clock_now_ns(j->spec.clock) + LINGER_NS;

	while (j->sampling && clock_now_ns(j->spec.clock) < end_ns) {
		struct pollfd in = {.fd = j->sampler.channel, .events = POLLIN};

		poll(&in, 1, 50);
		job_receive(j);
	}
	if (j->sampling)
		lose_sampler(j);
	write_block(j);
}

const struct series *job_series(const struct job *j, size_t *count)
{
	*count = j->series_count;
	return j->series;
}

enum status job_end(struct job **job, enum ending ending, enum status status, enum cause cause,
		    const char *text, struct error *err)
{
	struct job *j = *job;
	enum status st;

	*job = NULL;
	if (j->sampling)
		lose_sampler(j);
	write_block(j);
	write_line(j, JOURNAL_END,
		   json_pack("{s:i, s:s, s:s, s:s, s:o}", "case", 0, "ending", ending_name(ending), "status",
			     status_name(status), "cause", cause_name(cause), "text", field_string(text)));
	write_line(j, JOURNAL_CLOSE,
		   json_pack("{s:s, s:s}", "ending",
			     ending_name(ending == ENDING_CANCELLED ? ENDING_CANCELLED : ENDING_DONE), "text",
			     ""));
	st = j->status;
	if (st)
		error_set_cause(err, st, j->err.cause, "%s", j->err.text);
	free_job(j);
	return st;
}
