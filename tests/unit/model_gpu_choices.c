/* SPDX-License-Identifier: Apache-2.0 */
/* What the GPU's back end chooses by time, what it leaves behind of that, and how many rows and documents it
 * takes. */
#include "model_gpu_bed.h"

#include "model/backend/cost.h"
#include "model/tensor/matrix.h"
#include "fake_gpu.h"

static const char adapter[] = "lora: {r: 4, alpha: 6}";

static size_t choices_of(const struct backend *back, struct gpu_choice *out, size_t most)
{
	size_t count = 0;

	while (count < most && gpu_backend_choice(back, count, &out[count]))
		count++;
	assert_true(count < most);
	return count;
}

/* Timed where there is room, and as if it had not been: the arena, its peak, the products that steps have. */
static void the_rate_of_products_leaves_nothing_behind(void **state)
{
	static const uint64_t bytes[] = {100000, 500000};

	(void)state;
	skip_without_kernels();
	for (int i = 0; i < 2; i++) {
		struct gpu_choice c;
		struct error err = {0};
		struct arena before;
		struct alone a;
		double rate = -1;

		open_alone(&a, bytes[i], true);
		before = a.arena;
		a.back.cost.flop = 7;
		must(gpu_backend_gemm_rate(&a.back, &rate, &err), &err);
		assert_true(i ? rate > 0 : rate == 0); /* 100 kB hold nothing that is worth a rate */
		assert_memory_equal(&before, &a.arena, sizeof(before));
		assert_true(a.back.cost.flop == 7);
		assert_false(gpu_backend_choice(&a.back, 0, &c));
		gpu_backend_release(&a.back);
	}
}

/* A device that fails is no rate of 0. */
static void a_rate_that_cannot_be_timed_is_an_error(void **state)
{
	struct error err = {0};
	struct alone a;
	double rate;

	(void)state;
	skip_without_kernels();
	open_alone(&a, 500000, false);
	setenv("FAKE_CUDA", "cuLaunchKernel=719", 1);
	assert_int_not_equal(gpu_backend_gemm_rate(&a.back, &rate, &err), STATUS_OK);
	unsetenv("FAKE_CUDA");
	gpu_backend_release(&a.back);
}

/* What a product is added to is kept while candidates are timed: where there is no room now, a later one has
 * it. */
static void a_product_without_room_is_timed_when_there_is(void **state)
{
	enum { SIZE = 64 };
	struct mat m[3], rest = {.rows = 1, .dtype = DTYPE_U8};
	struct gpu_choice c;
	struct error err = {0};
	struct arena_mark mark;
	struct alone a;
	struct gemm g;

	(void)state;
	skip_without_kernels();
	open_alone(&a, 100000, true);
	for (int i = 0; i < 3; i++) {
		m[i] = (struct mat){.rows = SIZE, .cols = SIZE, .dtype = DTYPE_BF16};
		must(arena_mat(&a.arena, MEM_WORKSPACE, &m[i], "m", &err), &err);
		must(a.back.ops->zero(&a.back, m[i], &err), &err);
	}
	g = (struct gemm){.a = m[0], .b = m[1], .c = m[2], .d = m[2], .trans_b = true, .alpha = 1, .beta = 1};
	mark = arena_mark(&a.arena);
	rest.cols = (int64_t)(a.arena.size - a.arena.used) - ARENA_ALIGN;
	must(arena_mat(&a.arena, MEM_WORKSPACE, &rest, "all", &err), &err);
	must(a.back.ops->gemm(&a.back, &g, &err), &err);
	assert_true(gpu_backend_choice(&a.back, 0, &c) && c.seconds <= 0);
	arena_reset(&a.arena, &mark);
	must(a.back.ops->gemm(&a.back, &g, &err), &err);
	assert_true(gpu_backend_choice(&a.back, 0, &c) && c.seconds > 0);
	gpu_backend_release(&a.back);
}

