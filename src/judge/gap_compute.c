/* SPDX-License-Identifier: Apache-2.0 */
/* Clock, pipe, useful; parts of the pipe are shown beside it. */
#include "judge/gap.h"
#include <math.h>

#define PLAUSIBLE_KAPPA 0.2   /* a pipe that reads less while it never idles is not the one that works */
#define PLAUSIBLE_SIGNAL 0.01 /* nor is one that reads next to nothing */

enum { REASON_POWER = 0x4, REASON_THERMAL = 0x68, REASON_BRAKE = 0x80 };

/* What GPM tells of the pipes. */
enum pipe { PIPE_TENSOR, PIPE_FP32, PIPE_FP64, PIPES };

static const struct {
	const char *signal, *name;
} pipes[PIPES] = {
	[PIPE_TENSOR] = {"tensor", "tensor pipe (GPM 5)"},
	[PIPE_FP32] = {"fp32", "FP32 pipe (GPM 12)"},
	[PIPE_FP64] = {"fp64", "FP64 pipe (GPM 11)"},
};

/* Can work of this type show on this pipe? FP64 runs on the matrix units where there are such, else on its
 * own pipe. */
static bool may_run(const char *type, enum pipe pipe)
{
	if (!strcmp(type, "fp32"))
		return pipe == PIPE_FP32;
	if (!strcmp(type, "fp64"))
		return pipe == PIPE_TENSOR || pipe == PIPE_FP64;
	return pipe == PIPE_TENSOR;
}

/* Why the clock was below its maximum, as far as watts, times and reason bits tell; text gets the words. */
static enum held_by clock_held_by(const struct subject *s, double share, char *text, size_t size)
{
	double power = 0, readings, limit = gpu_get(s->gpu, GPU_FACT_power_limit_w, 0), bits = 0, time = 0;
	bool has_time = subject_number(s, "violation_power_share", &time);
	unsigned reasons;

	/* By energy and by power readings: in a short window either may miss a part. */
	subject_number(s, "power_w", &power);
	if (subject_number(s, "power_integral_w", &readings))
		power = fmax(power, readings);
	subject_number(s, "clock_reasons_or", &bits);
	reasons = bits >= 0 && bits < 0x1p32 ? (unsigned)bits : 0;
	if (share > GAP_ABOVE) {
		snprintf(text, size, "boost above the maximum that NVML tells");
		return HELD_BY_NOTHING;
	}
	if (share >= 0.995) {
		snprintf(text, size, "at its maximum");
		return HELD_BY_NOTHING;
	}
	if (reasons & REASON_BRAKE) {
		snprintf(text, size, "power brake");
		return HELD_BY_BRAKE;
	}
	if (reasons & REASON_THERMAL) {
		snprintf(text, size, "temperature (reasons 0x%x)", reasons);
		return HELD_BY_TEMPERATURE;
	}
	if (limit > 0 && power >= 0.97 * limit) {
		int n = snprintf(text, size, "power limit: %.0f of %.0f W", power, limit);

		if (has_time && n > 0 && (size_t)n < size)
			snprintf(text + n, size - (size_t)n, ", %.0f %% of the time", 100 * fmin(time, 1));
		return HELD_BY_POWER;
	}
	if (reasons & REASON_POWER) {
		snprintf(text, size, "current or voltage limit: reason 0x4 at %.0f of %.0f W", power, limit);
		return HELD_BY_CURRENT;
	}
	snprintf(text, size, "below maximum, unnamed");
	return HELD_BY_UNNAMED;
}

static bool clock_factor(struct judgement *out, const struct subject *s)
{
	double maximum = gpu_get(s->gpu, GPU_FACT_sm_clock_max_mhz, 0) * 1e6, clock;
	bool stamped = record_number(s->phase, "clock_hz", &clock);
	enum held_by held_by;
	struct factor *f;
	char why[64];

	if (!(maximum > 0) && s->sku && s->sku->fact[SKU_sm_clock_max].present)
		maximum = s->sku->fact[SKU_sm_clock_max].value;
	if (!(maximum > 0) || (!stamped && !record_number(s->phase, "clock_nvml_hz", &clock))) {
		gap_absent(out, "clock", "no held clock was recorded");
		return false;
	}
	held_by = clock_held_by(s, clock / maximum, why, sizeof(why));
	f = gap_add(out, "clock", clock / maximum, stamped ? 0.004 : 0.10, "%.0f of %.0f MHz by %s; %s",
		    clock / 1e6, maximum / 1e6, stamped ? "stamps" : "NVML (10 % off under a cap)", why);
	if (f)
		f->held_by = held_by;
	return stamped;
}

/*
 * What the signal reads when the pipe never idles: the MMA-only kernel of this run, of the same type, else (a
 * pipe that serves several) of another; *type: which. 0: none ran at full rate, or this is not the pipe it
 * ran on.
 */
