/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times of the inference engine without a server, measured as the peers' script does (two lengths of text,
 * and their difference): a decode step at several batch sizes, prefill, and many requests at once.
 *
 *   time_engine MODEL auto|cpu|gpu WHAT[,WHAT..]
 *
 * WHAT: bN (decode step at batch N, 512 tokens of prompt, 128 steps; b1: 128 and 256), b1t (the same at
 * temperature 0.7 and top-p 0.9), both (the decode step at batch 1 by the persistent kernel and by the
 * ordinary step, in turns; later steps use the faster one), dN (N sequences of 16 tokens make 200 each: for
 * profiles of decode steps), mN (a step of N decoding sequences and as many rows of a prompt as fill
 * MIXED_ROWS), pre (32 prompts of 4096 tokens), off (1024 requests of 1000 tokens, 1000 new ones each), smoke
 * (8 short ones). One line of JSON each. Set in the environment: SEQUENCES, ROWS, STEP_MS, MIXED_ROWS,
 * CACHE_FP8, WEIGHTS_FP8, LIBRARY_GEMM, NO_TUNING, DETERMINISTIC, and for `both` ROUNDS (5), STEPS (256) and
 * PROMPT (128 tokens).
 * ADAPTERS=DIR:DIR..: sequences use these adapters in turns; with NO_ADAPTER=1 they are loaded, but no
 * sequence uses one. ADAPTERS_HOW: apart, chosen (the default) or fused.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/clock.h"
#include "core/math/stats.h"
#include "engine/engine.h"
#include "engine/load/load.h"
#include "model/decoder/paged_step.h"
#include "model/gpu/backend.h"

enum { CONTEXT = 8192, SEQUENCES = 512, ROUNDS_MOST = 100, BEFORE = 16 };

struct bench {
	struct engine *e;
	uint32_t state; /* of the random ids */
	uint64_t id;
	float temperature, top_p;
	int adapters;  /* that sequences use in turns */
	uint64_t salt; /* so that no run finds the pages of another one */
};

static double now_s(void)
{
	return (double)clock_now_ns(clock_monotonic()) * 1e-9;
}

static int32_t random_id(struct bench *b, int64_t vocab)
{
	b->state = b->state * 1664525u + 1013904223u;
	return (int32_t)(100 + (b->state >> 8) % (uint32_t)(vocab - 200));
}

static void must(enum status st, const struct error *err)
{
	if (!st)
		return;
	fprintf(stderr, "time_engine: %s\n", err->text);
	exit(1);
}

static void submit(struct bench *b, int count, int prompt, int made)
{
	const int64_t vocab = engine_loaded(b->e)->weights.shape.vocab;
	int32_t *ids = malloc((size_t)prompt * sizeof(*ids));
	struct error err = {0};

	b->salt++;
	for (int i = 0; i < count; i++) {
		const struct engine_request r = {
			.id = b->id++,
			.adapter = b->adapters ? i % b->adapters : -1,
			.prompt = ids,
			.prompt_count = (size_t)prompt,
			.max_tokens = made,
			.sampling = {.temperature = b->temperature,
				     .top_p = b->top_p,
				     .repetition = 1,
				     .seed = b->id},
			.logprobs = -1,
			.prompt_logprobs = -1,
			.cache_salt = b->salt,
		};

		for (int k = 0; k < prompt; k++)
			ids[k] = random_id(b, vocab);
		must(engine_submit(b->e, &r, &err), &err);
	}
	free(ids);
}

