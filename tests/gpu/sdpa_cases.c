/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuDNN's attention by our plans: every mask, type, layout and direction against double precision, and timed.
 * What this version or device does not have is skipped with its words. usage: sdpa_cases test|plans|odd|time
 * [--small] [--each N] [--part I/N] [FILTER]
 * --small: short sequences alone; --each: candidates of a case, 8; --part: every Nth case from the Ith on, as
 * building kernels takes long and goes on beside others.
 */
#include <inttypes.h>
#include "core/clock.h"
#include "core/math/stats.h"
#include "core/text/text.h"
#include "gpu/sdpa/sdpa.h"
#include "sdpa_life.h"

#define NO ATTENTION_UNBOUNDED
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

#define F16 ATTENTION_F16
#define BF16 ATTENTION_BF16
#define E4M3 ATTENTION_E4M3
#define FULL ATTENTION_FULL, 0, 0
#define CAUSAL ATTENTION_CAUSAL, 0, 0
#define WINDOW(left, right) ATTENTION_WINDOW, left, right
#define FORWARD false, 0.0
#define BACKWARD true, 0.0

static const struct sdpa_case tests[] = {
	{F16, 2, 2, 2, 128, 128, 64, FULL, HEADS, FORWARD},
	{BF16, 2, 2, 2, 128, 128, 64, FULL, HEADS, FORWARD},
	{F16, 1, 2, 2, 256, 256, 128, FULL, TOKENS, FORWARD},
	{BF16, 1, 4, 2, 192, 192, 64, FULL, JOINED, FORWARD},
	{F16, 1, 2, 1, 200, 77, 64, FULL, HEADS, FORWARD},
	{BF16, 2, 1, 1, 65, 300, 128, FULL, HEADS, FORWARD},
	{F16, 1, 1, 1, 128, 128, 256, FULL, HEADS, FORWARD},
	{F16, 1, 1, 1, 1, 300, 64, FULL, HEADS, FORWARD},
	{F16, 2, 2, 2, 128, 128, 64, CAUSAL, HEADS, FORWARD},
	{BF16, 1, 4, 1, 256, 256, 128, CAUSAL, TOKENS, FORWARD},
	{F16, 1, 2, 2, 200, 200, 64, CAUSAL, HEADS, FORWARD},
	{F16, 1, 2, 2, 100, 300, 64, CAUSAL, HEADS, FORWARD},
	{BF16, 1, 2, 2, 64, 257, 128, CAUSAL, HEADS, FORWARD},
	{F16, 1, 2, 2, 300, 300, 64, WINDOW(64, 0), HEADS, FORWARD},
	{F16, 1, 2, 2, 128, 300, 64, WINDOW(100, 0), HEADS, FORWARD},
	{BF16, 1, 2, 2, 256, 256, 128, WINDOW(17, 9), HEADS, FORWARD},
	{F16, 1, 2, 2, 256, 256, 64, WINDOW(NO, 31), HEADS, FORWARD},
	{F16, 1, 2, 2, 256, 256, 64, WINDOW(31, NO), HEADS, FORWARD},
	{F16, 3, 2, 2, 200, 200, 64, FULL, LENGTHS, FORWARD},
	{BF16, 3, 4, 2, 256, 256, 128, CAUSAL, LENGTHS, FORWARD},
	{F16, 3, 2, 2, 200, 200, 64, WINDOW(40, 0), LENGTHS, FORWARD},
	{E4M3, 1, 2, 2, 128, 128, 64, FULL, HEADS, FORWARD},
	{E4M3, 1, 2, 2, 256, 256, 128, FULL, TOKENS, FORWARD},
	{E4M3, 1, 2, 2, 256, 256, 128, CAUSAL, HEADS, FORWARD},
	{E4M3, 1, 4, 2, 256, 256, 64, CAUSAL, TOKENS, FORWARD},
	{F16, 2, 2, 2, 128, 128, 64, FULL, HEADS, BACKWARD},
	{BF16, 1, 2, 2, 256, 256, 128, FULL, TOKENS, BACKWARD},
	{BF16, 1, 4, 2, 256, 256, 64, CAUSAL, HEADS, BACKWARD},
	{F16, 1, 2, 2, 200, 200, 64, FULL, HEADS, BACKWARD},
	{F16, 1, 2, 2, 200, 200, 64, CAUSAL, HEADS, BACKWARD},
	{F16, 1, 2, 2, 128, 256, 128, CAUSAL, HEADS, BACKWARD},
	{BF16, 1, 2, 2, 256, 256, 128, WINDOW(64, 0), HEADS, BACKWARD},
	{BF16, 3, 2, 2, 200, 200, 64, CAUSAL, LENGTHS, BACKWARD},
	{BF16, 3, 4, 2, 256, 256, 128, FULL, LENGTHS, BACKWARD},
};

