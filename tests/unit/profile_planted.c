/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faults planted in programs, each behind a start-up that is longer than all its steps: the fault is the
 * first finding, and its size is what was planted. A well-written loop has none.
 */
#include "test.h"
#include "profile/page/internal.h"
#include "profile_program.h"
#include "scratch.h"

enum { STEPS = 40, LAYERS = 12 };

static struct program rank[PROGRAM_RANKS];

struct found {
	struct timeline t;
	struct findings f;
	struct savings buys;
};

static void look(struct found *o, const char *dir, unsigned ranks)
{
	struct error err = {0};

	for (unsigned r = 0; r < ranks; r++)
		program_end(&rank[r]);
	read_back(&o->t, dir);
	assert_int_equal(findings_of(&o->f, &o->t, NULL, &err), STATUS_OK);
	o->buys = savings_of(&o->f);
}

static void done(struct found *o)
{
	findings_release(&o->f);
	timeline_release(&o->t);
}

/* Model and data are loaded, kernels chosen: seconds, with every kind of idle time. */
static void start_up(struct program *p)
{
	for (unsigned i = 0; i < 30; i++) {
		program_sleep(p, 60 * MS);
		program_allocate(p, 2 * MS);
		program_copy(p, 64 << 20, 8 * MS, true);
	}
	for (unsigned i = 0; i < 20; i++) {
		program_sleep(p, 20 * MS);
		program_kernel(p, "autotune", 2 * MS);
		program_wait(p);
	}
	program_sleep(p, 3000 * MS);
}

static void begin(const char *dir, unsigned ranks)
{
	for (unsigned r = 0; r < ranks; r++) {
		program_begin(&rank[r], dir, r, ranks);
		start_up(&rank[r]);
	}
}

/* Forward and backward of a model, whose host runs ahead. */
static void layers(struct program *p, uint64_t each_ns)
{
	for (unsigned i = 0; i < LAYERS; i++) {
		program_kernel(p, "void gemm<float>(int)", each_ns);
		program_kernel(p, "norm", each_ns / 10);
	}
}

/* What a good loop does in a step: 20 ms of work, the batch copied by a pinned copy. */
static void good_step(struct program *p)
{
	program_copy(p, 4 << 20, 100 * US, false);
	layers(p, 1500 * US);
	program_kernel(p, "optimiser", 400 * US);
}

static void first_is(const struct found *o, const char *key, double per_step_ns)
{
	const struct savings_line *l = &o->buys.line[0];

	if (!o->buys.lines || strcmp(l->key, key) != 0)
		fail_msg("the first finding is %s (%s), not %s; %zu steps", o->buys.lines ? l->key : "none",
			 o->buys.lines ? l->evidence : "", key, o->f.steps.steps);
	if (l->per_step_ns < 0.8 * per_step_ns || l->per_step_ns > 1.2 * per_step_ns)
		fail_msg("%s: %.0f ns a step, not %.0f: %s", key, l->per_step_ns, per_step_ns, l->evidence);
}

static void steps_are(const struct found *o, size_t process, size_t least, size_t most)
{
	size_t steps = o->f.steps.process[process].steps;

	if (steps < least || steps > most)
		fail_msg("%zu steps, not %zu to %zu; begun by %s", steps, least, most,
			 timeline_name(&o->t, o->f.steps.process[process].name));
}

static void test_planted__a_well_written_loop_has_no_finding(void **state)
{
	struct found o;

	begin(*state, 1);
	for (unsigned i = 0; i < STEPS; i++) {
		good_step(&rank[0]);
		if (i % 10 == 9) { /* a line of the log */
			program_wait(&rank[0]);
			program_sleep(&rank[0], 200 * US);
		}
	}
	look(&o, *state, 1);
	steps_are(&o, 0, STEPS - 4, STEPS);
	if (o.buys.lines)
		fail_msg("%s: %s", o.buys.line[0].knob, o.buys.line[0].evidence);
	done(&o);
}

static void data_parallel(unsigned ranks, void (*plant)(struct program *p, unsigned rank, unsigned step))
{
	for (unsigned i = 0; i < STEPS; i++) {
		for (unsigned r = 0; r < ranks; r++) {
			plant(&rank[r], r, i);
			good_step(&rank[r]);
		}
		program_all_reduce(rank, ranks, 64 << 20, 500 * US);
		for (unsigned r = 0; r < ranks; r++)
			program_wait(&rank[r]);
	}
}

static void nothing(struct program *p, unsigned r, unsigned step)
{
	(void)p;
	(void)r;
	(void)step;
}

static void more_compute(struct program *p, unsigned r, unsigned step)
{
	(void)step;
	if (r == 1)
		program_kernel(p, "more_work", 12 * MS);
}

static void later_host(struct program *p, unsigned r, unsigned step)
{
	(void)step;
	if (r != 1)
		return;
	program_range(p, "augment");
	program_sleep(p, 12 * MS);
	program_range(p, NULL);
}

