/* SPDX-License-Identifier: Apache-2.0 */
/* Checks an expectation set for contradictions and against physics. */
#include "judge/expect/expect.h"
#include <math.h>

enum { BASIS_CARDS = 3 }; /* fewer cards do not show how units of one product differ */

/* The single text that the condition requires for `word`, or NULL. */
static const char *asks(const struct when *w, const char *word)
{
	size_t i;

	for (i = 0; i < w->count; i++)
		if (!strcmp(w->condition[i].word, word) && w->condition[i].value &&
		    w->condition[i].value->kind == TREE_SCALAR)
			return w->condition[i].value->text;
	return NULL;
}

static double fact(const struct sku *s, enum sku_fact which)
{
	return s->fact[which].present ? s->fact[which].value : 0;
}

/* A datasheet figure must equal SMs x FLOP x its clock. This finds figures with sparsity, wrong units and
 * wrong clocks. */
static enum status sku_compute(const struct sku *s, struct error *err)
{
	int i;

	for (i = 0; i < NUMBER_TYPES; i++) {
		const struct sku_value *sheet = &s->fact[SKU_datasheet_fp64 + i];
		double flop = fact(s, (enum sku_fact)(SKU_flop_fp64 + i)), made;

		if (!sheet->present)
			continue;
		if (!(flop > 0) || !(sheet->at_hz > 0))
			return error_set(err, STATUS_BAD_INPUT, "%s:%d: %s %s needs its clock (at) and %s",
					 s->file, sheet->line, s->name,
					 sku_fact_name((enum sku_fact)(SKU_datasheet_fp64 + i)),
					 sku_fact_name((enum sku_fact)(SKU_flop_fp64 + i)));
		made = s->sm_low * flop * sheet->at_hz;
		if (fabs(sheet->value / made - 1) > 0.02)
			return error_set(err, STATUS_BAD_INPUT,
					 "%s:%d: %s %s is %.4g, but %g SM x %g FLOP x %.4g GHz give %.4g",
					 s->file, sheet->line, s->name,
					 sku_fact_name((enum sku_fact)(SKU_datasheet_fp64 + i)), sheet->value,
					 s->sm_low, flop, sheet->at_hz / 1e9, made);
	}
	return STATUS_OK;
}

static enum status sku_check(const struct sku *s, struct error *err)
{
	double made = 2 * fact(s, SKU_memory_clock_max) * fact(s, SKU_bus_bits) / 8;
	double given = fact(s, SKU_memory_bandwidth);

	if (made > 0 && given > 0 && fabs(given / made - 1) > 0.03)
		return error_set(
			err, STATUS_BAD_INPUT,
			"%s:%d: %s memory_bandwidth is %.4g, but memory clock and bus width give %.4g",
			s->file, s->fact[SKU_memory_bandwidth].line, s->name, given, made);
	return sku_compute(s, err);
}

/* The bound of the work that a range describes: SMs x FLOP x maximum clock, or memory bandwidth. 0: the SKU
 * states too little. */
static double band_bound(const struct expectations *e, const struct band_row *b)
{
	const char *name = asks(&b->when, "sku"), *type = asks(&b->when, "type"),
		   *probe = asks(&b->when, "probe");
	const struct sku *s = name ? expect_sku_by_name(e, name) : NULL;
	const struct sku_value *flop = s && type ? sku_flop(s, type) : NULL;
	bool moves = probe && (!strcmp(probe, "p2p") || !strcmp(probe, "collective"));
	double memory;

	if (b->slot == BAND_EFFICIENCY)
		return 1;
	if (b->slot == BAND_TIME)
		return 0;
	if (!s)
		return 0;
	if (b->slot == BAND_CLOCK)
		return fact(s, SKU_sm_clock_max);
	if (flop && !moves)
		return s->sm_high * flop->value * fact(s, SKU_sm_clock_max);
	if (probe && !strcmp(probe, "memory")) {
		memory = 2 * fact(s, SKU_memory_clock_max) * fact(s, SKU_bus_bits) / 8;
		return memory > 0 ? memory : fact(s, SKU_memory_bandwidth);
	}
	if (probe &&
	    !strcmp(probe, "link")) /* raw rate of both directions; the bound of the case itself is lower */
		return 2 * fact(s, SKU_pcie_width) * ldexp(1e9, (int)fact(s, SKU_pcie_gen) - 3);
	if (moves) /* raw rate of both directions */
		return 2 * fact(s, SKU_nvlink_count) * fact(s, SKU_nvlink_rate);
	return 0;
}

static enum status band_check(const struct expectations *e, const struct band_row *b, struct error *err)
{
	const char *name = asks(&b->when, "sku");
	double bound = band_bound(e, b);