/* Steps until `count` requests have ended. */
static void step_until(struct bench *b, int count, double begin, double *first_s)
{
	struct error err = {0};
	bool idle = false;

	for (int ended = 0; ended < count;) {
		const struct engine_event *event;
		size_t events;

		must(engine_step(b->e, &idle, &err), &err);
		events = engine_events(b->e, &event);
		for (size_t i = 0; i < events; i++) {
			if (event[i].kind == ENGINE_EVENT_TOKEN && *first_s == 0)
				*first_s = now_s() - begin;
			if (event[i].kind != ENGINE_EVENT_END)
				continue;
			ended++;
			if (event[i].end != ENGINE_END_LENGTH) {
				fprintf(stderr, "time_engine: a request ended with %d: %s\n",
					(int)event[i].end, event[i].text);
				exit(1);
			}
		}
	}
}

/* Seconds for `count` requests of `prompt` tokens, `made` new ones each. */
static double run(struct bench *b, int count, int prompt, int made, double *first_s)
{
	const double begin = now_s();

	*first_s = 0;
	submit(b, count, prompt, made);
	step_until(b, count, begin, first_s);
	return now_s() - begin;
}

/* A step of `count` decoding sequences and of pieces of a long prompt. */
static void mixed(struct bench *b, const char *name, int count, int mixed_rows)
{
	enum { PROMPT = 7000, MADE = 700 };
	double first = 0, begin, s, least = 1e30;
	struct error err = {0};
	uint64_t steps = 0;
	bool idle;

	submit(b, count, 512, MADE);
	for (int i = 0; i < 100; i++)
		must(engine_step(b->e, &idle, &err), &err);
	for (int i = 0; i < 3; i++) {
		steps = engine_facts(b->e).steps;
		begin = now_s();
		submit(b, 1, PROMPT, 1);
		step_until(b, 1, begin, &first);
		s = now_s() - begin;
		steps = engine_facts(b->e).steps - steps;
		least = fmin(least, s / (double)steps);
	}
	printf("{\"what\": \"%s\", \"decoding\": %d, \"mixed_rows\": %d, \"steps\": %llu, \"step_ms\": %.3f}\n",
	       name, count, mixed_rows, (unsigned long long)steps, least * 1e3);
	fflush(stdout);
	step_until(b, count, 0, &first);
}

/* The time of a step is what the fastest long run takes beyond the fastest short one. The least of the
 * differences would be too short, because it comes from a slow short run. */
static void decode(struct bench *b, const char *name, int count, int prompt, int steps)
{
	double first, brief = 1e30, whole = 1e30, best;

	run(b, count, prompt, 16, &first); /* graphs and plans are made */
	for (int i = 0; i < 3; i++) {
		brief = fmin(brief, run(b, count, prompt, 16, &first));
		whole = fmin(whole, run(b, count, prompt, 16 + steps, &first));
	}
	best = (whole - brief) / steps;
	printf("{\"what\": \"%s\", \"batch\": %d, \"context\": %d, \"step_ms\": %.3f, \"tokens_per_s\": %.0f}\n",
	       name, count, prompt, best * 1e3, count / best);
	fflush(stdout);
}

/* Seconds of a decode step at batch 1: `steps` steps after the first BEFORE tokens. */
static double single_step(struct bench *b, int prompt, int steps)
{
	const struct engine_event *event;
	struct error err = {0};
	double begin = 0, end = 0;
	int tokens = 0;
	bool idle;

	submit(b, 1, prompt, BEFORE + steps);
	while (tokens < BEFORE + steps) {
		size_t events;

		must(engine_step(b->e, &idle, &err), &err);
		events = engine_events(b->e, &event);
		for (size_t i = 0; i < events; i++)
			tokens += event[i].kind == ENGINE_EVENT_TOKEN;
		end = now_s();
		begin = begin == 0 && tokens >= BEFORE ? end : begin;
	}
	for (idle = false; !idle;)
		must(engine_step(b->e, &idle, &err), &err);
	engine_events(b->e, &event);
	return (end - begin) / steps;
}

