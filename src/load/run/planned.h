/* SPDX-License-Identifier: Apache-2.0 */
/* What a plan asks for, as members of JSON. */
#ifndef LOAD_RUN_PLANNED_H
#define LOAD_RUN_PLANNED_H
#include "load/run/run.h"

/* `duration_s` and `most_s`, the time with the last answers. Of a closed loop: `users` and `requests_most`.
 * Of a schedule: `requests`, `prompt_tokens` and `output_tokens`. With a dataset the tokens are not known
 * before the requests are made, so its `dataset_rows` take their place. `spec` has them. NULL: out of memory.
 * Owner: caller, json_decref. */
json_t *load_planned(const struct load_run_spec *spec, const struct load_plan *plan);
#endif
