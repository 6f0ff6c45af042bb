/* SPDX-License-Identifier: Apache-2.0 */
#include "judge/advice/unit_use.h"

const struct unit_use_row unit_use_rows[UNIT_USE_COUNT] = {
#define X(id, name, shown, unit, target) [UNIT_USE_##id] = {name, shown, unit, target},
	UNIT_USES(X)
#undef X
};

/* Reads the share from counters, over the cycles of the judged iterations; else from GPM, with the time
 * resolution of its readings. */
static struct unit_use share_of(const struct subject *s, const char *counter, const char *gpm)
{
	struct unit_use m = {0};

	if (subject_counter(s, counter, &m.value))
		m.from = "CUPTI";
	else if (gpm && subject_gpm(s, gpm, &m.value))
		m.from = "GPM";
	return m;
}

/* A memory case has its own rate. For other work, DRAM's bytes are counted over the time that their cycles
 * take at the window's clock. */
static struct unit_use memory_rate(const struct subject *s)
{
	double read, written, cycles, hz;

	if (!strcmp(s->c->limit, "memory"))
		return !strcmp(s->unit, "B/s") && subject_beyond_cache(s)
			       ? (struct unit_use){s->figure, "measured"}
			       : (struct unit_use){0};
	if (!subject_counter(s, "dram_read_bytes", &read) ||
	    !subject_counter(s, "dram_write_bytes", &written) || !subject_counter(s, "sm_cycles", &cycles) ||
	    !record_number(s->phase, "clock_hz", &hz))
		return (struct unit_use){0};
	return (struct unit_use){(read + written) * hz / cycles, "CUPTI"};
}

static bool asked(const struct subject *s)
{
	static const char *const probes[] = {"gemm", "attention", "memory"};

	for (size_t i = 0; i < sizeof(probes) / sizeof(probes[0]); i++)
		if (!strcmp(s->c->probe, probes[i]))
			return s->gpu && s->gpu_count == 1 && s->has_figure && s->phase;
	return false;
}

void unit_use_of(struct judgement *out, const struct subject *s)
{
	if (!asked(s))
		return;
	out->metric[UNIT_USE_SM] = share_of(s, "sm_active_share", "sm");
	if (*s->type && strcmp(s->type, "fp32"))
		out->metric[UNIT_USE_TENSOR] = share_of(s, "tensor_active_share", "tensor");
	out->metric[UNIT_USE_MEMORY] = memory_rate(s);
	out->metric[UNIT_USE_OCCUPANCY] = share_of(s, "occupancy_share", NULL);
}
