/* SPDX-License-Identifier: Apache-2.0 */
/* Plans as a whole: conversations, closed loops, prefixes, limits, the same plan for the same seed, and what
 * is refused. */
#include "scratch.h"

#include <math.h>
#include "core/file/file.h"
#include "load/plan/plan.h"

static struct load_plan_spec base(void)
{
	return (struct load_plan_spec){
		.arrival = LOAD_POISSON,
		.rate = 20,
		.burstiness = 1,
		.duration_s = 10,
		.requests_most = 100000,
		.turns = 1,
		.trace_speed = 1,
		.users = 1,
		.input = {.kind = LOAD_NORMAL, .mean = 500, .spread = 100, .min = 1, .max = 1000},
		.output = {.kind = LOAD_FIXED, .mean = 10, .min = 1, .max = 1000},
		.seed = 9};
}

static struct load_plan made(const struct load_plan_spec *spec)
{
	struct load_plan p;
	struct error err = {0};

	if (load_plan_make(&p, spec, &err))
		fail_msg("%s", err.text);
	return p;
}

static bool equal(const struct load_request *a, const struct load_request *b)
{
	return a->at_ns == b->at_ns && a->think_ns == b->think_ns && a->session == b->session &&
	       a->turn == b->turn && a->prompt_tokens == b->prompt_tokens &&
	       a->output_tokens == b->output_tokens && a->source == b->source && a->prefix == b->prefix &&
	       a->prefix_tokens == b->prefix_tokens;
}

static void test_load_plan__constant(void **state)
{
	struct load_plan_spec spec = base();
	struct load_plan p;

	(void)state;
	spec.arrival = LOAD_CONSTANT;
	spec.input = (struct load_length_spec){.kind = LOAD_FIXED, .mean = 70, .min = 1, .max = 1000};
	p = made(&spec);
	assert_int_equal(p.count, 200);
	assert_true(load_plan_tokens(&p).prompt == 200 * 70 && load_plan_tokens(&p).output == 200 * 10);
	assert_int_equal(p.sessions, 200);
	assert_true(p.offered == 20 && p.duration_s == 10 && !p.cut && !p.trace);
	for (size_t i = 0; i < p.count; i++) {
		assert_int_equal(p.request[i].at_ns, i * 50000000);
		assert_int_equal(p.request[i].session, i);
		assert_int_equal(p.request[i].output_tokens, 10);
		assert_int_equal(p.request[i].prefix, 0);
	}
	load_plan_release(&p);
}

static void test_load_plan__is_a_function_of_seed_and_options(void **state)
{
	static const enum load_arrival arrivals[] = {LOAD_CONSTANT, LOAD_POISSON, LOAD_GAMMA,
						     LOAD_RAMP,	    LOAD_STEPS,	  LOAD_CLOSED};

	(void)state;
	for (size_t i = 0; i < sizeof(arrivals) / sizeof(arrivals[0]); i++) {
		struct load_plan_spec spec = base();
		struct load_plan a, b;
		size_t same = 0;

		spec.arrival = arrivals[i];
		spec.rate_end = 30;
		spec.steps = "10,20";
		spec.turns = 3;
		spec.think_s = 0.5;
		spec.users = 7;
		spec.requests_most = 2000;
		a = made(&spec);
		b = made(&spec);
		assert_int_equal(a.count, b.count);
		for (size_t k = 0; k < a.count; k++)
			assert_true(equal(&a.request[k], &b.request[k]));
		load_plan_release(&b);
		spec.seed++;
		b = made(&spec);
		for (size_t k = 0; k < a.count && k < b.count; k++)
			same += a.request[k].prompt_tokens == b.request[k].prompt_tokens ||
				a.request[k].source == b.request[k].source;
		assert_true(same < a.count / 20);
		load_plan_release(&a);
		load_plan_release(&b);
	}
}

