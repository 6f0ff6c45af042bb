/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/generate/generate.h"

#include "journal/metrics/catalogue.h"

struct found {
	const char *name, *fixed;
};

static bool is(const char *symbol, size_t size, const char *word)
{
	return strlen(word) == size && !memcmp(symbol, word, size);
}

static bool find(const char *symbol, size_t size, struct found *found)
{
	for (int i = 0; i < CATALOGUE_COUNT; i++) {
		const struct catalogue_row *r = catalogue_row((enum catalogue)i);

		*found = (struct found){.name = r->name, .fixed = r->fixed};
		if (is(symbol, size, r->symbol))
			return true;
	}
	for (int i = 0; i < METRIC_COUNT; i++) {
		*found = (struct found){.name = metric_row((enum metric)i)->name};
		if (is(symbol, size, metric_row((enum metric)i)->symbol))
			return true;
	}
	return false;
}

/* A symbol is in capitals; an underscore before small letters belongs to what follows it. */
static size_t symbol_size(const char *s)
{
	size_t size = strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");

	while (size && s[size - 1] == '_')
		size--;
	return size;
}

/* Appends the metric at *at, which is behind the "@", and moves *at behind it. */
static enum status add_metric(struct text *out, const char **at, struct error *err)
{
	bool alone = **at == '*';
	const char *s = *at + alone;
	size_t size = symbol_size(s), suffix = strspn(s + size, "abcdefghijklmnopqrstuvwxyz_");
	struct found found;

	if (!find(s, size, &found))
		return error_set(err, STATUS_BUG, "no metric has the symbol \"%.*s\"", (int)size, s);
	text_addf(out, "%s%.*s", found.name, (int)suffix, s + size);
	s += size + suffix;
	if (found.fixed && !alone) {
		text_addf(out, "{%s%s", found.fixed, *s == '{' ? "," : "}");
		s += *s == '{';
	}
	*at = s;
	return STATUS_OK;
}

enum status generate_expression(struct text *out, const char *expression, struct error *err)
{
	enum status st = STATUS_OK;

	while (!st && *expression) {
		size_t n = strcspn(expression, "@");

		text_add_bytes(out, expression, n);
		expression += n;
		if (*expression) {
			expression++;
			st = add_metric(out, &expression, err);
		}
	}
	return st;
}
