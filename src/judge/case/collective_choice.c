/* SPDX-License-Identifier: Apache-2.0 */
#include "judge/case/collective_choice.h"
#include <math.h>
#include "judge/case/verdict.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Everything that NCCL may choose. The switch adds in its hardware only with nvls and nvlstree. */
static const struct choice choices[] = {
	{"ring", "simple", "0"},	  {"ring", "ll128", "0"},	   {"ring", "ll", "0"},
	{"tree", "simple", "0"},	  {"tree", "ll128", "0"},	   {"tree", "ll", "0"},
	{"nvls", "simple", "1"},	  {"nvlstree", "simple", "1"},	   {"pat", "simple", "0"},
	{"collnetdirect", "simple", "0"}, {"collnetchain", "simple", "0"}, {"symmetric", NULL, NULL},
};

static bool free_to_choose(const struct subject *s, const char *word)
{
	const char *asked = record_option(s->c, word);

	return !asked || !strcmp(asked, "auto");
}

const char *choice_word(const struct subject *s, const char *word, char *buffer, size_t size)
{
	const struct choice *c = s->supposed;
	const char *told = case_text(s->c, word);
	double nvls;

	if (!strcmp(word, "nvls")) {
		if (!case_number(s->c, word, &nvls))
			return c ? c->nvls : NULL;
		snprintf(buffer, size, "%.0f", nvls);
		return buffer;
	}
	if (told)
		return told;
	if (c && free_to_choose(s, word))
		return !strcmp(word, "algorithm") ? c->algorithm : c->protocol;
	return record_option(s->c, word);
}

bool choice_unknown(const struct subject *s)
{
	return s->gpu && !strcmp(s->c->probe, "collective") && !case_text(s->c, "algorithm");
}

const struct band_row *choice_band(const struct subject *s, enum band_slot slot, const char *nvls)
{
	const struct band_row *tie, *easiest = NULL;
	struct subject supposed = *s;

	if (!choice_unknown(s))
		return expect_band(s->ctx->e, slot, subject_word, s, &tie);
	for (size_t i = 0; i < COUNT(choices); i++) {
		const struct band_row *b;

		if (nvls && choices[i].nvls && strcmp(nvls, choices[i].nvls))
			continue;
		supposed.supposed = &choices[i];
		b = expect_band(s->ctx->e, slot, subject_word, &supposed, &tie);
		if (b && (!easiest || (slot == BAND_TIME ? b->high > easiest->high : b->low < easiest->low)))
			easiest = b;
	}
	return easiest;
}

void choice_reference_of_plan(struct judgement *out, const struct subject *s)
{
	enum band_slot slot = verdict_slot(s);
	struct expected_known *way = out->ahead.way;

	way[FIGURE_LINKS] = verdict_known(out, s, choice_band(s, slot, "0"));
	way[FIGURE_SWITCH] = verdict_known(out, s, choice_band(s, slot, "1"));
	way[FIGURE_UNTOLD] = way[expected_of(&way[FIGURE_LINKS]).rate < expected_of(&way[FIGURE_SWITCH]).rate
					 ? FIGURE_LINKS
					 : FIGURE_SWITCH];
}

/* NVLink generation from the raw rate of one link. Two generations have 25 GB/s. 0: not known. */
static double nvlink_generation(const struct gpu *g)
{
	double rate = gpu_get(g, GPU_FACT_nvlink_rate_gbps, 0);

	if (rate > 50)
		return 5;
	if (rate > 26)
		return 4;
	if (rate > 24)
		return gpu_get(g, GPU_FACT_cc, 0) >= 80 ? 3 : 2;
	return rate > 19 ? 1 : 0;
}

static double nvlinks(const struct subject *s, const struct gpu *g)
{
	const struct sku_value *sold = s->sku ? &s->sku->fact[SKU_nvlink_count] : NULL;

	return gpu_get(g, GPU_FACT_nvlink_count, sold && sold->present ? sold->value : 0);
}

const char *choice_link_word(const struct subject *s, const char *word, char *buffer, size_t size)
{
	bool count = !strcmp(word, "nvlinks");
	double least = INFINITY;

	if (count && s->peer &&
	    (case_number(s->c, "nvlinks_most", &least) || case_number(s->c, word, &least))) {
		snprintf(buffer, size, "%.0f",
			 least); /* links between the two GPUs, as the case found them */
		return buffer;
	}
	for (size_t i = 0; i < s->gpu_count; i++) {
		const struct gpu *g = subject_gpu(s, i);
		double own = !g				 ? 0
			     : count			 ? nvlinks(s, g)
			     : !strcmp(word, "pcie_gen") ? gpu_get(g, GPU_FACT_pcie_gen_max, 0)
							 : nvlink_generation(g);

		least = fmin(least, own);
	}
	if (!isfinite(least) || (!count && !(least > 0)))
		return NULL;
	snprintf(buffer, size, "%.0f", least);
	return buffer;
}
