/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/stages/stage_choice.h"
#include <stdio.h>
#include <string.h>
#include "core/input/opt.h"

enum { MOST = 32 };

/* The one with the number or the word in [word, word + size). */
static int find(const struct stage_choice *c, const char *word, size_t size)
{
	for (unsigned i = 0; i < c->count; i++) {
		const char *one = c->word(c->arg, i);
		char number[16];

		snprintf(number, sizeof(number), "%u", i + 1);
		if ((strlen(number) == size && !strncmp(number, word, size)) ||
		    (strlen(one) == size && !strncmp(one, word, size)))
			return (int)i;
	}
	return -1;
}

static enum status unknown(const struct stage_choice *c, const char *word, size_t size, struct error *err)
{
	const char *known[MOST], *near;
	char one[64];

	snprintf(one, sizeof(one), "%.*s", (int)(size < 40 ? size : 40), word);
	for (unsigned i = 0; i < c->count; i++)
		known[i] = c->word(c->arg, i);
	near = opt_nearest(one, known, c->count);
	return error_set(err, STATUS_BAD_INPUT, "%s: there is no %s \"%s\"%s%s%s; --plan lists the %ss",
			 c->option, c->noun, one, near ? ", did you mean \"" : "", near ? near : "",
			 near ? "\"?" : "", c->noun);
}

/* Adds what the chosen ones need, and what those need. */
static unsigned with_needs(const struct stage_choice *c, unsigned asked)
{
	unsigned before = 0;

	while (before != asked) {
		before = asked;
		for (unsigned i = 0; i < c->count; i++)
			if (asked & 1u << i)
				asked |= c->needs(c->arg, i);
	}
	return asked;
}

enum status stage_choose(unsigned *asked, const struct stage_choice *c, const char *list, struct error *err)
{
	*asked = list || !c->count ? 0 : ~0u >> (MOST - c->count);
	while (list && *list) {
		const size_t size = strcspn(list, ",");
		const int i = find(c, list, size);

		if (i < 0)
			return unknown(c, list, size, err);
		*asked |= 1u << i;
		list += size + (list[size] == ',');
	}
	*asked = with_needs(c, *asked);
	return *asked ? STATUS_OK : unknown(c, "", 0, err);
}
