/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL's operations of a profile: calls joined with kernels, sizes and bus bandwidth, ranks held against each
 * other. */
#include "test.h"
#include "profile/nccl/nccl.h"
#include "profile_bed.h"
#include "scratch.h"

#define MS 1000000ull
#define MIB (1ull << 20)
#define REDUCE_KERNEL "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"

static void find(struct nccl *n, struct timeline *t, const char *dir)
{
	struct error err = {0};

	read_back(t, dir);
	assert_int_equal(nccl_of(n, t, &err), STATUS_OK);
}

static void done(struct nccl *n, struct timeline *t)
{
	nccl_release(n);
	timeline_release(t);
}

/* One call and its kernel. */
static void operate(struct writer *w, const char *call, uint64_t at_ns, uint64_t comm, uint64_t bytes,
		    uint64_t start_ns, uint64_t ns)
{
	bed_call(w, call, at_ns, comm, bytes, 0);
	bed_launch(w,
		   (struct bed_kernel){REDUCE_KERNEL, at_ns + 500, start_ns, ns, .thread = 1, .stream = 20});
}

static const struct nccl_row *row_of(const struct nccl *n, enum nccl_operation op)
{
	for (size_t i = 0; i < n->rows; i++)
		if (n->row[i].operation == op)
			return &n->row[i];
	fail_msg("no row of %s", nccl_operation_name(op));
	return NULL;
}

static void assert_near(double is, double should)
{
	if (is < should * (1 - 1e-9) || is > should * (1 + 1e-9))
		fail_msg("%g is not %g", is, should);
}

static void test_nccl__size_and_bus_bandwidth_are_as_nccl_tests_counts_them(void **state)
{
	const struct nccl_row *r;
	struct timeline t;
	struct writer w;
	struct nccl n;

	bed_open(&w, *state);
	bed_comm(&w, 0xabc, 8, 3);
	operate(&w, "ncclAllReduce", 1 * MS, 0xabc, 256 * MIB, 2 * MS, MS);
	operate(&w, "ncclAllReduce", 4 * MS, 0xabc, 256 * MIB, 5 * MS, 3 * MS);
	operate(&w, "ncclAllReduce", 6 * MS, 0xabc, 256 * MIB, 9 * MS, 2 * MS);
	operate(&w, "ncclAllGather", 20 * MS, 0xabc, 8 * MIB, 21 * MS, MS);	/* of one rank */
	operate(&w, "ncclReduceScatter", 30 * MS, 0xabc, 8 * MIB, 31 * MS, MS); /* what one rank gets */
	operate(&w, "ncclBroadcast", 40 * MS, 0xabc, 8 * MIB, 41 * MS, MS);
	bed_close(&w);
	find(&n, &t, *state);
	assert_int_equal(n.calls, 6);
	assert_int_equal(n.lonely, 0);
	assert_int_equal(n.launches, 6);
	r = &n.row[0];
	assert_int_equal(r->operation, NCCL_ALL_REDUCE);
	assert_int_equal(r->count, 3);
	assert_int_equal(r->ranks, 8);
	assert_int_equal(r->comm, 0xabc);
	assert_int_equal(r->size, 256 * MIB);
	assert_near(r->p50, 2 * MS);
	assert_near(r->max, 3 * MS);
	assert_near(r->algorithm_rate, 256.0 * MIB / 2e-3);
	assert_near(r->bus_rate, 256.0 * MIB / 2e-3 * 2 * 7 / 8);
	assert_int_equal(r->paired, 0);
	r = row_of(&n, NCCL_ALL_GATHER);
	assert_int_equal(r->size, 64 * MIB);
	assert_near(r->bus_rate, 64.0 * MIB / 1e-3 * 7 / 8);
	r = row_of(&n, NCCL_REDUCE_SCATTER);
	assert_int_equal(r->size, 64 * MIB);
	assert_near(row_of(&n, NCCL_BROADCAST)->bus_rate, 8.0 * MIB / 1e-3);
	done(&n, &t);
}

