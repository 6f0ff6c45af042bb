/* SPDX-License-Identifier: Apache-2.0 */
#include "judge/expect/site.h"
#include <ctype.h>
#include <math.h>
#include "core/input/opt.h"
#include "core/text/text.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
enum { COUNT_MAX = 1024 };
#define CLOCK_LEAST 1e8
#define CLOCK_MOST 4e9

static bool begins(const char *name, const char *with)
{
	size_t n = strlen(with);

	return !strncmp(name, with, n) && (!name[n] || name[n] == '-');
}

/* The short forms of SKU names: "h100-sxm-80" may be stated as h100, h100-sxm or in full. */
struct short_names {
	char text[512][32];
	const char *name[512];
	size_t count;
};

static void short_names_add(struct short_names *n, const char *sku)
{
	for (size_t size = 1; size <= strlen(sku); size++) {
		char *text = n->text[n->count];

		if ((sku[size] && sku[size] != '-') || size >= sizeof(n->text[0]))
			continue;
		if (n->count == COUNT(n->text))
			return;
		memcpy(text, sku, size);
		text[size] = '\0';
		n->name[n->count++] = text;
	}
}

static enum status known_sku(const char *sku, const struct expectations *e, const char *place,
			     struct error *err)
{
	struct short_names names;
	const char *near;

	names.count = 0;
	for (size_t i = 0; i < e->sku_count; i++) {
		if (e->sku[i].cc)
			continue;
		if (begins(e->sku[i].name, sku))
			return STATUS_OK;
		short_names_add(&names, e->sku[i].name);
	}
	near = opt_nearest(sku, names.name, names.count);
	return error_set(err, STATUS_BAD_INPUT, "%s: no SKU begins with \"%s\"%s%s%s", place, sku,
			 near ? ", did you mean \"" : "", near ? near : "", near ? "\"" : "");
}

/* Stating one SKU twice is an error: the later count would silently replace the first. */
static enum status stated_once(const struct site *out, const char *place, struct error *err)
{
	const char *last = out->gpus[out->gpus_count - 1].sku;

	for (size_t i = 0; i + 1 < out->gpus_count; i++)
		if (!strcmp(out->gpus[i].sku, last))
			return error_set(err, STATUS_BAD_INPUT,
					 "%s: %s is stated twice, with counts %u and %u", place, last,
					 out->gpus[i].count, out->gpus[out->gpus_count - 1].count);
	return STATUS_OK;
}

/* Reads "h100-sxm:8"; without a count, 1. */
static enum status gpus_add(struct site *out, const char *text, size_t size, const struct expectations *e,
			    const char *place, struct error *err)
{
	enum status status;
	struct site_gpus *g;
	const char *colon = memchr(text, ':', size);
	size_t n = colon ? (size_t)(colon - text) : size;
	unsigned long count = 1;
	char *end = NULL;

	if (out->gpus_count == COUNT(out->gpus) || !n || n >= sizeof(g->sku))
		return error_set(err, STATUS_BAD_INPUT,
				 "%s: %.*s is not SKU:COUNT, or there are more than %zu entries", place,
				 (int)size, text, COUNT(out->gpus));
	g = &out->gpus[out->gpus_count];
	memcpy(g->sku, text, n);
	g->sku[n] = '\0';
	if (colon) {
		count = isdigit((unsigned char)colon[1]) ? strtoul(colon + 1, &end, 10) : 0;
		if (!end || end != text + size || !count || count > COUNT_MAX)
			return error_set(err, STATUS_BAD_INPUT, "%s: the count in %.*s is not from 1 to %d",
					 place, (int)size, text, COUNT_MAX);
	}
	g->count = (unsigned)count;
	out->gpus_count++;
	out->stated = true;
	status = stated_once(out, place, err);
	return status ? status : known_sku(g->sku, e, place, err);
}

static enum status option_read(struct site *out, const char *text, const struct expectations *e,
			       struct error *err)
{
	enum status status = STATUS_OK;

	while (*text && !status) {
		size_t n = strcspn(text, ",");

		status = gpus_add(out, text, n, e, "--expect", err);
		text += n + (text[n] == ',');
	}
	return status;
}

