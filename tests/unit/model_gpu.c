/* SPDX-License-Identifier: Apache-2.0 */
/* The GPU's back end on the fake driver: gradients and steps held against the CPU's. */
#include "model_gpu_bed.h"
#include "fake_gpu.h"

/* Differences of nearly equal scores: the rounding of BF16 shows most in them. */
static bool is_of_scores(const char *name)
{
	return strstr(name, "q_proj") || strstr(name, "k_proj") || strstr(name, "q_norm") ||
	       strstr(name, "k_norm");
}

/* Each parameter's gradient points where the CPU's does, and is as long. */
static void same_way(const struct params *p, const float *cpu, const float *gpu)
{
	for (int i = 0; i < p->count; i++) {
		const size_t n = (size_t)(p->table[i].rows * p->table[i].cols);
		double xx = 0, yy = 0, xy = 0;

		for (size_t k = p->table[i].offset; k < p->table[i].offset + n; k++) {
			xx += (double)cpu[k] * cpu[k];
			yy += (double)gpu[k] * gpu[k];
			xy += (double)cpu[k] * gpu[k];
		}
		assert_true(xx > 0);
		if (!(xy >= (is_of_scores(p->table[i].name) ? 0.99 : 0.996) * sqrt(xx * yy)) ||
		    !(fabs(sqrt(yy / xx) - 1) < 0.05))
			fail_msg("%s: cosine %g, length %g of the CPU's", p->table[i].name,
				 xy / sqrt(xx * yy), sqrt(yy / xx));
	}
}

static void beside_cpu(enum family family, const char *training, const char *what, const int *docs)
{
	struct work cpu, gpu;
	const float *x, *y;

	/* deterministic, a CPU adds packs along a tree, which begins and ends with a step */
	open_work(&cpu, false, family, what, strcmp(training, "deterministic: true") ? training : "seed: 1");
	open_work(&gpu, true, family, what, training);
	x = run(&cpu, docs);
	y = run(&gpu, docs);
	assert_true(fabs(cpu.loss - gpu.loss) < 5e-3 * cpu.loss);
	same_way(&cpu.s.model->params, x, y);
	free((void *)(uintptr_t)x);
	free((void *)(uintptr_t)y);
	close_work(&cpu);
	close_work(&gpu);
}

static const char adapter[] = "lora: {r: 4, alpha: 6}", wide[] = "lora: {r: 8, alpha: 6}",
		  part[] = "lora: {r: 8, alpha: 6, target_modules: [k_proj, up_proj, down_proj]}",
		  saved[] = "lora: {r: 8, alpha: 6, modules_to_save: [lm_head, embed_tokens]}";

static void gradients_of_adapters_are_the_cpus(void **state)
{
	(void)state;
	skip_without_kernels();
	beside_cpu(FAMILY_LLAMA, "seed: 1", adapter, packed);
	beside_cpu(FAMILY_QWEN2, "seed: 1", adapter, packed);
	beside_cpu(FAMILY_QWEN3, "seed: 1", adapter, packed);
	beside_cpu(FAMILY_QWEN2, "seed: 1", adapter, fewer); /* filled up to 64 rows, of 7 at most */
}

static void documents_of_one_length_are_the_librarys(void **state)
{
	(void)state;
	skip_without_kernels();
	beside_cpu(FAMILY_QWEN2, "seed: 1", adapter, equal);
}

/* Of any lengths, by the kernels of tensor cores; one document of 32 among many short ones is not kept in
 * their order, and goes to the plain ones. */
static void documents_by_tensor_cores(void **state)
{
	static const int uneven[] = {1, 1, 1, 1, 1, 1, 1, 1, 32, 1, 1, 1, 1, 1, 1, 1, 1, 0};

	(void)state;
	skip_without_kernels();
	head_dim = 64;
	beside_cpu(FAMILY_QWEN2, "attention: own", adapter, packed);
	beside_cpu(FAMILY_QWEN3, "deterministic: true", adapter, packed);
	beside_cpu(FAMILY_LLAMA, "attention: own", adapter, equal);
	beside_cpu(FAMILY_LLAMA, "attention: own", adapter, uneven);
	beside_cpu(FAMILY_QWEN2, "seed: 1", adapter, equal);	      /* ours and the library's, timed */
	beside_cpu(FAMILY_QWEN2, "attention: cudnn", adapter, equal); /* the library's alone */
	head_dim = 8;
}

/* Adapters in their maps' products: the CPU's gradients, also where some maps have none, and with every way
 * of attention; with dropout they stay apart. */