static void test_nccl__a_communicator_that_told_nothing_has_no_bus_bandwidth(void **state)
{
	const struct nccl_row *r;
	struct timeline t;
	struct writer w;
	struct nccl n;

	bed_open(&w, *state);
	operate(&w, "ncclAllReduce", 1 * MS, 0xabc, 8 * MIB, 2 * MS, MS);
	operate(&w, "ncclAllGather", 4 * MS, 0xabc, 8 * MIB, 5 * MS, MS);
	bed_close(&w);
	find(&n, &t, *state);
	r = row_of(&n, NCCL_ALL_REDUCE);
	assert_near(r->algorithm_rate, 8.0 * MIB / 1e-3);
	assert_true(r->bus_rate == 0);
	assert_int_equal(r->ranks, 0);
	assert_int_equal(row_of(&n, NCCL_ALL_GATHER)->size, 0); /* a part of how many? */
	done(&n, &t);
}

/* A split that does not wait ends before it knows anything; PyTorch splits so. */
static void test_nccl__a_communicator_tells_its_ranks_when_it_is_destroyed(void **state)
{
	const struct bed_field told[] = {
		{"NCCL communicator ID", 0xabc}, {"No. of ranks", 4}, {"Rank", 3}, {0}};
	const struct nccl_row *r;
	struct timeline t;
	struct writer w;
	struct nccl n;

	bed_open(&w, *state);
	bed_nccl(&w, RING_PUSH, "ncclCommSplit", 100, 1, NULL, false);
	bed_nccl(&w, RING_POP, NULL, 200, 1, NULL, false);
	operate(&w, "ncclAllReduce", 1 * MS, 0xabc, 8 * MIB, 2 * MS, MS);
	bed_nccl(&w, RING_PUSH, "ncclCommDestroy", 9 * MS, 1, told, false);
	bed_nccl(&w, RING_POP, NULL, 10 * MS, 1, NULL, false);
	bed_close(&w);
	find(&n, &t, *state);
	r = row_of(&n, NCCL_ALL_REDUCE);
	assert_int_equal(r->ranks, 4);
	assert_near(r->bus_rate, 1.5 * 8.0 * MIB / 1e-3);
	done(&n, &t);
}

/* PyTorch's all_to_all: a group of sends and receives, itself among the peers. */
static void test_nccl__sends_and_receives_of_all_to_all_are_one_operation(void **state)
{
	const struct nccl_row *r;
	struct timeline t;
	struct writer w;
	struct nccl n;

	bed_open(&w, *state);
	bed_comm(&w, 7, 4, 2);
	bed_nccl(&w, RING_PUSH, "ncclGroupStart", 1 * MS, 1, NULL, false);
	bed_nccl(&w, RING_POP, NULL, 1 * MS + 100, 1, NULL, false);
	for (uint32_t peer = 0; peer < 4; peer++) {
		bed_call(&w, "ncclSend", 1 * MS + 10000 * (peer + 1), 7, MIB, peer);
		bed_call(&w, "ncclRecv", 1 * MS + 10000 * (peer + 1) + 5000, 7, MIB, peer);
	}
	bed_nccl(&w, RING_PUSH, "ncclGroupEnd", 2 * MS, 1, NULL, false);
	bed_nccl(&w, RING_POP, NULL, 2 * MS + 50000, 1, NULL, false);
	bed_launch(&w,
		   (struct bed_kernel){"ncclDevKernel_SendRecv(x)", 2 * MS + 20000, 3 * MS, MS, .thread = 1});
	/* To one neighbour, without a group. */
	bed_call(&w, "ncclSend", 10 * MS, 7, MIB, 3);
	bed_launch(&w,
		   (struct bed_kernel){"ncclDevKernel_SendRecv(x)", 10 * MS + 500, 11 * MS, MS, .thread = 1});
	bed_close(&w);
	find(&n, &t, *state);
	assert_int_equal(n.calls, 9);
	assert_int_equal(n.launches, 2);
	r = row_of(&n, NCCL_ALL_TO_ALL);
	assert_int_equal(r->calls, 8);
	assert_int_equal(r->size, 4 * MIB);
	assert_near(r->bus_rate, 3.0 * MIB / 1e-3);
	r = row_of(&n, NCCL_SEND);
	assert_int_equal(r->size, MIB);
	assert_near(r->bus_rate, 1.0 * MIB / 1e-3);
	done(&n, &t);
}

