/* SPDX-License-Identifier: Apache-2.0 */
/* The choice of how generation's GEMMs run, before there are requests, on the fake driver and cuBLASLt. */
#include "model_gpu_bed.h"

#include "engine/load/choose.h"
#include "fake_gpu.h"
#include "model/gpu/gemm/gemm.h"

enum { LAYERS = 3, OUT = 48, IN = 64, MOST = 40, STREAM_W = 1, STREAM_X = 2 };

struct choose_bed {
	struct backend back;
	struct arena arena;
	struct mat w[LAYERS], x, d, h;
};

static enum status make_small(void *arg, int64_t first, int64_t rows, void *out, struct error *err)
{
	const struct mat *m = arg;
	uint16_t *to = out;

	(void)err;
	for (int64_t i = 0; i < rows * m->cols; i++)
		to[i] = bf16_of_f32(0.1f * random_f32(7, STREAM_W, (uint64_t)(first * m->cols + i)));
	return STATUS_OK;
}

static enum status make_weights(void *arg, int64_t first, int64_t rows, void *out, struct error *err)
{
	const uint32_t *layer = arg;
	uint16_t *to = out;

	(void)err;
	for (int64_t i = 0; i < rows * IN; i++)
		to[i] = bf16_of_f32(random_f32(7 + *layer, STREAM_W, (uint64_t)(first * IN + i)));
	return STATUS_OK;
}

static void place(struct choose_bed *b, struct mat *m, int64_t rows, int64_t cols, enum dtype dtype)
{
	struct error err = {0};

	*m = (struct mat){.rows = rows, .cols = cols, .dtype = dtype};
	must(arena_mat(&b->arena, MEM_WEIGHTS, m, "a matrix", &err), &err);
}

/* own: with assay's own kernels, which E4M3 needs. */
static void open_bed(struct choose_bed *b, bool e4m3, bool own)
{
	const struct gpu_backend_options options = {
		.attention = GPU_ATTENTION_OWN, .graphs = true, .few_rows = own};
	const struct random_fill fill = {.seed = 9, .stream = STREAM_X, .width = 1};
	struct error err = {0};

	memset(b, 0, sizeof(*b));
	fakes_take();
	must(gpu_backend_create(&b->back, &options, &b->arena, &err), &err);
	must(gpu_backend_take(&b->back, 4 << 20, &err), &err);
	for (uint32_t i = 0; i < LAYERS; i++) {
		const struct made_rows made = {.make = make_weights, .arg = &i, .dtype = DTYPE_BF16};
		struct mat scale;

		place(b, &b->w[i], 2 * OUT, IN, e4m3 ? DTYPE_E4M3 : DTYPE_BF16);
		place(b, &scale, 1, 2 * OUT, DTYPE_F32);
		b->w[i].scales = e4m3 ? scales_of_rows(scale.data, b->w[i].cols) : (struct scales){0};
		must(gpu_backend_put_made(&b->back, b->w[i], &made, &err), &err);
	}
	place(b, &b->x, MOST, IN, DTYPE_BF16);
	place(b, &b->d, MOST, 2 * OUT, DTYPE_BF16);
	place(b, &b->h, MOST, OUT, DTYPE_BF16);
	must(b->back.ops->random(&b->back, b->x, &fill, &err), &err);
}

static enum status run_layers(struct choose_bed *b, int64_t rows, struct error *err)
{
	enum status st = STATUS_OK;

	for (int i = 0; !st && i < LAYERS; i++) {
		const struct gemm g = {.a = mat_rows(&b->x, 0, rows),
				       .b = b->w[i],
				       .d = mat_rows(&b->d, 0, rows),
				       .trans_b = true,
				       .alpha = 1};

		st = b->back.ops->gemm_swiglu(&b->back, &g, mat_rows(&b->h, 0, rows), err);
	}
	return st;
}

static enum status choose(struct choose_bed *b, int64_t rows, double seconds, struct error *err)
{
	enum status st = gpu_backend_watch(&b->back, true, err);