/* What a caller has to know before it relies on it: rows that keep nothing, large logits, captured runs, the
 * same bits. */
static const struct sdpa_case odd[] = {
	{F16, 2, 2, 2, 512, 512, 64, FULL, HEADS, FORWARD},
	{F16, 2, 2, 2, 512, 512, 64, FULL, HEADS, false, 30.0},
	{BF16, 2, 2, 2, 512, 512, 128, CAUSAL, HEADS, false, 30.0},
	{E4M3, 2, 2, 2, 512, 512, 128, CAUSAL, HEADS, false, 30.0},
	{F16, 3, 2, 2, 200, 150, 64, CAUSAL, MORE_QUERIES, FORWARD},
	{F16, 3, 2, 2, 200, 150, 64, WINDOW(16, 0), MORE_QUERIES, FORWARD},
	{F16, 3, 2, 2, 200, 150, 64, CAUSAL, MORE_QUERIES, BACKWARD},
	{BF16, 2, 4, 4, 512, 512, 64, CAUSAL, HEADS, BACKWARD},
	{BF16, 2, 4, 2, 320, 320, 128, CAUSAL, HEADS, BACKWARD},
	{BF16, 2, 4, 4, 1024, 1024, 128, FULL, HEADS, BACKWARD},
};

static const struct sdpa_case timings[] = {
	{F16, 16, 8, 8, 512, 512, 64, FULL, HEADS, FORWARD},
	{F16, 16, 16, 16, 512, 512, 64, FULL, HEADS, FORWARD},
	{F16, 16, 32, 32, 512, 512, 64, FULL, HEADS, FORWARD},
	{F16, 16, 64, 64, 512, 512, 64, FULL, HEADS, FORWARD},
	{F16, 16, 96, 96, 512, 512, 64, FULL, HEADS, FORWARD},
	{F16, 16, 128, 128, 512, 512, 64, FULL, HEADS, FORWARD},
	{F16, 16, 96, 96, 512, 512, 64, CAUSAL, HEADS, FORWARD},
	{F16, 16, 96, 96, 512, 512, 128, FULL, HEADS, FORWARD},
	{BF16, 4, 32, 32, 4096, 4096, 128, FULL, HEADS, FORWARD},
	{BF16, 4, 32, 32, 4096, 4096, 128, CAUSAL, HEADS, FORWARD},
	{BF16, 2, 32, 32, 8192, 8192, 64, FULL, HEADS, FORWARD},
	{BF16, 4, 32, 8, 4096, 4096, 128, CAUSAL, TOKENS, FORWARD},
	{BF16, 4, 32, 32, 4096, 4096, 128, WINDOW(1023, 0), HEADS, FORWARD},
	{E4M3, 16, 96, 96, 512, 512, 64, FULL, HEADS, FORWARD},
	{E4M3, 4, 32, 32, 4096, 4096, 128, FULL, HEADS, FORWARD},
	{E4M3, 4, 32, 32, 4096, 4096, 128, CAUSAL, HEADS, FORWARD},
	{BF16, 4, 32, 32, 4096, 4096, 128, FULL, HEADS, BACKWARD},
	{BF16, 4, 32, 8, 4096, 4096, 128, CAUSAL, HEADS, BACKWARD},
	{F16, 16, 96, 96, 512, 512, 64, FULL, HEADS, BACKWARD},
	{BF16, 2, 28, 4, 4096, 4096, 128, CAUSAL, HEADS, BACKWARD},
	{BF16, 4, 32, 32, 4096, 4096, 128, CAUSAL, HEADS, BACKWARD},
	{BF16, 8, 9, 3, 2048, 2048, 64, CAUSAL, HEADS, BACKWARD},
	{BF16, 16, 16, 16, 512, 512, 64, FULL, HEADS, BACKWARD},
};

static void name_selected(const struct sdpa_plan *plan, unsigned candidate, struct text *said)
{
	struct sdpa_description d;

	sdpa_plan_describe(plan, candidate, &d);
	text_addf(said, " [%s, %" PRIu64 " KiB]", d.name, d.workspace_bytes >> 10);
}

static enum status run_once(struct life *l, struct error *err)
{
	enum status st = life_enqueue(l, l->forward, err);

	if (!st && l->back)
		st = life_enqueue(l, l->back, err);
	return st ? st : gpu_stream_wait(l->b->stream, err);
}

/* Every heuristic against the reference. */
static enum status test_one(struct life *l, struct text *said, struct error *err)
{
	struct wanted w = {0};
	enum status st = life_reference(l, &w, err);