static void every_tenth(struct program *p, unsigned r, unsigned step)
{
	if (r == 1 && step % 10 == 5)
		program_kernel(p, "more_work", 12 * MS);
}

static void test_planted__ranks_that_are_alike_have_no_late_one(void **state)
{
	struct found o;

	begin(*state, 2);
	data_parallel(2, nothing);
	look(&o, *state, 2);
	assert_false(o.f.late.found);
	done(&o);
}

static void late_in(const char *dir, unsigned ranks, void (*plant)(struct program *, unsigned, unsigned),
		    size_t late_steps, double ns, struct found *o)
{
	begin(dir, ranks);
	data_parallel(ranks, plant);
	look(o, dir, ranks);
	steps_are(o, 0, STEPS - 4, STEPS);
	first_is(o, "late_rank", ns * (double)late_steps / STEPS);
	assert_int_equal(o->t.process[o->f.late.process].rank, 1);
	assert_true(o->f.late.late_steps + 4 >= late_steps && o->f.late.late_steps <= late_steps);
	assert_true(o->f.late.median_ns > 0.8 * ns && o->f.late.median_ns < 1.2 * ns);
	assert_non_null(strstr(o->buys.line[0].knob, "rank 1 (pid "));
}

static void test_planted__a_rank_that_computes_more_is_late(void **state)
{
	struct found o;

	late_in(*state, 2, more_compute, STEPS, 12 * MS, &o);
	assert_int_equal(o.f.late.state, BREAKDOWN_COMPUTE);
	assert_string_equal(timeline_name(&o.t, o.f.late.kernel.name), "more_work");
	done(&o);
}

/* One rank alone opens ranges, as torch.profiler's users do; the other one computes what makes its steps uneven. */
static void ranged_step(struct program *p, unsigned r, unsigned step)
{
	if (!r && step)
		program_range(p, NULL);
	if (!r)
		program_range(p, "step");
	for (unsigned i = 0; r && i < step * 7 % 50; i++)
		program_kernel(p, "uneven", 20 * US);
	more_compute(p, r, step);
}

static void test_planted__ranks_share_the_steps_of_one_that_opens_ranges(void **state)
{
	struct found o;

	begin(*state, 2);
	data_parallel(2, ranged_step);
	look(&o, *state, 2);
	for (size_t p = 0; p < 2; p++) {
		steps_are(&o, p, STEPS - 4, STEPS);
		assert_int_equal(o.f.steps.process[p].mark, STEPS_RANGE);
	}
	assert_true(o.f.late.found);
	done(&o);
}

static void test_planted__so_it_is_among_four(void **state)
{
	struct found o;

	late_in(*state, 4, more_compute, STEPS, 12 * MS, &o);
	assert_int_equal(o.f.late.ranks, 4);
	assert_int_equal(o.f.late.also, 0);
	done(&o);
}

static void test_planted__a_rank_whose_host_is_late_is_told_by_its_range(void **state)
{
	struct found o;

	late_in(*state, 2, later_host, STEPS, 12 * MS, &o);
	assert_true(o.f.late.state == BREAKDOWN_REST || o.f.late.state == BREAKDOWN_DATA);
	assert_string_equal(timeline_name(&o.t, o.f.late.range.name), "augment");
	assert_non_null(strstr(o.buys.line[0].evidence, "in its NVTX range \"augment\""));
	done(&o);
}

static void test_planted__a_rank_late_in_every_tenth_step_is_named_with_these(void **state)
{
	struct found o;

	late_in(*state, 2, every_tenth, STEPS / 10, 12 * MS, &o);
	assert_int_equal(o.f.late.late_steps, STEPS / 10);
	done(&o);
}

static void test_planted__a_slow_loader(void **state)
{
	struct found o;

	begin(*state, 1);
	for (unsigned i = 0; i < STEPS; i++) {
		program_sleep(&rank[0], 15 * MS);
		good_step(&rank[0]);
		program_wait(&rank[0]);
	}
	look(&o, *state, 1);
	steps_are(&o, 0, STEPS - 4, STEPS);
	first_is(&o, "data", 15 * MS);
	done(&o);
}

static void test_planted__a_launch_bound_loop(void **state)
{
	struct found o;

	begin(*state, 1);
	for (unsigned i = 0; i < STEPS; i++) {
		for (unsigned k = 0; k < 200; k++)
			program_kernel(&rank[0], "add", 2 * US);
		program_wait(&rank[0]);
	}
	look(&o, *state, 1);
	steps_are(&o, 0, STEPS - 4, STEPS);
	first_is(&o, "launch", 200 * 3 * US);
	assert_non_null(strstr(o.buys.line[0].evidence, "includes 1 to 5 us that recording adds to each launch"));
	done(&o);
}

/* The same from a graph: its nodes are queued, the host is late between the launches, and graphs are there.
 */
