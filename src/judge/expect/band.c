/* SPDX-License-Identifier: Apache-2.0 */
/* Expected ranges, ceilings and cases that stay unknown: reads the rows and finds the most specific one for a
 * case. */
#include "judge/expect/expect.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const struct {
	const char *key, *unit;
} slots[BAND_SLOT_COUNT] = {
	[BAND_RATE] = {"rate", NULL},
	[BAND_TIME] = {"time", "s"},
	[BAND_EFFICIENCY] = {"efficiency_held", ""},
	[BAND_CLOCK] = {"clock_held", "Hz"},
};

/* A fail mark inside the range would fail figures that the range expects. */
static enum status fail_read(struct band_row *b, const struct tree *row, const char *unit, struct error *err)
{
	const struct tree *mark = tree_get(row, "fail");
	enum status status = mark ? expect_number(&b->fail, mark, unit, err) : STATUS_OK;

	if (status || !mark)
		return status;
	if (b->slot == BAND_TIME)
		b->fail *= 1e9;
	if (b->fail > 0 && (b->slot == BAND_TIME ? b->fail > b->high : b->fail < b->low))
		return STATUS_OK;
	return error_set(err, STATUS_BAD_INPUT, "%s:%d: the fail mark of %s is zero or inside its range",
			 row->file, mark->line, b->name);
}

static enum status band_value(struct band_row *b, const struct tree *row, struct error *err)
{
	const struct tree *found = NULL;
	enum status status;
	const char *unit;
	double probe;
	int s;

	for (s = 0; s < BAND_SLOT_COUNT; s++) {
		const struct tree *list = tree_get(row, slots[s].key);

		if (list && found)
			return error_set(err, STATUS_BAD_INPUT,
					 "%s:%d: %s has two values to judge; give each its own row",
					 row->file, row->line, b->name);
		if (list) {
			found = list;
			b->slot = (enum band_slot)s;
		}
	}
	if (!found)
		return error_set(err, STATUS_BAD_INPUT,
				 "%s:%d: %s needs rate, time, efficiency_held or clock_held", row->file,
				 row->line, b->name);
	unit = slots[b->slot].unit;
	if (!unit) /* a rate in FLOP/s or B/s, according to the unit of its low end */
		unit = found->kind == TREE_LIST && found->count && found->items[0]->kind == TREE_SCALAR &&
				       expect_parse(&probe, found->items[0]->text, "B/s")
			       ? "B/s"
			       : "FLOP/s";
	status = expect_range(&b->low, &b->high, found, unit, err);
	if (!status && !(b->low > 0))
		status = error_set(err, STATUS_BAD_INPUT, "%s:%d: %s begins at or below zero", row->file,
				   row->line, b->name);
	if (b->slot == BAND_TIME) { /* figures of time are in ns */
		b->low *= 1e9;
		b->high *= 1e9;
	}
	return status ? status : fail_read(b, row, unit, err);
}

enum { BASIS_MAX = 10000 };
#define SCATTER_MOST 0.25 /* with more, the fail mark would be looser than that of published figures */

static enum status basis_count(unsigned *out, const struct tree *map, const char *key, struct error *err)
{
	const struct tree *value = tree_get(map, key);
	double number = -1;
	enum status status = value ? expect_number(&number, value, "", err) : STATUS_OK;

	if (status)
		return status;
	if (!(number >= 0) || number > BASIS_MAX)
		return error_set(err, STATUS_BAD_INPUT, "%s:%d: basis needs %s, a count", map->file,
				 map->line, key);
	*out = (unsigned)number;
	return STATUS_OK;
}

static enum status basis_read(struct basis *b, const struct tree *row, struct error *err)
{
	static const char *const keys[] = {"cards", "runs", "windows", "scatter", NULL};
	const struct tree *map = tree_get(row, "basis"), *scatter;
	enum status status;

