/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Latencies of the scheduler by simulation: requests arrive, and each step takes the time that a model of the
 * device gives. docs/explanation/design/engine.md, "Scheduler", has figures that were made with it.
 *
 *   schedule_latency RATE|users:N|@FILE SECONDS [mixed=N] [few=N] [prompt=N] [backlog=N] [every=N]
 *                    [budget_ms=N] [backlog_ms=N] [input=N]
 *
 * RATE: requests per second of a Poisson process. users:N: N users, who send the next request as soon as the
 * answer is complete. @FILE: nanoseconds since the first request, one per line. Each request has INPUT (1000)
 * tokens and OUTPUT (250) new ones. The first and last 4 s do not count. One line of JSON.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/math/stats.h"
#include "engine/schedule/schedule.h"
#include "engine/step/step_cost.h"

enum { OUTPUT = 250, INPUT_MOST = 8192, PLACES = 512, REQUESTS_MOST = 200000, STEPS_HOT = 40 };
#define SECOND 1e9
#define EDGE (4 * SECOND)

/* Qwen2-7B's shape in BF16 on one H200 (results/2026-11-30-h200-x2). */
static const double decode_ns = 4.0e6, decode_row_ns = 31e3;
static const double prompt_ns = 3.3e6, row_ns = 16.6e3, beside_ns = 21e3, rows_together = 128;
static const double outside_ns = 2e6; /* of a first token in the front end and at the client */
/* The clock falls if the last 100 ms were full of steps with prompts. */
static const double hot_ns = 0.1 * SECOND, hot_share = 0.13;

struct asked {
	double due, first, last; /* ns; 0: not yet */
	int made;
};

struct hot_step {
	double end, took;
};

struct world {
	struct schedule *s;
	struct asked asked[REQUESTS_MOST];
	int count, next, users, input;
	double seconds, now;
	int32_t prompt[INPUT_MOST];
	struct hot_step hot[STEPS_HOT];
	int hots;
	double *gap; /* ms */
	size_t gaps, room;
};

static void die(const char *why)
{
	fprintf(stderr, "schedule_latency: %s\n", why);
	exit(2);
}

static double draw(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return ((double)((z ^ z >> 31) >> 11) + 0.5) * 0x1p-53;
}

static void add_due(struct world *w, double due)
{
	if (w->count == REQUESTS_MOST)
		die("too many requests");
	w->asked[w->count++].due = due;
}

static void read_dues(struct world *w, const char *path)
{
	FILE *f = fopen(path, "r");
	double due;

	if (!f)
		die("cannot open the file of arrivals");
	while (fscanf(f, "%lf", &due) == 1)
		add_due(w, due);
	fclose(f);
}

static void arrivals(struct world *w, const char *how)
{
	uint64_t random = 7;

	if (*how == '@') {
		read_dues(w, how + 1);
	} else if (!strncmp(how, "users:", 6)) {
		w->users = (int)strtol(how + 6, NULL, 10);
		for (int i = 0; i < w->users; i++)
			add_due(w, 0);
	} else {
		const double rate = strtod(how, NULL);

		if (!(rate > 0))
			die("no rate of requests");
		for (double due = 0; due < w->seconds * SECOND; due -= log(draw(&random)) / rate * SECOND)
			add_due(w, due);
	}
	if (!w->count)
		die("no requests");
}

static void submit_due(struct world *w, double until)
{
	struct error err = {0};
	uint32_t number;

	for (; w->next < w->count && w->asked[w->next].due <= until; w->next++) {
		const struct engine_request r = {.id = (uint64_t)w->next + 1,
						 .adapter = -1,
						 .prompt = w->prompt,
						 .prompt_count = (size_t)w->input,
						 .max_tokens = OUTPUT,
						 .sampling = {.repetition = 1},
						 .logprobs = -1,
						 .prompt_logprobs = -1,
						 .cache_salt = (uint64_t)w->next + 1};

		if (schedule_submit(w->s, &r, 0, (uint64_t)w->asked[w->next].due + 1, &number, &err))
			die(err.text);
	}
}

