/* SPDX-License-Identifier: Apache-2.0 */
/* manifest.json: the origin of a set of figures, and the checksums of the files next to it. */
#include "core/file/file.h"
#include "journal/journal.h"
#include "report/data/json.h"
#include "report/data/json_build.h"
#include "report/data/manifest.h"

static int put(json_t *object, const char *key, json_t *value)
{
	return !value || json_object_set_new(object, key, value);
}

/* The time from the start of the program to its first case and to the first timed iteration; NULL: unknown.
 */
static json_t *start_json(const struct record *r)
{
	const json_t *started = json_object_get(r->open, "started");
	uint64_t t0 = (uint64_t)json_integer_value(started), begun = UINT64_MAX, timed = UINT64_MAX;
	json_t *start = NULL;

	for (size_t i = 0; i < r->case_count; i++) {
		const struct record_case *c = &r->cases[i];
		const struct record_phase *cold = record_phase(c, "cold");

		if (c->begun && c->t0_ns > t0 && c->t0_ns < begun)
			begun = c->t0_ns;
		if (cold && cold->has_window && cold->t0_ns > t0 && cold->t0_ns < timed)
			timed = cold->t0_ns;
	}
	if (!json_is_integer(started) || begun == UINT64_MAX)
		return NULL;
	start = json_pack("{s:f}", "first_case_s", (double)(begun - t0) * 1e-9);
	if (start && timed != UINT64_MAX)
		put(start, "first_measurement_s", json_real((double)(timed - t0) * 1e-9));
	return start;
}

static json_t *run_json(const struct view *v)
{
	const struct record *r = v->in->record;
	const json_t *seed = json_object_get(r->open, "seed");
	const char *hash = json_string_value(json_object_get(r->plan, "hash"));
	const json_t *real = json_object_get(json_object_get(r->open, "options"), "real_names");
	json_t *run = json_object(), *start = start_json(r);
	char journal[65];
	int failed = 0;

	failed |= put(run, "about", json_facts(v, about_run));
	failed |= put(run, "software", json_facts(v, about_software));
	failed |= put(run, "machine", json_facts(v, about_machine));
	failed |= put(run, "gpus", json_gpus(v));
	if (json_is_integer(seed))
		failed |= put(run, "seed", json_integer(json_integer_value(seed)));
	if (real)
		failed |= put(run, "real_names", json_boolean(json_is_true(real)));
	if (start)
		failed |= put(run, "start", start);
	failed |= put(run, "plan_hash", json_text(hash ? hash : ""));
	failed |= put(run, "expectations_hash", json_text(v->in->judged->expectations_hash));
	failed |= put(run, "verdict", json_string(verdict_name(v->in->judged->verdict)));
	if (!journal_sha256(journal, r->dir, NULL))
		failed |= put(run, "journal_sha256", json_string(journal));
	if (failed) {
		json_decref(run);
		return NULL;
	}
	return run;
}

static json_t *file_json(const struct manifest_file *f)
{
	json_t *file = json_object();
	char hex[65];
	int failed = 0;

	file_sha256(hex, f->data, f->size);
	failed |= put(file, "name", json_text(f->name));
	failed |= put(file, "bytes", json_integer((json_int_t)f->size));
	failed |= put(file, "sha256", json_string(hex));
	if (failed) {
		json_decref(file);
		return NULL;
	}
	return file;
}

enum status manifest_text(struct text *out, const struct view *views, size_t count,
			  const struct manifest_file *files, size_t file_count, struct error *err)
{
	json_t *root = json_object(), *runs = json_array(), *list = json_array();
	int failed = 0;

	failed |= put(root, "schema", json_string("assay.manifest"));
	failed |= put(root, "schema_version", json_integer(REPORT_SCHEMA_VERSION));
	for (size_t i = 0; i < count; i++) {
		json_t *run = run_json(&views[i]);

		failed |= !run || json_array_append_new(runs, run);
	}
	for (size_t i = 0; i < file_count; i++) {
		json_t *file = file_json(&files[i]);

		failed |= !file || json_array_append_new(list, file);
	}
	failed |= put(root, "runs", runs);
	failed |= put(root, "files", list);
	if (failed) {
		json_decref(root);
		root = NULL;
	}
	return json_dump(out, root, err);
}
