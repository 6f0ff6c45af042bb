/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that make a case, for planning and for the worker. */
#ifndef RUN_PLAN_CASE_BUILD_H
#define RUN_PLAN_CASE_BUILD_H
#include "run/probe.h"

struct assignment {
	const char *name, *value, *place; /* place: "file:line", the prefix of messages */
};

/* Sets the presets of the probe, then those of the case's engine, then these assignments, and runs the
 * probe's own check. The option block has copies of the texts. After a failure call case_release(). */
enum status case_options(struct bench_case *c, const struct assignment *a, size_t count, struct error *err);
enum status case_key(struct bench_case *c, struct error *err);
/* caller decrefs; NULL: out of memory */
json_t *case_json(const struct bench_case *c, const struct machine *m);

/* NULL: not found. */
const struct probe *probe_by_name(const struct probe *const *registry, const char *name);
const struct engine *engine_by_name(const struct probe *p, const char *name);
#endif