static double hot(const struct world *w)
{
	double sum = 0;

	for (int i = 0; i < STEPS_HOT; i++)
		if (w->hot[i].end > w->now - hot_ns)
			sum += w->hot[i].took;
	return fmin(sum / hot_ns, 1);
}

static double time_of(const struct world *w, const struct schedule_plan *plan)
{
	const double rows = ceil(plan->rows / rows_together) * rows_together;

	if (plan->rows == plan->decodes)
		return decode_ns + decode_row_ns * plan->decodes;
	return (prompt_ns + row_ns * rows + beside_ns * plan->decodes) * (1 + hot_share * hot(w));
}

static void note_gap(struct world *w, double ms)
{
	if (w->gaps == w->room) {
		w->room = w->room ? 2 * w->room : 1 << 20;
		w->gap = realloc(w->gap, w->room * sizeof(*w->gap));
		if (!w->gap)
			die("no memory");
	}
	w->gap[w->gaps++] = ms;
}

static void note_token(struct world *w, struct asked *a)
{
	if (!a->made++)
		a->first = w->now;
	else if (w->now > EDGE && w->now < w->seconds * SECOND - EDGE)
		note_gap(w, (w->now - a->last) / 1e6);
	a->last = w->now;
}

/* The running step has ended. */
static void settle(struct world *w, const struct schedule_plan *plan, double took)
{
	static struct schedule_result results[SCHEDULE_PLACES_MOST];
	static uint64_t id[SCHEDULE_PLACES_MOST];
	const int32_t token = 7, count = plan->count;
	struct schedule_event event;
	struct error err = {0};

	if (plan->rows > plan->decodes)
		w->hot[w->hots++ % STEPS_HOT] = (struct hot_step){w->now, took};
	for (int32_t i = 0; i < count; i++) {
		const struct schedule_entry *e = &plan->entries[i];

		id[i] = e->id;
		results[i] = (struct schedule_result){.tokens = &token, .count = e->samples, .finite = true};
	}
	if (schedule_done(w->s, results, count, (uint64_t)w->now + 1, &err))
		die(err.text);
	for (int32_t i = 0; i < count; i++)
		if (results[i].taken)
			note_token(w, &w->asked[id[i] - 1]);
	while (schedule_event(w->s, &event))
		if (event.kind == SCHEDULE_EVENT_ENDED && w->users && w->now < w->seconds * SECOND)
			add_due(w, w->now + 1e6);
}

/* Nanoseconds after the begin of a step at which the next one is planned. */
static double hold_of(double took)
{
	const struct step_cost cost = {.fixed = 1, .rows = 1};
	const struct step_prediction exact = {.fixed_ns = took};

	return (double)step_cost_hold_ns(&cost, &exact, step_cost_share(1, 1, 1));
}

static void simulate(struct world *w)
{
	const struct schedule_plan *running = NULL, *next;
	double end = 0, took;

	for (;;) {
		if (!running) {
			submit_due(w, w->now);
			running = schedule_plan(w->s, (uint64_t)w->now + 1, 1);
			if (!running && w->next == w->count)
				return;
			if (!running) {
				w->now = w->asked[w->next].due;
				continue;
			}
			end = w->now + time_of(w, running);
		}
		took = end - w->now;
		submit_due(w, w->now + hold_of(took));
		next = schedule_plan(w->s, (uint64_t)(w->now + hold_of(took)) + 1, 1);
		w->now = end;
		settle(w, running, took);
		running = next;
		end = running ? w->now + time_of(w, running) : 0;
	}
}