	if (!map || map->kind != TREE_MAP)
		return error_set(
			err, STATUS_BAD_INPUT,
			"%s:%d: basis is missing; it names the {cards, runs, windows} behind the range",
			row->file, row->line);
	status = tree_check_keys(map, keys, err);
	if (!status)
		status = basis_count(&b->cards, map, "cards", err);
	if (!status)
		status = basis_count(&b->runs, map, "runs", err);
	if (!status)
		status = expect_need_text(&b->windows, map, "windows", err);
	if (!status && (b->runs < b->cards || !b->runs != !b->cards))
		status = error_set(err, STATUS_BAD_INPUT, "%s:%d: %u runs cannot come from %u cards",
				   map->file, map->line, b->runs, b->cards);
	scatter = status ? NULL : tree_get(map, "scatter");
	if (!status && !scatter != (b->cards < 2))
		return error_set(
			err, STATUS_BAD_INPUT,
			scatter ? "%s:%d: scatter needs at least two cards"
				: "%s:%d: basis needs scatter: how far the slowest of its cards is below the fastest",
			map->file, map->line);
	if (!status && scatter)
		status = expect_number(&b->scatter, scatter, "", err);
	if (!status && (!(b->scatter >= 0) || b->scatter > SCATTER_MOST))
		status =
			error_set(err, STATUS_BAD_INPUT, "%s:%d: a scatter of %g is not a share from 0 to %g",
				  map->file, map->line, b->scatter, SCATTER_MOST);
	return status;
}

void basis_text(const struct basis *b, char *out, size_t size)
{
	if (!b->cards)
		snprintf(out, size, "published figures only");
	else if (b->cards == 1)
		snprintf(out, size, "one card, %u run%s of %.24s", b->runs, b->runs == 1 ? "" : "s",
			 b->windows);
	else
		snprintf(out, size, "%u cards, %u runs of %.24s, %.1f %% apart", b->cards, b->runs,
			 b->windows, 100 * b->scatter);
}

void band_terms(const struct band_row *b, char *out, size_t size)
{
	static const char *const words[] = {"phase",	     "data",   "power_limit",
					    "library_major", "memory", "nvls"};
	size_t i, w, n = 0;

	if (size)
		*out = '\0';
	for (i = 0; i < b->when.count; i++) {
		const struct condition *c = &b->when.condition[i];

		for (w = 0; w < COUNT(words) && strcmp(words[w], c->word);)
			w++;
		if (w < COUNT(words) && c->value && c->value->kind == TREE_SCALAR && n < size)
			n += (size_t)snprintf(out + n, size - n, "%s%s %s", n ? ", " : "", c->word,
					      c->value->text);
	}
}

static enum status band_read(struct band_row *b, const struct tree *row, const struct tree *sources,
			     struct error *err)
{
	static const char *const keys[] = {"name",	 "when", "rate",  "time",   "efficiency_held",
					   "clock_held", "fail", "basis", "source", "confidence",
					   NULL};
	enum status status = expect_need_text(&b->name, row, "name", err);

	b->file = row->file;
	b->line = row->line;
	if (!status)
		status = tree_check_keys(row, keys, err);
	if (!status)
		status = expect_when(&b->when, row, "when", err);
	if (!status && !b->when.count)
		status = error_set(err, STATUS_BAD_INPUT,
				   "%s:%d: %s has no condition (when) and would judge every case", row->file,
				   row->line, b->name);
	if (!status)
		status = band_value(b, row, err);
	if (!status)
		status = basis_read(&b->basis, row, err);
	if (!status)
		status = expect_source(&b->source, row, sources, err);
	return status;
}

enum status expect_read_bands(struct expectations *e, const struct tree *list, const struct tree *sources,
			      struct error *err)
{
	enum status status = STATUS_OK;
	struct band_row *grown;
	size_t i;

	for (i = 0; i < list->count && !status; i++) {
		grown = expect_grow(e->band, e->band_count, sizeof(*grown), err);
		if (!grown)
			return STATUS_NO_RESOURCE;
		e->band = grown;
		status = band_read(&grown[e->band_count++], list->items[i], sources, err);
	}
	return status;
}

static enum status share(double *out, const struct tree *row, const char *key, double preset,
			 struct error *err)
{
	const struct tree *value = tree_get(row, key);
	enum status status = STATUS_OK;

	*out = preset;
	if (value)
		status = expect_number(out, value, "", err);
	if (!status && (!(*out > 0) || *out > 2))
		status =
			error_set(err, STATUS_BAD_INPUT, "%s:%d: %s of %g is not a share above 0 and up to 2",
				  row->file, row->line, key, *out);
	return status;
}

