/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LoRA adapters in steps of the GPU's back end on the fake driver: the logits are the CPU's, except for
 * BF16's rounding. The base model and its adapters are random.
 */
#include "scratch.h"
#include "test.h"
#include <math.h>
#include "core/file/file.h"
#include "core/json/file.h"
#include "core/math/random.h"
#include "engine/load/load.h"
#include "engine/step/row_lists.h"
#include "fake_gpu.h"
#include "kernel/fatbin.h"
#include "model/files/model_folder.h"
#include "model/files/peft/names.h"
#include "model/files/random_weights.h"
#include "model/tensor/dtype.h"
#include "must.h"
#include "text/files/tokenizer_files.h"

enum { SEQUENCES = 6, ROWS = 5, PAGE = 16, RANK = 3, ADAPTERS = 3, TENSORS_MOST = 64 };

static const struct shape shape = {.family = FAMILY_QWEN2,
				   .hidden = 64,
				   .layers = 2,
				   .heads = 2,
				   .kv_heads = 1,
				   .head_dim = 64,
				   .ffn = 96,
				   .vocab = 256,
				   .context = 64,
				   .qkv_bias = true,
				   .norm_eps = 1e-6,
				   .rope_theta = 1e4};

static enum status base_rows(void *arg, const struct named *n, int64_t row, int64_t count, float *out,
			     struct error *err)
{
	(void)arg, (void)err;
	random_weights(n, 1, row, count, out);
	for (int64_t i = 0; !n->vector && i < count * n->cols; i++)
		out[i] *= 4; /* so that logits differ much between rows */
	return STATUS_OK;
}

static enum status base_more(void *arg, const char *dir, struct error *err)
{
	(void)arg;
	return tokenizer_files_of_bytes(dir, err);
}

struct bed {
	char model[PATH_MAX], dir[ADAPTERS][PATH_MAX];
	struct load_options o;
	const char *fault; /* staged in the driver; NULL: none */
};

/* A, B and, with DoRA, a magnitude for each matrix of `targets`. */
static size_t list_tensors(const struct peft_config *c, struct tensor *t, char (*name)[PEFT_NAME_SIZE])
{
	const size_t matrices = peft_names_count(&shape, c);
	size_t count = 0;

	for (size_t i = 0; i < matrices; i++)
		for (int part = 0; part < (c->dora && i % 2 ? 2 : 1); part++) {
			struct peft_place at;

			peft_names_at(&at, &shape, c, i);
			t[count] = (struct tensor){
				.name = name[count], .dtype = DTYPE_F32, .rank = part ? 1 : 2};
			t[count].dim[0] = at.part == PEFT_A ? RANK : at.base.rows;
			t[count].dim[1] = part ? 0 : at.part == PEFT_B ? RANK : at.base.cols;
			at.part = part ? PEFT_MAGNITUDE : at.part;
			peft_name(name[count++], &at);
		}
	return count;
}

/* Adapter 1 is DoRA; adapter 2 has fewer targets. */
static void make_adapter(const char *dir, int number)
{
	const struct peft_config c = {
		.rank = RANK,
		.alpha = 4 + number,
		.dora = number == 1,
		.targets = number == 2 ? 1u << PEFT_V | 1u << PEFT_DOWN : (1u << PEFT_TARGET_COUNT) - 1,
	};
	struct tensor t[TENSORS_MOST];
	char name[TENSORS_MOST][PEFT_NAME_SIZE], path[PATH_MAX + 64];
	const size_t count = list_tensors(&c, t, name);
	struct safetensors_writer w;
	struct error err = {0};
	enum status st;

	must(file_make_dir(dir, &err), &err);
	must(json_file_write(dir, PEFT_CONFIG, peft_config_json(&c), 0, &err), &err);
	snprintf(path, sizeof(path), "%s/" PEFT_WEIGHTS, dir);
	st = safetensors_write_begin(&w, path, t, count, NULL, &err);
	for (size_t i = 0; !st && i < count; i++) {
		const size_t numbers = (size_t)(t[i].dim[0] * (t[i].rank > 1 ? t[i].dim[1] : 1));
		float *x = malloc(numbers * sizeof(*x));

		assert_non_null(x);
		random_fill_f32(x, numbers, 7, (uint32_t)(100 * number) + (uint32_t)i, 0);
		for (size_t k = 0; k < numbers; k++)
			x[k] = t[i].rank > 1 ? 0.2f * x[k] : 1 + 0.5f * x[k];
		st = safetensors_write(&w, x, numbers * sizeof(*x), &err);
		free(x);
	}
	must(safetensors_write_end(&w, st, &err), &err);
}

