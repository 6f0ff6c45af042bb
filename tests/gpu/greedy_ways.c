/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PROMPTS (200) greedy requests run in several ways: alone, batched, in chunks, layer by layer, after
 * preemptions, and from cached pages; without adapters, and with adapters in turns.
 *
 *   greedy_ways MODEL auto|cpu|gpu [PROMPTS]
 *
 * With DETERMINISTIC=1 all ways must give the ids that requests get alone. Without it, the first difference
 * of a request is judged by a reference: the same model in F32 on the CPU, which reads the prompt and the ids
 * up to the difference. There, the logits of both ids must be within the BF16 error of the largest logit.
 *
 * The BF16 error is that of the difference between the reference's two largest logits. It is the largest error at
 * the positions of SCORED prompts, or five times their root mean square if that is more. The ways compute other
 * positions. Of a million normally distributed errors, less than one is beyond five times the root mean square.
 * The largest error must be at most 0.2 (ERROR_MOST states another limit), so a device that is wrong cannot excuse its own differences.
 * BF16_ERROR states the error itself. The root mean square must be at most 0.1 (RMS_MOST).
 *
 * A way that was not taken fails too: it must have had preemptions, or cached tokens. Set in the environment:
 * ADAPTERS=DIR:DIR.., PLANT=WAY (this way has a cache in E4M3, as a planted fault), IDS=FILE (one id of a
 * text per line: prompts are pieces of it, and otherwise random ids). One line of JSON each.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "engine/engine.h"

enum {
	PROMPTS_MOST = 200,
	PROMPT_MOST = 320,
	ANSWER = 16,
	PAGE = LOAD_PAGE_TOKENS,
	POSITIONS = PROMPT_MOST + ANSWER,
	POSITION_PAGES = (POSITIONS + PAGE - 1) / PAGE,
	SCORED = 50,
	TEXT_MOST = 1 << 20,
};
static const double error_most = 0.2, rms_most = 0.1, rms_times = 5;

struct prompt {
	int32_t count, id[PROMPT_MOST];
};

struct answer {
	int32_t count, id[ANSWER];
};

/* How the requests of a run are put to the engine. */
struct way {
	const char *name;
	int64_t sequences, rows, pages; /* rows, pages 0: as many as fit */
	bool alone;			/* a request is submitted when the one before has ended */
	bool cached;			/* they run twice, and the second time counts */
	bool sliced;			/* steps are enqueued layer by layer */
};
static const struct way ways[] = {
	{.name = "alone", .sequences = 64, .alone = true},
	{.name = "batched", .sequences = 64},
	{.name = "chunked", .sequences = 2, .rows = PAGE + 2}, /* a step has one page of a prompt */
	{.name = "sliced", .sequences = 64, .sliced = true},
	{.name = "preempted", .sequences = 8, .pages = 2 * POSITION_PAGES + 2},
	{.name = "cached", .sequences = 64, .cached = true},
};

struct testing {
	const char *model, *plant;
	enum load_device device;
	bool deterministic;
	char *dir[ADAPTERS_MOST];
	int adapters; /* that this series of runs uses */
	int prompts;
	struct prompt prompt[PROMPTS_MOST];
	int32_t *text; /* ids of a text that prompts are pieces of; NULL: none */
	size_t text_ids;
	struct answer base[PROMPTS_MOST], made[PROMPTS_MOST]; /* alone, and of the present way */
	struct engine *reference;
	double error; /* of BF16 */
	bool wrong;
};

/* How the answers of a way differ from those of requests that are alone. */
struct difference {
	int count;
	int far;	/* differences beyond the BF16 error */
	double largest; /* distance from the reference's largest logit */
};

static void must(enum status st, const struct error *err)
{
	if (!st)
		return;
	fprintf(stderr, "greedy_ways: %s\n", err->text);
	exit(2);
}

/* splitmix64 */
static uint64_t next_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

/* Reads the ids of IDS=FILE. */
static void read_text(struct testing *t, uint64_t vocab)
{
	const char *path = getenv("IDS");
	FILE *f = path ? fopen(path, "r") : NULL;
	unsigned id;

	if (!path)
		return;
	t->text = malloc(TEXT_MOST * sizeof(*t->text));
	while (f && t->text && t->text_ids < TEXT_MOST && fscanf(f, "%u", &id) == 1 && id < vocab)
		t->text[t->text_ids++] = (int32_t)id;
	if (!f || !feof(f) || t->text_ids < 2 * PROMPT_MOST) {
		fprintf(stderr, "greedy_ways: %s: not %d to %d ids below %llu\n", path, 2 * PROMPT_MOST,
			TEXT_MOST, (unsigned long long)vocab);
		exit(2);
	}
	fclose(f);
}

