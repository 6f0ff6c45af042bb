/* SPDX-License-Identifier: Apache-2.0 */
/* Where a device's time went: each moment once, by what ran and by what the host did while nothing did. */
#include "test.h"
#include <math.h>
#include "profile/findings/findings.h"
#include "profile/findings/savings.h"
#include "profile_bed.h"
#include "scratch.h"

#define US 1000ull
#define MS 1000000ull

static void find(struct findings *f, struct timeline *t, const char *dir)
{
	struct error err = {0};

	read_back(t, dir);
	assert_int_equal(findings_of(f, t, NULL, &err), STATUS_OK);
}

static void done(struct findings *f, struct timeline *t)
{
	findings_release(f);
	timeline_release(t);
}

static void assert_states(const struct breakdown_device *d, const uint64_t *state)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < BREAKDOWN_STATE_COUNT; i++) {
		if (d->state_ns[i] != state[i])
			fail_msg("%s: %llu ns, not %llu", breakdown_name(i),
				 (unsigned long long)d->state_ns[i], (unsigned long long)state[i]);
		sum += d->state_ns[i];
	}
	assert_int_equal(sum, d->span_ns);
}

static void kernel(struct writer *w, uint64_t call_ns, uint64_t start_ns, uint64_t ns)
{
	bed_launch(w, (struct bed_kernel){"gemm", call_ns, start_ns, ns, .thread = 42, .stream = 7});
}

static void copy(struct writer *w, uint8_t kind, uint64_t start_ns, uint64_t ns)
{
	struct ring_copy c = {.head = {.type = RING_COPY, .size = sizeof(c)},
			      .start = start_ns + CUPTI_AHEAD,
			      .end = start_ns + ns + CUPTI_AHEAD,
			      .bytes = 1 << 20,
			      .context = 1,
			      .stream = 9,
			      .kind = kind,
			      .from = 1};

	writer_add(w, &c);
}

static void test_breakdown__a_moment_of_several_is_counted_once(void **state)
{
	const uint64_t should[BREAKDOWN_STATE_COUNT] = {[BREAKDOWN_COMPUTE] = 170 * US,
							[BREAKDOWN_COMMUNICATION] = 60 * US,
							[BREAKDOWN_COPY] = 20 * US,
							[BREAKDOWN_DATA] = 30 * US};
	const struct breakdown_device *d;
	struct findings f;
	struct timeline t;
	struct writer w;

	bed_open(&w, *state);
	kernel(&w, 0, 1000 * US, 100 * US);
	kernel(&w, 0, 1050 * US, 100 * US); /* beside the first for 50 us */
	bed_launch(&w, (struct bed_kernel){"ncclDevKernel_AllReduce_Sum_f32_RING_LL", 0, 1130 * US, 80 * US,
					   .stream = 20}); /* 20 of them under compute */
	copy(&w, 2, 1200 * US, 30 * US); /* device to host: 10 of them under communication */
	copy(&w, 1, 1225 * US, 35 * US); /* host to device: 5 of them under the other copy */
	kernel(&w, 0, 1260 * US, 20 * US);
	bed_close(&w);
	find(&f, &t, *state);
	assert_int_equal(f.whole.breakdown.devices, 1);
	d = &f.whole.breakdown.device[0];
	assert_states(d, should);
	assert_int_equal(d->communication_ns, 80 * US);
	assert_int_equal(d->hidden_ns, 20 * US);
	assert_int_equal(d->compute_ns, 170 * US);
	assert_int_equal(d->busy_ns, 280 * US);
	assert_int_equal(d->busy_ns, f.whole.summary.device[0].busy_ns);
	assert_int_equal(d->data_copy_ns, 30 * US);
	assert_int_equal(d->gaps, 0);
	done(&f, &t);
}

