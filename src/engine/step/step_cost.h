/* SPDX-License-Identifier: Apache-2.0 */
/* The predicted time of a step, from the model's shape and corrected by measured steps. */
#ifndef ENGINE_STEP_STEP_COST_H
#define ENGINE_STEP_STEP_COST_H
#include "engine/schedule/schedule.h"
#include "model/shape/shape.h"

/* Each part of the time has a factor: measured / predicted by `base`, averaged over recent steps. */
struct step_cost {
	struct schedule_cost base; /* from usual rates of a device of this kind */
	double fixed, rows;	   /* of the time of a step without rows; of the time of its rows */
};
/* The parts of a step's predicted time. */
struct step_prediction {
	double fixed_ns, rows_ns;
	bool prompts; /* the step has rows of prompts */
};
void step_cost_start(struct step_cost *c, const struct shape *s, bool gpu);
/* Divides a time that was predicted with step_cost_now of this moment. */
struct step_prediction step_cost_parts(const struct step_cost *c, double predicted_ns, bool prompts);
/* Corrects the factor of rows if the step has prompts and its rows take most of the time, else the other one.
 * A row that decodes costs more than a row of a prompt, because its GEMMs are small. */
void step_cost_measured(struct step_cost *c, const struct step_prediction *p, double measured_ns);
struct schedule_cost step_cost_now(const struct step_cost *c);
/* Layers of a slice of a step: slices of at most about slice_ns, or all layers if the step takes less than
 * two. */
int64_t step_cost_slice(double predicted_ns, double slice_ns, int64_t layers);
/* The share of a step's time after which the host must enqueue more work. `enqueued` of its `layers` layers
 * are, in slices of `slice`. While layers are left, the device keeps two slices. If none is left, the next
 * step is due, and an eighth of the time is kept for errors of the prediction. */
double step_cost_share(int64_t layers, int64_t enqueued, int64_t slice);
/* Nanoseconds after the begin of a step. Work that must be enqueued after this share of the step can wait so
 * long. The host has two milliseconds to plan and enqueue. Past slow steps do not lengthen the wait: a factor
 * counts as 1 at most. */
uint64_t step_cost_hold_ns(const struct step_cost *c, const struct step_prediction *p, double share);
#endif
