/* SPDX-License-Identifier: Apache-2.0 */
/* Lists and attention of steps over a paged KV cache by the GPU's back end on the fake driver. */
#include "kernel/paged/attention.h" /* before the bed, whose names its parameters would hide */
#include "model_gpu_bed.h"

#include "fake_gpu.h"
#include "kernel/paged/tiles.h"
#include "model/gpu/paged/tiles.h"
#include "model/gpu/internal.h"

enum { SEQUENCES_MOST = 4, PAGES_MOST = 40, PAGES = 64, PAGE = 16, HEADS = 4, KV_HEADS = 2, DIM = 64, ROWS_MOST = 900 };

struct paged_bed {
	struct alone alone;
	struct paged_room room;
	struct mat qkv, o;
	struct paged_layer layer;
	uint16_t *host_qkv, *host_kv;
	int32_t list[ROWS_MOST], begin[SEQUENCES_MOST + 1], keys[SEQUENCES_MOST], page[SEQUENCES_MOST][PAGES_MOST], output[SEQUENCES_MOST];
	struct paged_rows rows;
};

static const struct attention at = {.heads = HEADS, .kv_heads = KV_HEADS, .head_dim = DIM, .scale = 0.125f};
static const struct paged_limits limits = {
	.rows = ROWS_MOST, .outputs = SEQUENCES_MOST, .sequences = SEQUENCES_MOST, .pages = PAGES_MOST, .vocab = 100, .page_tokens = PAGE, .copies = true};

static uint16_t *random_bf16(uint32_t stream, size_t count)
{
	uint16_t *p = malloc(count * sizeof(*p));

	assert_non_null(p);
	for (size_t i = 0; i < count; i++)
		p[i] = bf16_of_f32(2 * random_f32(5, stream, i));
	return p;
}

static void open_bed(struct paged_bed *b)
{
	struct error err = {0};
	struct backend *back = &b->alone.back;

	memset(b, 0, sizeof(*b));
	fakes_take();
	open_alone(&b->alone, 64 << 20, false);
	b->qkv = (struct mat){.rows = ROWS_MOST, .cols = (HEADS + 2 * KV_HEADS) * DIM, .dtype = DTYPE_BF16};
	b->o = (struct mat){.rows = ROWS_MOST, .cols = HEADS * DIM, .dtype = DTYPE_BF16};
	b->layer.kv = (struct mat){.rows = PAGES * PAGE, .cols = 2 * KV_HEADS * DIM, .dtype = DTYPE_BF16};
	must(workspace_paged(back, &at, &limits, &b->room, &err), &err);
	must(arena_mat(back->arena, MEM_WORKSPACE, &b->qkv, "qkv", &err), &err);
	must(arena_mat(back->arena, MEM_WORKSPACE, &b->o, "o", &err), &err);
	must(arena_mat(back->arena, MEM_WORKSPACE, &b->layer.kv, "kv", &err), &err);
	b->host_qkv = random_bf16(1, (size_t)(b->qkv.rows * b->qkv.cols));
	b->host_kv = random_bf16(2, (size_t)(b->layer.kv.rows * b->layer.kv.cols));
	must(back->ops->put(back, b->qkv, b->host_qkv, &err), &err);
	must(back->ops->put(back, b->layer.kv, b->host_kv, &err), &err);
	for (int32_t i = 0; i < ROWS_MOST; i++)
		b->list[i] = i;
	b->rows = (struct paged_rows){.token = b->list,
				      .position = b->list,
				      .slot = b->list,
				      .begin = b->begin,
				      .keys = b->keys,
				      .page = b->page[0],
				      .output = b->output,
				      .adapter = b->list,
				      .page_ld = PAGES_MOST,
				      .page_tokens = PAGE};
}

static void close_bed(struct paged_bed *b)
{
	gpu_backend_release(&b->alone.back);
	free(b->host_qkv);
	free(b->host_kv);
}

