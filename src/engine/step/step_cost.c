/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/step/step_cost.h"
#include <math.h>

static const double recent = 0.1; /* weight of the last step in the average */
static const double hold_lead_ns = 2e6, hold_share = 0.875;
static const double factor_least = 1e-2, factor_most = 1e3;
static const double ratio_least = 0.1, ratio_most = 10; /* that one step counts with */

/* Time is that of reading the weights, plus FLOP: 2 per parameter and row, and 4 per head element and pair of
 * positions. The rates are those of one H100, and of two cores with AVX2. */
void step_cost_start(struct step_cost *c, const struct shape *s, bool gpu)
{
	const double flop_per_ns = gpu ? 500e3 : 100, bytes_per_ns = gpu ? 3e3 : 20;
	const double parameters = (double)shape_parameters(s), head = (double)(s->vocab * s->hidden);
	const double linear = parameters - head * (s->tied ? 1 : 2);

	*c = (struct step_cost){
		.base = {.step_ns = 2 * (linear + head) / bytes_per_ns,
			 .row_ns = 2 * linear / flop_per_ns,
			 .depth_ns = 4.0 * (double)(s->layers * s->heads * s->head_dim) / flop_per_ns,
			 .logits_ns = 2 * head / flop_per_ns},
		.fixed = 1,
		.rows = 1,
	};
}

struct step_prediction step_cost_parts(const struct step_cost *c, double predicted_ns, bool prompts)
{
	const double fixed_ns = c->base.step_ns * c->fixed;

	return (struct step_prediction){
		.fixed_ns = fixed_ns, .rows_ns = fmax(predicted_ns - fixed_ns, 0), .prompts = prompts};
}

static double limited(double x, double least, double most)
{
	return x < least ? least : x > most ? most : x;
}

void step_cost_measured(struct step_cost *c, const struct step_prediction *p, double measured_ns)
{
	const bool by_rows = p->prompts && p->rows_ns > p->fixed_ns;
	const double part = by_rows ? p->rows_ns : p->fixed_ns, other = by_rows ? p->fixed_ns : p->rows_ns;
	double *factor = by_rows ? &c->rows : &c->fixed, ratio;

	if (!(part > 0) || !(measured_ns > 0))
		return;
	ratio = limited((measured_ns - other) / part, ratio_least, ratio_most);
	*factor = limited(*factor * (1 - recent + recent * ratio), factor_least, factor_most);
}

struct schedule_cost step_cost_now(const struct step_cost *c)
{
	return (struct schedule_cost){.step_ns = c->base.step_ns * c->fixed,
				      .row_ns = c->base.row_ns * c->rows,
				      .depth_ns = c->base.depth_ns * c->rows,
				      .logits_ns = c->base.logits_ns * c->rows};
}

int64_t step_cost_slice(double predicted_ns, double slice_ns, int64_t layers)
{
	const double slices = ceil(predicted_ns / slice_ns);

	if (predicted_ns < 2 * slice_ns)
		return layers;
	return slices < (double)layers ? layers / (int64_t)slices : 1;
}

double step_cost_share(int64_t layers, int64_t enqueued, int64_t slice)
{
	if (enqueued == layers)
		return hold_share;
	return fmax((double)(enqueued - 2 * slice), 0) / (double)layers;
}

uint64_t step_cost_hold_ns(const struct step_cost *c, const struct step_prediction *p, double share)
{
	const double ns =
		share * (p->fixed_ns / fmax(c->fixed, 1) + p->rows_ns / fmax(c->rows, 1)) - hold_lead_ns;

	return ns > 0 ? (uint64_t)ns : 0;
}
