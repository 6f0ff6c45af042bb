/* SPDX-License-Identifier: Apache-2.0 */
#include "judge/case/range.h"
#include <math.h>
#include "judge/bound/bound.h"
#include "judge/expect/site.h"

/* Part of the power limit that a lower clock does not save: idle power, memory, leakage. The recorded cards
 * draw 0.10 to 0.17 of their limit when idle. A larger value allows a lower limit to cost more. */
#define POWER_CONSTANT 0.30
#define POWER_LEAST 0.05 /* lowest share of the range that may remain */
#define POWER_BINDS 0.97 /* share of the limit at which the regulator is active */
/* Share of the maximum clock. Below it, the loss of memory and link rates has not been measured. */
#define CLOCK_LOOSENS 0.50

const char *range_class_name(enum range_class which)
{
	static const char *const names[RANGE_CLASS_COUNT] = {"", "compute", "memory", "link"};

	return which < RANGE_CLASS_COUNT ? names[which] : "";
}

enum range_class range_class_of(const struct subject *s)
{
	static const struct {
		const char *probe;
		enum range_class which;
	} headline[] = {
		{"gemm", RANGE_COMPUTE}, {"attention", RANGE_COMPUTE}, {"memory", RANGE_MEMORY},
		{"link", RANGE_LINK},	 {"p2p", RANGE_LINK},	       {"collective", RANGE_LINK},
	};

	for (size_t i = 0; s->gpu && i < sizeof(headline) / sizeof(headline[0]); i++)
		if (!strcmp(headline[i].probe, s->c->probe))
			return headline[i].which;
	return RANGE_NO_CLASS;
}

double range_margin(const struct basis *b)
{
	if (!b->cards)
		return 0;
	return b->cards == 1 ? RANGE_MARGIN_ONE : fmax(RANGE_MARGIN_LEAST, b->scatter);
}

/* Smallest share of the clock at the default power limit that the stated limit leaves; 1: no lower limit is
 * stated. */
static double power_share(const struct subject *s)
{
	double stated = s->site ? s->site->power_limit_w : 0,
	       preset = gpu_get(s->gpu, GPU_FACT_power_limit_default_w, 0);

	if (!(stated > 0) || !(preset > 0) || stated >= preset)
		return 1;
	return fmax(POWER_LEAST, (stated / preset - POWER_CONSTANT) / (1 - POWER_CONSTANT));
}

/* The stated clock over the maximum; 1: none is stated. */
static double clock_share(const struct subject *s)
{
	double stated = s->site ? s->site->sm_clock_hz : 0,
	       most = gpu_get(s->gpu, GPU_FACT_sm_clock_max_mhz, 0) * 1e6;

	return stated > 0 && most > 0 ? fmin(1, stated / most) : 1;
}

/* The ends of the range at the stated clock, from the range of the share at the held clock. Without such a
 * range the ends shrink with the clock. That is too lenient for a card whose power limit already held it
 * below the maximum. */
static void at_stated_clock(struct range *r, const struct subject *s, const struct band_row *b)
{
	const struct band_row *tie, *held = expect_band(s->ctx->e, BAND_EFFICIENCY, subject_word, s, &tie);
	double share = clock_share(s), most = gpu_get(s->gpu, GPU_FACT_sm_clock_max_mhz, 0) * 1e6,
	       bound = bound_flop_per_clock(s) * most * share;

	if (share >= 1)
		return;
	if (b->slot == BAND_RATE && held && !tie && bound > 0) {
		r->low = fmin(r->low, held->low * bound);
		r->high = fmin(r->high, held->high * bound);
	} else if (b->slot == BAND_RATE) {
		r->low *= share;
	} else if (b->slot == BAND_TIME) {
		r->high /= share;
	}
}

/* True if the lower power limit was reached in this window. */
static bool power_binds(const struct subject *s)
{
	double power;

	return power_share(s) < 1 && subject_number(s, "power_w", &power) &&
	       power >= POWER_BINDS * s->site->power_limit_w;
}

static void scale(struct range *r, const struct subject *s, const struct band_row *b)
{
	double power = power_share(s);

	if (range_class_of(s) != RANGE_COMPUTE) {
		r->lenient = clock_share(s) < CLOCK_LOOSENS || power_binds(s);
		return;
	}
	if (b->slot == BAND_EFFICIENCY) /* this slot is a share of whatever clock was held */
		return;
	if (b->slot == BAND_CLOCK && s->site->sm_clock_hz > 0)
		r->low = fmin(r->low, SITE_CLOCK_LOW * s->site->sm_clock_hz);
	at_stated_clock(r, s, b);
	if (b->slot == BAND_TIME)
		r->high /= power;
	else
		r->low *= power;
}

void range_of(struct range *out, const struct subject *s, const struct band_row *b)
{
	bool time = b->slot == BAND_TIME;

	*out = (struct range){.low = b->low, .high = b->high, .margin = range_margin(&b->basis)};
	if (s->site && s->gpu)
		scale(out, s, b);
	out->mark = b->fail * (time ? out->high / b->high : out->low / b->low);
}

bool range_fails(const struct range *r, const struct subject *s, const struct band_row *b, double value,
		 bool trusted)
{
	bool time = b->slot == BAND_TIME;
	double width = 0, best;

	if (r->lenient || !trusted)
		return false;
	if (r->mark > 0 && (time ? value > r->mark : value < r->mark))
		return true;
	if (!(r->margin > 0))
		return false;
	(void)record_number(s->phase, "half_width_share", &width);
	best = time ? value * (1 - width) : value * (1 + width);
	return time ? best > r->high * (1 + r->margin) : best < r->low * (1 - r->margin);
}
