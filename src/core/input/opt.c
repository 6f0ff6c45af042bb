/* SPDX-License-Identifier: Apache-2.0 */
#include "core/input/opt.h"

#include "core/text/text.h"
#include "core/text/units.h"

/* Compares option names; "_" equals "-", because other tools write some names with underscores. */
static bool same_name(const char *a, const char *b, size_t length)
{
	size_t i;

	for (i = 0; i < length && a[i]; i++)
		if ((a[i] == '_' ? '-' : a[i]) != (b[i] == '_' ? '-' : b[i]))
			return false;
	return i == length && !a[i];
}

static bool is_called(const struct opt *row, const char *name)
{
	const char *at = row->also ? row->also : "";

	for (; *at; at += strspn(at, " ")) {
		size_t length = strcspn(at, " ");

		if (same_name(name, at, length))
			return true;
		at += length;
	}
	return false;
}

const struct opt *opt_row(const struct opt_table *t, const char *name, bool also)
{
	size_t i;

	for (i = 0; i < t->count; i++)
		if (!strcmp(t->rows[i].name, name))
			return &t->rows[i];
	for (i = 0; also && i < t->count; i++)
		if (is_called(&t->rows[i], name))
			return &t->rows[i];
	return NULL;
}

enum status opt_refuse(const struct opt_table *t, const char *name, const char *dashes, const char *place,
		       struct error *err)
{
	const struct opt *row = opt_row(t, name, true);
	const char *known[128];
	const char *near;
	size_t i;

	for (i = 0; i < t->count && i < sizeof(known) / sizeof(known[0]); i++)
		known[i] = t->rows[i].name;
	near = row ? row->name : opt_nearest(name, known, i);
	if (near)
		return error_set(err, STATUS_BAD_INPUT,
				 "%s: unknown option \"%s%.64s\", did you mean \"%s%s\"", place, dashes, name,
				 dashes, near);
	return error_set(err, STATUS_BAD_INPUT, "%s: unknown option \"%s%.64s\"", place, dashes, name);
}

/* The option's name in help: a positional word is shown by its placeholder. */
static const char *title_of(const struct opt *row)
{
	return row->positional && row->shown ? row->shown : row->name;
}

static enum status refuse_choice(const struct opt *row, const char *text, const char *place,
				 struct error *err)
{
	char known[256] = "";
	size_t used = 0, count;
	const char *near;

	for (count = 0; row->choices[count]; count++) {
		if (used < sizeof(known))
			used += (size_t)snprintf(known + used, sizeof(known) - used, "%s%s",
						 count ? ", " : "", row->choices[count]);
	}
	near = opt_nearest(text, row->choices, count);
	if (near)
		return error_set(err, STATUS_BAD_INPUT,
				 "%s: %s: \"%.64s\" is not one of %s; did you mean \"%s\"", place,
				 title_of(row), text, known, near);
	return error_set(err, STATUS_BAD_INPUT, "%s: %s: \"%.64s\" is not one of %s", place, title_of(row),
			 text, known);
}

static enum status choice_index(const struct opt *row, const char *text, const char *place, uint32_t *index,
				struct error *err)
{
	uint32_t i;

	for (i = 0; row->choices[i]; i++) {
		if (strcmp(row->choices[i], text))
			continue;
		*index = i;
		return STATUS_OK;
	}
	return refuse_choice(row, text, place, err);
}

/* True if the row has no range, or if the value (in the row's unit) lies within it. */
static bool in_range(const struct opt *row, double value)
{
	return (row->min == 0 && row->max == 0) || (value >= row->min && value <= row->max);
}

static enum status refuse_range(const struct opt *row, const char *text, const char *place, struct error *err)
{
	const char *unit = row->unit ? row->unit : "";

	return error_set(err, STATUS_BAD_INPUT, "%s: %s: \"%.64s\" is outside %.15g to %.15g%s%s", place,
			 row->name, text, row->min, row->max, unit[0] ? " " : "", unit);
}

static enum status set_bool(const struct opt *row, bool *out, const char *text, const char *place,
			    struct error *err)
{
	if (strcmp(text, "true") && strcmp(text, "false"))
		return error_set(err, STATUS_BAD_INPUT, "%s: %s: \"%.64s\" is neither true nor false", place,
				 row->name, text);
	*out = text[0] == 't';
	return STATUS_OK;
}