/* Groups of groups launch at the outermost end; two devices of one process are two ranks. */
static void test_nccl__a_group_over_devices_is_a_launch_each(void **state)
{
	struct timeline t;
	struct writer w;
	struct nccl n;

	bed_open(&w, *state);
	bed_nccl(&w, RING_PUSH, "ncclGroupStart", 10000, 1, NULL, false);
	bed_nccl(&w, RING_POP, NULL, 10100, 1, NULL, false);
	bed_nccl(&w, RING_PUSH, "ncclGroupStart", 11000, 1, NULL, false);
	bed_nccl(&w, RING_POP, NULL, 11100, 1, NULL, false);
	bed_call(&w, "ncclAllReduce", 20000, 7, MIB, 0);
	bed_nccl(&w, RING_PUSH, "ncclGroupEnd", 25000, 1, NULL, false);
	bed_nccl(&w, RING_POP, NULL, 26000, 1, NULL, false);
	bed_call(&w, "ncclAllReduce", 30000, 7, MIB, 0);
	bed_nccl(&w, RING_PUSH, "ncclGroupEnd", 40000, 1, NULL, false);
	bed_launch(&w, (struct bed_kernel){REDUCE_KERNEL, 41000, 50000, 30000, .thread = 1});
	bed_launch(&w, (struct bed_kernel){REDUCE_KERNEL, 43000, 60000, 20000, .thread = 1, .device = 1});
	bed_nccl(&w, RING_POP, NULL, 50000, 1, NULL, false);
	bed_close(&w);
	find(&n, &t, *state);
	assert_int_equal(n.launches, 2);
	assert_int_equal(n.rows, 1);
	assert_int_equal(n.row[0].calls, 1);
	assert_int_equal(n.row[0].size, MIB);
	assert_int_equal(n.row[0].paired, 2);
	for (size_t i = 0; i < 2; i++) { /* device 0 waited for device 1 */
		assert_int_equal(n.launch[i].fastest_ns, 20000);
		assert_int_equal(n.launch[i].ready_ns, 60000);
	}
	done(&n, &t);
}

static void write_rank(const char *dir, uint32_t rank, const uint64_t *start, size_t count)
{
	struct writer w;

	bed_open(&w, dir);
	bed_comm(&w, 9, 2, rank);
	for (size_t i = 0; i < count; i++) /* all end together, 1 ms after the last began */
		operate(&w, "ncclAllReduce", start[i] - 5000, 9, 64 * MIB, start[i],
			(i + 1) * 10 * MS + MS - start[i]);
	bed_close(&w);
}

static void test_nccl__who_comes_first_waits_and_the_rate_is_that_of_the_last(void **state)
{
	const uint64_t early[] = {10 * MS - 400000, 20 * MS, 30 * MS - 100000},
		       late[] = {10 * MS, 20 * MS - 200000, 30 * MS};
	struct timeline t;
	struct nccl n;

	write_rank(*state, 0, early, 3);
	write_rank(*state, 1, late, 3);
	find(&n, &t, *state);
	assert_int_equal(n.rows, 1);
	assert_int_equal(n.row[0].count, 6);
	assert_int_equal(n.row[0].paired, 6);
	assert_near(n.row[0].waiting, 700000);
	assert_near(n.row[0].fastest_p50, MS);
	assert_near(n.row[0].bus_rate, 64.0 * MIB / 1e-3); /* 2 (n - 1)/n is 1 of two */
	assert_near(n.row[0].max, MS + 400000);
	for (size_t i = 0; i < t.events; i++)
		if (t.event[i].kind == TIMELINE_KERNEL)
			assert_non_null(nccl_launch_of(&n, (uint32_t)i));
		else
			assert_null(nccl_launch_of(&n, (uint32_t)i));
	done(&n, &t);
}

/* What is not the same operation is not held against each other; nor is what lacks events in between. */
static void test_nccl__ranks_that_lost_events_are_not_compared(void **state)
{
	const uint64_t start[] = {10 * MS, 20 * MS};
	struct timeline t;
	struct writer w;
	struct nccl n;

	write_rank(*state, 0, start, 2);
	bed_open(&w, *state);
	bed_comm(&w, 9, 2, 1);
	operate(&w, "ncclAllReduce", 10 * MS - 5000, 9, 64 * MIB, 10 * MS, MS);
	operate(&w, "ncclAllReduce", 20 * MS - 5000, 9, 64 * MIB, 20 * MS, MS);
	w.header->dropped = 1;
	bed_close(&w);
	find(&n, &t, *state);
	assert_int_equal(n.row[0].count, 4);
	assert_int_equal(n.row[0].paired, 0);
	assert_true(n.row[0].waiting == 0);
	done(&n, &t);
}