static enum status ceiling_read(struct ceiling_row *c, const struct tree *row, const struct tree *sources,
				struct error *err)
{
	static const char *const keys[] = {"name",    "when",	"pass",	      "fail", "above",
					   "traffic", "source", "confidence", NULL};
	enum status status = expect_need_text(&c->name, row, "name", err);

	c->file = row->file;
	c->line = row->line;
	if (!status)
		status = tree_check_keys(row, keys, err);
	if (!status)
		status = expect_when(&c->when, row, "when", err);
	if (!status && (!c->when.count || !tree_get(row, "pass") || !tree_get(row, "fail")))
		status = error_set(err, STATUS_BAD_INPUT, "%s:%d: %s needs when, pass and fail", row->file,
				   row->line, c->name);
	if (!status)
		status = share(&c->pass, row, "pass", 0, err);
	if (!status)
		status = share(&c->fail, row, "fail", 0, err);
	if (!status)
		status = share(&c->above, row, "above", 1.05, err);
	if (!status)
		status = share(&c->traffic, row, "traffic", 1, err);
	if (!status && !(c->fail < c->pass && c->pass < c->above))
		status = error_set(err, STATUS_BAD_INPUT, "%s:%d: %s needs fail < pass < above", row->file,
				   row->line, c->name);
	if (!status)
		status = expect_source(&c->source, row, sources, err);
	return status;
}

enum status expect_read_ceilings(struct expectations *e, const struct tree *list, const struct tree *sources,
				 struct error *err)
{
	enum status status = STATUS_OK;
	struct ceiling_row *grown;
	size_t i;

	for (i = 0; i < list->count && !status; i++) {
		grown = expect_grow(e->ceiling, e->ceiling_count, sizeof(*grown), err);
		if (!grown)
			return STATUS_NO_RESOURCE;
		e->ceiling = grown;
		status = ceiling_read(&grown[e->ceiling_count++], list->items[i], sources, err);
	}
	return status;
}

enum status expect_read_unknowns(struct expectations *e, const struct tree *list, const struct tree *sources,
				 struct error *err)
{
	static const char *const keys[] = {"name", "when", "why", "source", "confidence", NULL};
	enum status status = STATUS_OK;
	struct unknown_row *u;
	size_t i;

	for (i = 0; i < list->count && !status; i++) {
		const struct tree *row = list->items[i];

		u = expect_grow(e->unknown, e->unknown_count, sizeof(*u), err);
		if (!u)
			return STATUS_NO_RESOURCE;
		e->unknown = u;
		u += e->unknown_count++;
		u->file = row->file;
		u->line = row->line;
		status = expect_need_text(&u->name, row, "name", err);
		if (!status)
			status = tree_check_keys(row, keys, err);
		if (!status)
			status = expect_need_text(&u->why, row, "why", err);
		if (!status)
			status = expect_when(&u->when, row, "when", err);
		if (!status && !u->when.count)
			status = error_set(
				err, STATUS_BAD_INPUT,
				"%s:%d: %s has no condition (when) and would leave every case unknown",
				row->file, row->line, u->name);
		if (!status)
			status = expect_source(&u->source, row, sources, err);
	}
	return status;
}

const struct band_row *expect_band(const struct expectations *e, enum band_slot slot, expect_look *look,
				   const void *arg, const struct band_row **tie)
{
	const struct band_row *best = NULL;
	size_t i;

	*tie = NULL;
	for (i = 0; i < e->band_count; i++) {
		const struct band_row *b = &e->band[i];

		if (b->slot != slot || (best && b->when.count < best->when.count) ||
		    !when_matches(&b->when, look, arg))
			continue;
		*tie = best && b->when.count == best->when.count ? best : NULL;
		best = b;
	}
	return best;
}

const struct ceiling_row *expect_ceiling(const struct expectations *e, expect_look *look, const void *arg)
{
	const struct ceiling_row *best = NULL;
	size_t i;

	for (i = 0; i < e->ceiling_count; i++)
		if ((!best || e->ceiling[i].when.count > best->when.count) &&
		    when_matches(&e->ceiling[i].when, look, arg))
			best = &e->ceiling[i];
	return best;
}

const struct unknown_row *expect_unknown(const struct expectations *e, expect_look *look, const void *arg)
{
	size_t i;

	for (i = 0; i < e->unknown_count; i++)
		if (when_matches(&e->unknown[i].when, look, arg))
			return &e->unknown[i];
	return NULL;
}
