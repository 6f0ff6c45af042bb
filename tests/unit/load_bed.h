/* SPDX-License-Identifier: Apache-2.0 */
/* Records of a load test that are made up, and the figures of them. */
#ifndef TESTS_UNIT_LOAD_BED_H
#define TESTS_UNIT_LOAD_BED_H
#include "test.h"

#include <math.h>

#include "core/math/random.h"
#include "load/measure/summary.h"

struct load_bed {
	struct load_records all;
	struct load_measure_spec spec;
	json_t *out;
};

static inline uint64_t ns_of(double s)
{
	return (uint64_t)llround(s * 1e9);
}

static inline double load_bed_uniform(uint64_t i)
{
	return (random_u32(11, 3, i) + 0.5) / 4294967296.0;
}

/* The window is from_s .. to_s. */
static inline void load_bed_open(struct load_bed *b, double from_s, double to_s, double offered)
{
	*b = (struct load_bed){.spec = {.from_ns = ns_of(from_s),
					.to_ns = ns_of(to_s),
					.offered = offered,
					.attainment = 0.99,
					.closed_loop = offered == 0}};
}

static inline void load_bed_close(struct load_bed *b)
{
	json_decref(b->out);
	load_records_release(&b->all);
}

/* A complete stream: one token each `gap_us`, the first one ttft_s after the send. Lent; may be changed. */
static inline struct load_record *load_bed_add(struct load_bed *b, double due_s, double ttft_s,
					       uint32_t gap_us, uint32_t tokens)
{
	const uint64_t due = ns_of(due_s), first = due + ns_of(ttft_s);
	const uint64_t last = first + 1000ull * gap_us * (tokens ? tokens - 1 : 0);
	struct load_record r = {
		.index = b->all.count,
		.session = (uint32_t)b->all.count,
		.scheduled_ns = due,
		.handed_ns = due,
		.connected_ns = due,
		.sent_ns = due,
		.first_byte_ns = first,
		.first_token_ns = first,
		.last_token_ns = last,
		.end_ns = last,
		.prompt_asked = 100,
		.output_asked = tokens,
		.prompt_usage = 100,
		.output_usage = tokens,
		.output_counted = tokens,
		.cached = 0,
		.chunks = tokens,
		.status = 200,
		.gap_count = tokens ? tokens - 1 : 0,
	};
	struct error err = {0};

	r.gap_us = malloc((tokens + 1) * sizeof(*r.gap_us));
	assert_non_null(r.gap_us);
	for (uint32_t i = 0; i < r.gap_count; i++)
		r.gap_us[i] = gap_us;
	assert_int_equal(load_records_add(&b->all, &r, &err), STATUS_OK);
	return &b->all.record[b->all.count - 1];
}

/* The request failed `after_s` after its send. */
static inline struct load_record *load_bed_fail(struct load_bed *b, double due_s, double after_s,
						enum load_error error)
{
	struct load_record *r = load_bed_add(b, due_s, after_s, 0, 0);

	r->first_byte_ns = r->first_token_ns = r->last_token_ns = LOAD_NEVER;
	r->prompt_usage = r->output_usage = r->output_counted = r->cached = LOAD_UNKNOWN;
	r->error = error;
	return r;
}

static inline void load_bed_measure(struct load_bed *b)
{
	json_decref(b->out);
	b->out = load_summary(&b->all, &b->spec);
	assert_non_null(b->out);
}

static inline bool load_bed_has(const struct load_bed *b, const char *name)
{
	return json_object_get(b->out, name) != NULL;
}

static inline double load_bed_value(const struct load_bed *b, const char *name)
{
	if (!load_bed_has(b, name))
		fail_msg("there is no %s", name);
	return json_number_value(json_object_get(b->out, name));
}

static inline void load_bed_expect(const struct load_bed *b, const char *name, double expected,
				   double tolerance)
{
	const double value = load_bed_value(b, name);

	if (!(fabs(value - expected) <= tolerance))
		fail_msg("%s is %.9g instead of %.9g", name, value, expected);
}
#endif