/* The device runs dry while the host waits for it: what follows until the next launch is the wait's. */
static void test_breakdown__a_gap_is_of_what_the_host_did(void **state)
{
	const uint64_t should[BREAKDOWN_STATE_COUNT] = {[BREAKDOWN_COMPUTE] = 500 * US,
							[BREAKDOWN_SYNC] = 60 * US,
							[BREAKDOWN_LAUNCH] = 10 * US + 80 * US,
							[BREAKDOWN_REST] = 4900 * US,
							[BREAKDOWN_DATA] = 250 * US};
	const struct breakdown_device *d;
	struct findings f;
	struct timeline t;
	struct writer w;

	bed_open(&w, *state);
	kernel(&w, 900 * US, 1000 * US, 100 * US);
	add_call(&w, "cudaStreamSynchronize", 950 * US, 160 * US, 1); /* to 1110 */
	kernel(&w, 1160 * US, 1170 * US, 100 * US);		      /* 60 after the wait, 10 to launch */
	kernel(&w, 1350 * US, 1350 * US, 100 * US);		      /* nobody waited: launched 80 late */
	kernel(&w, 6350 * US, 6350 * US, 100 * US);		      /* no call for 4.9 ms */
	copy(&w, 1, 6650 * US, 50 * US);
	kernel(&w, 6500 * US, 6700 * US, 100 * US);
	bed_close(&w);
	find(&f, &t, *state);
	d = &f.whole.breakdown.device[0];
	assert_states(d, should);
	assert_int_equal(d->gaps, 4);
	assert_int_equal(d->waits, 1);
	assert_string_equal(timeline_name(&t, d->waited_in), "cudaStreamSynchronize");
	assert_int_equal(d->longest_gap_ns, 4900 * US);
	assert_int_equal(breakdown_idle_ns(d), d->span_ns - 500 * US);
	done(&f, &t);
}

/* The edge of another rank's step lies in each of three gaps: a wait that had ended by then, a silence that
 * is long only as a whole, and a launch that is queued. */
static void test_breakdown__a_gap_over_the_edge_of_a_step_is_judged_as_a_whole(void **state)
{
	const uint64_t should[BREAKDOWN_STATE_COUNT] = {[BREAKDOWN_COMPUTE] = 400 * US,
							[BREAKDOWN_SYNC] = 60 * US,
							[BREAKDOWN_LAUNCH] = 10 * US,
							[BREAKDOWN_REST] = 1200 * US,
							[BREAKDOWN_BETWEEN] = 30 * US};
	const uint64_t edge_ns[] = {1000 * US, 1140 * US, 1850 * US, 2585 * US, 2700 * US};
	const struct breakdown_device *d;
	struct breakdown b;
	struct error err = {0};
	struct findings f;
	struct windows steps;
	struct timeline t;
	struct writer w;

	bed_open(&w, *state);
	kernel(&w, 900 * US, 1000 * US, 100 * US);
	add_call(&w, "cudaStreamSynchronize", 950 * US, 160 * US, 1); /* to 1110 */
	kernel(&w, 1160 * US, 1170 * US, 100 * US);
	kernel(&w, 2470 * US, 2470 * US, 100 * US); /* no call for 1.2 ms */
	kernel(&w, 2480 * US, 2600 * US, 100 * US);
	bed_close(&w);
	find(&f, &t, *state);
	assert_true(windows_make(&steps, &t, 4));
	steps.apart = true;
	for (size_t i = 0; i < 4; i++)
		windows_add(&steps, &t, 0, edge_ns[i], edge_ns[i + 1]);
	assert_int_equal(breakdown_of(&b, &t, &f.nccl, &steps, &err), STATUS_OK);
	d = &b.device[0];
	assert_states(d, should);
	assert_int_equal(d->gaps, 3);
	assert_int_equal(d->waits, 1);
	assert_int_equal(d->longest_gap_ns, 1200 * US);
	assert_int_equal(d->window_ns[0][BREAKDOWN_SYNC], 40 * US);
	assert_int_equal(d->window_ns[1][BREAKDOWN_SYNC], 20 * US);
	assert_int_equal(d->window_ns[3][BREAKDOWN_BETWEEN], 15 * US);
	breakdown_release(&b);
	windows_release(&steps);
	done(&f, &t);
}

/* Another thread launches, which had nothing to do while the first waited (PyTorch's backward). */
static void test_breakdown__a_wait_of_another_thread_counts_where_the_launching_one_was_silent(void **state)
{
	const uint64_t should[BREAKDOWN_STATE_COUNT] = {
		[BREAKDOWN_COMPUTE] = 200 * US, [BREAKDOWN_SYNC] = 50 * US};
	struct findings f;
	struct timeline t;
	struct writer w;

	bed_open(&w, *state);
	kernel(&w, 900 * US, 1000 * US, 100 * US);
	add_call(&w, "cudaDeviceSynchronize", 950 * US, 155 * US, 1);
	bed_launch(&w,
		   (struct bed_kernel){"gemm", 1150 * US, 1150 * US, 100 * US, .thread = 77, .stream = 7});
	bed_close(&w);
	find(&f, &t, *state);
	assert_states(&f.whole.breakdown.device[0], should);
	done(&f, &t);
}

