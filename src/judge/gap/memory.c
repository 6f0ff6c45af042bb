/* SPDX-License-Identifier: Apache-2.0 */
/* Factors of device memory. */
#include "judge/gap/gap.h"
#include <math.h>
#include "core/math/stats.h"

#define AROUND_NS 3000000000ull

enum { OTHERS_MAX = 64 };

/* The memory clock is read once a second. A short window lies between two readings; they give the clock if
 * they agree. */
static bool clock_around(const struct subject *s, double *out)
{
	const struct series *series;
	size_t i;

	if (!s->gpu || !s->phase->has_window)
		return false;
	series = gpu_series(s->ctx->record, s->gpu->pci, "memory_clock_mhz");
	for (i = 1; series && i < series->count; i++) {
		if (series->t_ns[i] < s->phase->t1_ns)
			continue;
		*out = series->value[i] * 1e6;
		return series->t_ns[i - 1] <= s->phase->t0_ns &&
		       series->t_ns[i] - series->t_ns[i - 1] <= AROUND_NS &&
		       fabs(series->value[i] - series->value[i - 1]) < 0.5;
	}
	return false;
}

/* Held memory clock over its maximum; 0: not known. */
static double memory_clock(const struct subject *s)
{
	double maximum = gpu_get(s->gpu, GPU_FACT_memory_clock_max_mhz, 0) * 1e6, now;

	if (!(maximum > 0) || !s->phase ||
	    (!record_number(s->phase, "memory_clock_hz", &now) && !clock_around(s, &now)))
		return 0;
	return now / maximum;
}

/* GPM's DRAM signal over the share of the bound that was moved. It comes from other large memory cases of
 * this GPU, so that a case's own rate never enters its own factor. Median of at least two cases. */
static double dram_kappa(const struct subject *s, size_t *from)
{
	const struct record *r = s->ctx->record;
	double k[OTHERS_MAX], signal, clock;
	struct bound b;
	struct subject o;
	size_t i, n = 0;

	for (i = 0; i < r->case_count && n < OTHERS_MAX; i++) {
		if (&r->cases[i] == s->c || strcmp(r->cases[i].limit, "memory") ||
		    strcmp(r->cases[i].probe, s->c->probe) || strcmp(r->cases[i].target, s->c->target) ||
		    !strcmp(r->cases[i].key, s->c->key) || !case_sound(&r->cases[i]))
			continue;
		subject_of(&o, s->ctx, &r->cases[i]);
		if (!o.has_figure || !subject_beyond_cache(&o) || strcmp(o.phase_name, "sustained") ||
		    !subject_gpm(&o, "dram", &signal) || !(signal > 0))
			continue;
		bound_of(&o, &b);
		clock = memory_clock(&o);
		if (b.value > 0 && clock > 0)
			k[n++] = signal / (o.figure / (b.value * clock));
	}
	*from = n;
	return n >= 2 ? stats_median(k, n) : 1;
}

double gap_memory_clock(struct judgement *out, const struct subject *s)
{
	double clock = memory_clock(s);

	if (clock > 0)
		gap_add(out, "memory clock", clock, 0.002, "NVML: current clock over maximum");
	else
		gap_absent(out, "memory clock", "not recorded");
	return clock;
}

bool gap_memory(struct judgement *out, const struct subject *s)
{
	bool whole = gap_memory_clock(out, s) > 0;
	double busy, k;
	size_t from;

	if (subject_gpm(s, "dram", &busy) && busy > 0) {
		k = dram_kappa(s, &from);
		gap_add(out, "busy", busy / k, from >= 2 ? 0.01 : 0.04,
			"DRAM active %.1f %% (GPM 10), over %.3f (%s)", 100 * busy, k,
			from >= 2 ? "other large cases of this run" : "assumed");
		whole = whole && from >= 2;
	} else {
		gap_absent(
			out, "busy",
			"DRAM efficiency cannot be split off: no DRAM reading lies wholly inside the window");
		whole = false;
	}
	gap_add(out, "traffic", 1, 0, "assumed: arrays above 8 x L2 cross DRAM once");
	return whole;
}
