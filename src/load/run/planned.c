/* SPDX-License-Identifier: Apache-2.0 */
#include "load/run/planned.h"

static int add_lengths(json_t *planned, const struct load_run_spec *spec, const struct load_plan *plan)
{
	const struct load_plan_tokens tokens = load_plan_tokens(plan);

	if (spec->plan.dataset_rows)
		return json_object_set_new(planned, "dataset_rows",
					   json_integer((json_int_t)spec->plan.dataset_rows));
	return json_object_set_new(planned, "prompt_tokens", json_real(tokens.prompt)) ||
	       json_object_set_new(planned, "output_tokens", json_real(tokens.output));
}

/* How many requests users send follows from the answers, so the plan knows only the limit. */
static int add_users(json_t *planned, const struct load_run_spec *spec, const struct load_plan *plan)
{
	return json_object_set_new(planned, "users", json_integer((json_int_t)spec->plan.users)) ||
	       json_object_set_new(planned, "requests_most", json_integer((json_int_t)plan->count));
}

static int add_schedule(json_t *planned, const struct load_run_spec *spec, const struct load_plan *plan)
{
	return json_object_set_new(planned, "requests", json_integer((json_int_t)plan->count)) ||
	       add_lengths(planned, spec, plan);
}

json_t *load_planned(const struct load_run_spec *spec, const struct load_plan *plan)
{
	json_t *planned = json_pack("{s:f, s:f}", "duration_s", plan->duration_s, "most_s",
				    plan->duration_s + spec->grace_s);

	if (spec->plan.arrival == LOAD_CLOSED ? add_users(planned, spec, plan)
					      : add_schedule(planned, spec, plan)) {
		json_decref(planned);
		return NULL;
	}
	return planned;
}