/* Taken again without timing, to the same bits; what the library refuses is chosen anew. */
static void what_was_chosen_is_taken_again(void **state)
{
	enum { MOST = 64 };
	struct gpu_choice first[MOST], again[MOST];
	const float *g[3];
	size_t count = 0;

	(void)state;
	skip_without_kernels();
	for (int i = 0; i < 3; i++) {
		struct error err = {0};
		struct work w;

		open_work(&w, true, FAMILY_QWEN2, adapter, "tune: true");
		for (size_t k = 0; i == 2 && k < count;
		     k++) { /* tiles of 128 x 64 with swizzle: there are none */
			first[k].words[1] = 18;
			first[k].words[4] = 1;
		}
		if (i)
			must(gpu_backend_recall(&w.s.back, first, count, NULL, 0, &err), &err);
		g[i] = run(&w, packed);
		assert_int_equal(gpu_backend_tuning_s(&w.s.back) > 0,
				 i != 1); /* what is taken again costs nothing */
		count = choices_of(&w.s.back, i ? again : first, MOST);
		for (size_t k = 0; i && k < count; k++) {
			assert_string_equal(again[k].product, first[k].product);
			assert_int_equal(again[k].recalled, i == 1 && first[k].seconds > 0);
			assert_true((again[k].seconds > 0) == (first[k].seconds > 0));
			if (i == 1)
				assert_string_equal(again[k].algorithm, first[k].algorithm);
		}
		assert_memory_equal(g[i], g[0], w.s.model->params.length * sizeof(**g));
		close_work(&w);
	}
	for (int i = 0; i < 3; i++)
		free((void *)(uintptr_t)g[i]);
}

static const int quarters[] = {16, 16, 16, 16, 0};

/* The way of attention's backward pass too, for the documents that it was chosen for. */
static void the_way_of_attention_is_taken_again(void **state)
{
	struct gpu_attention_choice first[3], again;
	struct error err = {0};
	struct work w;

	(void)state;
	skip_without_kernels();
	head_dim = 64;
	open_work(&w, true, FAMILY_QWEN2, adapter, "seed: 1");
	free((void *)(uintptr_t)run(&w, equal));
	assert_true(gpu_backend_attention_choice(&w.s.back, 0, &first[0]));
	assert_true(gpu_backend_attention_choice(&w.s.back, 1, &first[1]));
	assert_false(gpu_backend_attention_choice(&w.s.back, 2, &first[2]));
	assert_true(first[0].docs == 0 && *first[0].candidate);
	assert_true(first[1].docs == 2 && first[1].length == 32);
	close_work(&w);

	first[1].by_own = !first[1].by_own; /* what is taken is what it says, not what is faster */
	open_work(&w, true, FAMILY_QWEN2, adapter, "seed: 1");
	must(gpu_backend_recall(&w.s.back, NULL, 0, first, 2, &err), &err);
	free((void *)(uintptr_t)run(&w, equal));
	assert_true(gpu_backend_attention_choice(&w.s.back, 0, &again));
	assert_string_equal(again.candidate, first[0].candidate);
	assert_true(gpu_backend_attention_choice(&w.s.back, 1, &again));
	assert_int_equal(again.by_own, first[1].by_own);
	close_work(&w);
	head_dim = 8;
}

/* Ways that cannot be timed are passed over: the first one does it. */
static void a_way_that_does_not_run_ends_nothing(void **state)
{
	struct gpu_attention_choice c;
	const float *x, *y;
	struct work w;

	(void)state;
	skip_without_kernels();
	head_dim = 64;
	open_work(&w, true, FAMILY_QWEN2, adapter, "seed: 1");
	free((void *)(uintptr_t)run(&w, equal)); /* products are chosen */
	setenv("FAKE_CUDA", "cuEventElapsedTime=1", 1);
	x = run(&w, quarters);
	unsetenv("FAKE_CUDA");
	assert_true(gpu_backend_attention_choice(&w.s.back, 1, &c));
	assert_true(c.docs == 4 || gpu_backend_attention_choice(&w.s.back, 2, &c) || c.docs == 2);
	y = run(&w, quarters);
	assert_memory_equal(x, y, w.s.model->params.length * sizeof(*x));
	free((void *)(uintptr_t)x);
	free((void *)(uintptr_t)y);
	close_work(&w);
	head_dim = 8;
}

/* A run's first step chooses nothing, and takes what was chosen before; the next one chooses. Whether cuDNN's
 * plans are built beside it, cannot be, or must be there. */
