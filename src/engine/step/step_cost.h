/* SPDX-License-Identifier: Apache-2.0 */
/* The predicted time of a step, from the model's shape and corrected by measured steps. */
#ifndef ENGINE_STEP_STEP_COST_H
#define ENGINE_STEP_STEP_COST_H
#include "engine/schedule/schedule.h"
#include "model/shape/shape.h"

struct step_cost {
	struct schedule_cost base; /* from usual rates of a device of this kind */
	double factor;		   /* measured / predicted by `base`, averaged over recent steps */
};
void step_cost_start(struct step_cost *c, const struct shape *s, bool gpu);
/* predicted_ns: with step_cost_now of that time. */
void step_cost_measured(struct step_cost *c, double predicted_ns, double measured_ns);
struct schedule_cost step_cost_now(const struct step_cost *c);
/* For how long after the begin of such a step the plan of the next one can wait. The device does not run out
 * of work if the step takes at least half its predicted time, and the host a millisecond to plan and enqueue.
 * Steps that were slow once make no longer wait: `factor` counts as 1 at most. */
uint64_t step_cost_hold_ns(const struct step_cost *c, double predicted_ns);
#endif
