/* SPDX-License-Identifier: Apache-2.0 */
#include "judge/gap/training_step.h"
#include <math.h>
#include "core/math/stats.h"

#define SOURCE "train" /* source of the telemetry that the job itself recorded */
static const char part_s[] = "_part_s";

double training_reading(const struct series *s, uint64_t t_ns)
{
	size_t at = s ? series_lower_bound(s, t_ns) : 0;

	return s && at < s->count && s->t_ns[at] == t_ns ? s->value[at] : (double)NAN;
}

bool training_part_multiplies(const struct training_part *p)
{
	static const char *const names[] = {"products", "thin_products", "attention", "attention_backward"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(p->name, names[i]))
			return true;
	return false;
}

static double reading_or(const struct record *r, const char *signal, uint64_t t_ns, double otherwise)
{
	double value = training_reading(record_series(r, SOURCE, signal), t_ns);

	return isfinite(value) ? value : otherwise;
}

/* Finds the indices of the steps that count: the steady ones, or all if none is steady. Returns their number.
 */
static size_t pick(size_t *out, const struct series *s, const struct series *steady)
{
	size_t count = 0;

	for (size_t i = 0; i < s->count; i++)
		if (training_reading(steady, s->t_ns[i]) > 0)
			out[count++] = i;
	for (size_t i = 0; !count && i < s->count; i++)
		out[i] = i;
	return count ? count : s->count;
}

/* Finds in *at the step with the lower median of those that count, and their number and mean. `s` has at
 * least one step. */
static bool median_at(struct training_step *out, const struct series *s, const struct series *steady,
		      size_t *at)
{
	size_t *place = malloc(s->count * sizeof(*place)), i = 0;
	double *sorted = malloc(s->count * sizeof(*sorted)), sum = 0;

	if (place && sorted) {
		out->steps = pick(place, s, steady);
		for (i = 0; i < out->steps; i++)
			sum += sorted[i] = s->value[place[i]];
		stats_sort(sorted, out->steps);
		out->mean_s = sum / (double)out->steps;
		out->step_s = sorted[(out->steps - 1) / 2];
		for (i = 0; i + 1 < out->steps && s->value[place[i]] != out->step_s;)
			i++;
		*at = place[i];
	}
	free(sorted);
	free(place);
	return out->steps > 0;
}

static void add_part(struct training_step *out, const struct record *r, const struct series *s)
{
	const size_t length = strlen(s->signal), tail = sizeof(part_s) - 1;
	struct training_part *p = &out->part[out->part_count];
	char work[sizeof(p->name) + 16];

	if (strcmp(s->source, SOURCE) || length <= tail || strcmp(s->signal + length - tail, part_s) ||
	    out->part_count == TRAINING_PARTS_MOST || !isfinite(training_reading(s, out->t_ns)))
		return;
	snprintf(p->name, sizeof(p->name), "%.*s", (int)(length - tail), s->signal);
	p->s = training_reading(s, out->t_ns);
	snprintf(work, sizeof(work), "%s_part_flop", p->name);
	p->flop = reading_or(r, work, out->t_ns, 0);
	snprintf(work, sizeof(work), "%s_part_bytes", p->name);
	p->bytes = reading_or(r, work, out->t_ns, 0);
	out->parts_s += p->s;
	out->parts_flop += p->flop;
	out->part_count++;
}

bool training_step_of(struct training_step *out, const struct record *r)
{
	const struct series *steps = record_series(r, SOURCE, "step_s");
	double rate, mfu;
	size_t at = 0;

	*out = (struct training_step){0};
	if (!steps || !steps->count || !median_at(out, steps, record_series(r, SOURCE, "steady"), &at))
		return false;
	out->t_ns = steps->t_ns[at];
	out->phases_s = reading_or(r, "forward_s", out->t_ns, 0) + reading_or(r, "backward_s", out->t_ns, 0) +
			reading_or(r, "optimiser_s", out->t_ns, 0);
	out->comm_s = reading_or(r, "comm_s", out->t_ns, 0);
	out->gemm_s = reading_or(r, "gemm_s", out->t_ns, (double)NAN);
	rate = reading_or(r, "flop_rate", out->t_ns, 0);
	mfu = reading_or(r, "mfu", out->t_ns, 0);
	out->flop = rate * out->step_s;
	out->gemm_rate = mfu > 0 ? rate / mfu : 0;
	for (size_t i = 0; i < r->series_count; i++)
		add_part(out, r, &r->series[i]);
	return true;
}
