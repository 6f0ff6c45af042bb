/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the values of `when` conditions. A value that no case can have is a typing error: its row would
 * never apply. */
#include "judge/expect/expect.h"
#include <ctype.h>
#include "core/input/opt.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* The values that subject_word (judge/case/context.c) returns for words that are not options. A word without
 * texts is a number. */
static const struct {
	const char *word;
	const char *text[16];
} derived[] = {
	{"target", {"cpu", "gpu", "pair", "node", "team"}},
	{"phase", {"sustained", "burst", "once"}},
	{"phases", {"headline", "burst"}},
	{"power_limit", {"default", "changed"}},
	{"stated_power_limit", {"yes", "no"}},
	{"stated_sm_clock", {"yes", "no"}},
	{"mig", {"on", "off"}},
	{"virtual_gpu", {"yes", "no"}},
	{"ecc", {"on", "off", "unknown"}},
	{"row_remapping", {"yes", "no"}},
	{"siblings", {"busy", "idle"}},
	{"limit",
	 {"memory", "cache", "link.h2d", "link.d2h", "link.both", "link.p2p", "link.p2p.both", "link.p2p.all",
	  "link.p2p.out", "link.p2p.in", "latency", "clock", "mixed", "compute.TYPE", "collective.OP"}},
	{"ranks", {0}},
	{"nodes", {0}},
	{"gpus", {0}},
	{"stream_bytes", {0}},
	{"least_dimension", {0}},
	{"fabric_state", {0}},
	{"library_major", {0}},
	{"nvls", {0}},
	{"nvlinks", {0}},
	{"nvlink_gen", {0}},
	{"pcie_gen", {0}},
	/* as NCCL reports them; auto: NCCL chose and did not report its choice */
	{"algorithm",
	 {"ring", "tree", "nvls", "nvlstree", "collnetdirect", "collnetchain", "pat", "symmetric", "auto"}},
	{"protocol", {"ll", "ll128", "simple", "auto"}},
};

/* The set, and the function that knows the probes' options. */
struct asking {
	const struct expectations *e;
	expect_values *values;
};

static bool known_derived(size_t row, const char *text, const char **nearest)
{
	const char *const *texts = derived[row].text;
	size_t count = 0;
	double x;

	if (!texts[0])
		return (expect_parse(&x, text, "") || expect_parse(&x, text, "B")) && x >= 0;
	for (; count < COUNT(derived[row].text) && texts[count]; count++)
		if (!strcmp(texts[count], text))
			return true;
	*nearest = opt_nearest(text, texts, count);
	return false;
}

static bool known_sku(const struct expectations *e, const char *text, const char **nearest)
{
	const char *names[256];
	size_t i, count = 0;

	for (i = 0; i < e->sku_count && count < COUNT(names); i++)
		if (e->sku[i].name)
			names[count++] = e->sku[i].name;
	*nearest = opt_nearest(text, names, count);
	return expect_sku_by_name(e, text) != NULL;
}

static bool known(const struct asking *a, const char *word, const char *text, const char **nearest)
{
	size_t i;

	*nearest = NULL;
	if (!strcmp(word, "limit") && !strncmp(text, "compute.", 8))
		return a->values("type", text + 8, nearest);
	if (!strcmp(word, "limit") && !strncmp(text, "collective.", 11))
		return a->values("op", text + 11, nearest);
	if (!strcmp(word, "sku"))
		return known_sku(a->e, text, nearest);
	if (!strcmp(word, "beside")) /* its value is a unit of probe peak */
		return a->values("unit", text, nearest);
	if (!strcmp(word, "arch"))
		return !strncmp(text, "sm_", 3) && isdigit((unsigned char)text[3]);
	for (i = 0; i < COUNT(derived); i++)
		if (!strcmp(derived[i].word, word))
			return known_derived(i, text, nearest);
	return a->values(word, text, nearest);
}

static enum status value_check(const struct asking *a, const char *file, const char *word,
			       const struct tree *value, struct error *err)
{
	const char *nearest;

	if (known(a, word, value->text, &nearest))
		return STATUS_OK;
	return error_set(err, STATUS_BAD_INPUT, "%s:%d: no case has %s %.60s%s%s", file, value->line, word,
			 value->text, nearest ? "; the nearest is " : "", nearest ? nearest : "");
}

static enum status when_check(const struct asking *a, const char *file, const struct when *w,
			      struct error *err)
{
	enum status st = STATUS_OK;
	size_t i, k;

	for (i = 0; i < w->count && !st; i++) {
		const struct condition *c = &w->condition[i];

		if (c->value && c->value->kind == TREE_SCALAR)
			st = value_check(a, file, c->word, c->value, err);
		for (k = 0; c->value && c->value->kind == TREE_LIST && k < c->value->count && !st; k++)
			st = value_check(a, file, c->word, c->value->items[k], err);
	}
	return st;
}

enum status expectations_check_values(const struct expectations *e, expect_values *values, struct error *err)
{
	const struct asking a = {e, values};
	enum status st = STATUS_OK;
	size_t i;

	for (i = 0; i < e->band_count && !st; i++)
		st = when_check(&a, e->band[i].file, &e->band[i].when, err);
	for (i = 0; i < e->ceiling_count && !st; i++)
		st = when_check(&a, e->ceiling[i].file, &e->ceiling[i].when, err);
	for (i = 0; i < e->share_count && !st; i++)
		st = when_check(&a, e->share[i].file, &e->share[i].when, err);
	for (i = 0; i < e->unknown_count && !st; i++)
		st = when_check(&a, e->unknown[i].file, &e->unknown[i].when, err);
	for (i = 0; i < e->rule_count && !st; i++)
		st = when_check(&a, e->rule[i].file, &e->rule[i].when, err);
	for (i = 0; i < e->rule_count && !st; i++)
		st = when_check(&a, e->rule[i].file, &e->rule[i].unless, err);
	for (i = 0; i < e->decisive_count && !st; i++) {
		const struct decisive_row *d = &e->decisive[i];
		const char *nearest = NULL;

		st = when_check(&a, d->file, &d->needed_when, err);
		if (!st && !values("probe", d->probe, &nearest))
			st = error_set(err, STATUS_BAD_INPUT, "%s:%d: there is no probe %s%s%s", d->file,
				       d->line, d->probe, nearest ? "; the nearest is " : "",
				       nearest ? nearest : "");
	}
	for (i = 0; i < e->operator_count && !st; i++)
		st = when_check(&a, e->operator_[i].file, &e->operator_[i].when, err);
	return st;
}