/* Adapters first, first + 1, .. */
static void bed_make(struct bed *b, const char *scratch, int first, int adapters, bool merge)
{
	const struct folder_options folder = {.shape = &shape,
					      .dtype = DTYPE_F32,
					      .shard_bytes = UINT64_MAX,
					      .rows = base_rows,
					      .more = base_more};
	struct error err = {0};

	*b = (struct bed){0};
	snprintf(b->model, sizeof(b->model), "%s/base", scratch);
	if (access(b->model, F_OK))
		must(folder_write(b->model, &folder, &err), &err);
	b->o = (struct load_options){.model = b->model,
				     .merge = merge,
				     .positions = 2 * PAGE,
				     .sequences = SEQUENCES,
				     .outputs = 64,
				     .rows = 64,
				     .page_tokens = PAGE,
				     .pages = 2 * SEQUENCES};
	for (int i = 0; i < adapters; i++) {
		snprintf(b->dir[i], sizeof(b->dir[i]), "%s/adapter%d", scratch, first + i);
		if (access(b->dir[i], F_OK))
			make_adapter(b->dir[i], first + i);
		b->o.adapter[i] = b->dir[i];
	}
}

/* The logits of a step: ROWS rows of each sequence, which has this adapter. */
static float *logits_of(struct bed *b, enum load_device device, const int32_t *adapter)
{
	static const int32_t token[ROWS] = {3, 70, 41, 200, 9};
	uint32_t page[SEQUENCES][2];
	struct row_lists *lists;
	struct paged_rows rows;
	struct error err = {0};
	struct loaded l;
	struct mat m;
	uint8_t *packed;
	float *out;

	fakes_take();
	if (b->fault)
		setenv("FAKE_CUDA", b->fault, 1);
	b->o.device = device;
	must(load_open(&l, &b->o, &err), &err);
	must(row_lists_create(&lists, &l.most, &err), &err);
	for (int32_t s = 0; s < SEQUENCES; s++) {
		const struct row_sequence q = {.token = token,
					       .known = ROWS,
					       .rows = ROWS,
					       .outputs = ROWS,
					       .place = s,
					       .adapter = adapter[s],
					       .page = page[s]};

		page[s][0] = (uint32_t)(2 * s + 1);
		page[s][1] = (uint32_t)(2 * s + 2);
		row_lists_add(lists, &q);
	}
	rows = row_lists_end(lists, SEQUENCES * ROWS, SEQUENCES * ROWS);
	must(paged_step_forward(l.step, &rows, &err), &err);
	m = paged_step_logits(l.step);
	packed = malloc((size_t)(m.rows * m.cols) * sizeof(float));
	out = malloc((size_t)(m.rows * m.cols) * sizeof(float));
	assert_true(packed && out);
	must(l.back.ops->get(&l.back, m, packed, &err), &err);
	dtype_unpack(m.dtype, packed, out, (size_t)(m.rows * m.cols));
	free(packed);
	row_lists_destroy(&lists);
	load_close(&l);
	return out;
}

/* The distance of two sequences' logits, relative to the largest. */
static double apart(const float *a, const float *b)
{
	double most = 0, worst = 0;

	for (int64_t i = 0; i < ROWS * shape.vocab; i++) {
		most = fmax(most, fabs((double)a[i]));
		worst = fmax(worst, fabs((double)(a[i] - b[i])));
	}
	return worst / most;
}

static void compare(const char *scratch, int first, int adapters, bool merge, const int32_t *adapter)
{
	const int64_t size = ROWS * shape.vocab;
	float *cpu, *gpu;
	struct bed b;

	bed_make(&b, scratch, first, adapters, merge);
	cpu = logits_of(&b, LOAD_CPU, adapter);
	gpu = logits_of(&b, LOAD_GPU, adapter);
	for (int32_t s = 0; s < SEQUENCES; s++) {
		const double error = apart(cpu + s * size, gpu + s * size);

		if (!(error < 0.04))
			fail_msg("%d adapters from %d, sequence %d: %g", adapters, first, s, error);
		for (int32_t k = 0; k < s && adapters > 1; k++)
			if (adapter[k] != adapter[s])
				assert_true(apart(cpu + s * size, gpu + k * size) > 0.2);
	}
	free(cpu);
	free(gpu);
}

static void skip_without_kernels(void)
{
	if (!kernel_fatbin_at(0))
		skip();
}