static void add_sequence(struct paged_bed *b, int32_t keys, int32_t rows)
{
	const int64_t s = b->rows.sequences++;

	b->keys[s] = keys;
	b->begin[s + 1] = b->begin[s] + rows;
	b->output[s] = b->begin[s + 1] - 1;
	for (int32_t i = 0; i * PAGE < keys && i < PAGES_MOST; i++)
		b->page[s][i] = PAGES - 1 - (i * SEQUENCES_MOST + (int32_t)s) % (PAGES - 1);
	b->rows.rows = b->begin[s + 1];
	b->rows.outputs = b->rows.sequences;
	b->rows.keys_most = keys > b->rows.keys_most ? keys : b->rows.keys_most;
}

static double number(const uint16_t *p, int64_t i)
{
	return (double)bf16_to_f32(p[i]);
}

/* One row and head by the definition. */
static void expect_row(const struct paged_bed *b, int64_t sequence, int32_t row, int head, const uint16_t *o)
{
	const int64_t ld_q = b->qkv.cols, ld_kv = b->layer.kv.cols, kv = head / (HEADS / KV_HEADS) * DIM;
	const int32_t keys = b->keys[sequence] - (b->begin[sequence + 1] - 1 - row);
	double sum = 0, out[DIM] = {0};

	for (int32_t j = 0; j < keys; j++) {
		const int64_t at_key = ((int64_t)b->page[sequence][j / PAGE] * PAGE + j % PAGE) * ld_kv + kv;
		double s = 0;

		for (int d = 0; d < DIM; d++)
			s += number(b->host_qkv, row * ld_q + head * DIM + d) * number(b->host_kv, at_key + d);
		s = exp(s * (double)at.scale);
		sum += s;
		for (int d = 0; d < DIM; d++)
			out[d] += s * number(b->host_kv, at_key + KV_HEADS * DIM + d);
	}
	for (int d = 0; d < DIM; d++)
		assert_true(fabs(out[d] / sum - number(o, row * b->o.cols + head * DIM + d)) < 0.02);
}

/* Every row of a step, or every third of a large one. */
static void expect_step(struct paged_bed *b)
{
	struct backend *back = &b->alone.back;
	uint16_t *o = malloc((size_t)(b->o.rows * b->o.cols) * sizeof(*o));
	struct error err = {0};
	struct paged_rows device;

	assert_non_null(o);
	must(back->ops->paged_put(back, &b->rows, &b->room, &device, &err), &err);
	must(back->ops->paged_attention(back, &device, &at, b->qkv, &b->layer, b->o, &err), &err);
	must(back->ops->get(back, b->o, o, &err), &err);
	assert_memory_equal(device.adapter, b->list, (size_t)b->rows.rows * sizeof(*b->list));
	for (int64_t s = 0; s < b->rows.sequences; s++)
		for (int32_t row = b->begin[s]; row < b->begin[s + 1]; row += b->rows.rows > 100 ? 3 : 1)
			for (int head = 0; head < HEADS; head++)
				expect_row(b, s, row, head, o);
	free(o);
}

static void clear_step(struct paged_bed *b)
{
	b->rows.sequences = b->rows.rows = b->rows.outputs = b->rows.keys_most = 0;
}

/* Two parts: the copy has room for 15 blocks of 64 positions, and each prompt needs ten. The last sequence has too few rows for tiles. */
static void add_prompts(struct paged_bed *b)
{
	assert_int_equal(paged_tiles_rows_least(DIM), 384);
	b->room.copy.rows = 15 * PAGED_TILES_KEYS(DIM);
	add_sequence(b, 600, 384);
	add_sequence(b, 640, 400);
	add_sequence(b, 633, 64);
}

