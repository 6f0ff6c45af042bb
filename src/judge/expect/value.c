/* SPDX-License-Identifier: Apache-2.0 */
/* Reads numbers with units, and sources, from expectation files; grows arrays. */
#include "judge/expect/expect.h"
#include <ctype.h>
#include <math.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

struct unit_row {
	const char *text, *base;
	double factor;
};

static const struct unit_row units[] = {
	{"TFLOPS", "FLOP/s", 1e12},
	{"GFLOPS", "FLOP/s", 1e9},
	{"TB/s", "B/s", 1e12},
	{"GB/s", "B/s", 1e9},
	{"MB/s", "B/s", 1e6},
	{"GHz", "Hz", 1e9},
	{"MHz", "Hz", 1e6},
	{"Hz", "Hz", 1},
	{"TiB", "B", 0x1p40},
	{"GiB", "B", 0x1p30},
	{"MiB", "B", 0x1p20},
	{"KiB", "B", 0x1p10},
	{"TB", "B", 1e12},
	{"GB", "B", 1e9},
	{"MB", "B", 1e6},
	{"kB", "B", 1e3},
	{"B", "B", 1},
	{"kW", "W", 1e3},
	{"W", "W", 1},
	{"C", "C", 1},
	{"s", "s", 1},
	{"ms", "s", 1e-3},
	{"us", "s", 1e-6},
	{"ns", "s", 1e-9},
};

bool expect_parse(double *out, const char *text, const char *unit)
{
	char *end;
	double value;
	size_t i;

	while (isspace((unsigned char)*text))
		text++;
	if (!*text)
		return false;
	value = strtod(text, &end);
	if (end == text || !isfinite(value))
		return false;
	while (isspace((unsigned char)*end))
		end++;
	if (!*end) {
		*out = value;
		return !*unit;
	}
	for (i = 0; i < COUNT(units); i++) {
		if (strcmp(end, units[i].text) || strcmp(unit, units[i].base))
			continue;
		*out = value * units[i].factor;
		return isfinite(*out);
	}
	return false;
}

enum status expect_number(double *out, const struct tree *scalar, const char *unit, struct error *err)
{
	if (scalar->kind == TREE_SCALAR && expect_parse(out, scalar->text, unit))
		return STATUS_OK;
	return error_set(err, STATUS_BAD_INPUT, "%s:%d: %s is not a number%s%s", scalar->file, scalar->line,
			 scalar->kind == TREE_SCALAR ? scalar->text : "a list or map",
			 *unit ? " with a unit of " : "", unit);
}

enum status expect_range(double *low, double *high, const struct tree *list, const char *unit,
			 struct error *err)
{
	enum status status;

	if (list->kind != TREE_LIST || list->count != 2)
		return error_set(err, STATUS_BAD_INPUT, "%s:%d: a range must be a list of two values",
				 list->file, list->line);
	status = expect_number(low, list->items[0], unit, err);
	if (!status)
		status = expect_number(high, list->items[1], unit, err);
	if (!status && !(*low < *high))
		status = error_set(err, STATUS_BAD_INPUT,
				   "%s:%d: the low end of the range is not below its high end", list->file,
				   list->line);
	return status;
}

static const char *const confidences[] = {
	[CONFIDENCE_LOW] = "low", [CONFIDENCE_MEDIUM] = "medium", [CONFIDENCE_HIGH] = "high"};

const char *confidence_name(int confidence)
{
	return confidence >= CONFIDENCE_LOW && confidence <= CONFIDENCE_HIGH ? confidences[confidence] : "";
}

enum status expect_source(struct source *out, const struct tree *row, const struct tree *sources,
			  struct error *err)
{
	const char *name = tree_text(row, "source", NULL), *confidence = tree_text(row, "confidence", NULL);
	const struct tree *source;
	int i;

	if (!name)
		return error_set(err, STATUS_BAD_INPUT, "%s:%d: source is missing", row->file, row->line);
	source = sources ? tree_get(sources, name) : NULL;
	if (!source)
		return error_set(err, STATUS_BAD_INPUT, "%s:%d: source %s is not in the sources of this file",
				 row->file, row->line, name);
	out->text = tree_text(source, "title", NULL);
	out->date = tree_text(source, "date", NULL);
	if (!out->text || !*out->text || !out->date || strlen(out->date) != 10)
		return error_set(err, STATUS_BAD_INPUT,
				 "%s:%d: source %s needs a title and a date YYYY-MM-DD", source->file,
				 source->line, name);
	for (i = CONFIDENCE_LOW; confidence && i <= CONFIDENCE_HIGH; i++)
		if (!strcmp(confidence, confidence_name(i))) {
			out->confidence = i;
			return STATUS_OK;
		}
	return error_set(err, STATUS_BAD_INPUT, "%s:%d: confidence is %s, not low, medium or high", row->file,
			 row->line, confidence ? confidence : "missing");
}

enum status expect_need_text(const char **out, const struct tree *row, const char *key, struct error *err)
{
	*out = row->kind == TREE_MAP ? tree_text(row, key, NULL) : NULL;
	if (*out && **out)
		return STATUS_OK;
	return error_set(err, STATUS_BAD_INPUT, "%s:%d: %s is missing", row->file, row->line, key);
}

void *expect_grow(void *array, size_t count, size_t size, struct error *err)
{
	char *grown = realloc(array, (count + 1) * size);

	if (!grown) {
		error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "no memory for the expectations");
		return NULL;
	}
	memset(grown + count * size, 0, size);
	return grown;
}

void *expect_push(void *array, size_t *count, size_t size, struct error *err)
{
	void *old, *grown;

	memcpy(&old, array, sizeof(old));
	grown = expect_grow(old, *count, size, err);
	if (!grown)
		return NULL;
	memcpy(array, &grown, sizeof(grown));
	return (char *)grown + size * (*count)++;
}