static void test_gpu__rows_have_the_cpu_s_logits_with_several_adapters(void **state)
{
	static const int32_t mixed[SEQUENCES] = {0, -1, 1, 2, 1, 0},
			     base[SEQUENCES] = {-1, -1, -1, -1, -1, -1};

	skip_without_kernels();
	compare(*state, 0, 3, true, mixed);
	compare(*state, 0, 3, true, base);
}

static void test_gpu__one_adapter_has_the_cpu_s_logits_merged_and_unmerged(void **state)
{
	static const int32_t zero[SEQUENCES] = {0};

	skip_without_kernels();
	for (int number = 0; number < ADAPTERS; number++)
		for (int merge = 0; merge < 2; merge++)
			compare(*state, number, 1, merge, zero);
}

/* Largest distance of any sequence's logits. */
static double farthest(const float *a, const float *b)
{
	double worst = 0;

	for (int32_t s = 0; s < SEQUENCES; s++)
		worst = fmax(worst, apart(a + s * ROWS * shape.vocab, b + s * ROWS * shape.vocab));
	return worst;
}

static bool is_finite(const float *x)
{
	for (int64_t i = 0; i < SEQUENCES * ROWS * shape.vocab; i++)
		if (!isfinite(x[i]))
			return false;
	return true;
}

static void test_gpu__one_kernel_has_the_logits_of_several(void **state)
{
	static const int32_t mixed[SEQUENCES] = {0, -1, 1, 2, 1, 0};
	struct bed b;

	skip_without_kernels();
	bed_make(&b, *state, 2, 3, true);
	for (int e4m3 = 0; e4m3 < 2; e4m3++) {
		float *several, *chosen, *fused, *cpu;

		b.o.weights_e4m3 = e4m3;
		b.o.no_tuning = true;
		b.o.adapters = LOAD_ADAPTERS_APART;
		several = logits_of(&b, LOAD_GPU, mixed);
		b.o.adapters = LOAD_ADAPTERS_CHOSEN;
		b.o.no_tuning = e4m3;
		chosen = logits_of(&b, LOAD_GPU, mixed);
		b.o.adapters = LOAD_ADAPTERS_FUSED;
		b.o.no_tuning = true;
		fused = logits_of(&b, LOAD_GPU, mixed);
		b.o.weights_e4m3 = false;
		cpu = logits_of(&b, LOAD_CPU, mixed);
		/* Numbers next to each other in E4M3 differ by a sixteenth, so small differences grow there.
		 */
		if (!(farthest(several, chosen) < (e4m3 ? 0.15 : 0.04)) ||
		    !(farthest(several, fused) < (e4m3 ? 0.15 : 0.04)) ||
		    !(farthest(cpu, fused) < 1.5 * farthest(cpu, several)))
			fail_msg("E4M3 %d: chosen %g, fused %g; of the CPU's: several %g, fused %g", e4m3,
				 farthest(several, chosen), farthest(several, fused), farthest(cpu, several),
				 farthest(cpu, fused));
		free(cpu);
		free(several);
		free(chosen);
		free(fused);
	}
}

static void test_gpu__the_kernel_with_adapters_runs_where_it_is_asked_for(void **state)
{
	static const int32_t mixed[SEQUENCES] = {0, -1, 1, 2, 1, 0},
			     none[SEQUENCES] = {-1, -1, -1, -1, -1, -1};
	struct bed b;
	float *logits;

	skip_without_kernels();
	bed_make(&b, *state, 2, 3, true);
	b.fault = "nan=skinny_adapters_bf16_n32";
	b.o.no_tuning = true;
	for (int fused = 0; fused < 2; fused++) {
		b.o.adapters = fused ? LOAD_ADAPTERS_FUSED : LOAD_ADAPTERS_APART;
		logits = logits_of(&b, LOAD_GPU, mixed);
		assert_int_equal(is_finite(logits), !fused);
		free(logits);
	}
	/* rows that may not depend on their number, and steps without adapters, do not use it */
	logits = logits_of(&b, LOAD_GPU, none);
	assert_true(is_finite(logits));
	free(logits);
	b.o.deterministic = true;
	logits = logits_of(&b, LOAD_GPU, mixed);
	assert_true(is_finite(logits));
	free(logits);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		scratch_test(test_gpu__rows_have_the_cpu_s_logits_with_several_adapters),
		scratch_test(test_gpu__one_adapter_has_the_cpu_s_logits_merged_and_unmerged),
		scratch_test(test_gpu__one_kernel_has_the_logits_of_several),
		scratch_test(test_gpu__the_kernel_with_adapters_runs_where_it_is_asked_for),
	};

	return cmocka_run_group_tests_name("engine_adapters_gpu", tests, NULL, NULL);
}
