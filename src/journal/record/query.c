/* SPDX-License-Identifier: Apache-2.0 */
/* Queries on a record. */
#include "journal/record/record.h"
#include <string.h>

const struct record_phase *record_phase(const struct record_case *c, const char *name)
{
	for (size_t i = 0; i < c->phase_count; i++)
		if (!strcmp(c->phase[i].name, name))
			return &c->phase[i];
	return NULL;
}

bool record_number(const struct record_phase *p, const char *field, double *out)
{
	const json_t *v = p ? json_object_get(p->values, field) : NULL;
	const char *text = json_string_value(v);
	char *end;

	if (json_is_number(v)) {
		*out = json_number_value(v);
		return true;
	}
	if (!text || strncmp(text, "0x", 2) || !text[2])
		return false;
	*out = (double)strtoull(text + 2, &end, 16);
	return !*end;
}

const char *record_text(const struct record_phase *p, const char *field)
{
	return p ? json_string_value(json_object_get(p->values, field)) : NULL;
}

const char *record_option(const struct record_case *c, const char *name)
{
	return json_string_value(json_object_get(json_object_get(c->plan, "options"), name));
}

static bool named(const char *const *names, const char *name)
{
	for (; *names; names++)
		if (!strcmp(*names, name))
			return true;
	return false;
}

/* Every option of `a`, except those in `but`, has the same text in `b`. */
static bool options_within(const struct record_case *a, const struct record_case *b, const char *const *but)
{
	const char *name, *text;
	json_t *value;

	json_object_foreach(json_object_get(a->plan, "options"), name, value)
	{
		if (named(but, name))
			continue;
		text = record_option(b, name);
		if (!text || !json_is_string(value) || strcmp(text, json_string_value(value)))
			return false;
	}
	return true;
}

bool record_is_isolation(const struct record_case *c)
{
	return json_is_object(json_object_get(c->plan, "follows"));
}

const char *record_tries(const struct record_case *c)
{
	return json_string_value(json_object_get(json_object_get(c->plan, "follows"), "tries"));
}

bool record_asks_judgement(const struct record_case *c)
{
	return c->require == REQUIRE_JUDGED || c->require == REQUIRE_KNOWN;
}

bool record_same_options(const struct record_case *a, const struct record_case *b, const char *const *but)
{
	return options_within(a, b, but) && options_within(b, a, but);
}

bool record_same_but(const struct record_case *a, const struct record_case *b, const char *const *but)
{
	return !strcmp(a->probe, b->probe) && !strcmp(a->engine, b->engine) &&
	       !strcmp(a->target, b->target) && record_same_options(a, b, but);
}

const struct series *record_series(const struct record *r, const char *source, const char *signal)
{
	for (size_t i = 0; i < r->series_count; i++)
		if (!strcmp(r->series[i].source, source) && !strcmp(r->series[i].signal, signal))
			return &r->series[i];
	return NULL;
}