static enum status clock_read(struct site *out, const struct tree *value, struct error *err)
{
	enum status status = expect_number(&out->sm_clock_hz, value, "Hz", err);

	if (!status && !(out->sm_clock_hz >= CLOCK_LEAST && out->sm_clock_hz <= CLOCK_MOST))
		status =
			error_set(err, STATUS_BAD_INPUT, "%s:%d: sm_clock of %s is not from 100 MHz to 4 GHz",
				  value->file, value->line, value->text);
	return status;
}

static enum status file_read_site(struct site *out, const char *path, const struct expectations *e,
				  struct error *err)
{
	static const char *const keys[] = {"gpus", "power_limit", "sm_clock", "nvlinks", NULL};
	const struct tree *list, *value;
	struct tree *root = NULL;
	enum status status = tree_read(&root, path, err);
	char place[512];
	size_t i;

	if (status)
		return status;
	if (!root || root->kind != TREE_MAP)
		status = error_set(err, STATUS_BAD_INPUT, "%s:1: a site file must be a map", path);
	if (!status)
		status = tree_check_keys(root, keys, err);
	list = status ? NULL : tree_get(root, "gpus");
	if (list && list->kind != TREE_LIST)
		status = error_set(err, STATUS_BAD_INPUT, "%s:%d: gpus must be a list of SKU:COUNT", path,
				   list->line);
	for (i = 0; !status && list && i < list->count; i++) {
		const char *text = list->items[i]->kind == TREE_SCALAR ? list->items[i]->text : "";

		snprintf(place, sizeof(place), "%.400s:%d", path, list->items[i]->line);
		status = gpus_add(out, text, strlen(text), e, place, err);
	}
	value = status ? NULL : tree_get(root, "power_limit");
	if (value)
		status = expect_number(&out->power_limit_w, value, "W", err);
	value = status ? NULL : tree_get(root, "sm_clock");
	if (value)
		status = clock_read(out, value, err);
	value = status ? NULL : tree_get(root, "nvlinks");
	if (value)
		status = expect_number(&out->nvlinks, value, "", err);
	out->stated = out->stated || out->power_limit_w > 0 || out->sm_clock_hz > 0 || out->nvlinks >= 0;
	tree_free(root);
	return status;
}

enum status site_read(struct site *out, const struct judge_site *from, const struct expectations *e,
		      struct error *err)
{
	enum status status = STATUS_OK;

	*out = (struct site){.nvlinks = -1};
	if (from && from->file)
		status = file_read_site(out, from->file, e, err);
	if (!status && from && from->expect)
		status = option_read(out, from->expect, e, err);
	return status;
}

enum status judge_site_text(struct text *out, const struct judge_site *from, const struct expectations *e,
			    struct error *err)
{
	struct site site;
	enum status status = site_read(&site, from, e, err);

	if (status || !site.stated)
		return status;
	text_add(out, "# stated with the run by --expect or --site\n");
	for (size_t i = 0; i < site.gpus_count; i++)
		text_addf(out, "%s\"%s:%u\"%s", i ? ", " : "gpus: [", site.gpus[i].sku, site.gpus[i].count,
			  i + 1 == site.gpus_count ? "]\n" : "");
	if (site.power_limit_w > 0)
		text_addf(out, "power_limit: %.17g W\n", site.power_limit_w);
	if (site.sm_clock_hz > 0)
		text_addf(out, "sm_clock: %.17g Hz\n", site.sm_clock_hz);
	if (site.nvlinks >= 0)
		text_addf(out, "nvlinks: %.17g\n", site.nvlinks);
	return out->failed ? error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
					     "no memory for the site file")
			   : STATUS_OK;
}

bool site_states_power(const struct site *site, const struct gpu *g)
{
	double limit = gpu_get(g, GPU_FACT_power_limit_w, 0);

	return site && site->power_limit_w > 0 &&
	       fabs(limit - site->power_limit_w) <= SITE_POWER_APART * site->power_limit_w;
}

bool site_states_clock(const struct site *site, double hz)
{
	return site && site->sm_clock_hz > 0 && hz >= SITE_CLOCK_LOW * site->sm_clock_hz &&
	       hz <= SITE_CLOCK_HIGH * site->sm_clock_hz;
}

