/* SPDX-License-Identifier: Apache-2.0 */
/* The loader of NCCL, and the fake that everything above it is tested with: four ranks, a thread each. */
#include "test.h"
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include "gpu/device/gpu.h"
#include "probe/collective/expect.h"
#include "vendor/nccl.h"

enum { RANKS = 4, COUNT = 64 };

static void stage(const char *words)
{
	setenv("FAKE_NCCL", words, 1);
}

static int setup(void **state)
{
	(void)state;
	setenv("ASSAY_LIB_CUDA", FAKE_DIR "/libcuda.so.1", 1);
	setenv("ASSAY_LIB_NCCL", FAKE_DIR "/libnccl.so.2", 1);
	setenv("FAKE_CUDA", "devices=4", 1);
	stage("");
	return 0;
}

static void test_vendor_nccl__the_library_is_found_and_says_its_version(void **state)
{
	struct lib_fact fact = {0};
	struct error err = {0};
	struct nccl n;
	char text[24];

	(void)state;
	assert_int_equal(nccl_open(&n, &fact, &err), STATUS_OK);
	assert_int_equal(fact.version, 22809);
	nccl_version_text(&n, text, sizeof(text));
	assert_string_equal(text, "2.28.9");
	assert_int_equal(nccl_config(&n).version, 22800);
	assert_non_null(n.window);
	lib_fact_release(&fact);
}

static void test_vendor_nccl__an_old_library_lacks_what_it_lacks(void **state)
{
	struct error err = {0};
	struct nccl n;

	(void)state;
	stage("version=21805");
	setenv("ASSAY_LIB_NCCL", FAKE_DIR "/libnccl_old.so.2", 1);
	assert_int_equal(nccl_open(&n, NULL, &err), STATUS_OK);
	assert_null(n.window);
	assert_null(n.all_to_all);
	assert_int_equal(nccl_config(&n).version, 21805);
	stage("version=21703");
	assert_int_equal(nccl_open(&n, NULL, &err), STATUS_UNAVAILABLE);
	assert_int_equal(err.cause, CAUSE_VERSION_MISMATCH);
	assert_string_equal(err.text, "NCCL 2.17.3 is too old: 2.18 or newer is needed");
}

static void test_vendor_nccl__a_missing_library_is_named(void **state)
{
	struct error err = {0};
	struct nccl n;

	(void)state;
	setenv("ASSAY_LIB_NCCL", "/nowhere/libnccl.so.2", 1);
	assert_int_equal(nccl_open(&n, NULL, &err), STATUS_UNAVAILABLE);
	assert_int_equal(err.cause, CAUSE_LIBRARY_MISSING);
	assert_non_null(strstr(err.text, "library nccl: /nowhere/libnccl.so.2 does not exist"));
}

static void test_vendor_nccl__a_failure_has_the_librarys_own_words(void **state)
{
	struct error err = {0};
	struct nccl n;

	(void)state;
	assert_int_equal(nccl_open(&n, NULL, &err), STATUS_OK);
	assert_int_equal(nccl_check(&n, ncclInProgress, NULL, "x", &err), STATUS_OK);
	assert_int_equal(nccl_check(&n, ncclSystemError, NULL, "ncclAllReduce of rank 2", &err),
			 STATUS_VENDOR);
	assert_string_equal(err.text,
			    "ncclAllReduce of rank 2: unhandled system error: staged by the fake NCCL");
}

/* Four ranks do one thing. */
struct rank {
	unsigned rank;
	ncclUniqueId id;
	ncclResult_t result;
	unsigned wrong;
	double ns;
};

static unsigned count_wrong(const struct collective_inputs *in, const void *data)
{
	unsigned wrong = 0;

	for (uint64_t i = 0; i < COUNT; i++) {
		const char *at = (const char *)data + i * collective_type_bytes(in->type);

		wrong += collective_number(in->type, at) != collective_answer(in, i);
	}
	return wrong;
}