	if (!st)
		st = run_layers(b, rows, err);
	if (!st)
		st = gpu_backend_choose(&b->back, seconds, err);
	return st ? st : gpu_backend_watch(&b->back, false, err);
}

static const struct gemm_way *way_of(const struct choose_bed *b, int64_t rows)
{
	const struct gemm g = {.a = mat_rows(&b->x, 0, rows),
			       .b = b->w[1],
			       .d = mat_rows(&b->d, 0, rows),
			       .trans_b = true,
			       .alpha = 1};

	return gemm_chosen(gpu_of(&b->back), &g);
}

static void get_h(struct choose_bed *b, uint16_t out[MOST * OUT])
{
	struct error err = {0};

	must(run_layers(b, MOST, &err), &err);
	must(b->back.ops->get(&b->back, b->h, out, &err), &err);
}

static void one_choice_serves_the_rows_below_it(void **state)
{
	uint16_t before[MOST * OUT], after[MOST * OUT];
	struct gpu_choice choice;
	struct error err = {0};
	struct choose_bed b;

	(void)state;
	skip_without_kernels();
	open_bed(&b, false, false);
	get_h(&b, before);
	must(choose(&b, MOST, 10, &err), &err);
	get_h(&b, after);
	assert_memory_equal(before, after, sizeof(before));
	assert_true(gpu_backend_choice(&b.back, 0, &choice));
	assert_true(choice.seconds > 0 && choice.seconds <= choice.first_seconds && !choice.recalled);
	assert_non_null(way_of(&b, MOST));
	assert_ptr_equal(way_of(&b, MOST), way_of(&b, MOST / 2 + 1));
	assert_null(way_of(&b, MOST / 2)); /* too far below */
	must(run_layers(&b, MOST / 2 + 1, &err), &err);
	assert_true(gpu_backend_choice(&b.back, 1, &choice));
	assert_true(choice.recalled);
	must(choose(&b, 8, 10, &err), &err);
	assert_non_null(way_of(&b, 1));
	assert_ptr_equal(way_of(&b, 1), way_of(&b, 8));
	assert_null(way_of(&b, 9));
	assert_int_equal(gpu_of(&b.back)->choices->count, 2);
	must(choose(&b, 8, 10, &err), &err); /* known: not timed again */
	assert_int_equal(gpu_of(&b.back)->choices->count, 2);
	gpu_backend_release(&b.back);
}

/* The choice may be an algorithm that rounds partial sums. */
static void whole_sums_need_a_choice_of_their_own(void **state)
{
	struct error err = {0};
	struct choose_bed b;
	struct gemm g;

	(void)state;
	skip_without_kernels();
	open_bed(&b, false, false);
	must(choose(&b, MOST, 10, &err), &err);
	g = (struct gemm){.a = b.x, .b = b.w[1], .d = b.d, .trans_b = true, .alpha = 1};
	assert_non_null(gemm_chosen(gpu_of(&b.back), &g));
	g.whole_sums = true;
	assert_null(gemm_chosen(gpu_of(&b.back), &g));
	gpu_backend_release(&b.back);
}

static void are_close(const uint16_t before[MOST * OUT], const uint16_t after[MOST * OUT])
{
	for (int i = 0; i < MOST * OUT; i++)
		assert_true(fabs((double)(bf16_to_f32(before[i]) - bf16_to_f32(after[i]))) <
			    0.02 + 0.02 * fabs((double)bf16_to_f32(before[i])));
}