static void both(struct bench *b, const char *name, int rounds, int prompt, int steps)
{
	struct paged_step *step = engine_loaded(b->e)->step;
	double took[2][ROUNDS_MOST], ratio[ROUNDS_MOST];

	if (!paged_step_persistent(step, false)) {
		fprintf(stderr, "time_engine: this model has no persistent kernel on %s\n",
			load_facts(engine_loaded(b->e)).device);
		exit(1);
	}
	for (int i = -1; i < rounds; i++) { /* the first round, which makes graphs, does not count */
		for (int turn = 0; turn < 2; turn++) {
			const int persistent = (turn + i) & 1;
			double s;

			paged_step_persistent(step, persistent);
			s = single_step(b, prompt, steps);
			if (i >= 0)
				took[persistent][i] = s;
		}
		if (i >= 0)
			ratio[i] = took[1][i] / took[0][i];
	}
	/* what the load chose, if this agrees with it */
	paged_step_persistent(step,
			      stats_median(took[1], (size_t)rounds) <= stats_median(took[0], (size_t)rounds));
	stats_sort(ratio, (size_t)rounds);
	printf("{\"what\": \"%s\", \"batch\": 1, \"context\": %d, \"rounds\": %d, \"persistent_ms\": %.3f, "
	       "\"ordinary_ms\": %.3f, \"ratio\": %.3f, \"ratio_low\": %.3f, \"ratio_high\": %.3f}\n",
	       name, prompt, rounds, stats_median(took[1], (size_t)rounds) * 1e3,
	       stats_median(took[0], (size_t)rounds) * 1e3, stats_median(ratio, (size_t)rounds), ratio[0],
	       ratio[rounds - 1]);
	fflush(stdout);
}

static void many(struct bench *b, const char *name, int count, int prompt, int made)
{
	double first;
	const double s = run(b, count, prompt, made, &first);
	const struct engine_facts f = engine_facts(b->e);

	printf("{\"what\": \"%s\", \"requests\": %d, \"prompt\": %d, \"made\": %d, \"seconds\": %.3f, "
	       "\"out_per_s\": %.0f, \"all_per_s\": %.0f, \"first_s\": %.3f, \"steps\": %llu, \"preemptions\": %llu}\n",
	       name, count, prompt, made, s, count * (double)made / s, count * (double)(prompt + made) / s,
	       first, (unsigned long long)f.steps, (unsigned long long)f.preemptions);
	fflush(stdout);
}

static int number(const char *text)
{
	return text ? (int)strtol(text, NULL, 10) : 0;
}

static int number_or(const char *text, int other)
{
	return number(text) > 0 ? number(text) : other;
}

/* Positions of a sequence: CONTEXT, or as many as `both` needs. */
static int positions(void)
{
	const int needed = number(getenv("PROMPT")) + BEFORE + number_or(getenv("STEPS"), 256);

	return needed > CONTEXT ? needed : CONTEXT;
}

static int rounds_of(const char *text)
{
	const int rounds = number_or(text, 5);

	return rounds < ROUNDS_MOST ? rounds : ROUNDS_MOST;
}

/* Splits `list` in place. Returns the number of adapters. */
static int take_adapters(struct load_options *o, char *list)
{
	int count = 0;

	for (char *dir = list, *end; dir && count < ADAPTERS_MOST; dir = end) {
		end = strchr(dir, ':');
		if (end)
			*end++ = '\0';
		o->adapter[count++] = dir;
	}
	return count;
}

static enum load_adapters how_adapters(const char *word)
{
	if (word && !strcmp(word, "apart"))
		return LOAD_ADAPTERS_APART;
	return word && !strcmp(word, "fused") ? LOAD_ADAPTERS_FUSED : LOAD_ADAPTERS_CHOSEN;
}