static unsigned count_here(const struct judge_context *ctx, const char *sku, unsigned *silent)
{
	unsigned n = 0;
	size_t i;

	for (i = 0; i < ctx->gpu_count; i++) {
		const struct sku *s = expect_sku(ctx->e, ctx->gpu[i]);

		if (ctx->gpu[i]->status != STATUS_OK)
			++*silent;
		else if (s && begins(s->name, sku))
			n++;
	}
	return n;
}

static void each_gpu(struct judgement *out, const struct site *site, const struct judge_context *ctx)
{
	size_t i;

	for (i = 0; i < ctx->gpu_count; i++) {
		const struct gpu *g = ctx->gpu[i];
		double limit = gpu_get(g, GPU_FACT_power_limit_w, 0),
		       links = gpu_get(g, GPU_FACT_nvlink_active, -1);

		if (site->power_limit_w > 0 && limit > 0 && !site_states_power(site, g))
			finding(out, VERDICT_FAIL, CAUSE_CONFIG_MISMATCH,
				"%s has a power limit of %.0f W; the stated limit is %.0f W", g->pci, limit,
				site->power_limit_w);
		if (site->nvlinks >= 0 && links >= 0 && links < site->nvlinks)
			finding(out, VERDICT_FAIL, CAUSE_NVLINK_COUNT,
				"%s has %.0f NVLinks up; %.0f are stated", g->pci, links, site->nvlinks);
	}
}

/* A GPU that ran above the stated clock under load is not locked to it. A slower GPU is judged by its
 * figures. */
static void each_clock(struct judgement *out, const struct site *site, const struct judge_context *ctx)
{
	const struct record *r = ctx->record;
	struct subject s;
	double clock;

	for (size_t i = 0; site->sm_clock_hz > 0 && i < r->case_count; i++) {
		if (r->cases[i].reading || !case_sound(&r->cases[i]))
			continue;
		subject_of(&s, ctx, &r->cases[i]);
		if (s.gpu && s.gpu_count == 1 && s.phase && record_number(s.phase, "clock_hz", &clock) &&
		    clock > SITE_CLOCK_HIGH * site->sm_clock_hz)
			finding(out, VERDICT_FAIL, CAUSE_CONFIG_MISMATCH,
				"%s ran at %.0f MHz; the stated clock is %.0f MHz", s.gpu->pci, clock / 1e6,
				site->sm_clock_hz / 1e6);
	}
}

void site_judge(struct judgement *out, const struct site *site, const struct judge_context *ctx)
{
	unsigned wanted = 0;
	size_t i;

	*out = (struct judgement){.verdict = VERDICT_PASS, .judged_by = JUDGED_RULE};
	for (i = 0; i < site->gpus_count; i++) {
		const struct site_gpus *g = &site->gpus[i];
		unsigned silent = 0, here = count_here(ctx, g->sku, &silent);

		wanted += g->count;
		if (here >= g->count)
			continue;
		if (ctx->gpu_count < g->count)
			finding(out, VERDICT_FAIL, CAUSE_GPU_MISSING,
				"%u x %s stated, %u found; the machine has %zu GPUs in total", g->count,
				g->sku, here, ctx->gpu_count);
		else
			finding(out, VERDICT_FAIL, silent ? CAUSE_GPU_MISSING : CAUSE_CONFIG_MISMATCH,
				"%u x %s stated, %u found (%u do not respond, the others are other models)",
				g->count, g->sku, here, silent);
	}
	if (ctx->gpu_count < wanted)
		finding(out, VERDICT_FAIL, CAUSE_GPU_MISSING, "the machine has %zu GPUs; %u are stated",
			ctx->gpu_count, wanted);
	if (site->gpus_count && ctx->gpu_count > wanted)
		finding(out, VERDICT_WARN, CAUSE_CONFIG_MISMATCH,
			"the machine has %zu GPUs; only %u are stated", ctx->gpu_count, wanted);
	each_gpu(out, site, ctx);
	each_clock(out, site, ctx);
	if (!*out->reason)
		snprintf(out->reason, sizeof(out->reason), "the machine has everything that was stated");
}