/* Which one is faster here does not matter, so both ways are set by hand after the timing. */
static void weights_in_bf16_may_take_own_kernels(void **state)
{
	uint16_t before[MOST * OUT], after[MOST * OUT];
	struct gemm_way ways[FEW_ROWS_WAYS_MOST];
	struct error err = {0};
	struct choose_bed b;
	struct gemm g;

	(void)state;
	skip_without_kernels();
	open_bed(&b, false, true);
	get_h(&b, before);
	must(choose(&b, MOST, 10, &err), &err);
	assert_non_null(way_of(&b, MOST));
	get_h(&b, after);
	are_close(before, after);
	g = (struct gemm){.a = b.x, .b = b.w[1], .d = b.d, .trans_b = true, .alpha = 1};
	assert_false(few_rows_take(gpu_of(&b.back), &g));
	assert_true(few_rows_ways(gpu_of(&b.back), &g, &b.h, ways) > 1);
	for (int own = 0; own < 2; own++) {
		struct gemm_choice *choice = &gpu_of(&b.back)->choices->choice[0];

		choice->way = own ? ways[0] : (struct gemm_way){.engine = GEMM_LIBRARY};
		memset(after, 0, sizeof(after));
		get_h(&b, after);
		are_close(before, after);
	}
	g.alpha = 2; /* not a GEMM of own kernels, whatever was chosen for its form */
	assert_int_equal(few_rows_ways(gpu_of(&b.back), &g, &b.h, ways), 0);
	must(b.back.ops->gemm(&b.back, &g, &err), &err);
	gpu_backend_release(&b.back);
}

static void weights_in_e4m3_have_a_way_of_their_own(void **state)
{
	uint16_t before[MOST * OUT], after[MOST * OUT];
	struct error err = {0};
	struct choose_bed b;

	(void)state;
	skip_without_kernels();
	open_bed(&b, true, true);
	get_h(&b, before);
	must(choose(&b, MOST, 10, &err), &err);
	assert_non_null(way_of(&b, MOST));
	get_h(&b, after);
	are_close(before, after);
	gpu_backend_release(&b.back);
}

static void a_candidate_that_does_not_run_is_not_chosen(void **state)
{
	struct gpu_choice choice;
	struct error err = {0};
	struct choose_bed b;

	(void)state;
	skip_without_kernels();
	open_bed(&b, false, false);
	setenv("FAKE_CUBLASLT", "second=15", 1);
	must(choose(&b, MOST, 10, &err), &err);
	unsetenv("FAKE_CUBLASLT");
	assert_true(gpu_backend_choice(&b.back, 0, &choice));
	assert_true(choice.seconds == choice.first_seconds);
	gpu_backend_release(&b.back);
}

static void other_failures_are_reported(void **state)
{
	struct error err = {0};
	struct choose_bed b;

	(void)state;
	skip_without_kernels();
	open_bed(&b, false, false);
	setenv("FAKE_CUBLASLT", "second=13", 1);
	assert_int_not_equal(choose(&b, MOST, 10, &err), STATUS_OK);
	unsetenv("FAKE_CUBLASLT");
	assert_true(err.text[0]);
	gpu_backend_release(&b.back);
}

static void without_time_nothing_is_chosen(void **state)
{
	struct error err = {0};
	struct choose_bed b;

	(void)state;
	skip_without_kernels();
	open_bed(&b, false, false);
	must(gpu_backend_choose(&b.back, 10, &err), &err); /* nothing was watched */
	must(choose(&b, MOST, -1, &err), &err);
	assert_int_equal(gpu_of(&b.back)->choices->count, 0);
	assert_null(way_of(&b, MOST));
	gpu_backend_release(&b.back);
}

/* A step whose time depends on the present way of its GEMMs. */
struct slow_step {
	struct choose_bed *b;
	int64_t rows;
	struct gemm_way fast; /* with another way, the step has more work */
	bool fails;	      /* and with `fast` it does not run */
};

static bool is_fast(const struct slow_step *s)
{
	return !memcmp(way_of(s->b, s->rows), &s->fast, sizeof(s->fast));
}

static enum status run_slowly(void *arg, struct error *err)
{
	const struct slow_step *s = arg;
	const int turns = is_fast(s) ? 1 : 6;
	enum status st = STATUS_OK;

	if (s->fails && is_fast(s))
		return error_set(err, STATUS_UNSUPPORTED, "this way does not run");
	for (int i = 0; !st && i < turns; i++)
		st = run_layers(s->b, s->rows, err);
	return st;
}

