/* SPDX-License-Identifier: Apache-2.0 */
#include "judge/peers/gpu_pairs.h"
#include <math.h>
#include "judge/peers/siblings.h"
#include "core/text/text.h"
#include "core/text/units.h"

enum { PAIRS_MAX = 256, SENDS = 0, RECEIVES = 1, REASON = 768 /* the judgement cuts it to its own size */ };

/* The latency of a link differs by 7 % from run to run on a healthy pair:
 * docs/explanation/methods/siblings.md, "Figures that differ more on healthy machines". */
#define LATENCY_APART 0.10

struct pair {
	struct subject s;
	size_t index;		  /* index of the case */
	const struct gpu *gpu[2]; /* sender, receiver */
	unsigned number[2];	  /* their numbers on their node */
	double off;		  /* relative deviation from the median of the others */
	bool slow;
};

struct links {
	struct pair pair[PAIRS_MAX];
	size_t count;
	bool time; /* less is better */
};

static bool numbers_of(const char *target, unsigned number[2])
{
	int used = 0;

	return sscanf(target, "gpu%u%*[>+]gpu%u%n", &number[0], &number[1], &used) == 2 && !target[used];
}

static bool fit(const struct subject *s)
{
	unsigned number[2];

	return !s->c->reading && !record_is_isolation(s->c) && s->gpu && s->peer &&
	       numbers_of(s->c->target, number) && case_sound(s->c) && s->has_figure && isfinite(s->figure) &&
	       s->figure > 0;
}

/* True if both pairs are connected alike: by equally many NVLinks, up or down, or else by the same path. A
 * pair across sockets is no sibling of a pair behind one switch. */
static bool same_way(const struct subject *a, const struct subject *b)
{
	const char *x = case_text(a->c, "path"), *y = case_text(b->c, "path");
	double m = 0, n = 0;

	(void)case_number(a->c, "nvlinks_most", &m);
	(void)case_number(b->c, "nvlinks_most", &n);
	if (m > 0 || n > 0)
		return m > n - 0.5 && m < n + 0.5;
	return !strcmp(x ? x : "", y ? y : "");
}

static bool alike(const struct subject *a, const struct subject *b)
{
	return !strcmp(a->c->key, b->c->key) && a->sku == b->sku && a->c->together == b->c->together &&
	       a->c->lockstep == b->c->lockstep && !strcmp(a->phase_name, b->phase_name) && same_way(a, b);
}

static bool listed(const struct links *l, const struct subject *s)
{
	for (size_t i = 0; i < l->count; i++)
		if (!strcmp(l->pair[i].s.c->where, s->c->where))
			return true;
	return false;
}

/* Collects the first measurement of each pair. */
static void collect(struct links *l, const struct judge_context *ctx, const struct subject *lead)
{
	struct subject s;

	l->count = 0;
	l->time = !strcmp(lead->unit, "ns");
	for (size_t i = 0; i < ctx->record->case_count && l->count < PAIRS_MAX; i++) {
		struct pair *p = &l->pair[l->count];

		subject_of(&s, ctx, &ctx->record->cases[i]);
		if (!fit(&s) || !alike(&s, lead) || listed(l, &s))
			continue;
		*p = (struct pair){.s = s, .index = i, .gpu = {s.gpu, s.peer}};
		(void)numbers_of(s.c->target, p->number);
		l->count++;
	}
}

static void flag(struct links *l)
{
	double figure[PAIRS_MAX], limit;

	for (size_t i = 0; i < l->count; i++)
		figure[i] = l->pair[i].s.figure;
	for (size_t i = 0; i < l->count; i++) {
		struct pair *p = &l->pair[i];

		p->off = siblings_deviation(figure, l->count, i, &limit);
		p->slow = l->time ? p->off > fmax(limit, LATENCY_APART) : p->off < -limit;
	}
}