static void a_first_step_chooses_nothing(void **state)
{
	static const struct {
		const char *training, *cudnn;
		int head_dim;
		size_t choices; /* of attention in the end: our candidate, the way beside cuDNN's plans */
	} cases[] = {
		{"seed: 1", "", 64, 2},		 {"seed: 1", "plan=3000", 64, 1},
		{"seed: 1", "", 8, 0}, /* which ours do not take */
		{"attention: cudnn", "", 64, 0}, {"tune: false", "", 64, 0},
	};

	(void)state;
	skip_without_kernels();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const bool tune = strcmp(cases[i].training, "tune: false");
		struct gpu_attention_choice at;
		struct gpu_choice c;
		const float *g[3];
		struct work w;

		head_dim = cases[i].head_dim;
		setenv("FAKE_CUDNN", cases[i].cudnn, 1);
		open_work(&w, true, FAMILY_QWEN2, adapter, cases[i].training);
		w.s.begun = false;
		for (int k = 0; k < 3; k++) {
			g[k] = run(&w, equal);
			assert_int_equal(gpu_backend_holds(&w.s.back), !k);
			assert_true(gpu_backend_choice(&w.s.back, 0, &c));
			assert_int_equal(c.seconds > 0, tune && k);
			for (size_t n = 0; n < 2; n++)
				assert_int_equal(gpu_backend_attention_choice(&w.s.back, n, &at),
						 k && n < cases[i].choices);
		}
		assert_memory_equal(g[2], g[1], w.s.model->params.length * sizeof(**g));
		for (int k = 0; k < 3; k++)
			free((void *)(uintptr_t)g[k]);
		close_work(&w);
	}
	unsetenv("FAKE_CUDNN");
	head_dim = 8;
}

/* Plans that nobody waited for are waited for in the end. */
static void a_first_step_may_be_the_last(void **state)
{
	struct gpu_choice c;
	struct work w;

	(void)state;
	skip_without_kernels();
	head_dim = 64;
	open_work(&w, true, FAMILY_QWEN2, adapter, "seed: 1");
	w.s.begun = false;
	free((void *)(uintptr_t)run(&w, equal));
	assert_true(gpu_backend_choice(&w.s.back, 0, &c) && c.seconds <= 0);
	close_work(&w);
	head_dim = 8;
}

enum { MADE_ROWS = 700, MADE_COLS = 1000, MADE_PITCH = 1024 };

/* Rows that say where they are; STATUS_BAD_INPUT from row `bad` on. */
static enum status make_rows(void *arg, int64_t first, int64_t rows, void *out, struct error *err)
{
	const int64_t bad = *(const int64_t *)arg;
	uint16_t *to = out;

	if (first + rows > bad)
		return error_set(err, STATUS_BAD_INPUT, "row %lld", (long long)bad);
	for (int64_t i = 0; i < rows * MADE_COLS; i++)
		to[i] = (uint16_t)(7 * (first * MADE_COLS + i));
	return STATUS_OK;
}

/* Through more pieces than there are, to rows with a pitch and without; what its maker refuses comes back,
 * and the pieces with it. */
static void rows_are_made_where_copies_take_them_from(void **state)
{
	int64_t all = MADE_ROWS, half = MADE_ROWS / 2;
	struct made_rows made = {.make = make_rows, .arg = &half};
	struct mat to = {.rows = MADE_ROWS, .cols = MADE_COLS, .dtype = DTYPE_BF16}, rows;
	struct error err = {0};
	struct alone a;
	uint16_t *got;

	(void)state;
	skip_without_kernels();
	got = malloc(sizeof(*got) * MADE_ROWS * MADE_COLS);
	assert_non_null(got);
	open_alone(&a, 4 << 20, false);
	to.cols = MADE_PITCH;
	must(arena_mat(&a.arena, MEM_WORKSPACE, &to, "rows", &err), &err);
	to.cols = MADE_COLS;
	for (int i = 0; i < 40; i++) {
		assert_int_equal(gpu_backend_put_made(&a.back, to, &made, &err), STATUS_BAD_INPUT);
		assert_string_equal(err.text, "row 350");
		err = (struct error){0};
	}
	made.arg = &all;
	for (int i = 0; i < 2; i++) {
		to.ld = i ? MADE_COLS : MADE_PITCH;
		must(gpu_backend_put_made(&a.back, to, &made, &err), &err);
		must(a.back.ops->get(&a.back, to, got, &err), &err);
		for (int64_t at = 0; at < MADE_ROWS * MADE_COLS; at++)
			assert_int_equal(got[at], (uint16_t)(7 * at));
	}
	rows = (struct mat){.data = to.data, .rows = 1, .cols = 1 << 20, .ld = 1 << 20, .dtype = DTYPE_BF16};
	assert_int_equal(gpu_backend_put_made(&a.back, rows, &made, &err), STATUS_UNSUPPORTED);
	free(got);
	gpu_backend_release(&a.back);
}