static struct gemm_choice *only_choice(const struct choose_bed *b)
{
	struct gemm_choices *c = gpu_of(&b->back)->choices;

	assert_int_equal(c->count, 1);
	return c->choice;
}

/* Watches a step of the bed, then refines with steps in which way number `fast` takes the least time. */
static enum status refine(struct choose_bed *b, unsigned fast, bool fails, double seconds, struct error *err)
{
	struct slow_step step = {.b = b, .rows = MOST, .fast = only_choice(b)->near[fast], .fails = fails};
	enum status st = gpu_backend_watch(&b->back, true, err);

	if (!st)
		st = run_layers(b, MOST, err);
	if (!st)
		st = gpu_backend_refine(&b->back, MOST, seconds, run_slowly, &step, err);
	assert_int_equal(gpu_of(&b->back)->choices->uses,
			 LAYERS); /* those of the timed steps are forgotten */
	assert_int_equal(gpu_backend_watch(&b->back, false, st ? &(struct error){0} : err), STATUS_OK);
	return st;
}

static void near_ways_are_the_fastest_in_order(const struct choose_bed *b)
{
	const struct gemm_choice *c = only_choice(b);

	assert_true(c->nears >= 2 && c->nears <= GEMM_NEAR_MOST);
	assert_memory_equal(&c->way, &c->near[0], sizeof(c->way));
	for (unsigned i = 0; i < c->nears; i++)
		for (unsigned k = 0; k < i; k++)
			assert_memory_not_equal(&c->near[i], &c->near[k], sizeof(c->near[i]));
}

/* On the fake device, every way takes about as long, so several are near. */
static void a_step_decides_among_near_ways(void **state)
{
	uint16_t before[MOST * OUT], after[MOST * OUT];
	struct error err = {0};

	(void)state;
	skip_without_kernels();
	for (int e4m3 = 0; e4m3 < 2; e4m3++) {
		struct choose_bed b;

		open_bed(&b, e4m3, true);
		get_h(&b, before);
		must(choose(&b, MOST, 10, &err), &err);
		near_ways_are_the_fastest_in_order(&b);
		for (unsigned fast = 0; fast < only_choice(&b)->nears; fast++) {
			must(refine(&b, fast, false, 10, &err), &err);
			assert_memory_equal(way_of(&b, MOST), &only_choice(&b)->near[fast],
					    sizeof(struct gemm_way));
			get_h(&b, after);
			are_close(before, after);
		}
		gpu_backend_release(&b.back);
	}
}

static void a_way_that_does_not_run_in_a_step_is_not_taken(void **state)
{
	struct error err = {0};
	struct choose_bed b;

	(void)state;
	skip_without_kernels();
	open_bed(&b, false, true);
	must(choose(&b, MOST, 10, &err), &err);
	for (unsigned i = 0; i < 2; i++) {
		must(refine(&b, i, true, 10, &err), &err);
		assert_memory_not_equal(way_of(&b, MOST), &only_choice(&b)->near[i], sizeof(struct gemm_way));
	}
	gpu_backend_release(&b.back);
}

/* The library has only algorithms with wide clusters, and the device is shared. */
static void wide_algorithms_are_taken_if_there_are_no_others(void **state)
{
	uint16_t before[MOST * OUT], after[MOST * OUT];
	struct error err = {0};
	struct choose_bed b;

	(void)state;
	skip_without_kernels();
	open_bed(&b, false, false);
	gpu_of(&b.back)->is_shared = true;
	setenv("FAKE_CUBLASLT", "wide=99", 1);
	get_h(&b, before);
	must(choose(&b, MOST, 10, &err), &err);
	must(refine(&b, 1, false, 10, &err), &err);
	assert_memory_equal(way_of(&b, MOST), &only_choice(&b)->near[1], sizeof(struct gemm_way));
	get_h(&b, after);
	unsetenv("FAKE_CUBLASLT");
	are_close(before, after);
	gpu_backend_release(&b.back);
}

