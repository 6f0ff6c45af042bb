/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions over the words of a case: how they are read, how they match, and whether one case can meet two
 * of them. */
#include "judge/expect/expect.h"
#include <float.h>
#include "core/input/opt.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* The words that a condition may use. First come the words derived from the case (judge/case/context.c), then
 * the options of probes. Any other word is a typing error and refused. */
static const char *const known[] = {
	"probe",
	"engine",
	"limit",
	"target",
	"nodes",
	"ranks",
	"phase",
	"phases",
	"sku",
	"arch",
	"power_limit",
	"stated_power_limit",
	"stated_sm_clock",
	"mig",
	"virtual_gpu",
	"ecc",
	"row_remapping",
	"siblings",
	"gpus",
	"server_gpus",
	"stream_bytes",
	"least_dimension",
	"variant",
	"fabric_state",
	"library_major",
	"nvls",
	"nvlinks",
	"nvlink_gen",
	"pcie_gen",
	"algorithm",
	"protocol",
	"beside",
	/* options */
	"accumulate",
	"batch",
	"bias",
	"both",
	"buffers",
	"data",
	"density",
	"direction",
	"head_dim",
	"heads",
	"host",
	"isa",
	"k",
	"kv_heads",
	"kv_seq",
	"launch",
	"layout",
	"left",
	"lengths",
	"m",
	"mask",
	"memory",
	"n",
	"op",
	"out",
	"pass",
	"pattern",
	"pinned",
	"place",
	"reduce",
	"right",
	"root",
	"scale",
	"search",
	"seq",
	"size",
	"store",
	"ta",
	"tb",
	"threads",
	"type",
	"unit",
	"what",
};

static enum status condition_range(struct condition *c, const struct tree *map, struct error *err)
{
	static const char *const keys[] = {"min", "max", "unit", NULL};
	const struct tree *low, *high;
	const char *unit;
	enum status status = tree_check_keys(map, keys, err);

	if (status)
		return status;
	low = tree_get(map, "min");
	high = tree_get(map, "max");
	unit = tree_text(map, "unit", "");
	c->low = -DBL_MAX;
	c->high = DBL_MAX;
	if (!low && !high)
		return error_set(err, STATUS_BAD_INPUT, "%s:%d: %s needs min, max or both", map->file,
				 map->line, c->word);
	if (low)
		status = expect_number(&c->low, low, unit, err);
	if (!status && high)
		status = expect_number(&c->high, high, unit, err);
	return status;
}

static enum status condition_read(struct condition *c, const char *word, const struct tree *value,
				  struct error *err)
{
	const char *near;
	size_t i;

	c->word = word;
	c->line = value->line;
	for (i = 0; i < COUNT(known) && strcmp(known[i], word);)
		i++;
	if (i == COUNT(known)) {
		near = opt_nearest(word, known, COUNT(known));
		return error_set(err, STATUS_BAD_INPUT, "%s:%d: no case has a word %s%s%s", value->file,
				 value->line, word, near ? "; the nearest is " : "", near ? near : "");
	}
	if (value->kind == TREE_MAP)
		return condition_range(c, value, err);
	if (value->kind == TREE_NULL || (value->kind == TREE_LIST && !value->count))
		return error_set(err, STATUS_BAD_INPUT, "%s:%d: %s has no value", value->file, value->line,
				 word);
	for (i = 0; value->kind == TREE_LIST && i < value->count; i++)
		if (value->items[i]->kind != TREE_SCALAR)
			return error_set(err, STATUS_BAD_INPUT,
					 "%s:%d: the list of %s must hold plain values, not lists or maps",
					 value->file, value->line, word);
	c->value = value;
	return STATUS_OK;
}

enum status expect_when(struct when *out, const struct tree *row, const char *key, struct error *err)
{
	const struct tree *map = tree_get(row, key);
	enum status status = STATUS_OK;
	size_t i;

	if (!map)
		return STATUS_OK;
	if (map->kind != TREE_MAP)
		return error_set(err, STATUS_BAD_INPUT, "%s:%d: %s must be a map of words", map->file,
				 map->line, key);
	out->condition = calloc(map->count + 1, sizeof(*out->condition));
	if (!out->condition)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory for the expectations");
	for (i = 0; i < map->count && !status; i++)
		status = condition_read(&out->condition[out->count++], map->keys[i], map->items[i], err);
	return status;
}

/* True if the texts are equal or both are the same number. */
static bool same(const char *a, const char *b)
{
	double x, y;

	if (!strcmp(a, b))
		return true;
	return expect_parse(&x, a, "") && expect_parse(&y, b, "") && x >= y && x <= y;
}

static bool any_of(const struct tree *value, const char *text)
{
	size_t i;

	if (value->kind == TREE_SCALAR)
		return same(value->text, text);
	for (i = 0; i < value->count; i++)
		if (same(value->items[i]->text, text))
			return true;
	return false;
}

/* Reads a number of a case as options print it: plain, in bytes with a unit, or in W. */
static bool number_of(const char *text, double *out)
{
	return expect_parse(out, text, "") || expect_parse(out, text, "B") || expect_parse(out, text, "W");
}

static bool in_range(const struct condition *c, const char *text)
{
	double x;

	return number_of(text, &x) && x >= c->low && x <= c->high;
}

bool when_matches(const struct when *w, expect_look *look, const void *arg)
{
	char buffer[128];
	const char *text;
	size_t i;

	for (i = 0; i < w->count; i++) {
		const struct condition *c = &w->condition[i];

		text = look(arg, c->word, buffer, sizeof(buffer));
		if (!text || !(c->value ? any_of(c->value, text) : in_range(c, text)))
			return false;
	}
	return true;
}

static bool conditions_compatible(const struct condition *a, const struct condition *b)
{
	const struct tree *v;
	size_t i;

	if (!a->value && !b->value)
		return a->low <= b->high && b->low <= a->high;
	if (!a->value) {
		const struct condition *t = a;

		a = b;
		b = t;
	}
	v = a->value;
	if (v->kind == TREE_SCALAR)
		return b->value ? any_of(b->value, v->text) : in_range(b, v->text);
	for (i = 0; i < v->count; i++)
		if (b->value ? any_of(b->value, v->items[i]->text) : in_range(b, v->items[i]->text))
			return true;
	return false;
}

bool when_compatible(const struct when *a, const struct when *b)
{
	size_t i, j;

	for (i = 0; i < a->count; i++)
		for (j = 0; j < b->count; j++)
			if (!strcmp(a->condition[i].word, b->condition[j].word) &&
			    !conditions_compatible(&a->condition[i], &b->condition[j]))
				return false;
	return true;
}