static void test_breakdown__without_calls_the_reason_is_not_known(void **state)
{
	const uint64_t should[BREAKDOWN_STATE_COUNT] = {
		[BREAKDOWN_COMPUTE] = 200 * US, [BREAKDOWN_REST] = 50 * US};
	struct findings f;
	struct timeline t;
	struct writer w;

	bed_open(&w, *state);
	kernel(&w, 0, 1000 * US, 100 * US);
	kernel(&w, 0, 1150 * US, 100 * US);
	bed_close(&w);
	find(&f, &t, *state);
	assert_states(&f.whole.breakdown.device[0], should);
	done(&f, &t);
}

/* Two ranks: the first begins 300 us before the second, 100 of them under a kernel of its own. */
static bool is_told(const struct findings *f, const char *words)
{
	const struct savings buys = savings_of(f);
	bool told = false;

	for (size_t i = 0; i < buys.lines; i++)
		told |= strstr(buys.line[i].evidence, "waited 200 us in NCCL") &&
			strstr(buys.line[i].evidence, words);
	return told;
}

static void test_breakdown__waiting_for_a_peer_is_idle_and_told_of_whom(void **state)
{
	const uint64_t should[BREAKDOWN_STATE_COUNT] = {[BREAKDOWN_COMPUTE] = 200 * US,
							[BREAKDOWN_COMMUNICATION] = 500 * US,
							[BREAKDOWN_PEER] = 200 * US};
	struct findings f;
	struct timeline t;

	for (uint32_t rank = 0; rank < 2; rank++) {
		uint64_t start_ns = rank ? 1300 * US : 1000 * US;
		struct writer w;

		bed_open(&w, *state);
		bed_comm(&w, 9, 2, rank);
		bed_call(&w, "ncclAllReduce", start_ns - 5 * US, 9, 1 << 20, 0);
		bed_launch(&w,
			   (struct bed_kernel){"ncclDevKernel_AllReduce_Sum_f32_RING_LL", start_ns - 4 * US,
					       start_ns, 1800 * US - start_ns, .thread = 1, .stream = 20});
		if (!rank)
			kernel(&w, 900 * US, 900 * US, 200 * US);
		w.header->rank = (int32_t)rank;
		bed_close(&w);
	}
	find(&f, &t, *state);
	assert_int_equal(f.whole.breakdown.devices, 2);
	assert_states(&f.whole.breakdown.device[0], should);
	assert_int_equal(f.whole.breakdown.device[1].state_ns[BREAKDOWN_PEER], 0);
	assert_true(is_told(&f, "200 us in NCCL for ranks that started later"));
	done(&f, &t);
}

static void test_breakdown__what_buys_little_is_not_said(void **state)
{
	struct savings buys;
	struct findings f;
	struct timeline t;
	struct writer w;

	bed_open(&w, *state);
	kernel(&w, 900 * US, 1 * MS, 50 * MS);
	kernel(&w, 51 * MS + 50 * US, 51 * MS + 100 * US, 50 * MS);
	bed_close(&w);
	find(&f, &t, *state);
	assert_int_equal(f.whole.breakdown.device[0].state_ns[BREAKDOWN_LAUNCH], 100 * US);
	buys = savings_of(&f);
	assert_int_equal(buys.lines, 0);
	done(&f, &t);
}

/* Three seconds before the first step are start-up; 2 ms before each of ten steps come again. */
static void test_breakdown__a_gap_before_the_first_step_is_not_to_be_saved_in_every_step(void **state)
{
	struct savings buys;
	struct findings f;
	struct timeline t;
	struct writer w;

	bed_open(&w, *state);
	kernel(&w, 0, 10 * MS, 1 * MS);
	for (unsigned i = 0; i < 11; i++)
		kernel(&w, 0, 3011 * MS + i * 3 * MS, 1 * MS);
	bed_close(&w);
	find(&f, &t, *state);
	assert_int_equal(f.whole.breakdown.device[0].state_ns[BREAKDOWN_REST], 3000 * MS + 10 * 2 * MS);
	assert_int_equal(breakdown_single_ns(&f.whole.breakdown.device[0], BREAKDOWN_REST), 3000 * MS);
	assert_int_equal(f.steps.process[0].steps, 10);
	assert_int_equal(f.start_up.device[0].span_ns, 3001 * MS);
	assert_int_equal(f.steady.breakdown.device[0].span_ns, 30 * MS);
	buys = savings_of(&f);
	assert_int_equal(buys.lines, 1);
	assert_true(fabs(buys.line[0].share - 2.0 / 3) < 1e-6);
	assert_true(fabs(buys.line[0].per_step_ns - 2.0 * MS) < 1);
	done(&f, &t);
}