static void measure(struct bench *b, const char *what)
{
	b->temperature = 0;
	b->top_p = 1;
	if (!strcmp(what, "pre")) {
		many(b, what, 32, 4096, 1);
	} else if (!strcmp(what, "off")) {
		many(b, what, 1024, 1000, 1000);
	} else if (!strcmp(what, "smoke")) {
		many(b, what, 8, 100, 16);
	} else if (!strcmp(what, "b1t")) {
		b->temperature = 0.7f;
		b->top_p = 0.9f;
		decode(b, what, 1, 128, 256);
	} else if (!strcmp(what, "both")) {
		both(b, what, rounds_of(getenv("ROUNDS")), number_or(getenv("PROMPT"), 128),
		     number_or(getenv("STEPS"), 256));
	} else if (!strcmp(what, "b1")) {
		decode(b, what, 1, 128, 256);
	} else if (*what == 'd' && number(what + 1) > 0) {
		many(b, what, number(what + 1), 16, 200);
	} else if (*what == 'm' && number(what + 1) > 0) {
		mixed(b, what, number(what + 1), number(getenv("MIXED_ROWS")));
	} else if (*what == 'b' && number(what + 1) > 0) {
		decode(b, what, number(what + 1), 512, 128);
	} else {
		fprintf(stderr, "time_engine: %s is not known\n", what);
		exit(64);
	}
}

/* tuning_s: the part of load_s that timed ways to compute GEMMs. shared: other processes use the GPU. */
static void tell_start(const struct bench *b, double first_token_s)
{
	const struct loaded *l = engine_loaded(b->e);
	const bool gpu = l->back.kind == BACKEND_GPU;

	printf("{\"what\": \"start\", \"device\": \"%s\", \"load_s\": %.2f, \"tuning_s\": %.2f, \"first_token_s\": %.2f, \"pages\": "
	       "%lld, \"shared\": %s}\n",
	       load_facts(l).device, engine_ready(b->e).load_s, gpu ? gpu_backend_tuning_s(&l->back) : 0,
	       first_token_s, (long long)l->pages, load_facts(l).shared ? "true" : "false");
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct bench b = {.state = 1};
	struct engine_options options = {
		.no_prefix_cache = true,
		.mixed_rows = number(getenv("MIXED_ROWS")),
		.backlog_rows = getenv("MIXED_ROWS") ? 1000000 : 0,
		.step_ms = getenv("STEP_MS") ? number(getenv("STEP_MS"))
					     : 1000, /* throughput, as the peer's script */
	};
	struct error err = {0};
	double begin = now_s(), first;

	if (argc != 4) {
		fprintf(stderr, "usage: time_engine MODEL auto|cpu|gpu WHAT[,WHAT..]\n");
		return 64;
	}
	options.load = (struct load_options){
		.device = !strcmp(argv[2], "cpu")   ? LOAD_CPU
			  : !strcmp(argv[2], "gpu") ? LOAD_GPU
						    : LOAD_AUTO,
		.model = argv[1],
		.positions = positions(),
		.sequences = getenv("SEQUENCES") ? number(getenv("SEQUENCES")) : SEQUENCES,
		.rows = number(getenv("ROWS")),
		.cache_e4m3 = getenv("CACHE_FP8") != NULL,
		.weights_e4m3 = getenv("WEIGHTS_FP8") != NULL,
		.library_gemm = getenv("LIBRARY_GEMM") != NULL,
		.no_tuning = getenv("NO_TUNING") != NULL,
		.deterministic = getenv("DETERMINISTIC") != NULL,
	};
	options.load.adapters = how_adapters(getenv("ADAPTERS_HOW"));
	options.load.any_base = true;
	b.adapters = take_adapters(&options.load, getenv("ADAPTERS"));
	if (getenv("NO_ADAPTER"))
		b.adapters = 0;
	must(engine_create(&b.e, &options, &err), &err);
	b.top_p = 1;
	run(&b, 1, 16, 1, &first);
	tell_start(&b, now_s() - begin);
	for (char *what = argv[3], *end; what; what = end) {
		end = strchr(what, ',');
		if (end)
			*end++ = '\0';
		measure(&b, what);
	}
	engine_destroy(&b.e);
	return 0;
}
