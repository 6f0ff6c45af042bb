/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include "core/input/opt.h"
#include "core/text/units.h"
#include "load/measure/summary.h"

enum { PART_MOST = 32 };

/*
 * mlperf-*: MLPerf Inference, Llama-2-70B in the server and the interactive scenario (P99 of TTFT and TPOT).
 * chat .. completion: the sets that GuideLLM documents (P99; its limits of ITL hold here for TPOT).
 * d2: TTFT below 200 ms at P99.
 */
const struct load_slo load_slo_sets[] = {
	{.name = "mlperf-server", .ttft_s = 2, .tpot_s = 0.2},
	{.name = "mlperf-interactive", .ttft_s = 0.45, .tpot_s = 0.04},
	{.name = "chat", .ttft_s = 0.2, .tpot_s = 0.05},
	{.name = "rag", .ttft_s = 0.3, .tpot_s = 0.1, .e2e_s = 3},
	{.name = "code", .ttft_s = 0.5, .tpot_s = 0.15},
	{.name = "content", .ttft_s = 0.6, .tpot_s = 0.2},
	{.name = "completion", .e2e_s = 2},
	{.name = "d2", .ttft_s = 0.2},
	{.name = NULL},
};

enum { SETS = sizeof(load_slo_sets) / sizeof(load_slo_sets[0]) - 1 };

static enum status read_part(struct load_slo *out, const char *part, const char *text, struct error *err)
{
	const struct {
		const char *name;
		double *to;
	} limits[] = {{"ttft=", &out->ttft_s}, {"tpot=", &out->tpot_s}, {"e2e=", &out->e2e_s}};
	struct error why = {0};

	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		const size_t size = strlen(limits[i].name);
		double value;

		if (strncmp(part, limits[i].name, size) != 0)
			continue;
		if (*limits[i].to > 0)
			return error_set(err, STATUS_BAD_INPUT, "limits \"%.64s\": %.*s is given twice", text,
					 (int)size - 1, part);
		if (units_parse(&value, part + size, "s", &why))
			return error_set(err, STATUS_BAD_INPUT, "limits \"%.64s\": %s", text, why.text);
		if (!(value > 0))
			return error_set(err, STATUS_BAD_INPUT, "limits \"%.64s\": %.*s must be above 0",
					 text, (int)size - 1, part);
		*limits[i].to = value;
		return STATUS_OK;
	}
	return error_set(err, STATUS_BAD_INPUT,
			 "limits \"%.64s\": \"%s\" is none of ttft=TIME, tpot=TIME and e2e=TIME", text, part);
}

static enum status read_custom(struct load_slo *out, const char *text, struct error *err)
{
	enum status st = STATUS_OK;
	const char *at = text;

	*out = (struct load_slo){.name = text};
	while (!st) {
		const size_t size = strcspn(at, ",");
		char part[PART_MOST];

		if (size >= sizeof(part))
			return error_set(err, STATUS_BAD_INPUT, "limits \"%.64s\": a part is too long", text);
		memcpy(part, at, size);
		part[size] = '\0';
		st = read_part(out, part, text, err);
		if (!at[size])
			break;
		at += size + 1;
	}
	return st;
}

enum status load_slo_read(struct load_slo *out, const char *text, struct error *err)
{
	const char *names[SETS], *near;

	for (size_t i = 0; i < SETS; i++) {
		names[i] = load_slo_sets[i].name;
		if (strcmp(names[i], text) != 0)
			continue;
		*out = load_slo_sets[i];
		return STATUS_OK;
	}
	if (strchr(text, '='))
		return read_custom(out, text, err);
	near = opt_nearest(text, names, SETS);
	return error_set(
		err, STATUS_BAD_INPUT,
		"limits \"%.64s\" are unknown%s%s%s; give a known set, or ttft=TIME,tpot=TIME,e2e=TIME", text,
		near ? ", did you mean \"" : "", near ? near : "", near ? "\"?" : "");
}