	if (!st)
		st = sdpa_plan_candidates(l->forward, l->back ? 1 : l->b->each, err);
	if (!st && l->back)
		st = sdpa_plan_candidates(l->back, l->b->each, err);
	for (unsigned i = 0; !st && i < sdpa_plan_count(l->back ? l->back : l->forward); i++) {
		name_selected(l->back ? l->back : l->forward, i, said);
		st = sdpa_plan_select(l->back ? l->back : l->forward, i, err);
		if (!st)
			st = run_once(l, err);
		if (!st)
			st = life_check(l, &w, said, err);
	}
	life_forget(&w);
	return st;
}

static enum status list_one(struct life *l, struct text *said, struct error *err)
{
	struct sdpa_plan *plan = l->back ? l->back : l->forward;
	enum status st = sdpa_plan_candidates(plan, 16, err);

	if (!st)
		st = sdpa_plan_exhaust(plan, l->b->small ? 4 : 64, NULL, err);
	for (unsigned i = 0; !st && i < sdpa_plan_count(plan); i++)
		name_selected(plan, i, said);
	return st;
}

static enum status runs_captured(struct life *l, struct sdpa_plan *plan, struct error *err)
{
	struct gpu_graph *graph = NULL;
	enum status st = gpu_capture_begin(l->b->stream, err), ended;

	if (st)
		return st;
	st = life_enqueue(l, plan, err);
	ended = gpu_capture_end(l->b->stream, &graph, st ? NULL : err);
	st = st ? st : ended;
	if (!st)
		st = gpu_graph_launch(graph, l->b->stream, err);
	if (!st)
		st = gpu_stream_wait(l->b->stream, err);
	gpu_graph_destroy(&graph);
	return st;
}

static enum status copy_out(struct life *l, unsigned which, void *to, struct error *err)
{
	struct tensor *t = &l->t[which];

	return gpu_copy_from(l->b->device, to, t->device, t->count * attention_type_bytes(t->type), err);
}

/* What a second run, captured, leaves in a tensor that was made NaN before it. */
static enum status again(struct life *l, struct sdpa_plan *plan, unsigned which, struct text *said,
			 struct error *err)
{
	struct tensor *t = &l->t[which];
	uint64_t bytes = t->count * attention_type_bytes(t->type);
	void *first = malloc(bytes), *second = malloc(bytes);
	enum status st = first && second ? copy_out(l, which, first, err)
					 : error_set(err, STATUS_NO_RESOURCE, "no memory for a tensor");

	if (!st)
		st = gpu_stream_fill32(l->b->stream, t->device, UINT32_MAX, bytes / 4, err);
	if (!st)
		st = runs_captured(l, plan, err);
	if (!st)
		st = copy_out(l, which, second, err);
	if (!st)
		text_add(said, memcmp(first, second, bytes) ? ", captured: other bits"
							    : ", captured: the same bits");
	free(first);
	free(second);
	return st;
}

static enum status odd_one(struct life *l, struct text *said, struct error *err)
{
	enum status st = test_one(l, said, err);

	if (st == STATUS_MISMATCH) { /* said by now, and the rest is worth knowing too */
		text_addf(said, " WRONG: %s", err->text);
		st = again(l, l->forward, O, said, NULL);
		return STATUS_MISMATCH;
	}
	if (!st)
		st = again(l, l->forward, O, said, err);
	if (!st && l->back)
		st = again(l, l->back, D_Q, said, err);
	return st;
}

enum { REPEATS = 15 };

static enum status time_selected(struct life *l, struct sdpa_plan *plan, double *us, struct error *err)
{
	struct gpu_event *from = NULL, *to = NULL;
	double ns[REPEATS];
	unsigned each = l->b->small ? 1 : 20;
	enum status st = gpu_event_create(l->b->device, &from, err);

	if (!st)
		st = gpu_event_create(l->b->device, &to, err);
	for (unsigned r = 0; !st && r < REPEATS; r++) {
		st = gpu_event_record(from, l->b->stream, err);
		for (unsigned i = 0; !st && i < each; i++)
			st = life_enqueue(l, plan, err);
		if (!st)
			st = gpu_event_record(to, l->b->stream, err);
		if (!st)
			st = gpu_event_wait(to, err);
		if (!st)
			st = gpu_event_elapsed_ns(from, to, &ns[r], err);
	}
	gpu_event_destroy(&from);
	gpu_event_destroy(&to);
	*us = st ? 0.0 : stats_median(ns, REPEATS) / each / 1e3;
	return st;
}

static enum status time_one(struct life *l, struct text *said, struct error *err)
{
	struct sdpa_plan *plan = l->back ? l->back : l->forward;
	const struct attention_problem *p = &l->shape.p;
	double flop = l->back ? attention_flop_backward(p) : attention_flop(p);
	enum status st = sdpa_plan_first(l->forward, err);