/* Counts the slow pairs of a GPU on one side. True: at least two, and at least half of them, are slow. */
static bool accused(const struct links *l, const struct gpu *gpu, int side, size_t *slow, size_t *all)
{
	*slow = *all = 0;
	for (size_t i = 0; i < l->count; i++)
		if (l->pair[i].gpu[side] == gpu) {
			++*all;
			*slow += l->pair[i].slow;
		}
	return *slow >= 2 && 2 * *slow >= *all;
}

/* True if the pair is slow and this GPU is the reason. */
static bool covered(const struct links *l, const struct pair *p, const struct gpu *gpu)
{
	size_t slow, all;

	return p->slow && ((p->gpu[SENDS] == gpu && accused(l, gpu, SENDS, &slow, &all)) ||
			   (p->gpu[RECEIVES] == gpu && accused(l, gpu, RECEIVES, &slow, &all)));
}

static const struct pair *worst_of(const struct links *l, const struct gpu *gpu)
{
	const struct pair *worst = NULL;

	for (size_t i = 0; i < l->count; i++)
		if (covered(l, &l->pair[i], gpu) && (!worst || fabs(l->pair[i].off) > fabs(worst->off)))
			worst = &l->pair[i];
	return worst;
}

/* Writes "; .. has 12 of 18 NVLinks up (0.667)": the connections of a GPU that are not complete, from its
 * facts. */
static void width_text(const struct gpu *g, bool nvlink, char *out, size_t size)
{
	double up = gpu_get(g, GPU_FACT_nvlink_active, 0), all = gpu_get(g, GPU_FACT_nvlink_count, 0);
	double lanes = gpu_get(g, GPU_FACT_pcie_width, 0), most = gpu_get(g, GPU_FACT_pcie_width_max, 0);
	double gen = gpu_get(g, GPU_FACT_pcie_gen_max, 0), device = gpu_get(g, GPU_FACT_pcie_gen_device, 0);

	*out = '\0';
	if (nvlink && up > 0 && up < all)
		snprintf(out, size, "; %.15s has %.0f of %.0f NVLinks up (%.3f)", g->pci, up, all, up / all);
	else if (!nvlink && lanes > 0 && lanes < most)
		snprintf(out, size, "; %.15s has x%.0f of x%.0f PCIe lanes", g->pci, lanes, most);
	else if (!nvlink && gen > 0 && gen < device)
		snprintf(out, size, "; %.15s has PCIe generation %.0f of %.0f", g->pci, gen, device);
}

static bool over_nvlink(const struct subject *s)
{
	double links = 0;

	return case_number(s->c, "nvlinks", &links) && links > 0;
}

/* True if the present finding describes the same fault: low figures of one card, or a rule about link counts.
 */
static bool ours_to_say(const struct judgement *j)
{
	switch (j->cause) {
	case CAUSE_NONE:
	case CAUSE_NO_REFERENCE:
	case CAUSE_LOW_CONFIDENCE:
	case CAUSE_BELOW_BAND:
	case CAUSE_BELOW_BOUND:
	case CAUSE_NVLINK_COUNT:
	case CAUSE_WIDE_SPREAD:
		return j->verdict != VERDICT_UNTRUSTED && j->verdict != VERDICT_ERROR;
	default:
		return false;
	}
}

static void say(struct judgement *j, enum verdict verdict, const char *reason)
{
	char low[32], high[32], band[80] = "";

	if (!ours_to_say(j)) {
		finding(j, verdict, CAUSE_LINK_SLOW, "%s", reason);
		return;
	}
	if (j->cause == CAUSE_BELOW_BAND) {
		units_format(low, sizeof(low), j->band.low, j->figure_unit);
		units_format(high, sizeof(high), j->band.high, j->figure_unit);
		snprintf(band, sizeof(band), "; expected %s .. %s", low, high);
	}
	if (j->cause != CAUSE_NVLINK_COUNT)
		j->cause = CAUSE_LINK_SLOW;
	if (j->verdict == VERDICT_UNKNOWN || verdict_weight(verdict) > verdict_weight(j->verdict))
		j->verdict = verdict;
	j->judged_by = JUDGED_SIBLINGS;
	snprintf(j->reason, sizeof(j->reason), "%s%s", reason, band);
}

