/* SPDX-License-Identifier: Apache-2.0 */
/* Block lists that come from elsewhere, and what our block-sparse kernels refuse; on the fake driver. */
#include "test.h"
#include "fake_gpu.h"
#include "gpu/attention/own_block_sparse.h"
#include "kernel/attention/sparse/make_lists.h"
#include "kernel/fatbin.h"
#include "probe/attention/blocks.h"

struct bed {
	struct gpu_device *device;
	struct gpu_stream *stream;
	struct attention_problem problem;
	struct error err;
};

static int set_up(void **state)
{
	struct bed *b = calloc(1, sizeof(*b));

	*state = b;
	if (!b)
		return 1;
	b->problem = (struct attention_problem){.type = ATTENTION_F16,
						.out_type = ATTENTION_F16,
						.batch = 1,
						.heads = 2,
						.kv_heads = 1,
						.q_len = 300,
						.kv_len = 520,
						.head_dim = 64,
						.mask = ATTENTION_CAUSAL};
	return !fake_gpu_open(&b->device, &b->stream);
}

static int tear_down(void **state)
{
	struct bed *b = *state;

	fake_gpu_close(&b->device, &b->stream);
	free(b);
	return 0;
}

static struct attention_sparse *create(struct bed *b)
{
	const struct attention_sparse_how how = {
		.source = LISTS_RANDOM, .k_block = 64, .batches = 1, .heads = 2, .density = 0.5, .seed = 3};
	struct attention_sparse *s = NULL;

	assert_int_equal(attention_sparse_create(&s, b->device, &b->problem, &how, &b->err), STATUS_OK);
	return s;
}

/* The host's lists, put on the device, are there; made there, they are the host's. */
static void test_lists(void **state)
{
	const struct attention_pattern_of how = {ATTENTION_RANDOM, 128, 64, 0.5, 3};
	const struct attention_operands nothing = {0};
	struct bed *b = *state;
	struct attention_blocks *l = NULL;
	struct attention_sparse_lists lists;
	struct attention_sparse *s;

	if (!kernel_fatbin_at(0))
		skip(); /* built without nvcc */
	s = create(b);
	assert_int_equal(attention_blocks_build(&l, &b->problem, &how, NULL, &b->err), STATUS_OK);
	assert_true(l->full_begin[6] > 0 && l->partial_begin[6] > 0);
	lists = (struct attention_sparse_lists){l->full_begin, l->full, l->partial_begin, l->partial};
	assert_int_equal(attention_sparse_put(s, &lists, b->stream, &b->err), STATUS_OK);
	assert_int_equal(attention_sparse_compare(s, &lists, &b->err), STATUS_OK);
	attention_sparse_destroy(&s);

	s = create(b);
	assert_int_equal(attention_sparse_build(s, &nothing, b->stream, &b->err), STATUS_OK);
	assert_int_equal(attention_sparse_compare(s, &lists, &b->err), STATUS_OK);
	l->partial[0]++;
	assert_int_equal(attention_sparse_compare(s, &lists, &b->err), STATUS_MISMATCH);
	assert_non_null(strstr(b->err.text, "partial[0]"));
	attention_sparse_destroy(&s);
	assert_null(s);
	attention_sparse_destroy(&s);
	attention_blocks_free(l);
}

static void refused(const struct attention_problem *p, uint32_t q_block, uint32_t k_block, const char *why)
{
	struct error err = {0};

	assert_int_equal(attention_sparse_supports(p, q_block, k_block, &err), STATUS_UNSUPPORTED);
	assert_non_null(strstr(err.text, why));
}

static void test_refused(void **state)
{
	struct bed *b = *state;
	struct attention_problem p = b->problem;

	assert_int_equal(attention_sparse_supports(&p, 128, 64, &b->err), STATUS_OK);
	refused(&p, 64, 64, "query blocks of 128");
	refused(&p, 128, 32, "key blocks of 64 and 128");
	p.head_dim = 96;
	refused(&p, 128, 64, "head dimensions 64 and 128");
	p.type = p.out_type = ATTENTION_E4M3;
	refused(&p, 128, 64, "fp16 and bf16");
}

static void test_no_room(void **state)
{
	const struct attention_sparse_how how = {
		.source = LISTS_ALL, .k_block = 64, .batches = 1, .heads = 1};
	struct bed *b = *state;
	struct attention_sparse *s = NULL;

	setenv("FAKE_CUDA", "cuMemAlloc_v2=2@3", 1);
	assert_int_equal(attention_sparse_create(&s, b->device, &b->problem, &how, &b->err),
			 STATUS_NO_RESOURCE);
	assert_null(s);
	unsetenv("FAKE_CUDA");
}

/* Addresses that the copy engine does not take. */
static void test_unaligned(void **state)
{
	const struct attention_operands o = {.q = 8, .k = 16, .v = 16, .o = 16};
	struct bed *b = *state;
	struct attention_sparse *s = create(b);

	assert_int_equal(attention_sparse_enqueue(s, &o, b->stream, &b->err), STATUS_UNSUPPORTED);
	assert_non_null(strstr(b->err.text, "multiples of 16 bytes"));
	attention_sparse_destroy(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_lists, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_no_room, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_unaligned, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
