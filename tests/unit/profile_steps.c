/* SPDX-License-Identifier: Apache-2.0 */
/* Which part of a program is found to be its step: by ranges, by what comes again, or none. */
#include "test.h"
#include "profile_program.h"
#include "scratch.h"

enum { STEPS = 30 };

static struct program one;

struct found {
	struct timeline t;
	struct nccl n;
	struct steps s;
};

static const struct steps_process *look(struct found *o, const char *dir)
{
	struct error err = {0};

	program_end(&one);
	read_back(&o->t, dir);
	assert_int_equal(nccl_of(&o->n, &o->t, &err), STATUS_OK);
	assert_int_equal(steps_of(&o->s, &o->t, &o->n, &err), STATUS_OK);
	return &o->s.process[0];
}

static void done(struct found *o)
{
	steps_release(&o->s);
	nccl_release(&o->n);
	timeline_release(&o->t);
}

/* A step of `layers` layers of three kernels, with head and tail. */
static void layered_step(unsigned layers)
{
	program_kernel(&one, "embed", 50 * US);
	for (unsigned i = 0; i < layers; i++) {
		program_kernel(&one, "gemm", 300 * US);
		program_kernel(&one, "attention", 200 * US);
		program_kernel(&one, "norm", 30 * US);
	}
	program_kernel(&one, "loss", 50 * US);
	program_kernel(&one, "optimiser", 400 * US);
}

static void test_steps__a_layer_is_no_step(void **state)
{
	const struct steps_process *p;
	struct found o;

	program_begin(&one, *state, 0, 1);
	for (unsigned i = 0; i < STEPS; i++)
		layered_step(24);
	p = look(&o, *state);
	assert_int_equal(p->mark, STEPS_EVENT);
	assert_in_range(p->steps, STEPS - 3, STEPS);
	assert_true(p->median_ns > 12 * MS && p->median_ns < 14 * MS);
	done(&o);
}

static void test_steps__slow_first_steps_are_start_up(void **state)
{
	const struct steps_process *p;
	struct found o;

	program_begin(&one, *state, 0, 1);
	for (unsigned i = 0; i < STEPS; i++) {
		layered_step(8);
		program_wait(&one);
		program_sleep(&one, i < 2 ? 900 * MS : 0);
	}
	p = look(&o, *state);
	assert_in_range(p->steps, STEPS - 4, STEPS - 2);
	assert_true(o.s.each.span[0].from_ns - p->first_ns > 1800 * MS);
	done(&o);
}

/* The batch is copied, and four layers work on it. */
static void copied_step(void)
{
	program_copy(&one, 1 << 20, 50 * US, false);
	layered_step(4);
}

static void test_steps__a_log_of_every_tenth_step_does_not_make_ten_of_them_one(void **state)
{
	const struct steps_process *p;
	struct found o;

	program_begin(&one, *state, 0, 1);
	for (unsigned i = 0; i < 60; i++) {
		copied_step();
		if (i % 10 == 9)
			program_wait(&one);
	}
	p = look(&o, *state);
	assert_in_range(p->steps, 56, 60);
	done(&o);
}

static void test_steps__an_evaluation_between_is_not_counted(void **state)
{
	const struct steps_process *p;
	struct found o;

	program_begin(&one, *state, 0, 1);
	for (unsigned i = 0; i < 60; i++) {
		copied_step();
		for (unsigned k = 0; i % 20 == 19 && k < 20; k++)
			program_kernel(&one, "evaluate", 1 * MS);
	}
	p = look(&o, *state);
	assert_in_range(p->steps, 54, 58);
	assert_true(p->p90_ns < 10 * MS);
	done(&o);
}

static void range_of(const char *name, unsigned number)
{
	char text[64];

	snprintf(text, sizeof(text), name, number);
	program_range(&one, text);
}

