/* SPDX-License-Identifier: Apache-2.0 */
/* The time that planning takes on this machine: 256 and 512 running requests, 10,000 waiting ones, a million
 * pages. Nothing is asserted about time, so that no verdict depends on the machine. */
#include <inttypes.h>
#include <stdlib.h>
#include <stdio.h>

#include "core/clock.h"
#include "engine/schedule/schedule.h"

enum { STEPS = 4000, PROMPT = 1000, TEXT = 1000, WAITING = 10000 };

static int compare(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void submit(struct schedule *s, uint64_t id, uint64_t now)
{
	int32_t prompt[PROMPT];
	struct engine_request q = {.id = id,
				   .client = id % 100,
				   .prompt = prompt,
				   .prompt_count = PROMPT,
				   .max_tokens = TEXT - id % 500,
				   .prompt_logprobs = -1,
				   .deadline_ns = now + 3600000000000};
	uint32_t number;
	struct error err = {0};

	for (int32_t i = 0; i < PROMPT; i++)
		prompt[i] = i < 200 ? i : (int32_t)(id * 31 + i * 7) & 0xffff;
	if (schedule_submit(s, &q, 0, now, &number, &err)) {
		fprintf(stderr, "%s\n", err.text);
		exit(1);
	}
}

static void print(const char *what, double *us, int32_t count)
{
	double sum = 0;

	for (int32_t i = 0; i < count; i++)
		sum += us[i];
	qsort(us, count, sizeof *us, compare);
	printf("# %s: mean %.1f us, median %.1f us, 99 %% %.1f us, most %.1f us\n", what, sum / count,
	       us[count / 2], us[count * 99 / 100], us[count - 1]);
}

static void measure(int32_t places, int64_t pages)
{
	const struct schedule_options o = {.pages = {pages, 32, 1},
					   .places = places,
					   .requests_most = WAITING + places,
					   .plans_most = 2,
					   .rows_most = 8192,
					   .logits_most = 8192,
					   .context = 32768,
					   .cost = {2000000, 22000, 0.5, 1000},
					   .budget_ns = 30000000,
					   .budget_idle_ns = 180000000,
					   .bypass_most = 16,
					   .age_ns = 10000000000};
	static struct schedule_result results[SCHEDULE_PLACES_MOST];
	static double plan_us[STEPS], done_us[STEPS];
	const int32_t token = 5;
	struct schedule *s;
	struct schedule_event event;
	struct error err = {0};
	uint64_t id = 0, now = 1;
	int64_t entries = 0;

	if (schedule_create(&s, &o, &err)) {
		fprintf(stderr, "%s\n", err.text);
		exit(1);
	}
	for (int32_t step = -2000; step < STEPS; step++) {
		const struct schedule_plan *plan;
		double t0, t1, t2;

		while (schedule_facts(s).waiting < WAITING)
			submit(s, ++id, now);
		t0 = clock_now_s();
		plan = schedule_plan(s, now, 1);
		t1 = clock_now_s();
		for (int32_t i = 0; i < plan->count; i++)
			results[i] = (struct schedule_result){
				&token, plan->entries[i].most, SCHEDULE_CONTINUES, true, 0, 0};
		now += plan->predicted_ns;
		t2 = clock_now_s();
		if (step >= 0)
			entries += plan->count;
		schedule_done(s, results, plan->count, now, &err);
		if (step >= 0) {
			plan_us[step] = (t1 - t0) * 1e6;
			done_us[step] = (clock_now_s() - t2) * 1e6;
		}
		while (schedule_event(s, &event))
			;
	}
	printf("# %" PRId32 " places, %" PRId64 " pages, %d waiting, %.0f entries a plan, %" PRIu64
	       " preemptions, %" PRIu64 " evictions\n",
	       places, pages, WAITING, (double)entries / STEPS, schedule_facts(s).preemptions,
	       schedule_facts(s).pages.evicted);
	print("schedule_plan", plan_us, STEPS);
	print("schedule_done", done_us, STEPS);
	schedule_free(&s);
}

int main(void)
{
	printf("1..1\n");
	measure(256, 62500);
	measure(512, 1000000);
	measure(512, 30000);
	printf("ok 1 - planning time\n");
	return 0;
}