/* Writes the figure of the other direction of a pair, and whether it is normal. */
static void reverse_text(const struct links *l, const struct pair *p, char *out, size_t size)
{
	char figure[32];

	*out = '\0';
	for (size_t i = 0; i < l->count; i++) {
		const struct pair *o = &l->pair[i];

		if (o->gpu[SENDS] != p->gpu[RECEIVES] || o->gpu[RECEIVES] != p->gpu[SENDS])
			continue;
		units_format(figure, sizeof(figure), o->s.figure, o->s.unit);
		snprintf(out, size, "; %.64s %s is %s", o->s.c->where, figure,
			 o->slow ? "slow as well" : "fine");
	}
}

static enum verdict weight_of(const struct judge_context *ctx, const struct links *l, const struct pair *p)
{
	double limit = l->time ? LATENCY_APART : SIBLINGS_FLAG, median = p->s.figure / (1 + p->off);

	return fabs(p->off) > SIBLINGS_FAIL || siblings_confirm(ctx, &p->s, median, limit, !l->time)
		       ? VERDICT_FAIL
		       : VERDICT_WARN;
}

/* Judges a link between two GPUs: the slow direction, the loss, and the state of the other direction. */
static void judge_pair(struct judgement *out, const struct judge_context *ctx, const struct links *l,
		       const struct pair *p)
{
	bool nvlink = over_nvlink(&p->s);
	char figure[32], reverse[128], own[64], peers[64];
	struct judgement *j = &out[p->index];
	char reason[REASON];

	units_format(figure, sizeof(figure), p->s.figure, p->s.unit);
	reverse_text(l, p, reverse, sizeof(reverse));
	width_text(p->s.gpu, nvlink, own, sizeof(own));
	width_text(p->s.peer, nvlink, peers, sizeof(peers));
	snprintf(reason, sizeof(reason), "%.64s: %s, %.1f %% %s the median of the other %zu%s%s%s",
		 p->s.c->where, figure, 100 * fabs(p->off), p->off < 0 ? "below" : "above", l->count - 1,
		 reverse, own, peers);
	say(j, weight_of(ctx, l, p), reason);
}

/* Writes "sends slowly to 3 of 3 and receives slowly from 3 of 3". */
static void sides_text(const struct links *l, const struct gpu *gpu, char *out, size_t size)
{
	static const char *const words[] = {"sends slowly to", "receives slowly from"};
	size_t slow, all, n = 0;

	*out = '\0';
	for (int side = SENDS; side <= RECEIVES; side++)
		if (accused(l, gpu, side, &slow, &all) && n < size)
			n += (size_t)snprintf(out + n, size - n, "%s%s %zu of %zu", n ? " and " : "",
					      words[side], slow, all);
}

/* One finding for the GPU; its other pairs refer to it. */
static void judge_gpu(struct judgement *out, const struct judge_context *ctx, const struct links *l,
		      const struct gpu *gpu)
{
	const struct pair *worst = worst_of(l, gpu);
	unsigned number = worst->number[worst->gpu[SENDS] != gpu];
	struct judgement *carrier = &out[worst->index];
	char sides[96], width[64], figure[32], reason[REASON];

	sides_text(l, gpu, sides, sizeof(sides));
	width_text(gpu, over_nvlink(&worst->s), width, sizeof(width));
	units_format(figure, sizeof(figure), worst->s.figure, worst->s.unit);
	snprintf(reason, sizeof(reason),
		 "gpu%u (%.15s) %s: all its links are slow, not one pair; %.64s %s, %.1f %% %s the median%s",
		 number, gpu->pci, sides, worst->s.c->where, figure, 100 * fabs(worst->off),
		 worst->off < 0 ? "below" : "above", width);
	say(carrier, weight_of(ctx, l, worst), reason);
	text_copy(carrier->part, sizeof(carrier->part), gpu->pci);
	for (size_t i = 0; i < l->count; i++) {
		const struct pair *p = &l->pair[i];
		struct judgement *j = &out[p->index];

		if (p == worst || !covered(l, p, gpu) || !ours_to_say(j) || *j->part)
			continue;
		j->verdict = VERDICT_MEASURED;
		j->cause = CAUSE_LINK_SLOW;
		j->judged_by = JUDGED_SIBLINGS;
		snprintf(j->reason, sizeof(j->reason),
			 "%.1f %% %s the median: the links of gpu%u are slow, see %.64s", 100 * fabs(p->off),
			 p->off < 0 ? "below" : "above", number, worst->s.c->where);
	}
}

