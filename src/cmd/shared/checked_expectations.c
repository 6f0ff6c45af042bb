/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/shared/checked_expectations.h"
#include "core/input/opt.h"
#include "probe/registry.h"

/* The known names with which a text was compared. */
struct names {
	const char *name[512];
	size_t count;
};

/* Adds a name. True if it equals the text. */
static bool add(struct names *n, const char *name, const char *text)
{
	if (n->count < sizeof(n->name) / sizeof(n->name[0]))
		n->name[n->count++] = name;
	return !strcmp(name, text);
}

static bool known_probe(struct names *n, const char *text)
{
	bool found = false;

	for (const struct probe *const *p = probe_list; *p; p++)
		found |= add(n, (*p)->name, text);
	return add(n, "load", text) || found; /* the one job that rules may judge */
}

static bool known_engine(struct names *n, const char *text)
{
	bool found = false;

	for (const struct probe *const *p = probe_list; *p; p++)
		for (const struct engine *const *e = (*p)->engines; e && *e; e++)
			found |= add(n, (*e)->name, text);
	return found;
}

/* True if the option's own row accepts the text. */
static bool takes(const struct probe *p, const char *name, const char *text)
{
	_Alignas(16) unsigned char opts[sizeof(((struct ceiling *)0)->opts)];

	return p->opts.size > sizeof(opts) ||
	       (!opt_defaults(&p->opts, opts, NULL) && !opt_set(&p->opts, opts, name, text, "", NULL));
}

/* True if an option of any probe accepts the value. An option that no probe has is not checked. */
static bool known_value(struct names *n, const char *name, const char *text)
{
	bool any = false;

	for (const struct probe *const *p = probe_list; *p; p++)
		for (size_t i = 0; i < (*p)->opts.count; i++) {
			const struct opt *row = &(*p)->opts.rows[i];

			if (strcmp(row->name, name))
				continue;
			any = true;
			if (takes(*p, name, text))
				return true;
			for (const char *const *choice = row->choices; choice && *choice; choice++)
				add(n, *choice, text);
		}
	return !any;
}

bool checked_expectations_has(const char *word, const char *text, const char **nearest)
{
	struct names n = {.count = 0};
	bool found;

	if (!strcmp(word, "probe"))
		found = known_probe(&n, text);
	else if (!strcmp(word, "engine"))
		found = known_engine(&n, text);
	else
		found = known_value(&n, word, text);
	*nearest = found ? NULL : opt_nearest(text, n.name, n.count);
	return found;
}

enum status checked_expectations_load(struct expectations **e, const char *from, struct error *err)
{
	enum status st = expectations_load(e, from, err);

	if (!st && from)
		st = expectations_check_values(*e, checked_expectations_has, err);
	if (st) {
		expectations_free(*e);
		*e = NULL;
	}
	return st;
}
