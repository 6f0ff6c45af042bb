/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/field.h"
#include "core/text/redact.h"
#include <assert.h>
#include <inttypes.h>
#include <math.h>

#define X(name_, unit_, kind_, better_, help_)                                                               \
	const struct field field_##name_ = {                                                                 \
		.name = #name_,                                                                              \
		.unit = unit_,                                                                               \
		.help = help_,                                                                               \
		.kind = FIELD_##kind_,                                                                       \
		.better = better_,                                                                           \
	};
RESULT_FIELDS(X)
#undef X

#define X(name, ...) &field_##name,
const struct field *const result_fields[] = {RESULT_FIELDS(X) NULL};
#undef X

struct entry {
	const struct field *field;
	union {
		double f64;
		uint64_t u64;
		char *text; /* owned */
	} value;
};

enum { LOST_MAX = 16 }; /* at most so many are named */

struct result {
	struct entry *entry; /* in the order in which they were first set */
	size_t count, room;
	const struct field *lost[LOST_MAX]; /* absent because its last value was not finite */
	size_t lost_count;
};

struct result *result_create(void)
{
	return calloc(1, sizeof(struct result));
}

void result_clear(struct result *r)
{
	for (size_t i = 0; i < r->count; i++)
		if (r->entry[i].field->kind == FIELD_TEXT)
			free(r->entry[i].value.text);
	r->count = 0;
	r->lost_count = 0;
}

void result_destroy(struct result *r)
{
	if (!r)
		return;
	result_clear(r);
	free(r->entry);
	free(r);
}

static struct entry *find(const struct result *r, const struct field *f)
{
	for (size_t i = 0; i < r->count; i++)
		if (r->entry[i].field == f || !strcmp(r->entry[i].field->name, f->name))
			return &r->entry[i];
	return NULL;
}

/* The entry to write, with its old text freed. NULL: no memory; the value is then absent. */
static struct entry *slot(struct result *r, const struct field *f)
{
	struct entry *e = find(r, f);

	if (e) {
		if (e->field->kind == FIELD_TEXT)
			free(e->value.text);
		*e = (struct entry){.field = f};
		return e;
	}
	if (r->count == r->room) {
		size_t room = r->room ? 2 * r->room : 32;
		struct entry *grown = realloc(r->entry, room * sizeof(*grown));

		if (!grown)
			return NULL;
		r->entry = grown;
		r->room = room;
	}
	e = &r->entry[r->count++];
	*e = (struct entry){.field = f};
	return e;
}

/* Makes the value absent, after it was set to something that is not a number. */
static void drop(struct result *r, const struct field *f)
{
	struct entry *e = find(r, f);

	if (!e)
		return;
	if (e->field->kind == FIELD_TEXT)
		free(e->value.text);
	*e = r->entry[--r->count];
}

static void find_again(struct result *r, const struct field *f)
{
	size_t kept = 0;

	for (size_t i = 0; i < r->lost_count; i++)
		if (strcmp(r->lost[i]->name, f->name))
			r->lost[kept++] = r->lost[i];
	r->lost_count = kept;
}

static void lose(struct result *r, const struct field *f)
{
	if (r->lost_count < LOST_MAX)
		r->lost[r->lost_count++] = f;
}

void result_f64(struct result *r, const struct field *f, double value)
{
	struct entry *e;

	assert(f->kind == FIELD_F64);
	find_again(r, f);
	if (!isfinite(value)) {
		drop(r, f);
		lose(r, f);
		return;
	}
	e = slot(r, f);
	if (e)
		e->value.f64 = value;
}

void result_u64(struct result *r, const struct field *f, uint64_t value)
{
	struct entry *e;

	assert(f->kind == FIELD_U64 || f->kind == FIELD_BITS);
	e = slot(r, f);
	if (e)
		e->value.u64 = value;
}

