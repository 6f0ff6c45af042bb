/* SPDX-License-Identifier: Apache-2.0 */
#include "price/prices.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "core/file/embedded.h"
#include "core/file/file.h"
#include "core/input/opt.h"
#include "core/input/tree.h"

#define BUILT_IN "prices/prices.yaml"
enum { FILE_MAX = 1 << 20, ROWS_MAX = 1000, DATE_MONTH = 7, DATE_DAY = 10 };
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

struct prices {
	struct tree *tree;
	char file[4096], hash[65];
	struct price_electricity *electricity;
	struct price_gpu *hour, *capital;
	struct price_api *api;
	size_t electricity_count, hour_count, capital_count, api_count;
};

/* Reads two or four digits. False: others are there. */
static bool digits(const char *text, int count, int *out)
{
	*out = 0;
	for (int i = 0; i < count; i++) {
		if (text[i] < '0' || text[i] > '9')
			return false;
		*out = *out * 10 + (text[i] - '0');
	}
	return true;
}

/* Days since a fixed day (Howard Hinnant's days_from_civil). `size`: characters of the date. */
static bool day_number(const char *text, int *out, size_t *size)
{
	static const int days_of[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	int year, month, day = 1, era, of_era, of_year;

	*size = DATE_MONTH;
	if (!digits(text, 4, &year) || text[4] != '-' || !digits(text + 5, 2, &month))
		return false;
	if (text[DATE_MONTH] == '-') {
		*size = DATE_DAY;
		if (!digits(text + 8, 2, &day))
			return false;
	}
	if (month < 1 || month > 12 || day < 1 || day > days_of[month - 1])
		return false;
	if (month == 2 && day == 29 && (year % 4 || (year % 100 == 0 && year % 400)))
		return false;
	year -= month <= 2;
	era = year / 400;
	of_era = year - era * 400;
	of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
	*out = era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year;
	return true;
}

bool price_age_days(const char *date, const char *today, int *days)
{
	int from, to;
	size_t size;

	if (!date || !today || !day_number(date, &from, &size) || !day_number(today, &to, &size))
		return false;
	*days = to - from;
	return true;
}

bool price_is_old(const struct price_origin *origin, const char *today)
{
	int days;

	return price_age_days(origin->date, today, &days) && days > PRICE_OLD_DAYS;
}

static enum status check_date(const char *date, const struct tree *at, struct error *err)
{
	size_t size;
	int day;

	if (date && day_number(date, &day, &size) && !date[size])
		return STATUS_OK;
	return error_set(err, STATUS_BAD_INPUT, "%s:%d: date %s is not YYYY-MM-DD or YYYY-MM", at->file,
			 at->line, date ? date : "is missing and");
}

static enum status check_sources(const struct tree *sources, struct error *err)
{
	static const char *const keys[] = {"title", "date", NULL};
	enum status st = STATUS_OK;

	for (size_t i = 0; sources && i < sources->count && !st; i++) {
		const struct tree *s = sources->items[i];
		const char *title = tree_text(s, "title", "");

		st = tree_check_keys(s, keys, err);
		if (!st && !*title)
			st = error_set(err, STATUS_BAD_INPUT, "%s:%d: source %s has no title", s->file,
				       s->line, sources->keys[i]);
		if (!st)
			st = check_date(tree_text(s, "date", NULL), s, err);
	}
	return st;
}

/* Reads source and date of a row. Without a date of its own the row has that of its source. */
static enum status read_origin(struct price_origin *out, const struct tree *row, const struct tree *sources,
			       struct error *err)
{
	const char *name = tree_text(row, "source", NULL), *near;
	const struct tree *source = name && sources ? tree_get(sources, name) : NULL;

	out->line = row->line;
	if (!name)
		return error_set(err, STATUS_BAD_INPUT, "%s:%d: source is missing", row->file, row->line);
	if (!source) {
		near = sources ? opt_nearest(name, (const char *const *)sources->keys, sources->count) : NULL;
		return error_set(err, STATUS_BAD_INPUT,
				 "%s:%d: source %.64s is not in the sources of this file%s%s", row->file,
				 row->line, name, near ? "; did you mean " : "", near ? near : "");
	}
	out->source = tree_text(source, "title", "");
	out->date = tree_text(row, "date", tree_text(source, "date", NULL));
	return check_date(out->date, row, err);
}

/* A number that must be there, from `low` to `high`. */
static enum status read_number(double *out, const struct tree *row, const char *key, double low, double high,
			       struct error *err)
{
	enum status st = tree_f64_unit(row, key, "", out, err);

	if (st)
		return st;
	if (!tree_get(row, key))
		return error_set(err, STATUS_BAD_INPUT, "%s:%d: %s is missing", row->file, row->line, key);
	if (*out >= low && *out <= high)
		return STATUS_OK;
	return error_set(err, STATUS_BAD_INPUT, "%s:%d: %s of %g is not from %g to %g", row->file, row->line,
			 key, *out, low, high);
}

static enum status read_name(const char **out, const struct tree *row, const char *key, struct error *err)
{
	*out = tree_text(row, key, "");
	if (**out)
		return STATUS_OK;
	return error_set(err, STATUS_BAD_INPUT, "%s:%d: %s is missing", row->file, row->line, key);
}

static enum status read_electricity(struct prices *p, const struct tree *row, struct error *err)
{
	struct price_electricity *e = &p->electricity[p->electricity_count];
	enum status st = read_name(&e->name, row, "name", err);

	if (!st)
		st = read_number(&e->dollars_per_kwh, row, "dollars_per_kwh", 0.0001, 10, err);
	if (!st)
		st = read_number(&e->pue, row, "pue", 1, 5, err);
	for (size_t i = 0; i < p->electricity_count && !st; i++)
		if (!strcmp(p->electricity[i].name, e->name))
			st = error_set(err, STATUS_BAD_INPUT, "%s:%d: electricity %s is already on line %d",
				       row->file, row->line, e->name, p->electricity[i].origin.line);
	e->origin.line = row->line;
	p->electricity_count++;
	return st;
}

/* A row of GPU-hours or of capital. */
static enum status read_gpu(struct price_gpu *list, size_t *count, const struct tree *row, double most,
			    struct error *err)
{
	struct price_gpu *g = &list[*count];
	enum status st = read_name(&g->sku, row, "sku", err);

	if (!st)
		st = read_number(&g->low, row, "low", 0.0001, most, err);
	if (!st)
		st = read_number(&g->high, row, "high", 0.0001, most, err);
	if (!st && g->low > g->high)
		st = error_set(err, STATUS_BAD_INPUT, "%s:%d: low is above high", row->file, row->line);
	for (size_t i = 0; i < *count && !st; i++)
		if (!strcmp(list[i].sku, g->sku))
			st = error_set(err, STATUS_BAD_INPUT, "%s:%d: %s is already on line %d", row->file,
				       row->line, g->sku, list[i].origin.line);
	g->origin.line = row->line;
	++*count;
	return st;
}

static enum status read_hour(struct prices *p, const struct tree *row, struct error *err)
{
	return read_gpu(p->hour, &p->hour_count, row, 10000, err);
}

static enum status read_capital(struct prices *p, const struct tree *row, struct error *err)
{
	struct price_gpu *g = &p->capital[p->capital_count];
	enum status st = read_gpu(p->capital, &p->capital_count, row, 1e7, err);

	return st ? st : read_number(&g->years, row, "years", 0.5, 20, err);
}

static enum status read_api(struct prices *p, const struct tree *row, struct error *err)
{
	struct price_api *a = &p->api[p->api_count];
	enum status st = read_name(&a->model, row, "model", err);

	if (!st)
		st = read_number(&a->input, row, "input", 0, 10000, err);
	if (!st)
		st = read_number(&a->output, row, "output", 0.0001, 10000, err);
	a->cached_input = a->input;
	a->cached_given = tree_get(row, "cached_input");
	if (!st && a->cached_given)
		st = read_number(&a->cached_input, row, "cached_input", 0, a->input, err);
	for (size_t i = 0; i < p->api_count && !st; i++)
		if (!strcmp(p->api[i].model, a->model))
			st = error_set(err, STATUS_BAD_INPUT, "%s:%d: model %s is already on line %d",
				       row->file, row->line, a->model, p->api[i].origin.line);
	a->origin.line = row->line;
	p->api_count++;
	return st;
}

static const char *const electricity_keys[] = {"name", "dollars_per_kwh", "pue", "source", "date", NULL};
static const char *const hour_keys[] = {"sku", "low", "high", "source", "date", NULL};
static const char *const capital_keys[] = {"sku", "low", "high", "years", "source", "date", NULL};
static const char *const api_keys[] = {"model", "input", "output", "cached_input", "source", "date", NULL};

/* `list`: offset of the array in struct prices; the origin of its last row is that at `origin`. */
static const struct section {
	const char *name;
	const char *const *keys;
	size_t list, row, origin;
	enum status (*read)(struct prices *p, const struct tree *row, struct error *err);
} sections[] = {
	{"electricity", electricity_keys, offsetof(struct prices, electricity),
	 sizeof(struct price_electricity), offsetof(struct price_electricity, origin), read_electricity},
	{"gpu_hours", hour_keys, offsetof(struct prices, hour), sizeof(struct price_gpu),
	 offsetof(struct price_gpu, origin), read_hour},
	{"capital", capital_keys, offsetof(struct prices, capital), sizeof(struct price_gpu),
	 offsetof(struct price_gpu, origin), read_capital},
	{"apis", api_keys, offsetof(struct prices, api), sizeof(struct price_api),
	 offsetof(struct price_api, origin), read_api},
};

static enum status read_section(struct prices *p, const struct section *s, const struct tree *root,
				struct error *err)
{
	const struct tree *list = tree_get(root, s->name);
	enum status st = STATUS_OK;
	char *rows;

	if (!list)
		return STATUS_OK;
	if (list->kind != TREE_LIST || list->count > ROWS_MAX)
		return error_set(err, STATUS_BAD_INPUT, "%s:%d: %s must be a list of at most %d rows",
				 list->file, list->line, s->name, ROWS_MAX);
	rows = calloc(list->count + 1, s->row);
	if (!rows)
		return error_errno(err, ENOMEM, "%s: %s", list->file, s->name);
	memcpy((char *)p + s->list, &rows, sizeof(rows));
	for (size_t i = 0; i < list->count && !st; i++) {
		const struct tree *row = list->items[i];

		st = tree_check_keys(row, s->keys, err);
		if (!st)
			st = s->read(p, row, err);
		if (!st)
			st = read_origin((struct price_origin *)(rows + i * s->row + s->origin), row,
					 tree_get(root, "sources"), err);
	}
	return st;
}

static enum status read_root(struct prices *p, struct error *err)
{
	static const char *const keys[] = {"sources", "electricity", "gpu_hours", "capital", "apis", NULL};
	const struct tree *sources = tree_get(p->tree, "sources");
	enum status st;

	if (p->tree->kind != TREE_MAP)
		return error_set(err, STATUS_BAD_INPUT, "%s:1: a file of prices must be a map", p->file);
	st = tree_check_keys(p->tree, keys, err);
	if (!st && sources && sources->kind != TREE_MAP)
		st = error_set(err, STATUS_BAD_INPUT, "%s:%d: sources must be a map", p->file, sources->line);
	if (!st)
		st = check_sources(sources, err);
	for (size_t i = 0; i < COUNT(sections) && !st; i++)
		st = read_section(p, &sections[i], p->tree, err);
	return st;
}

enum status prices_parse(struct prices **out, const char *name, const char *text, size_t size,
			 struct error *err)
{
	struct prices *p = calloc(1, sizeof(*p));
	enum status st;

	*out = NULL;
	if (!p)
		return error_errno(err, ENOMEM, "%s: prices", name);
	snprintf(p->file, sizeof(p->file), "%s", name);
	file_sha256(p->hash, text, size);
	st = tree_parse(&p->tree, name, text, size, err);
	if (!st)
		st = read_root(p, err);
	if (st)
		prices_free(p);
	else
		*out = p;
	return st;
}

enum status prices_load(struct prices **out, const char *from, struct error *err)
{
	const struct embedded *built_in = from ? NULL : embedded_find(BUILT_IN);
	char *text = NULL;
	size_t size = 0;
	enum status st;

	*out = NULL;
	if (!from && !built_in)
		return error_set(err, STATUS_BUG, "the program holds no " BUILT_IN);
	if (!from)
		return prices_parse(out, BUILT_IN, (const char *)built_in->data, built_in->size, err);
	st = file_read(&text, &size, from, FILE_MAX, err);
	if (st == STATUS_UNAVAILABLE) /* a file that the user names does not exist or cannot be read */
		st = STATUS_BAD_INPUT;
	if (st == STATUS_BAD_INPUT && err)
		err->status = st;
	if (!st)
		st = prices_parse(out, from, text, size, err);
	free(text);
	return st;
}

void prices_free(struct prices *p)
{
	if (!p)
		return;
	tree_free(p->tree);
	free(p->electricity);
	free(p->hour);
	free(p->capital);
	free(p->api);
	free(p);
}

const char *prices_file(const struct prices *p)
{
	return p->file;
}

const char *prices_hash(const struct prices *p)
{
	return p->hash;
}

const struct price_electricity *prices_electricity(const struct prices *p, size_t *count)
{
	*count = p->electricity_count;
	return p->electricity;
}

const struct price_api *prices_apis(const struct prices *p, size_t *count)
{
	*count = p->api_count;
	return p->api;
}

const struct price_gpu *prices_gpu_hours(const struct prices *p, size_t *count)
{
	*count = p->hour_count;
	return p->hour;
}

static const struct price_gpu *fitting(const struct price_gpu *list, size_t count, const char *sku)
{
	const struct price_gpu *best = NULL;

	for (size_t i = 0; i < count; i++) {
		size_t n = strlen(list[i].sku);

		if (!strncmp(sku, list[i].sku, n) && (!sku[n] || sku[n] == '-') &&
		    (!best || n > strlen(best->sku)))
			best = &list[i];
	}
	return best;
}

const struct price_gpu *prices_gpu_hour(const struct prices *p, const char *sku)
{
	return fitting(p->hour, p->hour_count, sku);
}

const struct price_gpu *prices_capital(const struct prices *p, const char *sku)
{
	return fitting(p->capital, p->capital_count, sku);
}
