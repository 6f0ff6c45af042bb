/* SPDX-License-Identifier: Apache-2.0 */
/* Probes, a machine and a suite of the test's own, and the plan they come to. */
#ifndef TESTS_PLAN_BED_H
#define TESTS_PLAN_BED_H
#include <math.h>
#include "core/text/text.h"
#include "run/probe.h"
#include "run/plan/memory_need.h"
#include "run/suite/suite.h"
#include "run/suite/target.h"
#include "fake_machine.h"
#include "scratch.h"

/* A probe with two engines: "fast" runs on CPUs unless size is 13, "big" on both but lacks its library at
 * size 7. */
struct opts {
	uint64_t size;
	uint32_t kind;
	const char *path, *numa;
	bool deep;
};
static const char *const kinds[] = {"red", "green", NULL};
static const struct opt rows[] = {
	OPT_ROW(struct opts, size, .name = "size", .preset = "4KiB", .unit = "B", .min = 1, .max = 1e9,
		.help = "size"),
	OPT_ROW(struct opts, kind, .name = "kind", .preset = "red", .choices = kinds, .help = "kind"),
	OPT_ROW(struct opts, path, .name = "path", .help = "path"),
	OPT_ROW(struct opts, deep, .name = "deep", .help = "deep"),
	OPT_ROW(struct opts, numa, .name = "numa", .help = "numa"),
};
static const struct field fields[] = {{"depth", "m", "how deep", FIELD_F64, 1}};

static inline enum status fast_supports(const struct machine *m, const struct target *t, const void *opts,
					struct error *err)
{
	(void)m, (void)t;
	if (((const struct opts *)opts)->size == 99)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "fast: 99 is more than half of the memory");
	if (((const struct opts *)opts)->size == 14)
		return error_set(err, STATUS_UNSUPPORTED, "thing: not so many");
	return ((const struct opts *)opts)->size == 13
		       ? error_set(err, STATUS_UNSUPPORTED, "fast: no odd sizes")
		       : STATUS_OK;
}

static inline enum status big_supports(const struct machine *m, const struct target *t, const void *opts,
				       struct error *err)
{
	uint64_t size = ((const struct opts *)opts)->size;

	(void)m, (void)t;
	if (size == 14)
		return error_set(err, STATUS_UNSUPPORTED, "thing: this machine has no units");
	return size == 7 || size == 13 ? error_set_cause(err, STATUS_UNAVAILABLE, CAUSE_LIBRARY_MISSING,
							 "libbig.so is not here")
				       : STATUS_OK;
}

static inline enum status check(const void *opts, struct error *err)
{
	return ((const struct opts *)opts)->size == 666
		       ? error_set(err, STATUS_BAD_INPUT, "size 666 never fits")
		       : STATUS_OK;
}

static inline struct work work(const struct machine *m, const struct target *t, const void *opts)
{
	(void)m, (void)t;
	return (struct work){.read_bytes = (double)((const struct opts *)opts)->size, .limit = "memory"};
}

static const struct engine fast = {
	.name = "fast", .libs = "", .targets = TARGET_CPU, .supports = fast_supports};
static const struct engine big = {.name = "big",
				  .libs = "big",
				  .targets = TARGET_CPU | TARGET_GPU,
				  .streams = 1,
				  .supports = big_supports};
static const struct engine *const engines[] = {&fast, &big, NULL};
static const struct probe thing = {
	.name = "thing",
	.kind = PROBE_TIMED,
	.opts = {rows, 5, sizeof(struct opts)},
	.engines = engines,
	.work = work,
	.check = check,
	.fields = fields,
	.field_count = 1,
};
/* A probe that says what memory it needs. */
static struct need wanted;

static inline void need(const struct machine *m, const struct target *t, const void *opts, struct need *out)
{
	(void)m, (void)t, (void)opts;
	*out = wanted;
}

static const struct probe hungry = {
	.name = "hungry",
	.kind = PROBE_TIMED,
	.opts = {rows, 5, sizeof(struct opts)},
	.engines = engines,
	.work = work,
	.need = need,
};
/* A probe between two GPUs. */
static const struct engine across = {.name = "across", .libs = "big", .targets = TARGET_PAIR, .streams = 1};
static const struct engine *const pair_engines[] = {&across, NULL};
static const struct probe wire = {
	.name = "wire",
	.kind = PROBE_TIMED,
	.opts = {rows, 5, sizeof(struct opts)},
	.engines = pair_engines,
	.work = work,
};
/* A probe of several ranks: a GPU each, by a library that may be missing here, or a process each. */
static bool joint_missing;

static inline enum status joint_supports(const struct machine *m, const struct target *t, const void *opts,
					 struct error *err)
{
	(void)m, (void)t, (void)opts;
	return joint_missing ? error_set_cause(err, STATUS_UNAVAILABLE, CAUSE_LIBRARY_MISSING,
					       "libjoint.so is not here")
			     : STATUS_OK;
}

static const struct engine joint = {.name = "joint",
				    .libs = "big",
				    .targets = TARGET_NODE | TARGET_TEAM,
				    .streams = 1,
				    .supports = joint_supports};
static const char *const crowd_presets[][2] = {{"kind", "green"}, {NULL, NULL}};
static const struct engine crowd = {.name = "crowd",
				    .libs = "",
				    .targets = TARGET_NODE | TARGET_TEAM,
				    .presets = crowd_presets,
				    .launched = true};
static const struct engine *const rank_engines[] = {&joint, &crowd, NULL};
static const struct probe ring = {
	.name = "ring",
	.kind = PROBE_TIMED,
	.opts = {rows, 5, sizeof(struct opts)},
	.engines = rank_engines,
	.work = work,
};
static const struct probe ecc = {.name = "ecc", .kind = PROBE_READING, .reads = TARGET_GPU};
static const struct probe limits = {.name = "limits", .kind = PROBE_READING, .reads = TARGET_NODE};
static const struct probe *const registry[] = {&ecc, &limits, &thing, &hungry, &wire, &ring, NULL};

static struct machine machine;
static struct plan plan;
static struct error err;

static inline enum status build_with(const char *cases, const struct plan_options *wishes)
{
	struct text t = {0};
	struct suite *s = NULL;
	enum status st;

	err = (struct error){0};
	plan = (struct plan){0};
	text_addf(&t, "name: tiny\ncases:\n%s", cases);
	st = suite_parse(&s, "tiny.yaml", t.data, t.size, &err);
	text_release(&t);
	if (!st)
		st = plan_build(&plan, s, &machine, registry, wishes, &err);
	suite_free(s);
	return st;
}

static inline enum status build(const char *cases)
{
	return build_with(cases, NULL);
}

static inline const struct bench_case *nth(size_t n)
{
	for (size_t i = 0; i < plan.count; i++) {
		if (n < plan.steps[i].count)
			return &plan.steps[i].cases[n];
		n -= plan.steps[i].count;
	}
	fail_msg("no such case");
	abort(); /* the line above does not come back */
}

static inline void expect(size_t n, const char *key, const char *target, enum status skip, enum cause cause)
{
	assert_string_equal(nth(n)->key, key);
	assert_string_equal(nth(n)->target_text, target);
	assert_int_equal(nth(n)->skip, skip);
	assert_int_equal(nth(n)->skip_cause, cause);
	assert_int_equal(nth(n)->id, n);
	assert_true(!skip || *nth(n)->skip_reason);
}

static inline int setup(void **state)
{
	(void)state;
	fake_machine_init(&machine, 0);
	joint_missing = false;
	return 0;
}
#endif