void result_text(struct result *r, const struct field *f, const char *value)
{
	char *copy = value ? strdup(value) : NULL;
	struct entry *e;

	assert(f->kind == FIELD_TEXT);
	if (!copy) {
		drop(r, f);
		return;
	}
	e = slot(r, f);
	if (e)
		e->value.text = copy;
	else
		free(copy);
}

bool result_has(const struct result *r, const struct field *f)
{
	return find(r, f);
}

double result_get(const struct result *r, const struct field *f, double fallback)
{
	const struct entry *e = find(r, f);

	if (!e)
		return fallback;
	switch (e->field->kind) {
	case FIELD_F64:
		return e->value.f64;
	case FIELD_U64:
	case FIELD_BITS:
		return (double)e->value.u64;
	case FIELD_TEXT:
		break;
	}
	return fallback;
}

json_int_t field_integer(uint64_t n)
{
	return n < INT64_MAX ? (json_int_t)n : INT64_MAX;
}

json_t *field_string(const char *text)
{
	json_t *s = json_string(text ? text : "");
	char *copy;

	if (s)
		return s;
	/* Not UTF-8, for example a driver's message: keep the ASCII characters. */
	copy = strdup(text);
	if (!copy)
		return NULL;
	for (char *c = copy; *c; c++)
		if ((unsigned char)*c >= 0x80)
			*c = '?';
	s = json_string(copy);
	free(copy);
	return s;
}

static json_t *value_json(const struct entry *e)
{
	char text[24];

	switch (e->field->kind) {
	case FIELD_F64:
		return json_real(e->value.f64);
	case FIELD_U64:
		/* Jansson's integers are signed: a larger value is written as the nearest real. */
		return e->value.u64 <= INT64_MAX ? json_integer((json_int_t)e->value.u64)
						 : json_real((double)e->value.u64);
	case FIELD_BITS:
		snprintf(text, sizeof(text), "0x%" PRIx64, e->value.u64);
		return json_string(text);
	case FIELD_TEXT:
		return field_string(e->value.text);
	}
	return NULL;
}

/* "power_w, clock_hz" */
static json_t *lost_json(const struct result *r)
{
	char names[LOST_MAX * 64];
	size_t used = 0;

	*names = '\0';
	for (size_t i = 0; i < r->lost_count && used < sizeof(names); i++)
		used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", i ? ", " : "",
					 r->lost[i]->name);
	return json_string(names);
}

json_t *result_json(const struct result *r)
{
	json_t *values = json_object();

	if (values && r->lost_count && json_object_set_new(values, field_not_finite.name, lost_json(r))) {
		json_decref(values);
		return NULL;
	}
	for (size_t i = 0; values && i < r->count; i++)
		if (json_object_set_new(values, r->entry[i].field->name, value_json(&r->entry[i]))) {
			json_decref(values);
			return NULL;
		}
	return values;
}

json_t *field_rows_json(const struct field *fields, size_t count)
{
	static const char *const kinds[] = {
		[FIELD_F64] = "f64", [FIELD_U64] = "u64", [FIELD_TEXT] = "text", [FIELD_BITS] = "bits"};
	json_t *rows = json_array();

	for (size_t i = 0; i < count; i++)
		json_array_append_new(rows, json_pack("{s:s, s:s, s:s, s:i, s:s}", "name", fields[i].name,
						      "unit", fields[i].unit, "kind", kinds[fields[i].kind],
						      "better", fields[i].better, "help", fields[i].help));
	return rows;
}

json_t *field_command(const char *const *words)
{
	json_t *list = json_array();
	struct redact state = {0};
	bool foreign = false;

	for (; words && *words; words++) {
		struct redact again = state;
		size_t size = redact_word(&again, NULL, 0, *words);
		char *shown = foreign ? malloc(size + 1) : NULL;

		if (shown)
			redact_word(&state, shown, size + 1, *words);
		json_array_append_new(list, field_string(!foreign ? *words : shown ? shown : REDACTED));
		free(shown);
		foreign = foreign || !strcmp(*words, "--");
	}
	return list;
}
