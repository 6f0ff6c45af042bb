/* SPDX-License-Identifier: Apache-2.0 */
/* Clock, pipe, useful; parts of the pipe are shown beside it. */
#include "judge/gap.h"
#include <math.h>

enum { REASON_POWER = 0x4, REASON_THERMAL = 0x68, REASON_BRAKE = 0x80 };

/* The pipe whose activity bounds a type, and what its signal is called. */
static const struct {
	const char *type, *field, *name;
} pipes[] = {
	{"fp32", "fp32_active_share", "FP32 pipe (GPM 12)"},
	{"fp64", "fp64_active_share", "FP64 pipe (GPM 11)"},
	{"", "tensor_active_share", "tensor pipe (GPM 5)"},
};

static size_t pipe_of(const char *type)
{
	size_t i = 0;

	while (*pipes[i].type && strcmp(pipes[i].type, type))
		i++;
	return i;
}

/* Why the clock was below its maximum, as far as watts, times and reason bits tell. */
static void clock_named(const struct subject *s, double share, char *out, size_t size)
{
	double power = 0, limit = gpu_get(s->gpu, GPU_FACT_power_limit_w, 0), bits = 0, time = 0;
	bool has_time = subject_number(s, "violation_power_share", &time);
	unsigned reasons;

	subject_number(s, "power_w", &power);
	subject_number(s, "clock_reasons_or", &bits);
	reasons = bits >= 0 && bits < 0x1p32 ? (unsigned)bits : 0;
	if (share >= 0.995)
		snprintf(out, size, "at its maximum");
	else if (reasons & REASON_BRAKE)
		snprintf(out, size, "power brake");
	else if (reasons & REASON_THERMAL)
		snprintf(out, size, "temperature (reasons 0x%x)", reasons);
	else if (limit > 0 && power >= 0.97 * limit && has_time)
		snprintf(out, size, "power limit: %.0f of %.0f W, %.0f %% of the time", power, limit,
			 100 * time);
	else if (limit > 0 && power >= 0.97 * limit)
		snprintf(out, size, "power limit: %.0f of %.0f W", power, limit);
	else if (reasons & REASON_POWER)
		snprintf(out, size, "current or voltage limit: reason 0x4 at %.0f of %.0f W", power, limit);
	else
		snprintf(out, size, "below maximum, unnamed");
}

static bool clock_factor(struct judgement *out, const struct subject *s)
{
	double maximum = gpu_get(s->gpu, GPU_FACT_sm_clock_max_mhz, 0) * 1e6, clock;
	char named[64];
	bool stamped = record_number(s->phase, "clock_hz", &clock);

	if (!(maximum > 0) && s->sku && s->sku->fact[SKU_sm_clock_max].present)
		maximum = s->sku->fact[SKU_sm_clock_max].value;
	if (!(maximum > 0) || (!stamped && !record_number(s->phase, "clock_nvml_hz", &clock))) {
		gap_absent(out, "clock", "no held clock was recorded");
		return false;
	}
	clock_named(s, clock / maximum, named, sizeof(named));
	if (clock / maximum > GAP_ABOVE)
		snprintf(named, sizeof(named), "boost above the maximum that NVML tells");
	gap_add(out, "clock", clock / maximum, stamped ? 0.004 : 0.10, "%.0f of %.0f MHz by %s; %s",
		clock / 1e6, maximum / 1e6, stamped ? "stamps" : "NVML (10 % off under a cap)", named);
	return stamped;
}

/* What the signal reads when the pipe never idles: the MMA-only kernel of this run, per type, else per pipe.
 */
static double kappa(const struct subject *s, size_t pipe, const char **from)
{
	const struct record *r = s->ctx->record;
	double best = 0, signal, clock, flop, share;
	struct subject p;
	bool same;
	size_t i;

	*from = NULL;
	for (i = 0; i < r->case_count; i++) {
		if (&r->cases[i] == s->c || strcmp(r->cases[i].probe, "peak") ||
		    strcmp(r->cases[i].target, s->c->target) || !case_sound(&r->cases[i]))
			continue;
		subject_of(&p, s->ctx, &r->cases[i]);
		same = !strcmp(p.type, s->type);
		if (!*p.type || pipe_of(p.type) != pipe || (*from && !same) || !p.has_figure || !p.phase)
			continue;
		flop = bound_flop_per_clock(&p);
		if (!record_number(p.phase, pipes[pipe].field, &signal) ||
		    !record_number(p.phase, "clock_hz", &clock) || !(flop > 0) || !(clock > 0))
			continue;
		share = p.figure / (flop * clock);
		if (share < 0.9 || share > 1.01 || !(signal > 0))
			continue; /* the calibration itself did not run at full rate */
		best = signal / share;
		*from = r->cases[i].key;
		if (same)
			break;
	}
	return best;
}

