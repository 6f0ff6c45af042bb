/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/shared/reading.h"

enum status reading_gpu(const struct gpu **g, const struct machine *m, const struct target *t,
			struct error *err)
{
	*g = t->gpu_count ? machine_gpu(m, t->gpu[0]) : NULL;
	if (!*g)
		return error_set(err, STATUS_BUG, "a reading of a GPU has no GPU in its target");
	if ((*g)->status)
		return error_set_cause(err, (*g)->status, (*g)->cause, "GPU %s: %s", (*g)->pci,
				       (*g)->reason[0] ? (*g)->reason : cause_text((*g)->cause));
	return STATUS_OK;
}

const json_t *reading_gpu_json(const struct machine *m, const struct gpu *g)
{
	for (unsigned i = 0; i < machine_gpu_count(m); i++)
		if (machine_gpu(m, i) == g)
			return machine_gpu_json(m, i);
	return NULL;
}

static void set_number(struct result *out, const struct field *f, double value)
{
	if (f->kind == FIELD_F64)
		result_f64(out, f, value);
	else if (value >= 0 && value < 18446744073709551616.0)
		result_u64(out, f, (uint64_t)value);
}

unsigned reading_facts(struct result *out, const struct gpu *g, const struct field *fields,
		       const enum gpu_fact *facts, size_t count)
{
	unsigned set = 0;
	size_t i;

	for (i = 0; i < count; i++) {
		if (!gpu_has(g, facts[i]))
			continue;
		set_number(out, &fields[i], g->fact[facts[i]]);
		set++;
	}
	return set;
}

/* The entry of facts.unreadable for a vendor's library; NULL: the library answered, or was not queried. */
static const json_t *failed_layer(const struct machine *m, const char *what)
{
	const json_t *row;
	size_t i;

	json_array_foreach(json_object_get(machine_json(m), "unreadable"), i, row)
	{
		const char *name = json_string_value(json_object_get(row, "what"));

		if (name && !strcmp(name, what))
			return row;
	}
	return NULL;
}

const char *reading_layer_failed(const struct machine *m, const char *what, enum cause *cause)
{
	const json_t *row = failed_layer(m, what);
	const char *name = json_string_value(json_object_get(row, "cause"));
	const char *why = json_string_value(json_object_get(row, "why"));

	if (!row)
		return NULL;
	if (!name || !cause_from_name(name, cause))
		*cause = CAUSE_VENDOR_CALL;
	return why ? why : "no answer";
}

enum status reading_none(const struct machine *m, const struct gpu *g, const char *what,
			 const enum gpu_fact *facts, size_t count, struct error *err)
{
	const json_t *reasons = json_object_get(reading_gpu_json(m, g), "unreadable");
	const char *why = NULL;
	size_t i;

	for (i = 0; i < count && !why; i++)
		why = json_string_value(json_object_get(reasons, gpu_fact_name(facts[i])));
	if (!why) { /* no query was refused, so the library with these facts was not read */
		enum cause cause = CAUSE_LIBRARY_MISSING;

		why = reading_layer_failed(m, "NVML", &cause);
		return error_set_cause(err, STATUS_UNAVAILABLE, cause, "GPU %s: %s: %s", g->pci, what,
				       why ? why : "NVML was not read");
	}
	if (strstr(why, "ermission"))
		return error_set_cause(err, STATUS_UNAVAILABLE, CAUSE_PERMISSION, "GPU %s: %s: %s", g->pci,
				       what, why);
	return error_set_cause(err, STATUS_UNSUPPORTED, CAUSE_UNSUPPORTED, "GPU %s: %s: %s", g->pci, what,
			       why);
}

enum status reading_observe_facts(const struct machine *m, const struct target *t, const char *what,
				  const struct field *fields, const enum gpu_fact *facts, size_t count,
				  struct result *out, struct error *err)
{
	const struct gpu *g;
	enum status st = reading_gpu(&g, m, t, err);

	if (st)
		return st;
	if (reading_facts(out, g, fields, facts, count))
		return STATUS_OK;
	return reading_none(m, g, what, facts, count, err);
}

void reading_number(struct result *out, const struct field *f, const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	if (json_is_number(value))
		set_number(out, f, json_number_value(value));
}

bool reading_has_gpus(const struct machine *m, const char *what, struct error *err)
{
	if (machine_gpu_count(m))
		return true;
	error_set_cause(err, STATUS_UNSUPPORTED, CAUSE_NO_HARDWARE, "%s: no NVIDIA GPU on the PCI bus", what);
	return false;
}

bool reading_log(const struct machine *m, bool *readable)
{
	const json_t *value = json_object_get(json_object_get(machine_json(m), "kernel_log"), "readable");

	*readable = json_is_true(value);
	return json_is_boolean(value);
}