/* More documents than a grid has places: of one token each, so that o is v, and dV is dO. */
static void more_documents_than_a_grid_has(void **state)
{
	enum { DOCS = 65535 + 1025, DIM = 8 };
	const struct attention at = {.heads = 1, .kv_heads = 1, .head_dim = DIM, .scale = 1};
	const struct random_fill fill = {.seed = 3, .width = 1};
	int32_t *start;
	uint16_t *in, *out;
	struct batch b = {.tokens = DOCS, .docs = DOCS, .doc_len_max = 1};
	struct mat qkv = {.rows = DOCS, .cols = 3 * DIM, .dtype = DTYPE_BF16}, dqkv = qkv, starts, lse;
	struct mat o = {.rows = DOCS, .cols = DIM, .dtype = DTYPE_BF16}, d_o = o;
	struct error err = {0};
	struct alone a;

	(void)state;
	skip_without_kernels();
	b.doc_start = start = malloc((DOCS + 1) * sizeof(*start));
	in = malloc(DOCS * 3 * DIM * sizeof(*in));
	out = malloc(DOCS * 3 * DIM * sizeof(*out));
	for (int i = 0; i <= DOCS; i++)
		start[i] = i;
	open_alone(&a, 64 << 20, false);
	starts = (struct mat){.rows = 1, .cols = DOCS + 1, .dtype = DTYPE_I32};
	lse = (struct mat){.rows = DOCS, .cols = ATTENTION_LSE_ROOM, .dtype = DTYPE_F32};
	must(arena_mat(&a.arena, MEM_WORKSPACE, &starts, "starts", &err), &err);
	must(arena_mat(&a.arena, MEM_WORKSPACE, &lse, "lse", &err), &err);
	for (int i = 0; i < 4; i++)
		must(arena_mat(&a.arena, MEM_WORKSPACE, (struct mat *[]){&qkv, &dqkv, &o, &d_o}[i], "x",
			       &err),
		     &err);
	must(a.back.ops->put(&a.back, starts, start, &err), &err);
	b.starts = starts.data;
	must(a.back.ops->random(&a.back, qkv, &fill, &err), &err);
	must(a.back.ops->random(&a.back, d_o, &fill, &err), &err);
	must(a.back.ops->attention(&a.back, &at, &b, qkv, o, lse, &err), &err);
	must(a.back.ops->attention_bwd(&a.back, &at, &b, qkv, o, lse, d_o, dqkv, &err), &err);
	must(a.back.ops->get(&a.back, qkv, in, &err), &err);
	must(a.back.ops->get(&a.back, o, out, &err), &err);
	for (int i = 0; i < DOCS; i++)
		assert_memory_equal(out + i * DIM, in + i * 3 * DIM + 2 * DIM, DIM * sizeof(*out));
	must(a.back.ops->get(&a.back, d_o, in, &err), &err);
	must(a.back.ops->get(&a.back, dqkv, out, &err), &err);
	for (int i = 0; i < DOCS; i++)
		assert_memory_equal(out + i * 3 * DIM + 2 * DIM, in + i * DIM, DIM * sizeof(*out));
	gpu_backend_release(&a.back);
	free(start);
	free(in);
	free(out);
}

/* Documents of unequal length are filled up to multiples of what a full micro-batch has in 32 parts, by
 * untrained ones that are no longer than the longest; documents that fill their packs alike are left as they
 * are. */
