/* SPDX-License-Identifier: Apache-2.0 */
/* Several machines: collects all values of one kind (key, product) from every GPU or CPU of every run, and
 * compares each with the others. */
#include "judge/compare/compare.h"
#include "judge/case/context.h"
#include <math.h>
#include "core/math/stats.h"
#include "core/text/text.h"
#include "judge/expect/expect.h"
#include "judge/peers/siblings.h"

enum { VALUES_MAX = 1024 };

struct value {
	size_t run, index;
	double figure;
};

/* GPU model or CPU model of a case. Values of different products are of different kinds. */
static const char *product(const struct record *r, const struct record_case *c)
{
	const json_t *facts = context_facts(r);
	const char *pci = json_string_value(json_array_get(json_object_get(c->plan, "gpus"), 0)), *name;
	const json_t *gpu;
	size_t i;

	json_array_foreach(json_object_get(facts, "gpus"), i, gpu)
	{
		const char *at = json_string_value(json_object_get(gpu, "pci"));

		if (pci && at && !strcmp(pci, at)) {
			name = json_string_value(json_object_get(gpu, "name"));
			return name ? name : "";
		}
	}
	name = json_string_value(json_object_get(json_object_get(facts, "cpu"), "model"));
	return pci || !name ? "" : name;
}

static size_t gather(struct value *v, const struct compare_run *runs, size_t count,
		     const struct record *lead_run, const struct record_case *lead,
		     const struct judgement *lead_judged)
{
	const char *what = product(lead_run, lead);
	size_t run, i, n = 0;

	for (run = 0; run < count; run++)
		for (i = 0; i < runs[run].record->case_count && n < VALUES_MAX; i++) {
			const struct record_case *c = &runs[run].record->cases[i];
			const struct judgement *j = &runs[run].judged->of_case[i];

			if (strcmp(c->key, lead->key) || c->together != lead->together || !compare_fit(j) ||
			    strcmp(j->phase, lead_judged->phase) ||
			    strcmp(product(runs[run].record, c), what))
				continue;
			v[n++] = (struct value){.run = run, .index = i, .figure = j->figure};
		}
	return n;
}

static enum status outliers(struct comparison *out, const struct compare_run *runs, const struct value *v,
			    size_t n, struct error *err)
{
	double x[VALUES_MAX], limit, off;
	struct compare_outlier *o;
	size_t i;

	for (i = 0; i < n; i++)
		x[i] = v[i].figure;
	for (i = 0; i < n; i++) {
		const struct record_case *c = &runs[v[i].run].record->cases[v[i].index];
		const struct judgement *j = &runs[v[i].run].judged->of_case[v[i].index];

		off = siblings_deviation(x, n, i, &limit);
		limit = fmax(limit, siblings_limit_of(c->probe, c->limit).flag);
		if (fabs(off) <= limit)
			continue;
		o = expect_push(&out->outlier, &out->outlier_count, sizeof(*o), err);
		if (!o)
			return STATUS_NO_RESOURCE;
		*o = (struct compare_outlier){.c = c,
					      .key = c->key,
					      .target = c->where,
					      .run = runs[v[i].run].name,
					      .value = v[i].figure,
					      .median = v[i].figure / (1 + off),
					      .deviation = off,
					      .limit = limit,
					      .siblings = (unsigned)n - 1,
					      .slower = strcmp(j->figure_unit, "ns") ? off < 0 : off > 0};
		text_copy(o->unit, sizeof(o->unit), j->figure_unit);
	}
	return STATUS_OK;
}

enum status compare_fleet(struct comparison *out, const struct compare_run *runs, size_t count,
			  struct error *err)
{
	struct value *v = calloc(VALUES_MAX, sizeof(*v));
	enum status status = STATUS_OK;
	size_t run, i, n;

	if (!v)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory to compare %zu runs", count);
	for (run = 0; run < count && !status; run++)
		for (i = 0; i < runs[run].record->case_count && !status; i++) {
			const struct record_case *c = &runs[run].record->cases[i];

			if (!compare_fit(&runs[run].judged->of_case[i]))
				continue;
			n = gather(v, runs, count, runs[run].record, c, &runs[run].judged->of_case[i]);
			/* Each kind is handled once, at its first value. */
			if (n < SIBLINGS_MIN || v[0].run != run || v[0].index != i)
				continue;
			out->groups++;
			status = outliers(out, runs, v, n, err);
		}
	free(v);
	return status;
}