/* The same requests at another rate: a sweep compares rates, not lengths. */
static void test_load_plan__a_rate_changes_no_length(void **state)
{
	struct load_plan_spec spec = base();
	struct load_plan slow = made(&spec), fast;

	(void)state;
	spec.rate = 40;
	fast = made(&spec);
	assert_true(fast.count > slow.count);
	for (size_t i = 0; i < slow.count; i++) {
		assert_int_equal(slow.request[i].prompt_tokens, fast.request[i].prompt_tokens);
		assert_true(slow.request[i].source == fast.request[i].source);
		assert_true(llabs((long long)slow.request[i].at_ns - 2 * (long long)fast.request[i].at_ns) <=
			    2);
	}
	load_plan_release(&slow);
	load_plan_release(&fast);
}

static void test_load_plan__conversations(void **state)
{
	struct load_plan_spec spec = base();
	double think = 0, first = 0;
	struct load_plan p;

	(void)state;
	spec.turns = 4;
	spec.think_s = 2;
	spec.prefix_tokens = 64;
	spec.prefix_groups = 3;
	p = made(&spec);
	assert_int_equal(p.count, 4 * (size_t)p.sessions);
	assert_true(p.offered == p.sessions / 10.0);
	for (size_t i = 0; i < p.count; i++) {
		const struct load_request *r = &p.request[i], *begin = &p.request[i - i % 4];

		assert_int_equal(r->session, i / 4);
		assert_int_equal(r->turn, i % 4);
		assert_true((r->at_ns == LOAD_AFTER) == (r->turn > 0));
		assert_int_equal(r->prefix_tokens, r->turn ? 0 : 64);
		assert_true(r->prefix >= 1 && r->prefix <= 3 && r->prefix == begin->prefix);
		first += r->prefix == 1;
		think += (double)r->think_ns * 1e-9;
		assert_true(r->turn ? r->think_ns > 0
				    : !r->think_ns && (!i || r->at_ns >= p.request[i - 4].at_ns));
	}
	think /= 3.0 * p.sessions;
	assert_true(fabs(think / 2 - 1) <
		    3.5 / sqrt(3.0 * p.sessions)); /* exponential: deviation equals mean */
	assert_true(fabs(first / (double)p.count - 1.0 / 3) < 3.5 * sqrt(2.0 / 9 / p.sessions));
	load_plan_release(&p);
	spec.think_s = 0;
	p = made(&spec);
	for (size_t i = 0; i < p.count; i++)
		assert_int_equal(p.request[i].think_ns, 0);
	load_plan_release(&p);
}

static void test_load_plan__a_dataset_gives_rows(void **state)
{
	struct load_plan_spec spec = base();
	size_t low = 0;
	struct load_plan p;

	(void)state;
	spec.dataset_rows = 10;
	spec.turns = 2;
	p = made(&spec);
	for (size_t i = 0; i < p.count; i++) {
		assert_true(p.request[i].source < 10 && p.request[i].source == p.request[i - i % 2].source);
		assert_true(!p.request[i].prompt_tokens && !p.request[i].output_tokens);
		low += p.request[i].source < 5;
	}
	assert_true(fabs((double)low / (double)p.count - 0.5) < 3.5 * sqrt(0.25 / p.sessions));
	load_plan_release(&p);
}

static void test_load_plan__a_closed_loop(void **state)
{
	struct load_plan_spec spec = base();
	struct load_plan p;

	(void)state;
	spec.arrival = LOAD_CLOSED;
	spec.users = 3;
	spec.turns = 2;
	spec.requests_most = 16; /* five for each user */
	p = made(&spec);
	assert_int_equal(p.count, 15);
	assert_int_equal(p.sessions, 3);
	assert_true(p.offered == 0 && p.duration_s == 10);
	for (size_t i = 0; i < p.count; i++) {
		assert_int_equal(p.request[i].session, i / 5);
		assert_int_equal(p.request[i].turn, i % 5 % 2); /* a new conversation after two turns */
		assert_true(p.request[i].at_ns == (i % 5 ? LOAD_AFTER : 0) && !p.request[i].think_ns);
	}
	load_plan_release(&p);
	spec.think_s = 1;
	p = made(&spec);
	for (size_t i = 0; i < p.count; i += 5)
		assert_true(p.request[i].at_ns > 0 && p.request[i].session == i / 5 &&
			    (!i || p.request[i].at_ns >= p.request[i - 5].at_ns));
	assert_true(p.request[1].think_ns > 0 && p.request[2].think_ns > 0);
	load_plan_release(&p);
	spec.requests_most = UINT32_MAX; /* no user can send more than 100,000 a second */
	spec.duration_s = 0.001;
	p = made(&spec);
	assert_int_equal(p.count, 3 * 101);
	load_plan_release(&p);
}