	if (name && !expect_sku_by_name(e, name))
		return error_set(err, STATUS_BAD_INPUT,
				 "%s:%d: range %s is for SKU %s, which is not in the set", b->file, b->line,
				 b->name, name);
	if (bound > 0 && b->high > bound * 1.005)
		return error_set(err, STATUS_BAD_INPUT,
				 "%s:%d: range %s ends at %.4g, above its bound of %.4g", b->file, b->line,
				 b->name, b->high, bound);
	if (bound > 0 && b->low < bound * 0.02)
		return error_set(
			err, STATUS_BAD_INPUT,
			"%s:%d: range %s begins at %.4g, below 2 %% of its bound of %.4g; check its unit",
			b->file, b->line, b->name, b->low, bound);
	if (b->source.confidence > 1 && b->basis.cards < BASIS_CARDS)
		return error_set(
			err, STATUS_BAD_INPUT,
			"%s:%d: range %s must have low confidence: that needs %d cards measured, and it has %u",
			b->file, b->line, b->name, BASIS_CARDS, b->basis.cards);
	if (b->high > b->low * 2)
		return error_set(err, STATUS_BAD_INPUT,
				 "%s:%d: range %s is wider than a factor of two, too wide to judge a figure",
				 b->file, b->line, b->name);
	return STATUS_OK;
}

/* True if both rules compare the same field with the same threshold and can apply to one case. */
static bool same_rule(const struct rule *a, const struct rule *b)
{
	if (strcmp(a->field, b->field) || a->op != b->op || !when_compatible(&a->when, &b->when))
		return false;
	if (a->than_text || b->than_text)
		return a->than_text && b->than_text && !strcmp(a->than_text, b->than_text);
	if (a->than_field || b->than_field)
		return a->than_field && b->than_field && !strcmp(a->than_field, b->than_field) &&
		       fabs(a->factor - b->factor) < 1e-9;
	return fabs(a->than - b->than) < 1e-9;
}

static enum status rules_check(const struct expectations *e, struct error *err)
{
	size_t i, j;

	for (i = 0; i < e->rule_count; i++)
		for (j = i + 1; j < e->rule_count; j++) {
			const struct rule *a = &e->rule[i], *b = &e->rule[j];

			if (same_rule(a, b))
				return error_set(err, STATUS_BAD_INPUT,
						 "%s:%d: rule %s repeats rule %s (%s:%d)", b->file, b->line,
						 b->name, a->name, a->file, a->line);
		}
	return STATUS_OK;
}

/* True if both have equally many words and one case can match both: then neither is more specific. */
static bool may_tie(const struct when *a, const struct when *b)
{
	return a->count == b->count && when_compatible(a, b);
}

static enum status bands_check(const struct expectations *e, struct error *err)
{
	size_t i, j;

	for (i = 0; i < e->band_count; i++)
		for (j = i + 1; j < e->band_count; j++) {
			const struct band_row *a = &e->band[i], *b = &e->band[j];

			if (a->slot == b->slot && may_tie(&a->when, &b->when))
				return error_set(
					err, STATUS_BAD_INPUT,
					"%s:%d: ranges %s and %s (%s:%d) can match the same case, and neither is more specific",
					b->file, b->line, b->name, a->name, a->file, a->line);
		}
	return STATUS_OK;
}

static enum status ceilings_check(const struct expectations *e, struct error *err)
{
	size_t i, j;

	for (i = 0; i < e->ceiling_count; i++)
		for (j = i + 1; j < e->ceiling_count; j++) {
			const struct ceiling_row *a = &e->ceiling[i], *b = &e->ceiling[j];

			if (may_tie(&a->when, &b->when))
				return error_set(
					err, STATUS_BAD_INPUT,
					"%s:%d: ceilings %s and %s (%s:%d) can match the same case, and neither is more specific",
					b->file, b->line, b->name, a->name, a->file, a->line);
		}
	return STATUS_OK;
}

static enum status shares_check(const struct expectations *e, struct error *err)
{
	size_t i, j;

	for (i = 0; i < e->share_count; i++)
		for (j = i + 1; j < e->share_count; j++) {
			const struct share_row *a = &e->share[i], *b = &e->share[j];

			if (may_tie(&a->when, &b->when))
				return error_set(
					err, STATUS_BAD_INPUT,
					"%s:%d: shares %s and %s (%s:%d) can match the same case, and neither is more specific",
					b->file, b->line, b->name, a->name, a->file, a->line);
		}
	return STATUS_OK;
}

enum status expectations_check(const struct expectations *e, struct error *err)
{
	enum status status = STATUS_OK;
	size_t i;

	for (i = 0; i < e->sku_count && !status; i++)
		status = sku_check(&e->sku[i], err);
	for (i = 0; i < e->band_count && !status; i++)
		status = band_check(e, &e->band[i], err);
	if (!status)
		status = bands_check(e, err);
	if (!status)
		status = ceilings_check(e, err);
	if (!status)
		status = shares_check(e, err);
	if (!status)
		status = rules_check(e, err);
	return status ? status : expect_check_decisives(e, err);
}
