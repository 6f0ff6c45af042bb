/* SPDX-License-Identifier: Apache-2.0 */
/* Factors of compute: clock, pipe (pipe.c), useful. The parts of the pipe factor are shown, not multiplied.
 */
#include "judge/gap/gap.h"
#include <math.h>

#define LEAST_USEFUL 0.3 /* smallest plausible share: a GEMM whose tiles are mostly padding */

enum { REASON_POWER = 0x4, REASON_THERMAL = 0x68, REASON_BRAKE = 0x80 };

/* Finds the reason why the clock was below its maximum, from power, violation times and reason bits. `text`
 * receives it in words. */
static enum clock_limit clock_held_by(const struct subject *s, double share, char *text, size_t size)
{
	double power = 0, readings, limit = gpu_get(s->gpu, GPU_FACT_power_limit_w, 0), bits = 0, time = 0;
	bool has_time = subject_number(s, "violation_power_share", &time);
	unsigned reasons;

	/* The larger of energy and power readings: in a short window either can miss a part. */
	subject_number(s, "power_w", &power);
	if (subject_number(s, "power_integral_w", &readings))
		power = fmax(power, readings);
	subject_number(s, "clock_reasons_or", &bits);
	reasons = bits >= 0 && bits < 0x1p32 ? (unsigned)bits : 0;
	if (share > GAP_ABOVE) {
		snprintf(text, size, "boost above the maximum that NVML reports");
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
	snprintf(text, size, "below its maximum, reason unknown");
	return HELD_BY_UNNAMED;
}

bool gap_clock(struct judgement *out, const struct subject *s)
{
	double maximum = gpu_get(s->gpu, GPU_FACT_sm_clock_max_mhz, 0) * 1e6, clock;
	bool stamped = record_number(s->phase, "clock_hz", &clock);
	enum clock_limit clock_limit;
	struct factor *f;
	char why[64];

	if (!(maximum > 0) && s->sku && s->sku->fact[SKU_sm_clock_max].present)
		maximum = s->sku->fact[SKU_sm_clock_max].value;
	if (!(maximum > 0) || (!stamped && !record_number(s->phase, "clock_nvml_hz", &clock))) {
		gap_absent(out, "clock", "no held clock was recorded");
		return false;
	}
	clock_limit = clock_held_by(s, clock / maximum, why, sizeof(why));
	f = gap_add(out, "clock", clock / maximum, stamped ? 0.004 : 0.10, "%.0f of %.0f MHz by %s; %s",
		    clock / 1e6, maximum / 1e6,
		    stamped ? "stamps" : "NVML (up to 10 % off under a power cap)", why);
	if (f)
		f->clock_limit = clock_limit;
	return stamped;
}

/* Reads "128x256". */
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

/* FLOP of the work over the FLOP that the tensor pipe executed. A value above 1 means that one of the two is
 * miscounted, which must stay visible. A value that contradicts the tile size is not used. */
bool gap_useful_counted(struct judgement *out, const struct subject *s, double by_tile)
{
	double executed, useful;

	if (!subject_counter(s, "tensor_flop", &executed) || !(executed > 0) || !(s->c->work_flop > 0))
		return false;
	useful = s->c->work_flop / executed;
	if (useful > GAP_ABOVE || useful < LEAST_USEFUL || (by_tile > 0 && fabs(useful / by_tile - 1) > 0.01))
		return false;
	gap_add(out, "useful", useful, 0.001, "%.4g FLOP of work, %.4g executed on the tensor pipe (CUPTI)",
		s->c->work_flop, executed);
	return true;
}

/* Padding: FLOP of the work over FLOP of whole tiles. A tile of 320 pads 8192 to 8320. If the tile is not
 * known, multiples of 256 count as whole tiles. */
static bool useful_factor(struct judgement *out, const struct subject *s)
{
	double m = option(s, "m", 0), n = option(s, "n", 0), k = option(s, "k", 0), tm, tn, useful = 0;
	bool tiled;

	if (strcmp(s->c->probe, "gemm")) {
		if (gap_useful_counted(out, s, 0))
			return true;
		gap_add(out, "useful", 1, 0, "every instruction counted belongs to the work");
		return true;
	}
	tiled = tile_read(s, &tm, &tn) && m >= 1 && n >= 1;
	if (tiled)
		useful = m * n / (ceil(m / tm) * tm * ceil(n / tn) * tn);
	if (gap_useful_counted(out, s, useful))
		return true;
	if (tiled) {
		gap_add(out, "useful", useful, useful < 1 ? 0.005 : 0,
			"%.0f x %.0f in whole tiles of %.0f x %.0f", m, n, tm, tn);
		return true;
	}
	if (fmod(m, 256) < 0.5 && fmod(n, 256) < 0.5 && fmod(k, 128) < 0.5 && m >= 1 && n >= 1) {
		gap_add(out, "useful", 1, 0, "whole tiles divide %.0f x %.0f x %.0f", m, n, k);
		return true;
	}
	gap_absent(out, "useful", "the tile size is not known, so padding stays in the residual");
	return false;
}

/* The parts that make up the pipe factor; never multiplied. */
static void parts(struct judgement *out, const struct subject *s, double pipe)
{
	double tm, tn, split = 1, active, waves = 0, tiles, sms = gpu_get(s->gpu, GPU_FACT_sm_count, 0);
	double batch = option(s, "batch", 1);
	bool counted;

	case_number(s->c, "split_k", &split);
	if (tile_read(s, &tm, &tn) && split <= 1 && sms > 0) {
		tiles = batch * ceil(option(s, "m", 1) / tm) * ceil(option(s, "n", 1) / tn);
		waves = tiles / (sms * ceil(tiles / sms));
		gap_show(out, "waves", waves, "part of pipe: tiles over SMs x whole waves");
	}
	counted = subject_counter(s, "sm_active_share", &active) && active > 0;
	if ((!counted && !subject_gpm(s, "sm", &active)) || !(active > 0) || active > 1)
		return;
	if (waves > 0 && active / waves <= 1)
		gap_show(out, "residency", active / waves,
			 counted ? "part of pipe: SM active over elapsed (CUPTI), less waves"
				 : "part of pipe: SM active over elapsed (GPM 2), less waves");
	if (pipe > 0)
		gap_show(out, "issue", pipe / active, "part of pipe: pipe over SM active");
}

bool gap_compute(struct judgement *out, const struct subject *s)
{
	double pipe;
	bool clock = gap_clock(out, s), whole = gap_pipe(out, s, &pipe);

	whole = useful_factor(out, s) && whole;
	parts(out, s, pipe);
	return clock && whole;
}