static void adapters_in_their_maps(void **state)
{
	struct work w;

	(void)state;
	skip_without_kernels();
	beside_cpu(FAMILY_LLAMA, "seed: 1", wide, packed);
	beside_cpu(FAMILY_QWEN2, "seed: 1", wide, equal);
	beside_cpu(FAMILY_QWEN3, "recompute: full", wide, packed);
	beside_cpu(FAMILY_QWEN2, "recompute: cheap", part, packed);
	beside_cpu(FAMILY_QWEN2, "seed: 1", saved, packed);
	beside_cpu(FAMILY_LLAMA, "seed: 1", saved, packed);
	head_dim = 64;
	beside_cpu(FAMILY_QWEN2, "attention: own", wide, packed);
	head_dim = 8;
	open_work(&w, true, FAMILY_QWEN2, wide, "seed: 1");
	assert_true(w.s.model->extended);
	close_work(&w);
	open_work(&w, true, FAMILY_QWEN2, wide, "adapters: separate");
	assert_false(w.s.model->extended);
	close_work(&w);
	open_work(&w, true, FAMILY_QWEN2, "lora: {r: 8, alpha: 6, dropout: 0.1}", "seed: 1");
	assert_false(w.s.model->extended);
	close_work(&w);
}

static void behind_dropout_too(void **state)
{
	(void)state;
	skip_without_kernels();
	beside_cpu(FAMILY_QWEN2, "seed: 1", "lora: {r: 4, alpha: 6, dropout: 0.3}", packed);
}

static void gradients_of_everything_are_the_cpus(void **state)
{
	(void)state;
	skip_without_kernels();
	for (int family = 0; family < 3; family++) {
		static const enum family families[] = {FAMILY_LLAMA, FAMILY_QWEN2, FAMILY_QWEN3};
		struct work cpu, gpu;
		const float *x, *y;

		open_work(&cpu, false, families[family], "", "full_finetuning: true");
		open_work(&gpu, true, families[family], "", "full_finetuning: true");
		x = run(&cpu, packed);
		y = run(&gpu, packed);
		assert_true(fabs(cpu.loss - gpu.loss) < 5e-3 * cpu.loss);
		same_way(&cpu.s.model->params, x, y);
		free((void *)(uintptr_t)x);
		free((void *)(uintptr_t)y);
		close_work(&cpu);
		close_work(&gpu);
	}
}

static void recomputation_changes_no_bit(void **state)
{
	static const char *const modes[] = {"recompute: none", "recompute: cheap", "recompute: full"};
	const float *first = NULL;

	(void)state;
	skip_without_kernels();
	for (int i = 0; i < 6; i++) {
		struct work w;
		const float *g;

		if (i == 3) {
			free((void *)(uintptr_t)first);
			first = NULL;
		}
		open_work(&w, true, FAMILY_QWEN3, i < 3 ? adapter : wide, modes[i % 3]);
		g = run(&w, packed);
		if (!first)
			first = g;
		assert_memory_equal(g, first, w.s.model->params.length * sizeof(*g));
		if (g != first)
			free((void *)(uintptr_t)g);
		close_work(&w);
	}
	free((void *)(uintptr_t)first);
}

static void the_plan_is_what_is_used(void **state)
{
	static const char *const modes[] = {"recompute: none", "recompute: cheap", "recompute: full"};
	static const char *const whats[] = {adapter, "", wide};

	(void)state;
	skip_without_kernels();
	for (int i = 0; i < 9; i++) {
		const char *full = i / 3 != 1 ? "seed: 1" : "full_finetuning: true";
		const struct shape shape = shape_of(FAMILY_QWEN2);
		struct error err = {0};
		struct stepper plan;
		char training[96];
		struct config c;
		struct work w;
		struct rows r;

		snprintf(training, sizeof(training), "%s, %s", modes[i % 3], full);
		configure(&c, true, whats[i / 3], training);
		must(stepper_plan(&plan, &shape, &c, THREADS, &err), &err);
		config_release(&c);
		open_work(&w, true, FAMILY_QWEN2, whats[i / 3], training);
		make(&r, equal, shape.vocab);
		for (int k = 0; k < ROWS; k++) { /* every token is a target */
			r.target[k] = r.token[k];
			r.trained[k] = k;
		}
		r.b.targets = ROWS;
		must(stepper_begin(&w.s, &err), &err);
		must(stepper_micro(&w.s, &r.b, 0, ROWS, &(struct step_part){0}, &err), &err);
		must(stepper_end(&w.s, 1e-2, 0, &(double){0}, &(double){0}, &err), &err);
		assert_int_equal(w.s.arena.peak, plan.arena.peak);
		assert_memory_equal(w.s.arena.kind_at_peak, plan.arena.kind_at_peak,
				    sizeof(plan.arena.kind_at_peak));
		stepper_release(&plan);
		close_work(&w);
	}
}