static void rows_attend_to_their_pages(void **state)
{
	struct paged_bed b;

	(void)state;
	skip_without_kernels();
	open_bed(&b);
	add_sequence(&b, 1, 1);
	add_sequence(&b, 100, 1);
	add_sequence(&b, 40, 7);
	expect_step(&b);
	for (int32_t i = 0; i < 5; i++) { /* more steps than places in pinned memory */
		clear_step(&b);
		add_sequence(&b, 16 + i, 1);
		add_sequence(&b, 90, 3);
		expect_step(&b);
	}
	clear_step(&b);
	assert_int_equal(b.room.copy.rows, 39 * PAGED_TILES_KEYS(DIM));
	add_sequence(&b, 600, 560); /* it has tiles */
	add_sequence(&b, 33, 1);
	add_sequence(&b, 20, 20);
	expect_step(&b);
	clear_step(&b);
	add_prompts(&b);
	expect_step(&b);
	assert_true(b.alone.back.cost.flop > 0);
	close_bed(&b);
}

/* -- prompts over an E4M3 cache -- */

/* The cache in E4M3. host_kv gets the BF16 numbers nearest to those that it stands for, which the copy has too. Bits that are no
 * finite number stay finite. */
static void narrow_cache(struct paged_bed *b)
{
	const int64_t rows = b->layer.kv.rows, cols = b->layer.kv.cols;
	struct backend *back = &b->alone.back;
	uint8_t *code = malloc((size_t)(rows * cols));
	float *scale = malloc((size_t)(rows * 2 * KV_HEADS) * sizeof(*scale));
	struct error err = {0};

	assert_true(code && scale);
	b->layer.kv.dtype = DTYPE_E4M3;
	b->layer.scale = (struct mat){.rows = rows, .cols = 2 * KV_HEADS, .dtype = DTYPE_F32};
	must(arena_mat(back->arena, MEM_WORKSPACE, &b->layer.scale, "scale", &err), &err);
	for (int64_t i = 0; i < rows * 2 * KV_HEADS; i++)
		scale[i] = (1.5f + random_f32(5, 3, (uint64_t)i)) / 128;
	for (int64_t i = 0; i < rows * cols; i++) {
		code[i] = (uint8_t)(random_u32(5, 4, (uint64_t)i) % 0x78 | (random_u32(5, 5, (uint64_t)i) & 0x80));
		b->host_kv[i] = bf16_of_f32(e4m3_to_f32(code[i]) *
					    scale[paged_scale_at((uint64_t)(i / cols), (uint32_t)(i % cols / DIM), 2 * KV_HEADS, 4)]);
	}
	must(back->ops->put(back, b->layer.kv, code, &err), &err);
	must(back->ops->put(back, b->layer.scale, scale, &err), &err);
	assert_int_equal(b->layer.scale.ld, 2 * KV_HEADS);
	free(code);
	free(scale);
}

static void open_e4m3(struct paged_bed *b)
{
	open_bed(b);
	narrow_cache(b);
}

static void prompts_read_a_copy_of_an_e4m3_cache(void **state)
{
	struct paged_bed b;

	(void)state;
	skip_without_kernels();
	open_e4m3(&b);
	add_prompts(&b);
	expect_step(&b);
	clear_step(&b);
	add_sequence(&b, 100, 1); /* a step without tiles */
	add_sequence(&b, 70, 66);
	expect_step(&b);
	clear_step(&b);
	add_sequence(&b, 600, 384); /* the copy holds what another step has left */
	add_sequence(&b, 5, 1);
	expect_step(&b);
	close_bed(&b);
}

/* Attention of the step while the driver has this fault. */
static enum status attend_with(struct paged_bed *b, const char *fault)
{
	struct paged_rows device;
	struct error err = {0};
	struct backend *back = &b->alone.back;
	enum status st;

	must(back->ops->paged_put(back, &b->rows, &b->room, &device, &err), &err);
	setenv("FAKE_CUDA", fault, 1);
	st = back->ops->paged_attention(back, &device, &at, b->qkv, &b->layer, b->o, &err);
	error_clear(&err);
	unsetenv("FAKE_CUDA");
	return st;
}

/* The number of launches that may begin early, which only cuLaunchKernelEx does. */
static int early_launches(struct paged_bed *b)
{
	char fault[32];
	int n = 0;

	do
		snprintf(fault, sizeof(fault), "cuLaunchKernelEx=719@%d", ++n);
	while (attend_with(b, fault) == STATUS_VENDOR);
	return n - 1;
}