static enum status set_integer(const struct opt *row, void *out, const char *text, const char *place,
			       struct error *err)
{
	struct error why = {0};
	uint64_t value;

	if (units_parse_u64(&value, text, row->unit, &why))
		return error_set(err, STATUS_BAD_INPUT, "%s: %s: %s", place, row->name, why.text);
	if (!in_range(row, (double)value))
		return refuse_range(row, text, place, err);
	if (row->kind == OPT_KIND_U64) {
		memcpy(out, &value, sizeof(value));
		return STATUS_OK;
	}
	if (value > UINT32_MAX)
		return error_set(err, STATUS_BAD_INPUT, "%s: %s: \"%.64s\" is too large", place, row->name,
				 text);
	memcpy(out, &(uint32_t){(uint32_t)value}, sizeof(uint32_t));
	return STATUS_OK;
}

static enum status set_f64(const struct opt *row, double *out, const char *text, const char *place,
			   struct error *err)
{
	struct error why = {0};
	double value;

	if (units_parse(&value, text, row->unit, &why))
		return error_set(err, STATUS_BAD_INPUT, "%s: %s: %s", place, row->name, why.text);
	if (!in_range(row, value))
		return refuse_range(row, text, place, err);
	*out = value;
	return STATUS_OK;
}

static enum status set_text(const struct opt *row, const char **out, const char *text, const char *place,
			    struct error *err)
{
	enum status st;
	uint32_t index = 0;

	if (row->choices) {
		st = choice_index(row, text, place, &index, err);
		if (st)
			return st;
		text = row->choices[index];
	}
	*out = text;
	return STATUS_OK;
}

static enum status set_row(const struct opt *row, void *values, const char *text, const char *place,
			   struct error *err)
{
	void *out = (char *)values + row->offset;

	if (row->many)
		return error_set(err, STATUS_BAD_INPUT, "%s: %s takes a list of words, not a value", place,
				 row->name);
	switch (row->kind) {
	case OPT_KIND_BOOL:
		return set_bool(row, out, text, place, err);
	case OPT_KIND_U32:
		if (row->choices)
			return choice_index(row, text, place, out, err);
		return set_integer(row, out, text, place, err);
	case OPT_KIND_U64:
		return set_integer(row, out, text, place, err);
	case OPT_KIND_F64:
		return set_f64(row, out, text, place, err);
	case OPT_KIND_TEXT:
		return set_text(row, out, text, place, err);
	}
	return error_set(err, STATUS_BUG, "option %s has an unknown type", row->name);
}

enum status opt_defaults(const struct opt_table *t, void *values, struct error *err)
{
	struct error why = {0};
	size_t i;

	if (t->size)
		memset(values, 0, t->size);
	for (i = 0; i < t->count; i++)
		if (t->rows[i].preset && set_row(&t->rows[i], values, t->rows[i].preset, "preset", &why))
			return error_set(err, STATUS_BUG, "%s", why.text);
	return STATUS_OK;
}

enum status opt_set(const struct opt_table *t, void *values, const char *name, const char *text,
		    const char *place, struct error *err)
{
	const struct opt *row = opt_row(t, name, false);

	if (!row)
		return opt_refuse(t, name, "", place, err);
	return set_row(row, values, text, place, err);
}

static void integer_text(const struct opt *row, uint64_t value, char *out, size_t size)
{
	static const char *const suffixes[] = {"", "KiB", "MiB", "GiB", "TiB"};
	unsigned power = 0;

	if (row->unit && !strcmp(row->unit, "B"))
		for (; value && value % 1024 == 0 && power < 4; power++)
			value /= 1024;
	snprintf(out, size, "%llu%s", (unsigned long long)value, suffixes[power]);
}

static void f64_text(double value, char *out, size_t size)
{
	char text[32];
	int digits;

	for (digits = 1; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, value);
		if (strtod(text, NULL) == value)
			break;
	}
	text_copy(out, size, text);
}

static void words_text(const struct opt_words *words, char *out, size_t size)
{
	size_t i, used = 0;

	for (i = 0; i < words->count && used < size; i++)
		used += (size_t)snprintf(out + used, size - used, "%s%s", i ? " " : "", words->word[i]);
}

