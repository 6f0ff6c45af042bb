/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/metrics/catalogue.h"
#include <string.h>

static const struct catalogue_row rows[CATALOGUE_COUNT] = {
#define X(symbol_, name_, fixed_, type_, unit_, scope_, pace_, resolution_, dcgm_, source_, help_)           \
	[CATALOGUE_##symbol_] = {.symbol = #symbol_,                                                         \
				 .name = name_,                                                              \
				 .fixed = fixed_,                                                            \
				 .type = METRIC_##type_,                                                     \
				 .unit = unit_,                                                              \
				 .scope = METRIC_SCOPE_##scope_,                                             \
				 .pace = METRIC_##pace_,                                                     \
				 .resolution = resolution_,                                                  \
				 .dcgm = dcgm_,                                                              \
				 .source = source_,                                                          \
				 .help = help_},
	CATALOGUE(X)
#undef X
};

static const struct scope_row scopes[METRIC_SCOPE_COUNT] = {
#define X(symbol, name_, most_, identity_, attributes_, page_, help_)                                        \
	[METRIC_SCOPE_##symbol] = {.name = name_,                                                            \
				   .most = most_,                                                            \
				   .identity = identity_,                                                    \
				   .attributes = attributes_,                                                \
				   .page = page_,                                                            \
				   .help = help_},
	METRIC_SCOPES(X)
#undef X
};

const struct catalogue_row *catalogue_row(enum catalogue c)
{
	return &rows[c];
}

enum catalogue catalogue_find_full(const char *full)
{
	size_t name = strcspn(full, "{"), end = strlen(full);
	size_t fixed = full[name] && end > name + 2 && full[end - 1] == '}' ? end - name - 2 : 0;

	for (int c = 0; c < CATALOGUE_COUNT; c++) {
		const struct catalogue_row *r = &rows[c];

		if (strlen(r->name) != name || memcmp(r->name, full, name))
			continue;
		if (!r->fixed && !full[name])
			return (enum catalogue)c;
		if (r->fixed && fixed && strlen(r->fixed) == fixed &&
		    !memcmp(r->fixed, full + name + 1, fixed))
			return (enum catalogue)c;
	}
	return CATALOGUE_COUNT;
}

void catalogue_add_full(struct text *out, enum catalogue c)
{
	text_add(out, rows[c].name);
	if (rows[c].fixed)
		text_addf(out, "{%s}", rows[c].fixed);
}

enum catalogue catalogue_first(enum metric_scope s)
{
	int c = 0;

	while (c < CATALOGUE_COUNT && rows[c].scope != s)
		c++;
	return (enum catalogue)c;
}

unsigned catalogue_scope_rows(enum metric_scope s)
{
	unsigned count = 0;

	for (int c = 0; c < CATALOGUE_COUNT; c++)
		count += rows[c].scope == s;
	return count;
}

const struct scope_row *metric_scope_row(enum metric_scope s)
{
	return &scopes[s];
}

enum metric_scope metric_scope_find(const char *name)
{
	int s = 0;

	while (s < METRIC_SCOPE_COUNT && strcmp(scopes[s].name, name))
		s++;
	return (enum metric_scope)s;
}

static bool has_word(const char *words, const char *word)
{
	size_t size = strlen(word);

	while (*words) {
		size_t one = strcspn(words, " ");

		if (size && one == size && !memcmp(words, word, size))
			return true;
		words += one + (words[one] == ' ');
	}
	return false;
}

bool metric_scope_has(enum metric_scope s, const char *label, bool identity)
{
	return has_word(scopes[s].identity, label) || (!identity && has_word(scopes[s].attributes, label));
}

const char *dcgm_without(unsigned i, const char **why)
{
	static const struct {
		const char *name, *why;
	} list[] = {
#define X(name, why) {name, why},
		DCGM_WITHOUT(X)
#undef X
	};

	if (i >= sizeof(list) / sizeof(list[0]))
		return NULL;
	*why = list[i].why;
	return list[i].name;
}