static bool pipe_factor(struct judgement *out, const struct subject *s, double *pipe_share)
{
	size_t pipe = pipe_of(s->type);
	const char *from;
	double signal, k;

	*pipe_share = 0;
	if (!record_number(s->phase, pipes[pipe].field, &signal) || !(signal > 0)) {
		gap_absent(out, "pipe",
			   pipe == 2 ? "no tensor signal on this device"
				     : "no signal of this pipe on this device");
		return false;
	}
	k = kappa(s, pipe, &from);
	*pipe_share = signal / (from ? k : 1);
	gap_add(out, "pipe", *pipe_share, from ? 0.005 : 0.013, "%s %.1f %% of elapsed, over %.3f (%s)",
		pipes[pipe].name, 100 * signal, from ? k : 1.0,
		from ? "MMA-only kernel of this run" : "assumed: no MMA-only kernel ran");
	return *pipe_share <= 1 + 0.013;
}

/* "128x256" */
static bool tile_read(const struct subject *s, double *m, double *n)
{
	const char *text = case_text(s->c, "tile");
	char *end;

	if (!text)
		return false;
	*m = strtod(text, &end);
	if (end == text || *end != 'x')
		return false;
	*n = strtod(end + 1, NULL);
	return *m >= 1 && *n >= 1;
}

static double option(const struct subject *s, const char *name, double fallback)
{
	const char *text = record_option(s->c, name);
	double value;

	return text && expect_parse(&value, text, "") ? value : fallback;
}

/* Padding: FLOP asked for over FLOP of whole tiles; exact by arithmetic where 256 divides. */
static bool useful_factor(struct judgement *out, const struct subject *s)
{
	double m = option(s, "m", 0), n = option(s, "n", 0), k = option(s, "k", 0), tm, tn, padded;

	if (strcmp(s->c->probe, "gemm")) {
		gap_add(out, "useful", 1, 0, "every instruction counted is asked for");
		return true;
	}
	if (fmod(m, 256) < 0.5 && fmod(n, 256) < 0.5 && fmod(k, 128) < 0.5 && m >= 1 && n >= 1) {
		gap_add(out, "useful", 1, 0, "tiles divide %.0f x %.0f x %.0f", m, n, k);
		return true;
	}
	if (!tile_read(s, &tm, &tn) || !(m > 0) || !(n > 0)) {
		gap_absent(out, "useful", "the tile is not known: padding stays in the residual");
		return false;
	}
	padded = ceil(m / tm) * tm * ceil(n / tn) * tn;
	gap_add(out, "useful", m * n / padded, 0.01, "%.0f x %.0f in tiles of %.0f x %.0f", m, n, tm, tn);
	return true;
}

static void show(struct judgement *out, const char *name, double value, const char *signal)
{
	struct factor *f = gap_add(out, name, value, 0.01, "%s", signal);

	if (f)
		f->shown_only = true;
}

/* What the pipe's share is made of; never multiplied. */
static void parts(struct judgement *out, const struct subject *s, double pipe)
{
	double tm, tn, split = 1, active, waves = 0, tiles, sms = gpu_get(s->gpu, GPU_FACT_sm_count, 0);
	double batch = option(s, "batch", 1);

	case_number(s->c, "split_k", &split);
	if (tile_read(s, &tm, &tn) && split <= 1 && sms > 0) {
		tiles = batch * ceil(option(s, "m", 1) / tm) * ceil(option(s, "n", 1) / tn);
		waves = tiles / (sms * ceil(tiles / sms));
		show(out, "waves", waves, "part of pipe: tiles over SMs x whole waves");
	}
	if (!record_number(s->phase, "sm_active_share", &active) || !(active > 0) || active > 1)
		return;
	if (waves > 0 && active / waves <= 1)
		show(out, "residency", active / waves,
		     "part of pipe: SM active over elapsed (GPM 2), less waves");
	if (pipe > 0)
		show(out, "issue", pipe / active, "part of pipe: pipe over SM active");
}

bool gap_compute(struct judgement *out, const struct subject *s)
{
	double pipe;
	bool clock = clock_factor(out, s), whole = pipe_factor(out, s, &pipe);

	whole = useful_factor(out, s) && whole;
	parts(out, s, pipe);
	return clock && whole;
}
