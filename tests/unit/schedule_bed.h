/* SPDX-License-Identifier: Apache-2.0 */
/* A scheduler and the least that a test of one rule needs around it. Tokens of texts are 1000, 1001, .. */
#ifndef TESTS_UNIT_SCHEDULE_BED_H
#define TESTS_UNIT_SCHEDULE_BED_H
#include "test.h"

#include "engine/schedule/schedule.h"

enum { P = 16, MS = 1000000 };

static const struct schedule_options bed_options = {
	.pages = {1001, P, 1},
	.places = 8,
	.requests_most = 64,
	.plans_most = 4,
	.rows_most = 1024,
	.logits_most = 256,
	.context = 4096,
	.cost = {1 * MS, 10000, 0, 0},
	.budget_ns = 5 * MS,
	.budget_idle_ns = 20 * MS,
};

static inline struct schedule *bed_open(const struct schedule_options *o)
{
	struct schedule *s;
	struct error err = {0};

	if (schedule_create(&s, o, &err))
		fail_msg("%s", err.text);
	return s;
}

static inline void bed_check(struct schedule *s)
{
	struct error err = {0};

	if (schedule_check(s, &err))
		fail_msg("%s", err.text);
}

/* A prompt of `count` tokens that differs from others in its first token. */
static inline struct engine_request bed_request(uint64_t id, size_t count, int64_t max_tokens)
{
	static int32_t prompts[64][4096];
	int32_t *prompt = prompts[id % 64];

	for (size_t i = 0; i < count; i++)
		prompt[i] = i ? 1 : (int32_t)id;
	return (struct engine_request){.id = id, .prompt = prompt, .prompt_count = count, .max_tokens = max_tokens,
				       .prompt_logprobs = -1};
}

static inline uint32_t bed_submit(struct schedule *s, const struct engine_request *q, uint64_t now)
{
	struct error err = {0};
	uint32_t number;

	if (schedule_submit(s, q, 0, now, &number, &err))
		fail_msg("%s", err.text);
	return number;
}

/* A result for each entry as a step without surprises gives it. */
static inline struct schedule_result *bed_results(const struct schedule_plan *plan)
{
	static struct schedule_result results[64];
	static int32_t tokens[SCHEDULE_AT_ONCE_MOST];

	for (int32_t i = 0; i < SCHEDULE_AT_ONCE_MOST; i++)
		tokens[i] = 1000 + i;
	for (int32_t i = 0; i < plan->count; i++)
		results[i] = (struct schedule_result){
			.tokens = tokens, .count = plan->entries[i].most, .finite = true};
	return results;
}

static inline void bed_done(struct schedule *s, struct schedule_result *results, uint64_t now)
{
	struct error err = {0};

	if (schedule_done(s, results, schedule_oldest(s)->count, now, &err))
		fail_msg("%s", err.text);
	bed_check(s);
}

/* One step from plan to results. False: there was nothing to do. */
static inline bool bed_step(struct schedule *s, uint64_t now)
{
	const struct schedule_plan *plan = schedule_plan(s, now, 1);

	bed_check(s);
	if (plan)
		bed_done(s, bed_results(plan), now);
	return plan;
}

/* The entry of a request in a plan; NULL: none. */
static inline const struct schedule_entry *bed_entry(const struct schedule_plan *plan, uint64_t id)
{
	for (int32_t i = 0; plan && i < plan->count; i++)
		if (plan->entries[i].id == id)
			return plan->entries + i;
	return NULL;
}

/* Takes all events out. Returns the end of request `id`, or -1; *end: the event. */
static inline int bed_end(struct schedule *s, uint64_t id, struct schedule_event *end)
{
	struct schedule_event e;
	int found = -1;

	if (end)
		*end = (struct schedule_event){.text = ""};
	while (schedule_event(s, &e)) {
		if (e.id != id || e.kind != SCHEDULE_EVENT_ENDED)
			continue;
		assert_int_equal(found, -1);
		found = e.end;
		if (end)
			*end = e;
	}
	return found;
}
#endif