/* Refines with steps in which way number `fast` takes the least time, while the library has a fault. */
static void refine_with_fault(struct choose_bed *b, unsigned fast, const char *fault)
{
	const struct slow_step step = {.b = b, .rows = MOST, .fast = only_choice(b)->near[fast]};
	struct error err = {0};

	must(gpu_backend_watch(&b->back, true, &err), &err);
	must(run_layers(b, MOST, &err), &err);
	setenv("FAKE_CUBLASLT", fault, 1);
	must(gpu_backend_refine(&b->back, MOST, 10, run_slowly, (void *)&step, &err), &err);
	unsetenv("FAKE_CUBLASLT");
	must(gpu_backend_watch(&b->back, false, &err), &err);
}

/* The library refuses each algorithm when its plan takes it. */
static void refused_algorithms_leave_the_first_way(void **state)
{
	uint16_t before[MOST * OUT], after[MOST * OUT];
	struct error err = {0};
	struct choose_bed b;

	(void)state;
	skip_without_kernels();
	open_bed(&b, false, false);
	get_h(&b, before);
	must(choose(&b, MOST, 10, &err), &err);
	refine_with_fault(&b, 1, "check=15");
	assert_memory_equal(way_of(&b, MOST), &only_choice(&b)->near[0], sizeof(struct gemm_way));
	get_h(&b, after);
	are_close(before, after);
	gpu_backend_release(&b.back);
}

/* One algorithm does not run in a step. Another one runs in its place, whose time does not count for it. */
static void an_algorithm_that_a_step_replaces_is_not_taken(void **state)
{
	unsigned left = 0, nears;
	struct error err = {0};
	struct choose_bed b;

	(void)state;
	skip_without_kernels();
	open_bed(&b, false, false);
	must(choose(&b, MOST, 10, &err), &err);
	nears = only_choice(&b)->nears;
	for (unsigned fast = 0; fast < nears; fast++) {
		refine_with_fault(&b, fast, "second=15");
		left += memcmp(way_of(&b, MOST), &only_choice(&b)->near[fast], sizeof(struct gemm_way)) != 0;
		must(refine(&b, 0, false, 10, &err), &err); /* a way that runs, for the noted step */
	}
	assert_int_equal(left, 1);
	gpu_backend_release(&b.back);
}

static enum status run_never(void *arg, struct error *err)
{
	(void)arg;
	return error_set(err, STATUS_UNSUPPORTED, "no step runs");
}

static enum status run_badly(void *arg, struct error *err)
{
	(void)arg;
	return error_set(err, STATUS_UNAVAILABLE, "the device is lost");
}

static void without_steps_the_fastest_way_by_itself_stays(void **state)
{
	uint16_t before[MOST * OUT], after[MOST * OUT];
	struct error err = {0};
	struct choose_bed b;

	(void)state;
	skip_without_kernels();
	open_bed(&b, false, true);
	get_h(&b, before);
	must(choose(&b, MOST, 10, &err), &err);
	assert_true(gpu_backend_has_ways(&b.back, MOST));
	assert_false(gpu_backend_has_ways(&b.back, MOST - 1));
	must(gpu_backend_watch(&b.back, true, &err), &err);
	must(run_layers(&b, MOST, &err), &err);
	must(gpu_backend_refine(&b.back, MOST, 10, run_never, &b, &err), &err);
	assert_memory_equal(way_of(&b, MOST), &only_choice(&b)->near[0], sizeof(struct gemm_way));
	assert_int_equal(gpu_backend_refine(&b.back, MOST, 10, run_badly, &b, &err), STATUS_UNAVAILABLE);
	assert_string_equal(err.text, "the device is lost");
	must(gpu_backend_watch(&b.back, false, &err), &err);
	get_h(&b, after);
	are_close(before, after);
	gpu_backend_release(&b.back);
}