/* True if this pair is the worst of a GPU that is to blame, so that each GPU is judged once. */
static bool blamed(const struct links *l, const struct pair *p, int side)
{
	const struct pair *worst = covered(l, p, p->gpu[side]) ? worst_of(l, p->gpu[side]) : NULL;

	return worst == p;
}

static void judge_group(struct judgement *out, const struct judge_context *ctx, const struct links *l)
{
	for (size_t i = 0; i < l->count; i++) {
		const struct pair *p = &l->pair[i];

		if (!p->slow)
			siblings_pass(&out[p->index], &p->s, p->off, l->count - 1);
		else if (!covered(l, p, p->gpu[SENDS]) && !covered(l, p, p->gpu[RECEIVES]))
			judge_pair(out, ctx, l, p);
	}
	for (size_t i = 0; i < l->count; i++)
		for (int side = SENDS; side <= RECEIVES; side++)
			if (l->pair[i].slow && blamed(l, &l->pair[i], side))
				judge_gpu(out, ctx, l, l->pair[i].gpu[side]);
}

/* Two GPUs have no other siblings, so the two directions are compared. */
static void judge_reverse(struct judgement *out, const struct links *l)
{
	const struct pair *a = &l->pair[0], *b = &l->pair[1];
	bool first = l->time ? a->s.figure > b->s.figure : a->s.figure < b->s.figure;
	const struct pair *slow = first ? a : b, *fast = first ? b : a;
	double loss = l->time ? slow->s.figure / fast->s.figure - 1 : 1 - slow->s.figure / fast->s.figure;
	struct judgement *j = &out[slow->index];
	char figure[32], back[32], reason[REASON], own[64], peers[64];

	if (slow->gpu[SENDS] != fast->gpu[RECEIVES] || slow->gpu[RECEIVES] != fast->gpu[SENDS] ||
	    !(loss > (l->time ? LATENCY_APART : SIBLINGS_FAIL)))
		return;
	units_format(figure, sizeof(figure), slow->s.figure, slow->s.unit);
	units_format(back, sizeof(back), fast->s.figure, fast->s.unit);
	width_text(slow->s.gpu, over_nvlink(&slow->s), own, sizeof(own));
	width_text(slow->s.peer, over_nvlink(&slow->s), peers, sizeof(peers));
	snprintf(reason, sizeof(reason), "%.64s: %s, %.1f %% %s its reverse direction, %.64s %s%s%s",
		 slow->s.c->where, figure, 100 * loss, l->time ? "above" : "below", fast->s.c->where, back,
		 own, peers);
	say(j, VERDICT_WARN, reason);
}

void links_judge(struct judgement *out, const struct judge_context *ctx)
{
	struct links *l = calloc(1, sizeof(*l));
	struct subject lead;

	for (size_t i = 0; l && i < ctx->record->case_count; i++) {
		subject_of(&lead, ctx, &ctx->record->cases[i]);
		if (!fit(&lead))
			continue;
		collect(l, ctx, &lead);
		if (!l->count || l->pair[0].index != i)
			continue; /* judged together with the first pair of its group */
		flag(l);
		if (l->count >= SIBLINGS_MIN)
			judge_group(out, ctx, l);
		else if (l->count == 2)
			judge_reverse(out, l);
	}
	free(l);
}