static void documents_of_one_token(void **state)
{
	(void)state;
	skip_without_kernels();
	beside_cpu(FAMILY_LLAMA, "seed: 1", adapter, short_ones);
}

/* Steps change the live copy that products read: a step from there is the CPU's. */
static void steps_of(const char *what)
{
	struct work w[2];

	for (int gpu = 0; gpu < 2; gpu++) {
		open_work(&w[gpu], gpu, FAMILY_QWEN2, what, "weight_decay: 0.1");
		for (int step = 0; step < 6; step++) {
			struct error err = {0};
			struct rows r;
			double norm;

			make(&r, packed, w[gpu].s.model->shape.vocab);
			must(stepper_begin(&w[gpu].s, &err), &err);
			must(stepper_micro(&w[gpu].s, &r.b, (uint64_t)step, (uint64_t)r.b.targets,
					   &(struct step_part){0}, &err),
			     &err);
			must(stepper_end(&w[gpu].s, 1e-2, (uint64_t)step, &w[gpu].loss, &norm, &err), &err);
			assert_true(isfinite(norm) && norm > 0);
		}
	}
	assert_true(fabs(w[0].loss - w[1].loss) < 1e-2 * w[0].loss);
	close_work(&w[0]);
	close_work(&w[1]);
}

static void steps_go_where_the_cpus_go(void **state)
{
	(void)state;
	skip_without_kernels();
	steps_of(adapter);
	steps_of(wide);
	steps_of(part);
	steps_of(saved);
}

static void fails(enum status st, enum cause cause, const char *name, const char *value, const char *what)
{
	const struct shape shape = shape_of(FAMILY_QWEN2);
	struct error err = {0};
	struct stepper s;
	struct config c;

	setenv(name, value, 1);
	configure(&c, true, adapter, what);
	assert_int_equal(stepper_create(&s, &shape, &c, THREADS, &err), st);
	assert_int_equal(err.cause, cause);
	stepper_release(&s);
	config_release(&c);
}

static void what_is_missing_is_named(void **state)
{
	(void)state;
	skip_without_kernels();
	fails(STATUS_UNAVAILABLE, CAUSE_LIBRARY_MISSING, "ASSAY_LIB_CUBLASLT", "/nowhere/libcublasLt.so.13",
	      "seed: 1");
	setenv("ASSAY_LIB_CUBLASLT", FAKE_DIR "/libcublasLt.so.13", 1);
	fails(STATUS_UNAVAILABLE, CAUSE_LIBRARY_MISSING, "ASSAY_LIB_CUDNN", "/nowhere/libcudnn.so.9",
	      "attention: cudnn");
	beside_cpu(FAMILY_QWEN2, "seed: 1", adapter, equal); /* without it ours do */
	setenv("ASSAY_LIB_CUDNN", FAKE_DIR "/libcudnn.so.9", 1);
	fails(STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "FAKE_CUDA", "memory=2048", "seed: 1");
	fails(STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "FAKE_CUDA", "cuMemHostAlloc=2@3", "seed: 1");
	fails(STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "FAKE_CUDA", "cuMemAlloc_v2=2@2", "seed: 1");
	unsetenv("FAKE_CUDA");
}

/* The fake's second candidate is the faster one; where it does not run, the first is taken, and no bit of
 * what was there is lost by the trying. */
static void candidates_are_timed(void **state)
{
	const float *g[3];

	(void)state;
	skip_without_kernels();
	for (int i = 0; i < 3; i++) {
		struct gpu_choice c = {0};
		struct work w;

		setenv("FAKE_CUBLASLT", i == 1 ? "second=15" : "", 1);
		open_work(&w, true, FAMILY_QWEN2, adapter, i == 2 ? "tune: false" : "tune: true");
		assert_false(gpu_backend_choice(&w.s.back, 0, &c));
		g[i] = run(&w, packed);
		assert_true(gpu_backend_choice(&w.s.back, 0, &c));
		assert_string_equal(c.algorithm,
				    i ? "algo66 128x256 stages64xauto" : "algo66 128x128 stages64xauto");
		assert_int_equal(c.seconds > 0, i < 2);
		assert_memory_equal(g[i], g[0], w.s.model->params.length * sizeof(**g));
		close_work(&w);
	}
	unsetenv("FAKE_CUBLASLT");
	for (int i = 0; i < 3; i++)
		free((void *)(uintptr_t)g[i]);
}