static void batches_are_filled_up_to_a_few_sizes(void **state)
{
	static const struct {
		int64_t most;
		int lengths[6];
		int64_t rows, docs, tokens_most;
	} cases[] = {
		{8192, {100, 20, 0}, 128, 3},	    /* 8192 / 64 */
		{8192, {100, 29, 0}, 256, 4},	    /* 127 more: two of at most 100 */
		{8192, {128, 128, 0}, 256, 2},	    /* alike */
		{8192, {77, 0}, 128, 2},	    /* one alone has any length */
		{1000, {10, 3, 0}, 64, 8},	    /* at least 64; 51 more: six of at most 10 */
		{100, {60, 30, 0}, 100, 3},	    /* never beyond what was planned */
		{96, {31, 0}, 48, 2, 48},	    /* the limit of its own kind */
		{96, {48, 0}, 48, 1, 48},	    /* one document may fill it */
		{8192, {100, 20, 0}, 128, 3, 4096}, /* both kinds have the same sizes */
		{0, {10, 3, 0}, 13, 2},		    /* nobody asked for it */
	};

	(void)state;
	skip_without_kernels();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int32_t token[512], position[512], target[512], trained[512], start[8] = {0}, got[512];
		struct batch b = {.token = token,
				  .position = position,
				  .target = target,
				  .doc_start = start,
				  .trained = trained,
				  .tokens_most = cases[i].tokens_most};
		struct batch out;
		struct error err = {0};
		struct alone a;
		struct mat list = {.rows = 1, .dtype = DTYPE_I32};

		for (const int *l = cases[i].lengths; *l; l++) {
			for (int k = 0; k < *l; k++) {
				token[b.tokens] = 3;
				position[b.tokens] = k;
				trained[b.targets++] = (int32_t)b.tokens;
				target[b.tokens++] = 5;
			}
			b.doc_len_max = *l > b.doc_len_max ? *l : b.doc_len_max;
			start[++b.docs] = (int32_t)b.tokens;
		}
		open_alone(&a, 1 << 20, false);
		gpu_backend_fill(&a.back, cases[i].most);
		must(a.back.ops->batch(&a.back, &b, &out, &err), &err);
		assert_int_equal(out.tokens, cases[i].rows);
		assert_int_equal(out.docs, cases[i].docs);
		assert_int_equal(out.targets, b.targets);
		assert_int_equal(out.doc_start[out.docs], out.tokens);
		for (int64_t k = 0; k < out.docs; k++)
			assert_true(out.doc_start[k + 1] - out.doc_start[k] <= b.doc_len_max &&
				    out.doc_start[k + 1] > out.doc_start[k]);
		list.cols = list.ld = out.tokens;
		list.data = (void *)(uintptr_t)out.target;
		must(a.back.ops->get(&a.back, list, got, &err), &err);
		for (int64_t k = 0; k < out.tokens; k++)
			assert_int_equal(got[k], k < b.tokens ? 5 : BATCH_UNTRAINED);
		list.data = (void *)(uintptr_t)out.position;
		must(a.back.ops->get(&a.back, list, got, &err), &err);
		for (int64_t d = 0; d < out.docs; d++)
			for (int64_t k = out.doc_start[d]; k < out.doc_start[d + 1]; k++)
				assert_int_equal(got[k], k - out.doc_start[d]);
		gpu_backend_release(&a.back);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_rate_of_products_leaves_nothing_behind),
		cmocka_unit_test(a_rate_that_cannot_be_timed_is_an_error),
		cmocka_unit_test(a_product_without_room_is_timed_when_there_is),
		cmocka_unit_test(what_was_chosen_is_taken_again),
		cmocka_unit_test(the_way_of_attention_is_taken_again),
		cmocka_unit_test(a_way_that_does_not_run_ends_nothing),
		cmocka_unit_test(a_first_step_chooses_nothing),
		cmocka_unit_test(a_first_step_may_be_the_last),
		cmocka_unit_test(rows_are_made_where_copies_take_them_from),
		cmocka_unit_test(more_documents_than_a_grid_has),
		cmocka_unit_test(batches_are_filled_up_to_a_few_sizes),
	};

	fakes_take();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