/* Fills the ids of a prompt behind the first `shared` ones: with random ids, or with a piece of the text. */
static void fill_prompt(const struct testing *t, struct prompt *p, int32_t shared, uint64_t vocab,
			uint64_t *random)
{
	const size_t at = t->text ? next_random(random) % (t->text_ids - PROMPT_MOST) : 0;

	for (int32_t k = shared; k < p->count; k++)
		p->id[k] = t->text ? t->text[at + (size_t)k] : (int32_t)(next_random(random) % vocab);
}

/* Half of the prompts share their beginning with an earlier one. */
static void make_prompts(struct testing *t, uint64_t vocab)
{
	uint64_t random = 23;

	for (int i = 0; i < t->prompts; i++) {
		struct prompt *p = &t->prompt[i];
		int32_t shared = 0;

		p->count = 1 + (int32_t)(next_random(&random) % PROMPT_MOST);
		if (i % 2) {
			const struct prompt *from = &t->prompt[next_random(&random) % (uint64_t)i];

			shared = from->count < p->count ? from->count : p->count;
			memcpy(p->id, from->id, (size_t)shared * sizeof(*p->id));
		}
		fill_prompt(t, p, shared, vocab, &random);
	}
}

static struct engine *open_engine(const struct testing *t, const struct way *way, bool reference)
{
	struct engine_options o = {
		.load = {.device = reference ? LOAD_CPU : t->device,
			 .model = t->model,
			 .any_base = true,
			 .positions = POSITIONS,
			 .sequences = way->sequences,
			 .rows = way->rows,
			 .pages = way->pages,
			 .weights_f32 = reference,
			 .cache_e4m3 = t->plant && !reference && !strcmp(t->plant, way->name),
			 .deterministic = t->deterministic && !reference},
		.slice_ms = way->sliced ? 1e-9 : 0,
		.no_prefix_cache = !way->cached};
	struct engine *e;
	struct error err = {0};

	if (!o.load.pages)
		o.load.pages = (int64_t)POSITION_PAGES * (way->cached ? t->prompts : way->sequences);
	for (int i = 0; i < t->adapters; i++)
		o.load.adapter[i] = t->dir[i];
	must(engine_create(&e, &o, &err), &err);
	return e;
}

/* Request i uses adapter i % 4 - 1 of three: the first of four uses none. */
static int32_t adapter_of(const struct testing *t, int i)
{
	return t->adapters ? i % (t->adapters + 1) - 1 : -1;
}

static struct engine_request request_of(const struct testing *t, int i)
{
	return (struct engine_request){.id = (uint64_t)i,
				       .adapter = adapter_of(t, i),
				       .prompt = t->prompt[i].id,
				       .prompt_count = (size_t)t->prompt[i].count,
				       .max_tokens = ANSWER,
				       .sampling = {.top_p = 1, .repetition = 1},
				       .logprobs = -1,
				       .prompt_logprobs = -1};
}

/* Returns how many requests ended. */
static int hear(struct testing *t, struct engine *e)
{
	const struct engine_event *event;
	const size_t events = engine_events(e, &event);
	int ended = 0;

	for (size_t i = 0; i < events; i++) {
		struct answer *a = &t->made[event[i].id];

		if (event[i].kind == ENGINE_EVENT_TOKEN && a->count < ANSWER)
			a->id[a->count++] = event[i].token;
		if (event[i].kind != ENGINE_EVENT_END)
			continue;
		ended++;
		if (event[i].end != ENGINE_END_LENGTH || a->count != ANSWER) {
			fprintf(stderr, "greedy_ways: request %d ended with %d after %d tokens: %s\n",
				(int)event[i].id, (int)event[i].end, (int)a->count, event[i].text);
			exit(2);
		}
	}
	return ended;
}

static void run_pass(struct testing *t, struct engine *e, bool alone)
{
	struct error err = {0};
	int submitted = 0, ended = 0;
	bool idle;

	memset(t->made, 0, sizeof(t->made));
	while (ended < t->prompts) {
		while (submitted < t->prompts && (!alone || submitted == ended)) {
			const struct engine_request r = request_of(t, submitted++);

			must(engine_submit(e, &r, &err), &err);
		}
		must(engine_step(e, &idle, &err), &err);
		ended += hear(t, e);
	}
}

static struct engine_facts run_way(struct testing *t, const struct way *way)
{
	struct engine *e = open_engine(t, way, false);
	struct engine_facts facts;