/* Device memory is the host's here; inputs by fp32 alone, the others' tests have them all. */
static void *all_reduce(void *arg)
{
	struct rank *k = arg;
	struct collective_inputs in = collective_inputs(OPERAND_F32, COLLECTIVE_SUM, RANKS, 3);
	char pci[16];
	float data[COUNT], sum[COUNT];
	struct gpu_device *d = NULL;
	struct gpu_stream *s = NULL;
	struct gpu_event *e[2] = {NULL, NULL};
	struct error err = {0};
	ncclConfig_t config;
	ncclComm_t c = NULL;
	struct nccl n;

	snprintf(pci, sizeof(pci), "0000:%02x:00.0", 0x8d + k->rank);
	assert_int_equal(nccl_open(&n, NULL, &err), STATUS_OK);
	assert_int_equal(gpu_open(&d, pci, &err), STATUS_OK);
	assert_int_equal(gpu_stream_create(d, &s, &err), STATUS_OK);
	for (int i = 0; i < 2; i++)
		assert_int_equal(gpu_event_create(d, &e[i], &err), STATUS_OK);
	for (uint64_t i = 0; i < COUNT; i++)
		data[i] = (float)collective_given(&in, k->rank, i);
	config = nccl_config(&n);
	config.blocking = 1;
	k->result = n.init(&c, RANKS, k->id, (int)k->rank, &config);
	assert_int_equal(gpu_event_record(e[0], s, &err), STATUS_OK);
	if (k->result == ncclSuccess)
		k->result = n.all_reduce(data, sum, COUNT, ncclFloat32, ncclSum, c, gpu_stream_raw(s));
	assert_int_equal(gpu_event_record(e[1], s, &err), STATUS_OK);
	assert_int_equal(gpu_event_elapsed_ns(e[0], e[1], &k->ns, &err), STATUS_OK);
	if (k->result == ncclSuccess)
		k->wrong = count_wrong(&in, sum);
	if (c)
		n.destroy(c);
	for (int i = 0; i < 2; i++)
		gpu_event_destroy(&e[i]);
	gpu_stream_destroy(&s);
	gpu_close(&d);
	return NULL;
}

static void run_ranks(struct rank *rank)
{
	pthread_t thread[RANKS];
	struct error err = {0};
	ncclUniqueId id;
	struct nccl n;

	assert_int_equal(nccl_open(&n, NULL, &err), STATUS_OK);
	assert_int_equal(n.unique_id(&id), ncclSuccess);
	for (unsigned r = 0; r < RANKS; r++) {
		rank[r] = (struct rank){.rank = r, .id = id};
		assert_int_equal(pthread_create(&thread[r], NULL, all_reduce, &rank[r]), 0);
	}
	for (unsigned r = 0; r < RANKS; r++)
		pthread_join(thread[r], NULL);
}

static void test_vendor_nccl__ranks_meet_and_their_sum_is_right(void **state)
{
	struct rank rank[RANKS];

	(void)state;
	run_ranks(rank);
	for (unsigned r = 0; r < RANKS; r++) {
		assert_int_equal(rank[r].result, ncclSuccess);
		assert_int_equal(rank[r].wrong, 0);
		assert_true(rank[r].ns > 8000 &&
			    rank[r].ns < 9000); /* 8.2 us: latency of LL and four ranks */
	}
}

static void test_vendor_nccl__what_is_planted_shows(void **state)
{
	struct rank rank[RANKS];
	unsigned wrong = 0;

	(void)state;
	for (unsigned e = 0; e < 8; e++) {
		char words[32];

		snprintf(words, sizeof(words), "missing=2:%u", e);
		stage(words);
		run_ranks(rank);
		for (unsigned r = 0; r < RANKS; r++)
			assert_int_equal(rank[r].wrong, rank[0].wrong);
		wrong += rank[0].wrong;
	}
	assert_int_equal(wrong, 8 * COUNT - 28); /* from element e on: every one has rank 2's share */
	stage("spoil=1:5");
	run_ranks(rank);
	for (unsigned r = 0; r < RANKS; r++)
		assert_int_equal(rank[r].wrong, r == 1);
	stage("slow=3:4");
	run_ranks(rank);
	assert_true(rank[0].ns > 32000 && rank[3].ns > 32000);
	stage("ncclCommInitRankConfig=2@1");
	run_ranks(rank);
	for (unsigned r = 0; r < RANKS; r++)
		assert_int_equal(rank[r].result, ncclSystemError);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_vendor_nccl__a_failure_has_the_librarys_own_words, setup),
		cmocka_unit_test_setup(test_vendor_nccl__a_missing_library_is_named, setup),
		cmocka_unit_test_setup(test_vendor_nccl__an_old_library_lacks_what_it_lacks, setup),
		cmocka_unit_test_setup(test_vendor_nccl__ranks_meet_and_their_sum_is_right, setup),
		cmocka_unit_test_setup(test_vendor_nccl__the_library_is_found_and_says_its_version, setup),
		cmocka_unit_test_setup(test_vendor_nccl__what_is_planted_shows, setup),
	};

	return cmocka_run_group_tests_name("vendor_nccl", tests, NULL, NULL);
}