static void print_part(const char *name, double *x, size_t count)
{
	stats_sort(x, count);
	printf(", \"%s_p50_ms\": %.2f, \"%s_p90_ms\": %.2f, \"%s_p99_ms\": %.2f", name,
	       stats_percentile(x, count, 0.5), name, stats_percentile(x, count, 0.9), name,
	       stats_percentile(x, count, 0.99));
}

static void report(struct world *w)
{
	double *ttft = calloc((size_t)w->count, sizeof(*ttft)), *e2e = calloc((size_t)w->count, sizeof(*e2e)),
	       sum = 0;
	size_t count = 0;

	if (!ttft || !e2e)
		die("no memory");
	for (int i = 0; i < w->count; i++) {
		const struct asked *a = &w->asked[i];

		if (a->due < EDGE || a->due > w->seconds * SECOND - EDGE || a->made != OUTPUT)
			continue;
		ttft[count] = (a->first - a->due + outside_ns) / 1e6;
		e2e[count] = (a->last - a->due) / 1e6;
		sum += e2e[count++];
	}
	if (!count || !w->gaps)
		die("no request counts: give more seconds");
	printf("{\"requests\": %zu", count);
	print_part("ttft", ttft, count);
	print_part("itl", w->gap, w->gaps);
	print_part("e2e", e2e, count);
	if (w->users)
		printf(", \"requests_per_s\": %.2f", w->users / (sum / (double)count / 1e3));
	printf("}\n");
	free(ttft);
	free(e2e);
	free(w->gap);
}

/* The value of an argument such as mixed=1024. */
static double value(int argc, char **argv, const char *name, double otherwise)
{
	const size_t length = strlen(name);

	for (int i = 3; i < argc; i++)
		if (!strncmp(argv[i], name, length) && argv[i][length] == '=')
			return strtod(argv[i] + length + 1, NULL);
	return otherwise;
}

int main(int argc, char **argv)
{
	struct schedule_options o = {.pages = {60000, 32, 1},
				     .places = PLACES,
				     .requests_most = 20000,
				     .plans_most = 2,
				     .rows_most = 8192,
				     .logits_most = 1024,
				     .context = INPUT_MOST + OUTPUT,
				     .cost = {prompt_ns, row_ns, 0, beside_ns},
				     .budget_idle_ns = 60e6,
				     .bypass_most = 16,
				     .age_ns = 10000000000u};
	struct world *w = calloc(1, sizeof(*w));
	struct error err = {0};

	if (argc < 3 || !w) {
		fprintf(stderr,
			"usage: schedule_latency RATE|users:N|@FILE SECONDS [mixed=N] [few=N] [prompt=N] [backlog=N] [every=N] [budget_ms=N] [backlog_ms=N] [input=N]\n");
		return 64;
	}
	w->seconds = strtod(argv[2], NULL);
	w->input = (int)value(argc, argv, "input", 1000);
	schedule_mixed_on_gpu(&o);
	o.mixed_rows = (int32_t)value(argc, argv, "mixed", o.mixed_rows);
	o.mixed_few = (int32_t)value(argc, argv, "few", o.mixed_few);
	o.mixed_prompt_rows = (int32_t)value(argc, argv, "prompt", o.mixed_prompt_rows);
	o.backlog_rows = (int32_t)value(argc, argv, "backlog", 0);
	o.backlog_every = (int32_t)value(argc, argv, "every", o.backlog_every);
	o.budget_ns = 1e6 * value(argc, argv, "budget_ms", 30);
	o.budget_backlog_ns = 1e6 * value(argc, argv, "backlog_ms", 150);
	if (w->input < 1 || w->input > INPUT_MOST)
		die("input is not 1 to 8192 tokens");
	for (int i = 0; i < INPUT_MOST; i++)
		w->prompt[i] = i + 5;
	arrivals(w, argv[1]);
	if (schedule_create(&w->s, &o, &err))
		die(err.text);
	simulate(w);
	report(w);
	schedule_free(&w->s);
	free(w);
	return 0;
}