	for (int pass = 0; pass <= way->cached; pass++)
		run_pass(t, e, way->alone);
	facts = engine_facts(e);
	engine_destroy(&e);
	return facts;
}

/* Runs one request to its end. `found` gets its events. */
static void run_one(struct engine *e, const struct engine_request *r,
		    void (*found)(void *arg, const struct engine_event *event), void *arg)
{
	struct error err = {0};
	bool ended = false, idle;

	must(engine_submit(e, r, &err), &err);
	while (!ended) {
		const struct engine_event *event;
		size_t events;

		must(engine_step(e, &idle, &err), &err);
		events = engine_events(e, &event);
		for (size_t i = 0; i < events; i++) {
			ended |= event[i].kind == ENGINE_EVENT_END;
			found(arg, &event[i]);
		}
	}
}

/* The most likely ids behind each position of one prompt. */
struct scores {
	int32_t count;
	struct place {
		int32_t tops;
		struct engine_logprob top[ENGINE_TOP_MOST];
	} place[PROMPT_MOST];
};

static void on_score(void *arg, const struct engine_event *event)
{
	struct scores *s = arg;
	struct place *p = &s->place[s->count];

	if (event->kind != ENGINE_EVENT_PROMPT || s->count >= PROMPT_MOST)
		return;
	p->tops = event->tops;
	memcpy(p->top, event->top, (size_t)event->tops * sizeof(*p->top));
	s->count++;
}

static void score(const struct testing *t, struct engine *e, int i, struct scores *s)
{
	struct engine_request r = request_of(t, i);

	r.max_tokens = -1;
	r.prompt_logprobs = ENGINE_TOP_MOST;
	s->count = 0;
	run_one(e, &r, on_score, s);
	if (s->count != t->prompt[i].count - 1) {
		fprintf(stderr, "greedy_ways: prompt %d has %d scores\n", i, (int)s->count);
		exit(2);
	}
}

/* An id that is not among the most likely ones has a log probability of minus infinity. */
static double logprob_of(const struct place *p, int32_t id)
{
	for (int32_t k = 0; k < p->tops; k++)
		if (p->top[k].id == id)
			return (double)p->top[k].logprob;
	return -INFINITY;
}

/* How far the difference of the two largest logits of `right` differs in `p`. */
static double gap_error(const struct place *p, const struct place *right)
{
	const double gap = (double)(right->top[0].logprob - right->top[1].logprob);

	return fabs(gap - (logprob_of(p, right->top[0].id) - logprob_of(p, right->top[1].id)));
}

static double number_of(const char *variable, double otherwise)
{
	const char *text = getenv(variable);

	return text ? strtod(text, NULL) : otherwise;
}

/* Measures the BF16 error, unless BF16_ERROR states it. One beyond the limit is a failure, and is cut there.
 */
static void measure_error(struct testing *t)
{
	const double most = number_of("ERROR_MOST", error_most);
	struct engine *e = open_engine(t, &ways[0], false);
	double square = 0, largest = 0, rms;
	static struct scores here, there;
	int64_t tokens = 0;
	bool good;

	for (int i = 0; i < SCORED && i < t->prompts; i++) {
		score(t, e, i, &here);
		score(t, t->reference, i, &there);
		for (int32_t k = 0; k < here.count; k++) {
			const double d = gap_error(&here.place[k], &there.place[k]);

			square += d * d;
			largest = d <= largest ? largest : d; /* of a NaN the root mean square tells */
		}
		tokens += here.count;
	}
	engine_destroy(&e);
	rms = sqrt(square / (double)tokens);
	good = rms <= number_of("RMS_MOST", rms_most) && largest <= most;
	t->error = number_of("BF16_ERROR", fmin(fmax(largest, rms_times * rms), most));
	t->wrong |= !good;
	printf("{\"what\": \"error\", \"adapters\": %d, \"tokens\": %lld, \"rms\": %.6f, \"largest\": %.6f, "
	       "\"bf16_error\": %.6f, \"limit\": %.6f, \"within_limits\": %s}\n",
	       t->adapters, (long long)tokens, rms, largest, t->error, most, good ? "true" : "false");
}

/* The distance of two ids from the largest logit of the reference. */
struct judging {
	int32_t id[2];
	double distance;
};

static void on_alternatives(void *arg, const struct engine_event *event)
{
	struct judging *j = arg;

	if (event->kind != ENGINE_EVENT_TOKEN)
		return;
	j->distance = 0;
	for (int side = 0; side < 2; side++) {
		double distance = INFINITY; /* not among the most likely ones */

		for (int32_t k = 0; k < event->tops; k++)
			if (event->top[k].id == j->id[side])
				distance = (double)(event->top[0].logprob - event->top[k].logprob);
		j->distance = fmax(j->distance, distance);
	}
}

