/* SPDX-License-Identifier: Apache-2.0 */
/* One case of probe null, measured under a clock of the test's own, with everything that it emitted. */
#ifndef TESTS_PHASES_BED_H
#define TESTS_PHASES_BED_H
#include "run/timing/phases.h"
#include <math.h>
#include "fake_clock.h"
#include "probe/registry.h"
#include "scratch.h"

extern const struct probe probe_null;

/* Everything that one case emitted, by type. */
struct seen {
	char order[4096];      /* "prepare cold verify .." of `at` */
	json_t *values;	       /* phase -> values */
	json_t *batch;	       /* phase -> batch of its samples */
	json_t *count;	       /* phase -> samples */
	json_t *first;	       /* phase -> first sample, ns */
	json_t *t0, *t1;       /* phase -> ns */
	sig_atomic_t *stop_in; /* set in the phase named `stop_at` */
	const char *stop_at;
};

static inline void put(json_t *table, const char *key, json_t *value)
{
	json_object_set_new(table, key, value);
}

static inline enum status see(void *arg, const char *type, const json_t *body, struct error *err)
{
	struct seen *s = arg;
	const char *phase = json_string_value(json_object_get(body, "phase"));
	const json_t *ns = json_object_get(body, "ns");
	size_t used = strlen(s->order);

	(void)err;
	assert_int_equal(json_integer_value(json_object_get(body, "case")), 5);
	if (!strcmp(type, "at")) {
		snprintf(s->order + used, sizeof(s->order) - used, "%s%s", used ? " " : "", phase);
		if (s->stop_at && !strcmp(phase, s->stop_at))
			*s->stop_in = 1;
	} else if (!strcmp(type, "ready")) {
		snprintf(s->order + used, sizeof(s->order) - used, " READY");
	} else if (!strcmp(type, "phase")) {
		put(s->t0, phase, json_incref(json_object_get(body, "t0")));
		put(s->t1, phase, json_incref(json_object_get(body, "t1")));
	} else if (!strcmp(type, "samples")) {
		json_int_t before = json_integer_value(json_object_get(s->count, phase));

		put(s->batch, phase, json_incref(json_object_get(body, "batch")));
		put(s->count, phase, json_integer(before + (json_int_t)json_array_size(ns)));
		if (!before)
			put(s->first, phase, json_incref(json_array_get(ns, 0)));
		assert_true(json_array_size(ns) <= 4096);
	} else if (!strcmp(type, "result")) {
		json_t *values = json_object_get(s->values, phase);

		if (values)
			json_object_update(values, json_object_get(body, "values"));
		else
			put(s->values, phase, json_deep_copy(json_object_get(body, "values")));
	} else {
		fail_msg("an event of type %s", type);
	}
	return STATUS_OK;
}

struct bed {
	struct fake_clock fake;
	struct seen seen;
	volatile sig_atomic_t stop;
	struct measure w;
	struct bench_case c;
	void *opts;
	struct error err;
	enum status status;
};

static inline void bed_init(struct bed *b, enum phases phases, double seconds)
{
	struct error err = {0};

	*b = (struct bed){.seen = {.values = json_object(),
				   .batch = json_object(),
				   .count = json_object(),
				   .first = json_object(),
				   .t0 = json_object(),
				   .t1 = json_object()}};
	fake_clock_init(&b->fake, 1000000000);
	b->opts = calloc(1, probe_null.opts.size);
	assert_int_equal(opt_defaults(&probe_null.opts, b->opts, &err), STATUS_OK);
	b->seen.stop_in = (sig_atomic_t *)(uintptr_t)&b->stop;
	b->w = (struct measure){
		.seed = 7, .clock = &b->fake.clock, .stop = &b->stop, .emit = {see, &b->seen}};
	b->c = (struct bench_case){
		.id = 5,
		.key = (char *)(uintptr_t) "null",
		.probe = &probe_null,
		.engine = probe_null.engines[0],
		.opts = b->opts,
		.target = {.kind = TARGET_CPU, .numa = -1},
		.target_text = "cpu",
		.phases = phases,
		.seconds = seconds,
	};
}

static inline void bed_set(struct bed *b, const char *name, const char *value)
{
	struct error err = {0};

	assert_int_equal(opt_set(&probe_null.opts, b->opts, name, value, "test", &err), STATUS_OK);
}

static inline void bed_run(struct bed *b)
{
	b->status = measure_case(&b->w, &b->c, &b->err);
	measure_release(&b->w);
}

static inline void bed_release(struct bed *b)
{
	struct seen *s = &b->seen;

	json_decref(s->values);
	json_decref(s->batch);
	json_decref(s->count);
	json_decref(s->first);
	json_decref(s->t0);
	json_decref(s->t1);
	free(b->opts);
}

static inline double value(const struct bed *b, const char *phase, const char *field)
{
	const json_t *v = json_object_get(json_object_get(b->seen.values, phase), field);

	return json_is_number(v) ? json_number_value(v) : -1;
}

static inline const char *text(const struct bed *b, const char *phase, const char *field)
{
	return json_string_value(json_object_get(json_object_get(b->seen.values, phase), field));
}

static inline json_int_t whole(const json_t *table, const char *phase)
{
	return json_integer_value(json_object_get(table, phase));
}

static inline double length_s(const struct bed *b, const char *phase)
{
	return (double)(whole(b->seen.t1, phase) - whole(b->seen.t0, phase)) * 1e-9;
}

static inline void near(double found, double expected, double share)
{
	if (!(fabs(found - expected) <= share * fabs(expected)))
		fail_msg("found %.17g, expected %.17g within %g", found, expected, share);
}
#endif