static void test_load_plan__the_limit_of_requests(void **state)
{
	struct load_plan_spec spec = base();
	struct load_plan p;

	(void)state;
	spec.arrival = LOAD_CONSTANT;
	spec.requests_most = 51;
	p = made(&spec);
	assert_int_equal(p.count, 51);
	assert_true(p.cut && fabs(p.duration_s - 2.55) < 1e-9 && fabs(p.offered - 20) < 1e-6);
	load_plan_release(&p);
	spec.turns = 2; /* whole conversations */
	p = made(&spec);
	assert_int_equal(p.count, 50);
	load_plan_release(&p);
	spec.rate = 1e6; /* far more than the limit: it ends there */
	spec.duration_s = 86400;
	spec.requests_most = 1000;
	p = made(&spec);
	assert_int_equal(p.count, 1000);
	load_plan_release(&p);
}

static void refused(const struct load_plan_spec *spec, const char *words)
{
	struct error err = {0};
	struct load_plan p;

	if (load_plan_make(&p, spec, &err) != STATUS_BAD_INPUT)
		fail_msg("not refused: %s", words);
	if (!strstr(err.text, words))
		fail_msg("\"%s\" lacks \"%s\"", err.text, words);
	assert_null(p.request);
}

#define REFUSED(words, ...)                                                                                  \
	do {                                                                                                 \
		struct load_plan_spec s = base();                                                            \
		__VA_ARGS__;                                                                                 \
		refused(&s, words);                                                                          \
	} while (0)

static void test_load_plan__what_is_refused(void **state)
{
	(void)state;
	REFUSED("rate: 0 requests/s", s.rate = 0);
	REFUSED("rate: -1 requests/s", s.rate = -1);
	REFUSED("rate: nan requests/s", s.rate = NAN);
	REFUSED("rate: 1e+07 requests/s", s.rate = 1e7);
	REFUSED("ramp: 0 requests/s", s.arrival = LOAD_RAMP; s.rate = 0; s.rate_end = 0);
	REFUSED("ramp: -5 requests/s is below 0", s.arrival = LOAD_RAMP; s.rate = -5; s.rate_end = 3);
	REFUSED("steps: \"\" is not a rate", s.arrival = LOAD_STEPS);
	REFUSED("steps: \"\" is not a rate", s.arrival = LOAD_STEPS; s.steps = "1,,2");
	REFUSED("steps: \"x\" is not a rate", s.arrival = LOAD_STEPS; s.steps = "1,x");
	REFUSED("steps: 0 requests/s", s.arrival = LOAD_STEPS; s.steps = "1,0,2");
	REFUSED("more than 256 rates", s.arrival = LOAD_STEPS;
		s.steps =
			"1000000000000000000000000000000000000000000000000000000000000000000000000000000000000");
	REFUSED("burstiness: 0", s.arrival = LOAD_GAMMA; s.burstiness = 0);
	REFUSED("burstiness: nan", s.arrival = LOAD_GAMMA; s.burstiness = NAN);
	REFUSED("the duration", s.duration_s = 0);
	REFUSED("the duration", s.duration_s = 86401);
	REFUSED("the duration", s.duration_s = NAN);
	REFUSED("no request is due within 0.1 s", s.duration_s = 0.1; s.rate = 0.001);
	REFUSED("the limit of requests", s.requests_most = 0);
	REFUSED("the limit of requests", s.requests_most = 1ull << 32);
	REFUSED("no turns", s.turns = 0);
	REFUSED("more turns than requests", s.turns = 100; s.requests_most = 99);
	REFUSED("the think time", s.think_s = -1);
	REFUSED("the think time", s.think_s = NAN);
	REFUSED("a shared prefix needs both", s.prefix_tokens = 5);
	REFUSED("a shared prefix needs both", s.prefix_groups = 5);
	REFUSED("the shared prefix has more", s.prefix_groups = 5; s.prefix_tokens = 10000001);
	REFUSED("prompt: lengths", s.input.mean = 0);
	REFUSED("answer: lengths", s.output.min = 2000);
	REFUSED("a closed loop needs", s.arrival = LOAD_CLOSED; s.users = 0);
	REFUSED("a closed loop needs", s.arrival = LOAD_CLOSED; s.users = 5; s.requests_most = 4);
	REFUSED("no trace file", s.arrival = LOAD_TRACE);
	REFUSED("the speed of the trace", s.arrival = LOAD_TRACE; s.trace = "t"; s.trace_speed = 0);
	REFUSED("a trace has lengths", s.arrival = LOAD_TRACE; s.trace = "t"; s.turns = 2);
	REFUSED("a trace has lengths", s.arrival = LOAD_TRACE; s.trace = "t"; s.dataset_rows = 2);
	REFUSED("a trace has lengths", s.arrival = LOAD_TRACE; s.trace = "t"; s.prefix_groups = 2;
		s.prefix_tokens = 1);
}