/* Each step has a name of its own. */
static void test_steps__ranges_go_before_what_comes_again(void **state)
{
	const struct steps_process *p;
	struct found o;

	program_begin(&one, *state, 0, 1);
	for (unsigned i = 0; i < STEPS; i++) {
		range_of("train step %u", i);
		for (unsigned k = 0; k < 2 + i % 5; k++) { /* as many kernels as the batch has */
			program_range(&one, "layer");
			program_kernel(&one, "gemm", 300 * US);
			program_range(&one, NULL);
		}
		program_range(&one, NULL);
	}
	p = look(&o, *state);
	assert_int_equal(p->mark, STEPS_RANGE);
	assert_true(p->numbered);
	assert_string_equal(timeline_name(&o.t, p->name), "train step 0");
	assert_in_range(p->steps, STEPS - 4, STEPS);
	done(&o);
}

static void test_steps__a_range_that_launches_nothing_is_none(void **state)
{
	const struct steps_process *p;
	struct found o;

	program_begin(&one, *state, 0, 1);
	for (unsigned i = 0; i < STEPS; i++) {
		program_range(&one, "fetch step");
		program_sleep(&one, 100 * US);
		program_range(&one, NULL);
		layered_step(4);
	}
	p = look(&o, *state);
	assert_int_equal(p->mark, STEPS_EVENT);
	done(&o);
}

static void test_steps__a_program_without_a_loop_has_none(void **state)
{
	const struct steps_process *p;
	struct found o;
	char name[32];

	program_begin(&one, *state, 0, 1);
	for (unsigned i = 0; i < 200; i++) {
		snprintf(name, sizeof(name), "kernel_%u", i % 97 * i % 89);
		program_kernel(&one, name, (1 + i * i % 37) * 100 * US);
	}
	p = look(&o, *state);
	assert_int_equal(p->steps, 0);
	assert_null(steps_steady(&o.s));
	done(&o);
}

/* Six fills at the start of much other work. */
static void test_steps__what_comes_again_at_the_start_alone_is_no_step(void **state)
{
	const struct steps_process *p;
	struct found o;
	char name[32];

	program_begin(&one, *state, 0, 1);
	for (unsigned i = 0; i < 8; i++)
		program_kernel(&one, "fill", 100 * US);
	for (unsigned i = 0; i < 200; i++) {
		snprintf(name, sizeof(name), "kernel_%u", i);
		program_kernel(&one, name, (1 + i * i % 37) * 100 * US);
	}
	p = look(&o, *state);
	assert_int_equal(p->steps, 0);
	done(&o);
}

static void test_steps__replays_of_a_graph(void **state)
{
	const struct steps_process *p;
	struct found o;

	program_begin(&one, *state, 0, 1);
	for (unsigned i = 0; i < STEPS; i++) {
		uint32_t correlation = ++one.correlation;

		program_call(&one, "cudaGraphLaunch", 10 * US, correlation);
		for (unsigned k = 0; k < 50; k++)
			program_node(&one, "node", 10 * US, correlation);
	}
	p = look(&o, *state);
	assert_int_equal(p->kind, TIMELINE_GRAPH);
	assert_in_range(p->steps, STEPS - 4, STEPS);
	done(&o);
}

/* The calls were not recorded, and another stream's kernels run between the nodes of each graph. */
static void test_steps__replays_of_a_graph_beside_another_stream_without_calls(void **state)
{
	const struct steps_process *p;
	struct found o;

	program_begin(&one, *state, 0, 1);
	for (unsigned i = 0; i < STEPS; i++) {
		uint32_t correlation = ++one.correlation;

		for (unsigned k = 0; k < 20; k++) {
			program_node(&one, "node", 10 * US, correlation);
			if (k * (i % 3 + 1) % 5 == 1)
				add_kernel(&one.w, "beside", one.gpu_ns - 5 * US, 2 * US, ++one.correlation);
		}
		program_sleep(&one, 300 * US);
	}
	p = look(&o, *state);
	assert_int_equal(p->kind, TIMELINE_GRAPH);
	assert_in_range(p->steps, STEPS - 4, STEPS);
	done(&o);
}

/* A forward pass of an inference server, layer by layer, each of `kernel_ns` three times. */
static void served_pass(uint64_t kernel_ns)
{
	program_kernel(&one, "embed", kernel_ns);
	for (unsigned i = 0; i < 28; i++) {
		program_kernel(&one, "gemm", kernel_ns);
		program_kernel(&one, "attention", kernel_ns);
		program_kernel(&one, "norm", kernel_ns);
	}
}