static void steps_decide_nothing_without_time_or_choices(void **state)
{
	struct gemm_way way;
	struct error err = {0};
	struct slow_step step = {0};
	struct choose_bed b;

	(void)state;
	skip_without_kernels();
	open_bed(&b, false, true);
	must(gpu_backend_refine(&b.back, MOST, 10, run_slowly, &step, &err), &err);
	must(choose(&b, MOST, 10, &err), &err);
	way = *way_of(&b, MOST);
	must(refine(&b, 1, false, -1, &err), &err);
	assert_memory_equal(way_of(&b, MOST), &way, sizeof(way));
	must(gpu_backend_refine(&b.back, MOST - 1, 10, run_slowly, &step, &err), &err); /* other rows */
	assert_memory_equal(way_of(&b, MOST), &way, sizeof(way));
	gpu_backend_release(&b.back);
}

/* `first` and `then`: what others have of the device's memory, in MiB, when the back end begins and before it
 * takes `own` bytes. */
static bool finds_sharing(const char *first, const char *then, uint64_t own)
{
	const struct gpu_backend_options options = {.attention = GPU_ATTENTION_OWN};
	struct error err = {0};
	struct backend back;
	struct arena arena;
	bool is_shared;

	setenv("FAKE_CUDA", first, 1);
	must(gpu_backend_create(&back, &options, &arena, &err), &err);
	setenv("FAKE_CUDA", then, 1);
	must(gpu_backend_take(&back, own, &err), &err);
	is_shared = gpu_backend_is_shared(&back);
	gpu_backend_release(&back);
	unsetenv("FAKE_CUDA");
	return is_shared;
}

static void a_device_whose_memory_is_in_use_is_shared(void **state)
{
	(void)state;
	skip_without_kernels();
	fakes_take();
	assert_false(finds_sharing("context=1000", "context=1000", 1 << 20));
	assert_false(finds_sharing("context=1000", "context=1000", (uint64_t)5 << 30)); /* its own */
	assert_true(finds_sharing("context=3000", "context=1000", 1 << 20));
	assert_true(finds_sharing("context=1000", "context=3000", 1 << 20)); /* they came meanwhile */
}

/* Clusters of eight blocks are for a device that nobody else uses (model/gpu/gemm/gemm.c). */
static void a_shared_device_has_no_wide_clusters(void **state)
{
	(void)state;
	skip_without_kernels();
	for (int shared = 0; shared < 2; shared++) {
		struct error err = {0};
		struct choose_bed b;

		open_bed(&b, false, true);
		gpu_of(&b.back)->is_shared = shared;
		must(run_layers(&b, MOST, &err), &err);
		assert_int_equal(gpu_of(&b.back)->products->planned[0].shape.cluster_most, shared ? 4 : 0);
		gpu_of(&b.back)->options.deterministic = true; /* whoever uses the device */
		must(run_layers(&b, MOST - 1, &err), &err);
		assert_int_equal(gpu_of(&b.back)->products->planned[1].shape.cluster_most, 4);
		gpu_backend_release(&b.back);
	}
}

/* A model with random weights, as load_open leaves one. */
static void open_loaded(struct loaded *l, bool e4m3)
{
	const struct gpu_backend_options options = {
		.attention = GPU_ATTENTION_OWN, .graphs = true, .few_rows = true};
	const struct model_options model = {.inference = true,
					    .storage.form = e4m3 ? STORAGE_E4M3_ROWS : STORAGE_NUMBERS,
					    .positions = 64};
	struct weights_slot *slots = NULL;
	struct named *names = NULL;
	struct error err = {0};
	size_t count = 0;
	struct shape shape;

	fakes_take();
	head_dim = 64;
	shape = shape_of(FAMILY_QWEN2);
	shape.ffn = 48; /* rows of E4M3 begin at multiples of 16 bytes */
	memset(l, 0, sizeof(*l));
	l->most = (struct paged_limits){.rows = 24,
					.sequences = 8,
					.outputs = 24,
					.pages = 4,
					.vocab = shape.vocab,
					.page_tokens = 16};
	must(gpu_backend_create(&l->back, &options, &l->arena, &err), &err);
	must(gpu_backend_take(&l->back, 64 << 20, &err), &err);
	must(model_create(&l->model, &shape, &model, &err), &err);
	must(model_place(l->model, &l->back, &err), &err);
	must(paged_step_create(&l->step, l->model, &l->back,
			       &(struct paged_step_options){.most = l->most, .places = 8, .replays = true},
			       &err),
	     &err);
	must(paged_step_pages(l->step, 16, &err), &err);
	must(model_weight_slots(l->model, &slots, &names, &count, &err), &err);
	for (size_t i = 0; i < count; i++) {
		const struct made_rows made = {.make = make_small, .arg = &slots[i].to, .dtype = DTYPE_BF16};

		must(gpu_backend_put_made(&l->back, slots[i].to, &made, &err), &err);
	}
	free(slots);
	free(names);
	must(model_loaded(l->model, &l->back, &err), &err);
}