/* The first of rank 1 made room for later ones: what it has are the last. */
static void test_nccl__what_was_overwritten_is_counted_from_the_end(void **state)
{
	const uint64_t all[] = {10 * MS, 20 * MS - 300000};
	struct timeline t;
	struct writer w;
	struct nccl n;

	write_rank(*state, 0, all, 2);
	bed_open(&w, *state);
	bed_comm(&w, 9, 2, 1);
	operate(&w, "ncclAllReduce", 20 * MS - 5000, 9, 64 * MIB, 20 * MS, MS);
	w.header->overwritten = 40;
	bed_close(&w);
	find(&n, &t, *state);
	assert_int_equal(n.row[0].paired, 2);
	assert_near(n.row[0].waiting, 300000);
	done(&n, &t);
}

/* ncclCommSplit tells its parent's ranks: those of the child are who told of it. */
static void test_nccl__a_communicator_that_was_split_off_counts_its_tellers(void **state)
{
	struct timeline t;
	struct nccl n;

	for (uint32_t rank = 0; rank < 3; rank++) {
		const struct bed_field told[] = {{"NCCL communicator ID", rank < 2 ? 50 : 51},
						 {"Parent NCCL communicator ID", 9},
						 {"No. of ranks", 3},
						 {"Rank", rank},
						 {"Color", rank / 2},
						 {0}};
		struct writer w;

		bed_open(&w, *state);
		bed_comm(&w, 9, 3, rank);
		bed_nccl(&w, RING_PUSH, "ncclCommSplit", 300, 1, NULL, false);
		bed_nccl(&w, RING_POP, NULL, 400, 1, told, true);
		operate(&w, "ncclAllReduce", 1 * MS, rank < 2 ? 50 : 51, MIB, 2 * MS, MS);
		bed_close(&w);
	}
	find(&n, &t, *state);
	assert_int_equal(n.rows, 2);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(n.row[i].ranks, n.row[i].comm == 50 ? 2 : 1);
		assert_near(n.row[i].bus_rate + 1, n.row[i].comm == 50 ? 1.0 * MIB / 1e-3 + 1 : 1);
	}
	done(&n, &t);
}

static void test_nccl__kernels_of_graphs_and_calls_without_kernels_are_counted(void **state)
{
	struct timeline t;
	struct writer w;
	struct nccl n;

	bed_open(&w, *state);
	bed_call(&w, "ncclAllReduce", 1 * MS, 7, MIB, 0); /* captured */
	bed_launch(&w, (struct bed_kernel){REDUCE_KERNEL, 3 * MS, 4 * MS, MS, .thread = 1, .graph = 5});
	bed_launch(&w, (struct bed_kernel){REDUCE_KERNEL, 6 * MS, 7 * MS, MS, .thread = 1});
	bed_launch(&w, (struct bed_kernel){"nccl_but_none", 8 * MS, 9 * MS, MS, .thread = 1});
	bed_close(&w);
	find(&n, &t, *state);
	assert_int_equal(n.calls, 1);
	assert_int_equal(n.lonely, 1);
	assert_int_equal(n.launches, 2);
	assert_int_equal(n.rows, 2);
	assert_int_equal(n.row[0].operation, NCCL_UNKNOWN);
	assert_int_equal(n.row[0].graph + n.row[1].graph, 1);
	assert_true(n.row[0].algorithm_rate == 0);
	done(&n, &t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		scratch_test(test_nccl__size_and_bus_bandwidth_are_as_nccl_tests_counts_them),
		scratch_test(test_nccl__a_communicator_that_told_nothing_has_no_bus_bandwidth),
		scratch_test(test_nccl__a_communicator_tells_its_ranks_when_it_is_destroyed),
		scratch_test(test_nccl__sends_and_receives_of_all_to_all_are_one_operation),
		scratch_test(test_nccl__a_group_over_devices_is_a_launch_each),
		scratch_test(test_nccl__who_comes_first_waits_and_the_rate_is_that_of_the_last),
		scratch_test(test_nccl__ranks_that_lost_events_are_not_compared),
		scratch_test(test_nccl__what_was_overwritten_is_counted_from_the_end),
		scratch_test(test_nccl__a_communicator_that_was_split_off_counts_its_tellers),
		scratch_test(test_nccl__kernels_of_graphs_and_calls_without_kernels_are_counted),
	};

	return cmocka_run_group_tests_name("profile_nccl", tests, NULL, NULL);
}