	if (!st && l->back) {
		st = life_enqueue(l, l->forward, err);
		if (!st)
			st = sdpa_plan_candidates(l->back, l->b->each, err);
	} else if (!st) {
		st = sdpa_plan_candidates(l->forward, l->b->each, err);
	}
	for (unsigned i = 0; !st && i < sdpa_plan_count(plan); i++) {
		double us;

		st = sdpa_plan_select(plan, i, err);
		if (!st)
			st = time_selected(l, plan, &us, err);
		if (!st)
			text_addf(said, "\n    %9.2f us %7.1f TFLOPS", us, us > 0.0 ? flop / us / 1e6 : 0.0);
		name_selected(plan, i, said);
	}
	return st;
}

typedef enum status one(struct life *l, struct text *said, struct error *err);

static void run_case(struct bench *b, const struct sdpa_case *c, one *what)
{
	struct life l = {.b = b};
	struct text said = {0};
	struct error err = {0};
	char name[128];
	uint64_t from;
	enum status st;
	bool absent;

	life_shape(&l.shape, c);
	attention_describe(&l.shape.p, name, sizeof(name));
	if (b->filter && !strstr(name, b->filter) && !(c->backward && !strcmp(b->filter, "backward")))
		return;
	from = clock_now_ns(clock_monotonic());
	st = life_make(&l, c, &err);
	if (!st)
		st = what(&l, &said, &err);
	life_unmake(&l);
	absent = st == STATUS_UNSUPPORTED || st == STATUS_UNAVAILABLE;
	b->ran++;
	b->failed += st && !absent;
	b->skipped += absent;
	printf("%s %s%s%s, %.1f s:%s%s%s\n", st ? absent ? "skip" : "FAIL" : "ok  ", name,
	       c->backward ? " backward" : "",
	       c->layout == TOKENS   ? " by token"
	       : c->layout == JOINED ? " joined"
				     : "",
	       (double)(clock_now_ns(clock_monotonic()) - from) / 1e9, text_str(&said), st ? " " : "",
	       st ? err.text : "");
	text_release(&said);
}

static int run(struct bench *b, const char *verb)
{
	static const struct {
		const char *verb;
		const struct sdpa_case *cases;
		size_t count;
		one *what;
	} verbs[] = {
		{"test", tests, COUNT(tests), test_one},
		{"plans", tests, COUNT(tests), list_one},
		{"odd", odd, COUNT(odd), odd_one},
		{"time", timings, COUNT(timings), time_one},
	};
	size_t v = 0;

	while (v < COUNT(verbs) && strcmp(verbs[v].verb, verb))
		v++;
	if (v == COUNT(verbs)) {
		printf("%s is not test, plans, odd or time\n", verb);
		return 64;
	}

	printf("%s, sm_%u, cuDNN %d, %s\n", gpu_name(b->device), gpu_cc(b->device), sdpa_version(b->sdpa),
	       sdpa_path(b->sdpa));
	for (size_t i = b->part; i < verbs[v].count; i += b->parts)
		if (!b->small || verbs[v].cases[i].q_len <= 128)
			run_case(b, &verbs[v].cases[i], verbs[v].what);
	printf("%u cases, %u failed, %u skipped\n", b->ran, b->failed, b->skipped);
	return b->failed || b->ran == b->skipped;
}

int main(int argc, char **argv)
{
	const char *verb = argc > 1 ? argv[1] : "test";
	struct bench b = {.each = 8, .parts = 1};
	struct error err = {0};
	int code = 1;

	setvbuf(stdout, NULL, _IOLBF, 0); /* what was printed stays, however this ends */
	for (int i = 2; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : "";

		if (!strcmp(argv[i], "--small")) {
			b.small = true;
		} else if (!strcmp(argv[i], "--each")) {
			b.each = (unsigned)strtoul(value, NULL, 10);
			i++;
		} else if (!strcmp(argv[i], "--part")) {
			b.part = (unsigned)strtoul(value, NULL, 10);
			b.parts =
				strchr(value, '/') ? (unsigned)strtoul(strchr(value, '/') + 1, NULL, 10) : 0;
			i++;
		} else {
			b.filter = argv[i];
		}
	}
	if (!b.each || !b.parts) {
		puts("--each and --part I/N take numbers from 1 and from 0");
		return 64;
	}
	if (gpu_open(&b.device, NULL, &err) || gpu_stream_create(b.device, &b.stream, &err) ||
	    sdpa_open(&b.sdpa, b.device, NULL, 0, &err)) {
		printf("%s\n", err.text);
		code = err.status == STATUS_UNAVAILABLE ? 77 : 1;
	} else {
		code = run(&b, verb);
	}
	sdpa_close(&b.sdpa);
	gpu_stream_destroy(&b.stream);
	gpu_close(&b.device);
	return code;
}