void opt_value_text(const struct opt *row, const void *values, char *out, size_t size)
{
	const void *value = (const char *)values + row->offset;
	const char *text;
	uint64_t wide;
	uint32_t narrow;
	double number;

	if (size)
		out[0] = '\0';
	if (row->many) {
		words_text(value, out, size);
		return;
	}
	switch (row->kind) {
	case OPT_KIND_BOOL:
		text_copy(out, size, *(const bool *)value ? "true" : "false");
		break;
	case OPT_KIND_U32:
		memcpy(&narrow, value, sizeof(narrow));
		if (row->choices)
			text_copy(out, size, row->choices[narrow]);
		else
			integer_text(row, narrow, out, size);
		break;
	case OPT_KIND_U64:
		memcpy(&wide, value, sizeof(wide));
		integer_text(row, wide, out, size);
		break;
	case OPT_KIND_F64:
		memcpy(&number, value, sizeof(number));
		f64_text(number, out, size);
		break;
	case OPT_KIND_TEXT:
		memcpy(&text, value, sizeof(text));
		text_copy(out, size, text ? text : "");
		break;
	}
}

/* The row with the smallest name greater than `last` in byte order; NULL after the last one. */
static const struct opt *row_after(const struct opt_table *t, const char *last)
{
	const struct opt *next = NULL;
	size_t i;

	for (i = 0; i < t->count; i++)
		if ((!last || strcmp(t->rows[i].name, last) > 0) &&
		    (!next || strcmp(t->rows[i].name, next->name) < 0))
			next = &t->rows[i];
	return next;
}

/* True if the row belongs in the key. A NULL text means that the option is absent, so it is not written. */
static bool in_key(const struct opt *row, const void *values)
{
	const char *text;

	if (row->no_key || row->many)
		return false;
	if (row->kind != OPT_KIND_TEXT)
		return true;
	memcpy(&text, (const char *)values + row->offset, sizeof(text));
	return text;
}

enum status opt_canonical(const struct opt_table *t, const void *values, char *key, size_t size,
			  struct error *err)
{
	const struct opt *row = NULL;
	size_t used = strnlen(key, size);
	char text[256];
	int n;

	while ((row = row_after(t, row ? row->name : NULL))) {
		if (!in_key(row, values))
			continue;
		opt_value_text(row, values, text, sizeof(text));
		if (strpbrk(text, " \t\n\r"))
			return error_set(err, STATUS_BAD_INPUT,
					 "%s: a value with blanks cannot be part of a key", row->name);
		if (strlen(text) == sizeof(text) - 1)
			return error_set(err, STATUS_BAD_INPUT, "%s: value is too long for a key", row->name);
		n = snprintf(key + used, size - used, " %s=%s", row->name, text);
		if (n < 0 || (size_t)n >= size - used)
			return error_set(err, STATUS_BAD_INPUT, "key is longer than %zu bytes", size);
		used += (size_t)n;
	}
	return STATUS_OK;
}

enum { NEAREST_MAX = 48 };

/* Edit distance, in which a swap of two neighbouring letters counts as one edit. A word longer than
 * NEAREST_MAX is near no other word. */
static size_t distance(const char *a, const char *b)
{
	size_t row[3][NEAREST_MAX + 1];
	size_t na = strlen(a), nb = strlen(b), i, j;

	if (na > NEAREST_MAX || nb > NEAREST_MAX)
		return NEAREST_MAX;
	for (j = 0; j <= nb; j++)
		row[0][j] = j;
	for (i = 1; i <= na; i++) {
		size_t *now = row[i % 3];
		const size_t *before = row[(i + 2) % 3], *earlier = row[(i + 1) % 3];

		now[0] = i;
		for (j = 1; j <= nb; j++) {
			size_t best = before[j - 1] + (a[i - 1] != b[j - 1]);

			if (before[j] + 1 < best)
				best = before[j] + 1;
			if (now[j - 1] + 1 < best)
				best = now[j - 1] + 1;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
			    earlier[j - 2] + 1 < best)
				best = earlier[j - 2] + 1;
			now[j] = best;
		}
	}
	return row[na % 3][nb];
}

const char *opt_nearest(const char *word, const char *const *known, size_t count)
{
	size_t limit = strlen(word) / 3 + 1, best = limit + 1, i;
	const char *near = NULL;

	for (i = 0; i < count; i++) {
		size_t d = distance(word, known[i]);

		/* every letter would change: not near */
		if (d >= best || d >= strlen(known[i]))
			continue;
		best = d;
		near = known[i];
	}
	return near;
}
