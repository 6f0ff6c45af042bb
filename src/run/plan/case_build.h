/* SPDX-License-Identifier: Apache-2.0 */
/* How plan and worker make a case. */
#ifndef RUN_PLAN_CASE_BUILD_H
#define RUN_PLAN_CASE_BUILD_H
#include "run/probe.h"

struct assignment {
	const char *name, *value, *place; /* place leads the message: "file:line" */
};

/* Presets of the probe, those of the case's engine, then these; then the probe's own check. The block holds
 * copies of the texts. On failure case_release. */
enum status case_options(struct bench_case *c, const struct assignment *a, size_t count, struct error *err);
enum status case_key(struct bench_case *c, struct error *err);
json_t *case_json(const struct bench_case *c, const struct machine *m); /* caller decrefs; NULL: no memory */

/* NULL: unknown. */
const struct probe *probe_by_name(const struct probe *const *registry, const char *name);
const struct engine *engine_by_name(const struct probe *p, const char *name);
#endif
