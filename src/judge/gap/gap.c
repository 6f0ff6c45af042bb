/* SPDX-License-Identifier: Apache-2.0 */
#include "judge/gap/gap.h"
#include <math.h>
#include <stdarg.h>
#include "core/text/text.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static struct factor *add(struct judgement *out, const char *name, const struct factor *values,
			  const char *format, va_list args)
{
	struct factor *f;

	if (out->gap_count == COUNT(out->gap) || !isfinite(values->value) || !(values->value > 0))
		return NULL;
	f = &out->gap[out->gap_count++];
	*f = *values;
	text_copy(f->name, sizeof(f->name), name);
	vsnprintf(f->signal, sizeof(f->signal), format, args);
	return f;
}

struct factor *gap_add(struct judgement *out, const char *name, double value, double error,
		       const char *format, ...)
{
	struct factor *f;
	va_list args;

	va_start(args, format);
	f = add(out, name, &(struct factor){.value = value, .error = error, .present = true}, format, args);
	va_end(args);
	return f;
}

void gap_show(struct judgement *out, const char *name, double value, const char *signal)
{
	struct factor *f = gap_add(out, name, value, 0.01, "%s", signal);

	if (f)
		f->shown_only = true;
}

void gap_absent(struct judgement *out, const char *name, const char *why, ...)
{
	va_list args;

	va_start(args, why);
	add(out, name, &(struct factor){.value = 1}, why, args);
	va_end(args);
}

/* Product of the factors that are multiplied. `assumed`: includes the factors that no signal confirms. */
static double product_of(const struct judgement *j, bool assumed)
{
	double product = 1;
	size_t i;

	for (i = 0; i < j->gap_count; i++)
		if (j->gap[i].present && !j->gap[i].shown_only && (assumed || !j->gap[i].assumed))
			product *= j->gap[i].value;
	return product;
}

static void explained_share(struct judgement *out)
{
	double gap = out->bound.value - out->figure;

	out->has_explained_share = gap > 0;
	if (!(gap > 0))
		return;
	out->explained_share = out->bound.value * (1 - product_of(out, false)) / gap;
	out->assumed_share = out->bound.value * (1 - product_of(out, true)) / gap;
}

void gap_of(struct judgement *out, const struct subject *s)
{
	bool whole = false, link = s->gpu && !strncmp(s->c->limit, "link", 4);
	bool together = s->gpu && !strncmp(s->c->limit, "collective.", 11);
	bool p2p = link && !strncmp(s->c->limit, "link.p2p", 8);

	out->gap_count = 0;
	out->unexplained = 0;
	out->explained = false;
	out->has_explained_share = false;
	out->clock_recovered = false;
	if (!out->has_figure || out->bound.from == BOUND_NONE || !(out->bound.value > 0) || !s->phase)
		return;
	if (!strcmp(s->c->probe, "stress") || !strcmp(s->c->probe, "hbm"))
		return; /* these probes also spend time on checking, so the rate is not their aim */
	if (subject_trains(s))
		whole = gap_training(out, s);
	else if (!s->gpu)
		whole = gap_cpu(out, s);
	else if (!strcmp(s->c->probe, "attention"))
		whole = gap_attention(out, s);
	else if (*s->type)
		whole = gap_compute(out, s);
	else if (!strcmp(s->c->limit, "memory"))
		whole = gap_memory(out, s);
	else if (p2p)
		whole = gap_p2p(out, s);
	else if (link)
		whole = gap_link(out, s);
	else if (together)
		whole = gap_collective(out, s);
	if (!out->gap_count)
		return;
	gap_runs(out, s);
	out->unexplained = out->figure / (out->bound.value * product_of(out, true));
	if (link || together)
		explained_share(out);
	if (out->cause ==
	    CAUSE_TELEMETRY_GAP) /* the telemetry of the window has gaps, so it explains nothing */
		return;
	out->explained = whole && out->unexplained >= GAP_LOW && out->unexplained <= GAP_HIGH;
	/* A CPU has no counter that could contradict its figure, and the steps of a training run differ. */
	if (!whole || out->explained || !s->gpu || subject_trains(s))
		return;
	/* The host and its protocol have no signal, so only the share is reported. With several pairs at once
	 * the counters belong to one GPU. More bytes than assay counted come from copies of other programs.
	 */
	if (link && (out->unexplained < 1 || (p2p && !s->peer)))
		return;
	if (out->verdict == VERDICT_MEASURED && out->unexplained < 1)
		return; /* time is lost somewhere, but the plan only wanted the figure */
	if (out->verdict == VERDICT_WARN && out->cause == CAUSE_BAND_STALE)
		*out->reason = '\0'; /* a figure that its own signals contradict says nothing about its
					expected range */
	finding(out, VERDICT_WARN, CAUSE_UNEXPLAINED,
		"the factors do not explain the figure: residual %.3f, outside 0.97 .. 1.03",
		out->unexplained);
}