static void test_planted__a_loop_of_graphs_is_not_told_to_use_graphs(void **state)
{
	struct found o;

	begin(*state, 1);
	for (unsigned i = 0; i < STEPS; i++) {
		uint32_t correlation;

		program_copy(&rank[0], 4096, 2 * US, false); /* arguments */
		correlation = ++rank[0].correlation;
		program_call(&rank[0], "cudaGraphLaunch", 20 * US, correlation);
		for (unsigned k = 0; k < 100; k++)
			program_node(&rank[0], k % 2 ? "attention" : "gemm", 20 * US, correlation);
		program_wait(&rank[0]);
		for (unsigned k = 0; k < 4; k++) { /* the scheduler, which makes calls now and then */
			program_sleep(&rank[0], 200 * US);
			program_call(&rank[0], "cudaEventRecord", 2 * US, 0);
		}
	}
	look(&o, *state, 1);
	steps_are(&o, 0, STEPS - 4, STEPS);
	assert_true(o.buys.lines > 0);
	for (size_t i = 0; i < o.buys.lines; i++) {
		assert_null(strstr(o.buys.line[i].knob, "torch.cuda.graph"));
		assert_string_not_equal(o.buys.line[i].key, "data");
	}
	done(&o);
}

static size_t times(const char *text, const char *word)
{
	size_t count = 0;

	for (const char *at = text; (at = strstr(at, word)); at++)
		count++;
	return count;
}

/* Both devices twice, in the whole program and in one step, each there with its own lane of communication. */
static void picture_shows_communication(const struct found *o)
{
	const struct page page = {.f = &o->f, .command = "train", .ending = "exit code 0", .note = ""};
	struct text svg = {0};

	assert_true(page_lanes(&svg, &page));
	assert_int_equal(times(text_str(&svg), ">rank 0, GPU "), 2);
	assert_int_equal(times(text_str(&svg), ">rank 1, GPU "), 2);
	assert_int_equal(times(text_str(&svg), ">The whole program, "), 1);
	assert_int_equal(times(text_str(&svg), ">One step, 2"), 1); /* of 26 ms */
	assert_int_equal(times(text_str(&svg), "class=\"f-s1\""), 3); /* legend, an all-reduce each */
	text_release(&svg);
}

static void test_planted__exposed_communication(void **state)
{
	struct found o;

	begin(*state, 2);
	for (unsigned i = 0; i < STEPS; i++) {
		for (unsigned r = 0; r < 2; r++)
			good_step(&rank[r]);
		program_all_reduce(rank, 2, 512 << 20, 6 * MS);
	}
	look(&o, *state, 2);
	steps_are(&o, 0, STEPS - 4, STEPS);
	first_is(&o, "communication", 6 * MS);
	picture_shows_communication(&o);
	done(&o);
}

static void test_planted__pageable_copies(void **state)
{
	struct found o;

	begin(*state, 1);
	for (unsigned i = 0; i < STEPS; i++) {
		program_copy(&rank[0], 64 << 20, 8 * MS, true);
		layers(&rank[0], 1500 * US);
	}
	look(&o, *state, 1);
	steps_are(&o, 0, STEPS - 4, STEPS);
	first_is(&o, "pageable", 8 * MS);
	done(&o);
}

static void test_planted__allocation_in_the_loop(void **state)
{
	struct found o;

	begin(*state, 1);
	for (unsigned i = 0; i < STEPS; i++) {
		program_allocate(&rank[0], 3 * MS);
		program_copy(&rank[0], 4 << 20, 100 * US, false); /* the gap before it is the allocation's all the same */
		layers(&rank[0], 1500 * US);
		program_free(&rank[0], 2 * MS);
	}
	look(&o, *state, 1);
	steps_are(&o, 0, STEPS - 4, STEPS);
	first_is(&o, "allocation", 5 * MS);
	done(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		scratch_test(test_planted__a_well_written_loop_has_no_finding),
		scratch_test(test_planted__ranks_that_are_alike_have_no_late_one),
		scratch_test(test_planted__a_rank_that_computes_more_is_late),
		scratch_test(test_planted__ranks_share_the_steps_of_one_that_opens_ranges),
		scratch_test(test_planted__so_it_is_among_four),
		scratch_test(test_planted__a_rank_whose_host_is_late_is_told_by_its_range),
		scratch_test(test_planted__a_rank_late_in_every_tenth_step_is_named_with_these),
		scratch_test(test_planted__a_slow_loader),
		scratch_test(test_planted__a_launch_bound_loop),
		scratch_test(test_planted__a_loop_of_graphs_is_not_told_to_use_graphs),
		scratch_test(test_planted__exposed_communication),
		scratch_test(test_planted__pageable_copies),
		scratch_test(test_planted__allocation_in_the_loop),
	};

	return cmocka_run_group_tests_name("profile_planted", tests, NULL, NULL);
}