static double kappa(const struct subject *s, enum pipe pipe, const char **type)
{
	const struct record *r = s->ctx->record;
	double best = 0, signal, clock, flop, share;
	struct subject p;
	bool same;
	size_t i;

	for (i = 0; i < r->case_count; i++) {
		if (&r->cases[i] == s->c || strcmp(r->cases[i].probe, "peak") ||
		    strcmp(r->cases[i].target, s->c->target) || !case_sound(&r->cases[i]))
			continue;
		subject_of(&p, s->ctx, &r->cases[i]);
		same = !strcmp(p.type, s->type);
		if (!*p.type || !may_run(p.type, pipe) || (best > 0 && !same) || !p.has_figure || !p.phase)
			continue;
		flop = bound_flop_per_clock(&p);
		if (!subject_gpm(&p, pipes[pipe].signal, &signal) ||
		    !record_number(p.phase, "clock_hz", &clock) || !(flop > 0) || !(clock > 0))
			continue;
		share = p.figure / (flop * clock);
		if (share < 0.9 || share > 1.01 || signal / share < PLAUSIBLE_KAPPA)
			continue; /* not at full rate itself, or at full rate on another pipe */
		best = signal / share;
		*type = p.type;
		if (same)
			break;
	}
	return best;
}

/* The pipe of the work by what calibration and case both show: the one calibrated, else the one that reads
 * more. */
static enum pipe pipe_of(const struct subject *s, double *signal, double *k, const char **type)
{
	enum pipe pipe, best = PIPES;
	const char *by = "";
	double here, calibrated;

	*signal = *k = 0;
	for (pipe = PIPE_TENSOR; pipe < PIPES; pipe++) {
		if (!may_run(s->type, pipe) || !subject_gpm(s, pipes[pipe].signal, &here) ||
		    here < PLAUSIBLE_SIGNAL)
			continue;
		calibrated = kappa(s, pipe, &by);
		if (best < PIPES &&
		    ((*k > 0 && !(calibrated > 0)) || ((*k > 0) == (calibrated > 0) && here <= *signal)))
			continue;
		best = pipe;
		*signal = here;
		*k = calibrated;
		*type = by;
	}
	return best;
}

static bool pipe_factor(struct judgement *out, const struct subject *s, double *pipe_share)
{
	char by[96] = "assumed: no MMA-only kernel of it at full rate";
	const char *type = "";
	double signal, k;
	enum pipe pipe = pipe_of(s, &signal, &k, &type);

	*pipe_share = 0;
	if (pipe == PIPES) {
		gap_absent(out, "pipe",
			   subject_gpm(s, "sm", &signal)
				   ? "no tensor signal on this device: GPM reads nothing for this type"
				   : "no GPM reading lies wholly inside the window, or the device has none");
		return false;
	}
	*pipe_share = signal / (k > 0 ? k : 1);
	if (k > 0)
		snprintf(by, sizeof(by), "this run's %.16s MMA-only kernel%s%.16s%s", type,
			 strcmp(type, s->type) ? ", no " : "", strcmp(type, s->type) ? s->type : "",
			 strcmp(type, s->type) ? " one ran at full rate" : "");
	gap_add(out, "pipe", *pipe_share, k > 0 ? 0.005 : 0.013, "%s %.1f %% of elapsed, over %.3f (%s)",
		pipes[pipe].name, 100 * signal, k > 0 ? k : 1.0, by);
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

/* Padding: FLOP asked for over FLOP of whole tiles. A tile of 320 pads 8192 to 8320; where the tile is not
 * told, sizes that 256 divides are taken as whole. */
static bool useful_factor(struct judgement *out, const struct subject *s)
{
	double m = option(s, "m", 0), n = option(s, "n", 0), k = option(s, "k", 0), tm, tn, useful;

	if (strcmp(s->c->probe, "gemm")) {
		gap_add(out, "useful", 1, 0, "every instruction counted is asked for");
		return true;
	}
	if (tile_read(s, &tm, &tn) && m >= 1 && n >= 1) {
		useful = m * n / (ceil(m / tm) * tm * ceil(n / tn) * tn);
		gap_add(out, "useful", useful, useful < 1 ? 0.005 : 0,
			"%.0f x %.0f in whole tiles of %.0f x %.0f", m, n, tm, tn);
		return true;
	}
	if (fmod(m, 256) < 0.5 && fmod(n, 256) < 0.5 && fmod(k, 128) < 0.5 && m >= 1 && n >= 1) {
		gap_add(out, "useful", 1, 0, "tiles divide %.0f x %.0f x %.0f", m, n, k);
		return true;
	}
	gap_absent(out, "useful", "the tile is not known: padding stays in the residual");
	return false;
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
	if (!subject_gpm(s, "sm", &active) || !(active > 0) || active > 1)
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
