/* SPDX-License-Identifier: Apache-2.0 */
/* Results of the stages that are runs: suites of assay check, and the load test. */
#include <math.h>
#include "cmd/comprehensive/comprehensive.h"
#include "core/json/member.h"
#include "report/text/format.h"

json_t *comprehensive_read_output(const struct comprehensive *s, enum stage_id id)
{
	char dir[PATH_MAX + 32];

	stage_dir(s, id, dir);
	return stage_read_json(dir, "output.txt");
}

void comprehensive_say_lost(const struct comprehensive *s, enum stage_id id, struct stage_result *r,
			    const char *what, int code)
{
	char dir[PATH_MAX + 32];

	stage_dir(s, id, dir);
	stage_say_lost(r, dir, what, code);
}

/* Appends "p2p 351 to 372 GB/s" to the headline, for the cases of a probe whose target has this word. */
static void add_range(struct stage_result *r, const json_t *results, const char *probe, const char *target,
		      const char *what)
{
	const json_t *cases = json_object_get(results, "cases");
	double low = INFINITY, high = -INFINITY;
	const char *unit = "", *shown = "";
	const size_t used = strlen(r->headline);
	const json_t *one;
	char range[64];
	size_t i;

	json_array_foreach((json_t *)cases, i, one)
	{
		double value;

		if (strcmp(json_member_text(one, "probe"), probe) ||
		    strncmp(json_member_text(one, "target"), target, strlen(target)) ||
		    !stage_case_figure(one, &value, &unit) || (*shown && strcmp(unit, shown)))
			continue;
		shown = unit;
		low = value < low ? value : low;
		high = value > high ? value : high;
	}
	if (low > high)
		return;
	if (low < high)
		format_range(range, sizeof(range), low, high, shown);
	else
		format_quantity(range, sizeof(range), low, 0, shown);
	snprintf(r->headline + used, sizeof(r->headline) - used, "%s%s %s", used ? "; " : "", what, range);
}

static void add_ranges(struct stage_result *r, const json_t *results, enum stage_id id)
{
	static const struct {
		enum stage_id stage;
		const char *probe, *target, *what;
	} rows[] = {
		{STAGE_DEVICES, "gemm", "gpu", "BF16 GEMM of a GPU"},
		{STAGE_DEVICES, "gemm", "cpu", "FP32 GEMM of the CPUs"},
		{STAGE_DEVICES, "memory", "cpu", "CPU memory"},
		{STAGE_LINKS, "link", "gpu", "host link"},
		{STAGE_LINKS, "p2p", "gpu", "pair of GPUs"},
		{STAGE_LINKS, "collective", "node", "all-reduce and all-to-all"},
		{STAGE_STRESS, "stress", "gpu", "GPU"},
		{STAGE_STRESS, "stress", "cpu", "CPUs"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].stage == id)
			add_range(r, results, rows[i].probe, rows[i].target, rows[i].what);
}

void judge_check(const struct comprehensive *s, struct stage_result *r, enum stage_id id, int code)
{
	char dir[PATH_MAX + 32];
	json_t *results;

	stage_dir(s, id, dir);
	results = stage_read_json(dir, "results.json");
	stage_take_run(r, dir, results, code);
	stage_take_cases(r, results);
	add_ranges(r, results, id);
	json_decref(results);
}

/* What the figures were compared with: D2's load and limits, and which of them hold for one engine. */
static void add_marks(struct stage_result *r, const struct comprehensive_size *z)
{
	const size_t used = strlen(r->headline);

	if (z->marked)
		snprintf(
			r->headline + used, sizeof(r->headline) - used,
			"%sone engine on one of %u GPUs; limits of D2 at %g requests/s: TTFT P95 100 ms, P99 200 ms. "
			"Its 10,000 tokens/s are for eight GPUs",
			used ? "; " : "", z->gpus, z->rate);
}

void judge_load(const struct comprehensive *s, struct stage_result *r, int code)
{
	char dir[PATH_MAX + 32];
	json_t *results;

	stage_dir(s, STAGE_LOAD, dir);
	results = stage_read_json(dir, "results.json");
	stage_take_run(r, dir, results, code);
	stage_take_load(r, results);
	add_marks(r, &s->size);
	json_decref(results);
}