static void served_token(void)
{
	uint32_t correlation = ++one.correlation;

	program_copy(&one, 4096, 2 * US, false);
	program_call(&one, "cudaGraphLaunch", 10 * US, correlation);
	for (unsigned k = 0; k < 85; k++)
		program_node(&one, "node", 70 * US, correlation);
	program_kernel(&one, "sample", 20 * US);
	program_wait(&one);
}

/*
 * As vLLM runs: each size is warmed up with the host at work between, prompts are read layer by layer, then a
 * graph a token. The warm-up lasts longer than the tokens, and its layers and the prompts' hold more of the
 * kernels' time.
 */
static void test_steps__a_server_s_steps_are_its_tokens_and_not_its_warm_up(void **state)
{
	const struct steps_process *p;
	struct found o;

	program_begin(&one, *state, 0, 1);
	for (unsigned i = 0; i < 60; i++) {
		program_sleep(&one, 60 * MS);
		served_pass(100 * US);
		program_wait(&one);
	}
	for (unsigned prompt = 0; prompt < 2; prompt++) {
		served_pass(3 * MS);
		for (unsigned token = 0; token < 64; token++)
			served_token();
	}
	p = look(&o, *state);
	assert_in_range(p->steps, 2 * 64 - 8, 2 * 64);
	assert_true(p->median_ns > 5 * MS && p->median_ns < 7 * MS);
	done(&o);
}

/* On a stream of its own, which has nothing else to do: the copy runs when the host asks for it. */
static void copy_ahead(void)
{
	struct ring_copy c = {.head = {.type = RING_COPY, .size = sizeof(c)},
			      .bytes = 1 << 20,
			      .context = 1,
			      .stream = 9,
			      .correlation = ++one.correlation,
			      .kind = 1,
			      .from = 2,
			      .to = 3};

	program_call(&one, "cudaMemcpyAsync", PROGRAM_CALL_NS, c.correlation);
	c.start = one.host_ns + PROGRAM_LATENCY_NS + CUPTI_AHEAD;
	c.end = c.start + 20 * US;
	writer_add(&one.w, &c);
}

/* The host waits once in ten steps, so that copies of ten batches run at once. Steps are told by a kernel. */
static void test_steps__copies_that_run_ahead_are_no_marks(void **state)
{
	const struct steps_process *p;
	struct found o;

	program_begin(&one, *state, 0, 1);
	copy_ahead(); /* the first batch */
	for (unsigned i = 0; i < 60; i++) {
		copy_ahead();
		program_kernel(&one, "embed", 50 * US);
		for (unsigned k = 0; k < 19; k++)
			program_kernel(&one, "gemm", 100 * US);
		if (i % 10 == 9)
			program_wait(&one);
	}
	p = look(&o, *state);
	assert_int_equal(p->kind, TIMELINE_KERNEL);
	assert_in_range(p->steps, 55, 60);
	assert_true(p->median_ns > 1.9 * MS && p->median_ns < 2.1 * MS);
	assert_true(p->mean_ns > 1.9 * MS && p->mean_ns < 2.1 * MS);
	done(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		scratch_test(test_steps__a_layer_is_no_step),
		scratch_test(test_steps__slow_first_steps_are_start_up),
		scratch_test(test_steps__a_log_of_every_tenth_step_does_not_make_ten_of_them_one),
		scratch_test(test_steps__an_evaluation_between_is_not_counted),
		scratch_test(test_steps__ranges_go_before_what_comes_again),
		scratch_test(test_steps__a_range_that_launches_nothing_is_none),
		scratch_test(test_steps__a_program_without_a_loop_has_none),
		scratch_test(test_steps__what_comes_again_at_the_start_alone_is_no_step),
		scratch_test(test_steps__replays_of_a_graph),
		scratch_test(test_steps__replays_of_a_graph_beside_another_stream_without_calls),
		scratch_test(test_steps__a_server_s_steps_are_its_tokens_and_not_its_warm_up),
		scratch_test(test_steps__copies_that_run_ahead_are_no_marks),
	};

	return cmocka_run_group_tests_name("profile_steps", tests, NULL, NULL);
}