/* Asks the reference about the first difference of request i, after `same` equal ids. */
static double judge_difference(struct testing *t, int i, int32_t same)
{
	int32_t ids[POSITIONS];
	struct judging j = {.id = {t->base[i].id[same], t->made[i].id[same]}, .distance = INFINITY};
	struct engine_request r = request_of(t, i);

	memcpy(ids, t->prompt[i].id, r.prompt_count * sizeof(*ids));
	memcpy(ids + r.prompt_count, t->base[i].id, (size_t)same * sizeof(*ids));
	r.prompt = ids;
	r.prompt_count += (size_t)same;
	r.max_tokens = 1;
	r.logprobs = ENGINE_TOP_MOST;
	run_one(t->reference, &r, on_alternatives, &j);
	return j.distance;
}

static struct difference compare(struct testing *t)
{
	struct difference d = {0};

	for (int i = 0; i < t->prompts; i++) {
		int32_t same = 0;
		double distance;

		while (same < ANSWER && t->base[i].id[same] == t->made[i].id[same])
			same++;
		if (same == ANSWER)
			continue;
		d.count++;
		if (t->deterministic)
			continue;
		distance = judge_difference(t, i, same);
		d.far += !(distance <= t->error);
		d.largest = fmax(d.largest, distance);
	}
	return d;
}

static void test_way(struct testing *t, const struct way *way)
{
	const struct engine_facts f = run_way(t, way);
	const bool taken = (!way->pages || f.preemptions) && (!way->cached || f.cached_tokens);
	struct difference d;
	bool good;

	if (way == ways)
		memcpy(t->base, t->made, sizeof(t->base));
	d = compare(t);
	good = taken && (t->deterministic ? !d.count : !d.far);
	t->wrong |= !good;
	printf("{\"what\": \"%s\", \"deterministic\": %s, \"adapters\": %d, \"equal\": %d, \"different\": %d, "
	       "\"beyond_error\": %d, \"largest\": %.6f, \"steps\": %llu, \"preemptions\": %llu, "
	       "\"cached_tokens\": %llu, \"verdict\": \"%s\"}\n",
	       way->name, t->deterministic ? "true" : "false", t->adapters, t->prompts - d.count, d.count,
	       d.far, d.largest, (unsigned long long)f.steps, (unsigned long long)f.preemptions,
	       (unsigned long long)f.cached_tokens,
	       good    ? "pass"
	       : taken ? "fail"
		       : "fail: not taken");
	fflush(stdout);
}

/* All ways with the first `adapters` adapters. */
static void test_ways(struct testing *t, int adapters)
{
	t->adapters = adapters;
	if (!t->deterministic) {
		t->reference = open_engine(t, &ways[0], true);
		measure_error(t);
	}
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		test_way(t, &ways[i]);
	engine_destroy(&t->reference);
}

static int take_adapters(struct testing *t, char *list)
{
	int count = 0;

	for (char *dir = list, *end; dir && count < ADAPTERS_MOST; dir = end) {
		end = strchr(dir, ':');
		if (end)
			*end++ = '\0';
		t->dir[count++] = dir;
	}
	return count;
}

int main(int argc, char **argv)
{
	static struct testing t;
	struct weights w;
	struct error err = {0};
	int adapters;

	t.prompts = argc == 4 ? (int)strtol(argv[3], NULL, 10) : PROMPTS_MOST;
	if (argc < 3 || argc > 4 || t.prompts < 2 || t.prompts > PROMPTS_MOST) {
		fprintf(stderr, "usage: greedy_ways MODEL auto|cpu|gpu [PROMPTS]\n");
		return 64;
	}
	t.model = argv[1];
	t.device = !strcmp(argv[2], "cpu") ? LOAD_CPU : !strcmp(argv[2], "gpu") ? LOAD_GPU : LOAD_AUTO;
	t.plant = getenv("PLANT");
	t.deterministic = getenv("DETERMINISTIC") != NULL;
	must(weights_open(&w, t.model, &err), &err);
	read_text(&t, (uint64_t)w.shape.vocab);
	make_prompts(&t, (uint64_t)w.shape.vocab);
	weights_release(&w);
	adapters = take_adapters(&t, getenv("ADAPTERS"));
	test_ways(&t, 0);
	if (adapters)
		test_ways(&t, adapters);
	free(t.text);
	return t.wrong;
}