static void attention_begins_early(void **state)
{
	struct paged_bed b;

	(void)state;
	skip_without_kernels();
	open_bed(&b);
	add_sequence(&b, 600, 560);
	add_sequence(&b, 33, 1);
	assert_int_equal(early_launches(&b), 3); /* a copy, tiles and units */
	close_bed(&b);
	open_e4m3(&b);
	add_prompts(&b);
	assert_int_equal(early_launches(&b), 5); /* two copies, two parts of tiles, and units */
	clear_step(&b);
	add_sequence(&b, 600, 560);
	add_sequence(&b, 33, 1);
	assert_int_equal(early_launches(&b), 3);
	gpu_of(&b.alone.back)->options.deterministic = true; /* no tiles, so no copy */
	assert_int_equal(early_launches(&b), 1);
	gpu_of(&b.alone.back)->options.deterministic = false;
	b.room.limits.copies = false;
	assert_int_equal(early_launches(&b), 1);
	close_bed(&b);
}

/* Whether the entry computes attention of the step: if the driver does not run it, O keeps its zeros. */
static bool runs_late(struct paged_bed *b, const struct attention *a)
{
	const size_t count = (size_t)(b->o.rows * b->o.cols);
	uint16_t *o = calloc(count, sizeof(*o));
	struct backend *back = &b->alone.back;
	struct error err = {0};
	struct paged_rows device;
	bool changed = false;

	assert_non_null(o);
	must(back->ops->paged_put(back, &b->rows, &b->room, &device, &err), &err);
	must(back->ops->put(back, b->o, o, &err), &err);
	setenv("FAKE_CUDA", "drop=paged_bf16_d64_late", 1);
	must(back->ops->paged_attention(back, &device, a, b->qkv, &b->layer, b->o, &err), &err);
	must(back->ops->get(back, b->o, o, &err), &err);
	unsetenv("FAKE_CUDA");
	for (size_t i = 0; i < count; i++)
		changed |= o[i] != 0;
	free(o);
	return !changed;
}

static void decode_steps_join_late(void **state)
{
	struct gpu_state *g;
	unsigned shared_most;
	struct paged_bed b;

	(void)state;
	skip_without_kernels();
	open_bed(&b);
	g = gpu_of(&b.alone.back);
	add_sequence(&b, 100, 1);
	add_sequence(&b, 5, 1);
	add_sequence(&b, 333, 1);
	assert_true(runs_late(&b, &at));
	expect_step(&b);
	g->options.deterministic = true; /* splits are joined one by one */
	assert_false(runs_late(&b, &at));
	g->options.deterministic = false;
	shared_most = g->shared_most;
	g->shared_most = paged_shared_late(DIM, 2, 1) - 1; /* enough for the other one */
	assert_false(runs_late(&b, &at));
	g->shared_most = shared_most;
	clear_step(&b);
	add_sequence(&b, 100, 1);
	add_sequence(&b, 50, 2); /* more than one row */
	assert_false(runs_late(&b, &at));
	expect_step(&b);
	close_bed(&b);
}

/* The operations of a step may be captured: addresses depend on the numbers of rows and outputs only. */
static void lists_keep_their_addresses(void **state)
{
	struct paged_rows first, second;
	struct error err = {0};
	struct paged_bed b;
	int32_t keys[2];

	(void)state;
	skip_without_kernels();
	open_bed(&b);
	add_sequence(&b, 100, 1);
	add_sequence(&b, 5, 1);
	must(b.alone.back.ops->paged_put(&b.alone.back, &b.rows, &b.room, &first, &err), &err);
	clear_step(&b);
	add_sequence(&b, 7, 1);
	add_sequence(&b, 300, 1);
	must(b.alone.back.ops->paged_put(&b.alone.back, &b.rows, &b.room, &second, &err), &err);
	assert_ptr_equal(first.token, second.token);
	assert_ptr_equal(first.slot, second.slot);
	assert_ptr_equal(first.output, second.output);
	assert_ptr_equal(first.begin, second.begin);
	must(b.alone.back.ops->get(&b.alone.back,
				   (struct mat){.data = (void *)(uintptr_t)second.keys, .rows = 1, .cols = 2, .ld = 2, .dtype = DTYPE_I32},
				   keys, &err),
	     &err);
	assert_int_equal(keys[0], 7);
	assert_int_equal(keys[1], 300);
	close_bed(&b);
}