/* Where contexts take turns clusters of eight die now and then (docs/explanation/design/model_gpu.md). */
static void no_product_has_clusters_of_eight(void **state)
{
	(void)state;
	skip_without_kernels();
	setenv("FAKE_CUBLASLT", "wide=2", 1);
	for (int i = 0; i < 2; i++) {
		struct gpu_choice c = {0};
		struct work w;

		open_work(&w, true, FAMILY_QWEN2, adapter, i ? "tune: false" : "tune: true");
		free((void *)(uintptr_t)run(&w, packed));
		for (size_t n = 0; gpu_backend_choice(&w.s.back, n, &c); n++)
			assert_non_null(strstr(c.algorithm, "cluster1x2"));
		assert_true(*c.algorithm);
		close_work(&w);
	}
	unsetenv("FAKE_CUBLASLT");
}

/* A product of `rows` rows by itself. */
static void multiply(struct work *w, struct mat m[3], int64_t rows)
{
	const struct gemm g = {.a = mat_rows(&m[0], 0, rows),
			       .b = m[1],
			       .d = mat_rows(&m[2], 0, rows),
			       .trans_b = true,
			       .alpha = 1};
	struct error err = {0};

	must(w->s.back.ops->gemm(&w->s.back, &g, &err), &err);
}

static struct gpu_choice choice_at(const struct work *w, size_t i)
{
	struct gpu_choice c = {0};

	assert_true(gpu_backend_choice(&w->s.back, i, &c));
	assert_string_equal(c.algorithm, "algo66 128x128 stages64xauto"); /* the faster one, timed or taken */
	assert_false(c.recalled);
	return c;
}

/* Of nearly as many rows a product is done as the one that was timed, until it has been done often; of many
 * more it is timed at once. */
static void rows_of_nearly_that_number_are_not_timed(void **state)
{
	struct error err = {0};
	struct mat m[3] = {{.rows = 48}, {.rows = 24}, {.rows = 48}};
	struct arena_mark mark;
	struct work w;

	(void)state;
	skip_without_kernels();
	open_work(&w, true, FAMILY_QWEN2, adapter, "tune: true");
	mark = arena_mark(w.s.back.arena);
	for (int i = 0; i < 3; i++) {
		m[i].cols = i < 2 ? 32 : 24;
		m[i].dtype = DTYPE_BF16;
		must(arena_mat(w.s.back.arena, MEM_SCRATCH, &m[i], "operand", &err), &err);
		must(w.s.back.ops->zero(&w.s.back, m[i], &err), &err);
	}
	multiply(&w, m, 32);
	assert_true(choice_at(&w, 0).seconds > 0);
	multiply(&w, m, 48);
	multiply(&w, m, 24);
	multiply(&w, m, 12);
	assert_true(choice_at(&w, 1).seconds == 0);
	assert_true(choice_at(&w, 2).seconds == 0);
	assert_true(choice_at(&w, 3).seconds > 0);
	for (int i = 1; i < 1600; i++) {
		assert_true(choice_at(&w, 1).seconds == 0);
		multiply(&w, m, 48);
	}
	assert_true(choice_at(&w, 1).seconds > 0);
	arena_reset(w.s.back.arena, &mark);
	close_work(&w);
}

/* A device that is lost, wherever a step is. */
static void what_fails_on_the_way_is_an_error(void **state)
{
	static const char *const faults[] = {"cuLaunchKernel=719@9", "cuMemcpyHtoDAsync_v2=719",
					     "cuMemcpyDtoHAsync_v2=719", "cuEventSynchronize=719"};

	(void)state;
	skip_without_kernels();
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		struct error err = {0};
		enum status st;
		struct work w;
		struct rows r;

		open_failing(&w, &r, adapter, "seed: 1", faults[i]);
		st = stepper_begin(&w.s, &err);
		if (!st)
			st = stepper_micro(&w.s, &r.b, 0, (uint64_t)r.b.targets, &(struct step_part){0},
					   &err);
		if (!st)
			st = stepper_end(&w.s, 1e-2, 0, &(double){0}, &(double){0}, &err);
		close_failing(&w, st);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gradients_of_adapters_are_the_cpus),
		cmocka_unit_test(documents_of_one_length_are_the_librarys),
		cmocka_unit_test(documents_by_tensor_cores),
		cmocka_unit_test(adapters_in_their_maps),
		cmocka_unit_test(behind_dropout_too),
		cmocka_unit_test(gradients_of_everything_are_the_cpus),
		cmocka_unit_test(recomputation_changes_no_bit),
		cmocka_unit_test(the_plan_is_what_is_used),
		cmocka_unit_test(documents_of_one_token),
		cmocka_unit_test(steps_go_where_the_cpus_go),
		cmocka_unit_test(what_is_missing_is_named),
		cmocka_unit_test(candidates_are_timed),
		cmocka_unit_test(no_product_has_clusters_of_eight),
		cmocka_unit_test(rows_of_nearly_that_number_are_not_timed),
		cmocka_unit_test(what_fails_on_the_way_is_an_error),
	};

	fakes_take();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