static void test_load_plan__a_trace(void **state)
{
	static const char text[] =
		"{\"timestamp\": 1000, \"input_length\": 513, \"output_length\": 5, \"hash_ids\": [7, 8]}\n"
		"{\"timestamp\": 1000, \"input_length\": 100, \"output_length\": 0}\n"
		"{\"timestamp\": 1500.5, \"input_length\": 1024, \"output_length\": 6, \"hash_ids\": [7, 9]}\n"
		"{\"timestamp\": 3000, \"input_length\": 3, \"output_length\": 9}\n";
	struct load_plan_spec spec = base();
	struct error err = {0};
	char path[PATH_MAX];
	struct load_plan p;

	snprintf(path, sizeof(path), "%s/trace", (char *)*state);
	assert_int_equal(file_write(path, text, sizeof(text) - 1, &err), STATUS_OK);
	spec.arrival = LOAD_TRACE;
	spec.trace = path;
	spec.duration_s = 0;
	spec.rate = 0;
	p = made(&spec);
	assert_int_equal(p.count, 3);
	assert_int_equal(p.sessions, 3);
	assert_int_equal(p.skipped, 1);
	assert_true(p.trace && p.duration_s == 3 &&
		    p.offered == 1); /* two gaps of 1 s in the mean, and one more */
	assert_int_equal(p.request[1].at_ns, 500500000);
	assert_int_equal(p.request[2].at_ns, 2000000000);
	assert_int_equal(p.request[0].prompt_tokens, 513);
	assert_int_equal(p.request[1].output_tokens, 6);
	assert_int_equal(p.request[1].block_count, 2);
	assert_true(p.request[1].blocks[0] == 7 && p.request[1].blocks[1] == 9 &&
		    p.request[0].blocks[1] == 8);
	assert_true(!p.request[2].blocks && p.request[2].source != p.request[1].source);
	load_plan_release(&p);
	spec.trace_speed = 2;
	spec.duration_s = 0.9;
	p = made(&spec);
	assert_int_equal(p.count, 2);
	assert_int_equal(p.request[1].at_ns, 250250000);
	assert_true(p.duration_s == 0.9 && fabs(p.offered - 2 / 0.9) < 1e-9); /* it goes on later */
	load_plan_release(&p);
	spec.duration_s = 2;
	p = made(&spec);
	assert_true(p.count == 3 && p.duration_s == 1.5); /* it ends before */
	load_plan_release(&p);
	spec.duration_s = 0.9;
	spec.requests_most = 1;
	refused(&spec, "trace:3: the trace has more than 1 requests");
	spec.trace = "/nowhere";
	assert_int_not_equal(load_plan_make(&p, &spec, &err), STATUS_OK);
	assert_non_null(strstr(err.text, "/nowhere"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_load_plan__constant),
		cmocka_unit_test(test_load_plan__is_a_function_of_seed_and_options),
		cmocka_unit_test(test_load_plan__a_rate_changes_no_length),
		cmocka_unit_test(test_load_plan__conversations),
		cmocka_unit_test(test_load_plan__a_dataset_gives_rows),
		cmocka_unit_test(test_load_plan__a_closed_loop),
		cmocka_unit_test(test_load_plan__the_limit_of_requests),
		cmocka_unit_test(test_load_plan__what_is_refused),
		scratch_test(test_load_plan__a_trace),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