static void expect_refused(struct paged_bed *b, const char *words)
{
	struct error err = {0};
	struct paged_rows device;

	assert_int_equal(b->alone.back.ops->paged_put(&b->alone.back, &b->rows, &b->room, &device, &err), STATUS_BUG);
	assert_non_null(strstr(err.text, words));
	error_clear(&err);
	clear_step(b);
}

static void steps_beyond_their_room_are_refused(void **state)
{
	struct paged_bed b;

	(void)state;
	skip_without_kernels();
	open_bed(&b);
	add_sequence(&b, 5, 1);
	b.rows.rows = ROWS_MOST + 1;
	expect_refused(&b, "larger than its room");
	add_sequence(&b, PAGES_MOST * PAGE + 1, 1);
	expect_refused(&b, "room for 40 pages");
	add_sequence(&b, 2, 3);
	expect_refused(&b, "3 rows and 2 keys");
	close_bed(&b);
}

static void other_caches_are_refused(void **state)
{
	struct attention wide = at;
	struct paged_rows device;
	struct error err = {0};
	struct paged_room room;
	struct paged_bed b;
	struct backend *back = &b.alone.back;

	(void)state;
	skip_without_kernels();
	open_bed(&b);
	wide.head_dim = 80;
	assert_int_equal(workspace_paged(back, &wide, &limits, &room, &err), STATUS_UNSUPPORTED);
	assert_non_null(strstr(err.text, "80"));
	error_clear(&err);
	add_sequence(&b, 5, 1);
	must(back->ops->paged_put(back, &b.rows, &b.room, &device, &err), &err);
	b.layer.kv.dtype = DTYPE_F16;
	assert_int_equal(back->ops->paged_attention(back, &device, &at, b.qkv, &b.layer, b.o, &err), STATUS_UNSUPPORTED);
	assert_non_null(strstr(err.text, "this one is F16"));
	error_clear(&err);
	b.layer.kv.dtype = DTYPE_BF16;
	gpu_of(back)->shared_most = 48 << 10;
	assert_int_equal(back->ops->paged_attention(back, &device, &at, b.qkv, &b.layer, b.o, &err), STATUS_UNSUPPORTED);
	assert_non_null(strstr(err.text, "the GPU has 49152"));
	error_clear(&err);
	close_bed(&b);
}

static void a_driver_without_memory_is_reported(void **state)
{
	struct paged_rows device;
	struct error err = {0};
	struct paged_bed b;

	(void)state;
	skip_without_kernels();
	open_bed(&b);
	add_sequence(&b, 5, 1);
	setenv("FAKE_CUDA", "cuMemHostAlloc=2@1", 1);
	assert_int_equal(b.alone.back.ops->paged_put(&b.alone.back, &b.rows, &b.room, &device, &err), STATUS_NO_RESOURCE);
	error_clear(&err);
	unsetenv("FAKE_CUDA");
	must(b.alone.back.ops->paged_put(&b.alone.back, &b.rows, &b.room, &device, &err), &err);
	close_bed(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_attend_to_their_pages),	cmocka_unit_test(lists_keep_their_addresses),
		cmocka_unit_test(prompts_read_a_copy_of_an_e4m3_cache),
		cmocka_unit_test(attention_begins_early),	cmocka_unit_test(decode_steps_join_late),
		cmocka_unit_test(steps_beyond_their_room_are_refused), cmocka_unit_test(other_caches_are_refused),
		cmocka_unit_test(a_driver_without_memory_is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