/* A pause in the middle of the loop, as a checkpoint makes it. */
static void test_breakdown__what_comes_once_is_told_beside_what_comes_again(void **state)
{
	struct savings buys;
	struct findings f;
	struct timeline t;
	struct writer w;

	bed_open(&w, *state);
	for (unsigned i = 0; i < 100; i++)
		kernel(&w, 0, 10 * MS + i * 3 * MS + (i < 50 ? 0 : 297 * MS), 1 * MS);
	bed_close(&w);
	find(&f, &t, *state);
	buys = savings_of(&f);
	assert_int_equal(buys.lines, 1);
	assert_true(fabs(buys.line[0].share - 98.0 * 2 / 594) < 1e-6);
	assert_non_null(strstr(buys.line[0].evidence, "single gaps took another 299 ms"));
	done(&f, &t);
}

static void test_breakdown__copies_are_told_by_the_hosts_memory(void **state)
{
	struct ring_copy c = {
		.head = {.type = RING_COPY, .size = sizeof(c)}, .context = 1, .stream = 9, .kind = 1};
	struct ring_device d = {.head = {.type = RING_DEVICE, .size = sizeof(d)},
				.bandwidth_bytes = 3000000000000};
	struct copies copies;
	struct error err = {0};
	struct findings f;
	struct timeline t;
	struct writer w;
	char name[64];

	bed_open(&w, *state);
	writer_add(&w, &d);
	for (uint64_t i = 0; i < 4; i++) { /* three from pageable memory at 10, one of pinned at 50 GB/s */
		c.from = i < 3 ? 1 : 2;
		c.bytes = 10000000;
		c.start = CUPTI_AHEAD + i * 10 * MS + MS;
		c.end = c.start + (i < 3 ? 1000 * US : 200 * US);
		writer_add(&w, &c);
	}
	c.kind = 8;
	c.start = CUPTI_AHEAD + 90 * MS;
	c.end = c.start + 10 * US;
	writer_add(&w, &c);
	bed_close(&w);
	find(&f, &t, *state);
	assert_int_equal(copies_of(&copies, &t, NULL, 64e9, &err), STATUS_OK);
	assert_int_equal(copies.rows, 3);
	copies_name(name, sizeof(name), &copies.row[0]);
	assert_string_equal(name, "host to device, pageable");
	assert_int_equal(copies.row[0].count, 3);
	assert_true(copies.row[0].rate > 9.99e9 && copies.row[0].rate < 10.01e9);
	assert_true(copies.row[0].bound == 64e9);
	copies_name(name, sizeof(name), &copies.row[1]);
	assert_string_equal(name, "host to device, pinned");
	assert_true(copies.row[1].fastest > 49.9e9);
	assert_true(copies.row[2].bound == 1.5e12); /* each byte read and written */
	copies_release(&copies);
	done(&f, &t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		scratch_test(test_breakdown__a_moment_of_several_is_counted_once),
		scratch_test(test_breakdown__a_gap_is_of_what_the_host_did),
		scratch_test(test_breakdown__a_gap_over_the_edge_of_a_step_is_judged_as_a_whole),
		scratch_test(
			test_breakdown__a_wait_of_another_thread_counts_where_the_launching_one_was_silent),
		scratch_test(test_breakdown__without_calls_the_reason_is_not_known),
		scratch_test(test_breakdown__waiting_for_a_peer_is_idle_and_told_of_whom),
		scratch_test(test_breakdown__what_buys_little_is_not_said),
		scratch_test(test_breakdown__a_gap_before_the_first_step_is_not_to_be_saved_in_every_step),
		scratch_test(test_breakdown__what_comes_once_is_told_beside_what_comes_again),
		scratch_test(test_breakdown__copies_are_told_by_the_hosts_memory),
	};

	return cmocka_run_group_tests_name("profile_breakdown", tests, NULL, NULL);
}