/* Nothing of it is left: neither choices nor plans nor other bits. */
static void an_ordinary_time_leaves_a_deterministic_back_end_as_it_was(void **state)
{
	for (int e4m3 = 0; e4m3 < 2; e4m3++) {
		uint16_t before[MOST * OUT], after[MOST * OUT];
		struct gpu_ordinary kept;
		struct error err = {0};
		struct choose_bed b;
		size_t plans;

		skip_without_kernels();
		open_bed(&b, e4m3, true);
		gpu_of(&b.back)->options.invariant = gpu_of(&b.back)->options.deterministic = true;
		get_h(&b, before);
		plans = gpu_of(&b.back)->products->count;
		gpu_backend_ordinary_begin(&b.back, &kept);
		assert_false(gpu_of(&b.back)->options.invariant || gpu_of(&b.back)->options.deterministic);
		must(choose(&b, MOST, 10, &err), &err);
		assert_non_null(way_of(&b, MOST));
		gpu_backend_ordinary_end(&b.back, &kept);
		assert_true(gpu_of(&b.back)->options.invariant && gpu_of(&b.back)->options.deterministic);
		assert_null(way_of(&b, MOST));
		assert_int_equal(gpu_of(&b.back)->products->count, plans);
		get_h(&b, after);
		assert_memory_equal(before, after, sizeof(before));
		gpu_backend_release(&b.back);
	}
	(void)state;
}

static void a_model_has_choices_for_its_rows(void **state)
{
	struct error err = {0};
	struct loaded l;
	size_t choices;

	(void)state;
	skip_without_kernels();
	for (int e4m3 = 0; e4m3 < 2; e4m3++) {
		bool has[25] = {false};

		open_loaded(&l, e4m3);
		must(load_choose(&l, 100, &err), &err);
		choices = gpu_of(&l.back)->choices->count;
		for (size_t i = 0; i < choices; i++)
			has[gpu_of(&l.back)->choices->choice[i].rows] = true;
		assert_true(has[1] && has[8] && !has[16]);
		load_close(&l);
	}
}

/* The logits of a step with one row. */
static void logits_of(struct loaded *l, uint16_t *out)
{
	const int32_t ids[] = {3}, zeros[] = {0}, begin[] = {0, 1}, keys[] = {1};
	const struct paged_rows step = {.token = ids,
					.position = zeros,
					.slot = (int32_t[]){16},
					.begin = begin,
					.keys = keys,
					.page = (int32_t[]){1},
					.output = zeros,
					.rows = 1,
					.sequences = 1,
					.outputs = 1,
					.page_ld = 1,
					.keys_most = 1,
					.page_tokens = 16};
	struct error err = {0};

	paged_step_persistent(l->step, false);
	must(paged_step_forward(l->step, &step, &err), &err);
	must(l->back.ops->get(&l->back, paged_step_logits(l->step), out, &err), &err);
}

/* On the fake device a step takes the host's time, so it decides only if asked to anyway. */
static void steps_as_served_decide(void **state)
{
	uint16_t before[4096], after[4096];
	struct error err = {0};
	struct loaded l;

	(void)state;
	skip_without_kernels();
	for (int e4m3 = 0; e4m3 < 2; e4m3++) {
		open_loaded(&l, e4m3);
		must(load_choose(&l, 100, &err), &err);
		logits_of(&l, before);
		assert_true(gpu_backend_has_ways(&l.back, 8));
		must(load_refine(&l, 8, 100, true, &err), &err);
		must(load_refine(&l, 1, 100, true, &err), &err);
		must(load_refine(&l, 7, 100, true, &err), &err); /* no choices */
		assert_false(gpu_of(&l.back)->choices->watching);
		logits_of(&l, after);
		for (int64_t i = 0; i < l.model->shape.vocab; i++)
			assert_true(fabsf(bf16_to_f32(before[i]) - bf16_to_f32(after[i])) < 0.05f);
		load_close(&l);
	}
}

static void a_step_can_end_after_some_layers(void **state)
{
	uint16_t all[4096], first[4096], again[4096];
	struct error err = {0};
	struct loaded l;
	size_t bytes;

	(void)state;
	skip_without_kernels();
	open_loaded(&l, false);
	assert_true(l.model->shape.layers > 1 && l.model->shape.vocab <= 4096);
	bytes = (size_t)l.model->shape.vocab * sizeof(*all);
	logits_of(&l, all);
	paged_step_layers(l.step, 1);
	logits_of(&l, first);
	assert_memory_not_equal(all, first, bytes);
	paged_step_layers(l.step, INT64_MAX);
	logits_of(&l, again);
	assert_memory_equal(all, again, bytes);
	must(load_choose(&l, 100, &err), &err); /* leaves all layers */
	logits_of(&l, again);
	for (size_t i = 0; i < bytes / sizeof(*all); i++)
		assert_true(fabsf(bf16_to_f32(all[i]) - bf16_to_f32(again[i])) < 0.05f);
	load_close(&l);
}

static void a_failing_device_is_reported(void **state)
{
	struct error err = {0};
	struct loaded l;

	(void)state;
	skip_without_kernels();
	open_loaded(&l, false);
	setenv("FAKE_CUBLASLT", "cublasLtMatmul=14", 1);
	assert_int_not_equal(load_choose(&l, 100, &err), STATUS_OK);
	unsetenv("FAKE_CUBLASLT");
	assert_false(gpu_of(&l.back)->choices->watching);
	load_close(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_choice_serves_the_rows_below_it),
		cmocka_unit_test(whole_sums_need_a_choice_of_their_own),
		cmocka_unit_test(weights_in_bf16_may_take_own_kernels),
		cmocka_unit_test(weights_in_e4m3_have_a_way_of_their_own),
		cmocka_unit_test(a_candidate_that_does_not_run_is_not_chosen),
		cmocka_unit_test(other_failures_are_reported),
		cmocka_unit_test(without_time_nothing_is_chosen),
		cmocka_unit_test(a_step_decides_among_near_ways),
		cmocka_unit_test(a_way_that_does_not_run_in_a_step_is_not_taken),
		cmocka_unit_test(wide_algorithms_are_taken_if_there_are_no_others),
		cmocka_unit_test(refused_algorithms_leave_the_first_way),
		cmocka_unit_test(an_algorithm_that_a_step_replaces_is_not_taken),
		cmocka_unit_test(without_steps_the_fastest_way_by_itself_stays),
		cmocka_unit_test(steps_decide_nothing_without_time_or_choices),
		cmocka_unit_test(a_device_whose_memory_is_in_use_is_shared),
		cmocka_unit_test(a_shared_device_has_no_wide_clusters),
		cmocka_unit_test(an_ordinary_time_leaves_a_deterministic_back_end_as_it_was),
		cmocka_unit_test(a_model_has_choices_for_its_rows),
		cmocka_unit_test(steps_as_served_decide),
		cmocka_unit_test(a_step_can_end_after_some_layers),
		cmocka_unit_test(a_failing_device_is_reported),
	};

	return cmocka_run_group_tests_name("model_gpu_choose", tests, NULL, NULL);
}
