/* SPDX-License-Identifier: Apache-2.0 */
/* Weights that are stored in 4 bits and read from slots: training computes the same bits as with weights that were
 * dequantized before. */
#include "fake_gpu.h"
#include "model_gpu_bed.h"

#include "model/backend/plan_backend.h"
#include "model/decoder/layer_tensors.h"

/* A third micro-batch is the first one that may be captured, and the slots then hold the first layers. */
enum { STEPS = 4, MICROS = 3 };
static const char adapter[] = "lora: {r: 4, alpha: 6}";

struct variant {
	bool gpu;
	enum family family;
	const char *lora, *model, *training;
	int64_t layers;
};

static bool is_fp8(const struct variant *v)
{
	return strstr(v->training, "fp8");
}

static void open_sized(struct stepper *s, const struct variant *v, bool stored, bool large)
{
	struct shape shape = shape_of(v->family);
	struct error err = {0};
	struct config c;
	char text[512];

	shape.layers = v->layers;
	if (large) /* multiples of 16; a tile of 128 rows has parts of several tensors */
		shape.ffn = 80;
	snprintf(text, sizeof(text),
		 "model: {path: /m%s%s}\n%s\ndata: {train: /t, max_seq_length: %d}\n"
		 "training: {device: %s, per_device_train_batch_size: %d, learning_rate: 1e-2%s}\n",
		 stored ? ", load_in_4bit: true" : "", stored ? v->model : "", v->lora, LENGTH, v->gpu ? "gpu" : "cpu",
		 ROWS / LENGTH, v->training);
	must(config_parse(&c, "t", text, strlen(text), &err), &err);
	must(stepper_create(s, &shape, &c, THREADS, &err), &err);
	config_release(&c);
}

static void open_stepper(struct stepper *s, const struct variant *v, bool stored)
{
	open_sized(s, v, stored, is_fp8(v));
}

static void fill_adapters(struct stepper *s)
{
	const struct params *p = &s->model->params;
	struct error err = {0};

	for (int i = 0; i < p->count; i++)
		if (strstr(p->table[i].name, ".lora_")) {
			const struct random_fill f = {.seed = 4, .stream = (uint32_t)i, .width = 0.3f};

			must(s->back.ops->random(&s->back, params_view(&p->master, &p->table[i]), &f, &err), &err);
		}
	must(model_loaded(s->model, &s->back, &err), &err);
}

/* Replaces the numbers of a linear layer's tensor by those that remain of them in 4 bits. */
static void round_tensor(struct backend *back, const struct mat *w, const struct stored *like)
{
	struct mat numbers = {.rows = w->rows, .cols = w->cols, .ld = w->cols, .dtype = w->dtype};
	struct stored s = {.bnb4 = like->bnb4};
	void *memory = malloc(stored_bytes(&s));
	struct error err = {0};

	numbers.data = malloc(dtype_bytes(w->dtype, (uint64_t)(w->rows * w->cols)));
	must(back->ops->get(back, *w, numbers.data, &err), &err);
	bnb4_place(&s.bnb4, memory);
	must(bnb4_quantize(&s.bnb4, &numbers, NULL, &err), &err);
	bnb4_dequantize(&s.bnb4, 0, &numbers, NULL);
	must(back->ops->put(back, *w, numbers.data, &err), &err);
	free(numbers.data);
	free(memory);
}

static void round_weights(struct stepper *s, const struct stepper *like)
{
	struct layer_tensor t[LAYER_TENSOR_COUNT];

	layer_tensors(&s->model->shape, t);
	for (int64_t i = 0; i < s->model->shape.layers; i++)
		for (int k = 0; k < LAYER_TENSOR_COUNT; k++) {
			const struct linear *l = layer_linear_of(&s->model->layer[i], &t[k]);
			const struct linear *stored = layer_linear_of(&like->model->layer[i], &t[k]);
			struct mat w;

			if (!l)
				continue;
			assert_int_equal(l->stored_count, 0);
			w = mat_rows(&l->w.w, t[k].begin, t[k].rows);
			round_tensor(&s->back, &w, linear_stored(stored, t[k].begin));
		}
}

/* W of a model without FP8 becomes W of another one. `get` waits for all work on it. */
static void take_numbers(struct backend *back, const struct linear *to, struct backend *from_back, const struct mat *from)
{
	void *numbers = malloc(dtype_bytes(from->dtype, (uint64_t)(from->rows * from->cols)));
	const struct mat none = {0};
	struct error err = {0};

	must(from_back->ops->get(from_back, *from, numbers, &err), &err);
	if (to->is_fp8)
		must(back->ops->quantize_e4m3(back, *from, to->fp8, none, NULL, &err), &err);
	if (to->exact.rows)
		must(back->ops->convert(back, mat_rows(from, 0, to->exact.rows), to->exact, &err), &err);
	if (!to->is_fp8)
		must(back->ops->put(back, to->w.w, numbers, &err), &err);
	free(numbers);
}

static void finish(struct backend *back)
{
	struct mat lists = {.rows = 1, .cols = 1, .ld = 1, .dtype = DTYPE_F32, .data = back->arena->base};
	struct error err = {0};
	float first;

	must(back->ops->get(back, lists, &first, &err), &err);
}

static void load_random(struct stepper *s);

/* The same in E4M3: the numbers are those of a model that does not compute in FP8. */
static void round_fp8(struct stepper *s, const struct stepper *like, const struct variant *v)
{
	struct variant other = *v;
	struct stepper numbers;

	other.training = "";
	open_sized(&numbers, &other, false, true);
	load_random(&numbers);
	round_weights(&numbers, like);
	for (int64_t i = 0; i < s->model->shape.layers; i++) {
		const struct layer *to = &s->model->layer[i], *from = &numbers.model->layer[i];
		const struct linear *const tos[] = {&to->qkv, &to->o, &to->gate_up, &to->down};
		const struct linear *const froms[] = {&from->qkv, &from->o, &from->gate_up, &from->down};

		for (int k = 0; k < LAYER_LINEARS; k++)
			take_numbers(&s->back, tos[k], &numbers.back, &froms[k]->w.w);
	}
	finish(&s->back); /* before the numbers' memory is released */
	stepper_release(&numbers);
}

static void load_random(struct stepper *s)
{
	struct weights w = {.shape = s->model->shape};
	const struct model_source from = {.weights = &w, .random = true, .seed = 3};
	struct error err = {0};

	must(model_load(s->model, &s->back, &from, &err), &err);
}

static double train_step(struct stepper *s, uint64_t number, bool evaluate)
{
	struct step_part took = {0};
	struct error err = {0};
	double loss, norm, held = 0;
	struct rows r;

	make(&r, packed, s->model->shape.vocab);
	must(stepper_begin(s, &err), &err);
	for (int i = 0; i < MICROS; i++)
		must(stepper_micro(s, &r.b, number, MICROS * (uint64_t)r.b.targets, &took, &err), &err);
	must(stepper_end(s, 1e-2, number, &loss, &norm, &err), &err);
	if (evaluate)
		must(stepper_evaluate(s, &r.b, &held, &err), &err);
	return loss;
}

static float *trained(struct stepper *s)
{
	float *out = malloc(s->model->params.length * sizeof(*out));
	struct error err = {0};

	must(s->back.ops->get(&s->back, s->model->params.master, out, &err), &err);
	return out;
}

/* late: streams that are made from here on, which are all but the main ones, do nothing before somebody waits. */
static void same_as_dequantized(const struct variant *v, bool late)
{
	struct stepper stored, plain;
	double first = 0, last = 0;
	float *a, *b;

	open_stepper(&stored, v, true);
	open_stepper(&plain, v, false);
	setenv("FAKE_CUDA", late ? "late=1" : "", 1);
	load_random(&stored);
	load_random(&plain);
	if (is_fp8(v))
		round_fp8(&plain, &stored, v);
	else
		round_weights(&plain, &stored);
	fill_adapters(&stored);
	fill_adapters(&plain);
	for (uint64_t i = 0; i < STEPS; i++) {
		double expected = train_step(&plain, i, false);

		last = train_step(&stored, i, i == 1); /* an evaluation leaves other layers in the slots */
		if (last != expected)
			fail_msg("%s%s%s: step %d: loss %.9g, with dequantized weights %.9g", v->lora, v->model,
				 v->training, (int)i, last, expected);
		first = i ? first : last;
	}
	assert_true(last != first);
	a = trained(&stored);
	b = trained(&plain);
	assert_memory_equal(a, b, plain.model->params.length * sizeof(float));
	unsetenv("FAKE_CUDA");
	if (v->gpu)
		assert_null(gpu_backend_graphs_refused(&stored.back));
	/* no memory beyond the plan */
	assert_true(stored.arena.peak <= stored.arena.size);
	free(a);
	free(b);
	stepper_release(&stored);
	stepper_release(&plain);
}

static void training_has_the_bits_of_dequantized_weights(void **state)
{
	static const struct variant variants[] = {
		{false, FAMILY_LLAMA, adapter, "", "", 2},
		{false, FAMILY_QWEN2, adapter, ", bnb_4bit_quant_type: fp4", ", recompute: cheap", 3},
		{false, FAMILY_QWEN3, adapter, ", bnb_4bit_use_double_quant: false", ", recompute: full", 3},
		{false, FAMILY_QWEN2, "lora: {r: 4, dropout: 0.2, target_modules: [v_proj, down_proj]}", "", ", recompute: full", 3},
		{false, FAMILY_LLAMA, "lora: {r: 2, modules_to_save: [embed_tokens, lm_head]}", "", "", 1},
		{false, FAMILY_QWEN2, adapter, "", ", precision: fp8", 3},
		{false, FAMILY_LLAMA, adapter, ", bnb_4bit_quant_type: fp4", ", precision: fp8, recompute: full", 2},
		{false, FAMILY_QWEN3, adapter, "", ", precision: fp8, fp8_layers: [1-2]", 4},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(variants) / sizeof(variants[0]); i++)
		same_as_dequantized(&variants[i], false);
}

static const char fused[] = "lora: {r: 8, alpha: 6}";

/* The fused form, in which a slot also has the adapters; and separate adapters. Streams whose work is late, and graphs. */
static void a_gpu_has_these_bits_too(void **state)
{
	static const struct variant variants[] = {
		{true, FAMILY_LLAMA, fused, "", ", deterministic: true, graphs: false", 2},
		{true, FAMILY_QWEN2, fused, ", bnb_4bit_quant_type: fp4", ", recompute: cheap, deterministic: true, graphs: false", 5},
		{true, FAMILY_QWEN3, fused, ", bnb_4bit_use_double_quant: false", ", recompute: full, deterministic: true, graphs: false", 3},
		{true, FAMILY_QWEN2, "lora: {r: 8, target_modules: [v_proj, down_proj]}", "", ", deterministic: true, graphs: false", 3},
		{true, FAMILY_QWEN2, "lora: {r: 8, dropout: 0.2}", "", ", deterministic: true, graphs: false", 3},
		{true, FAMILY_LLAMA, "lora: {r: 8, modules_to_save: [embed_tokens, lm_head]}", "", ", deterministic: true, graphs: false", 3},
		{true, FAMILY_LLAMA, fused, "", ", deterministic: true, graphs: true", 3},
		{true, FAMILY_QWEN2, fused, "", ", recompute: full, deterministic: true, graphs: true", 2},
		{true, FAMILY_QWEN2, fused, "", ", precision: fp8, deterministic: true, graphs: false", 5},
		{true, FAMILY_LLAMA, fused, ", bnb_4bit_use_double_quant: false", ", precision: fp8, recompute: full, deterministic: true, graphs: true", 3},
		{true, FAMILY_QWEN3, fused, ", bnb_4bit_quant_type: fp4", ", precision: fp8, fp8_layers: [1-2], deterministic: true, graphs: true", 4},
	};

	(void)state;
	skip_without_kernels();
	for (int late = 0; late < 2; late++)
		for (size_t i = 0; i < sizeof(variants) / sizeof(variants[0]); i++)
			if (late || !is_fp8(&variants[i])) /* the fill is the same, so its waits suffice */
				same_as_dequantized(&variants[i], late);
}

/* Faults of the driver on the way of a slot. With graphs, a pass that occurs again is launched as one. */
static void faults_of_the_driver_are_told(void **state)
{
	static const struct {
		const char *fault, *training;
	} faults[] = {
		{"cuEventRecord=719@9", ", graphs: false"},   {"cuStreamWaitEvent=719@9", ", graphs: false"},
		{"cuLaunchKernel=719@60", ", graphs: false"}, {"cuGraphLaunch=719", ", graphs: true"},
	};

	(void)state;
	skip_without_kernels();
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		const struct variant v = {true, FAMILY_QWEN2, fused, "", faults[i].training, 3};
		struct step_part took = {0};
		struct error err = {0};
		enum status st = STATUS_OK;
		double loss, norm;
		struct stepper s;
		struct rows r;

		open_stepper(&s, &v, true);
		load_random(&s);
		fill_adapters(&s);
		make(&r, packed, s.model->shape.vocab);
		setenv("FAKE_CUDA", faults[i].fault, 1);
		for (uint64_t step = 0; !st && step < STEPS; step++) {
			st = stepper_begin(&s, &err);
			for (int k = 0; !st && k < MICROS; k++)
				st = stepper_micro(&s, &r.b, step, 100, &took, &err);
			if (!st)
				st = stepper_end(&s, 1e-2, step, &loss, &norm, &err);
		}
		unsetenv("FAKE_CUDA");
		assert_int_not_equal(st, STATUS_OK);
		assert_true(err.text[0]);
		stepper_release(&s);
	}
}

/* A GPU's kernels process 8 elements at a time. */
static void a_shape_without_whole_vectors_is_refused(void **state)
{
	const struct peft_config lora = {.rank = 2, .alpha = 2, .targets = 1};
	const struct model_options options = {.lora = &lora, .positions = 8, .storage.form = STORAGE_BNB4};
	struct shape shape = shape_of(FAMILY_LLAMA);
	struct arena arena = {0};
	struct error err = {0};
	struct backend back;
	struct model *m;

	(void)state;
	shape.ffn = 44;
	must(model_create(&m, &shape, &options, &err), &err);
	plan_backend_gpu(&back, DTYPE_BF16, &arena);
	assert_int_equal(model_place(m, &back, &err), STATUS_UNSUPPORTED);
	assert_non_null(strstr(err.text, "multiples of 8"));
	model_release(m);
	err = (struct error){0};
	arena = (struct arena){0};
	must(model_create(&m, &shape, &options, &err), &err);
	plan_backend_gpu(&back, DTYPE_F32, &arena);
	assert_int_equal(model_place(m, &back, &err), STATUS_UNSUPPORTED);
	assert_non_null(strstr(err.text, "precision: bf16"));
	model_release(m);
	err = (struct error){0};
	arena = (struct arena){0};
	must(model_create(&m, &shape, &options, &err), &err);
	plan_backend_cpu(&back, 1, &arena); /* a CPU takes any shape */
	must(model_place(m, &back, &err), &err);
	model_release(m);
}

/* 4.5 bits per weight of the linear layers, 4.127 with double quantization, and one slot. */
static void the_plan_counts_stored_bytes_and_slots(void **state)
{
	const struct variant once = {false, FAMILY_QWEN2, adapter, ", bnb_4bit_use_double_quant: false", "", 4};
	const struct shape shape = shape_of(FAMILY_QWEN2);
	const size_t linears = (size_t)(shape.hidden * (shape.heads + 2 * shape.kv_heads) * shape.head_dim +
					shape.heads * shape.head_dim * shape.hidden + 3 * shape.hidden * shape.ffn);
	struct stepper stored, plain;
	size_t saved;

	(void)state;
	open_stepper(&stored, &once, true);
	open_stepper(&plain, &once, false);
	assert_int_equal(stored.model->slots.count, 1);
	assert_in_range(stored.arena.kind_used[MEM_SLOTS], 4 * linears, 4 * linears + LAYER_LINEARS * ARENA_ALIGN);
	saved = plain.arena.kind_used[MEM_WEIGHTS] - stored.arena.kind_used[MEM_WEIGHTS];
	/* 7 tensors a layer have 3 parts each, which begin at multiples of 256 */
	assert_in_range(saved, once.layers * (linears * 4 - linears * 9 / 16 - 21 * ARENA_ALIGN), once.layers * (linears * 4 - linears * 9 / 16));
	assert_int_equal(plain.arena.kind_used[MEM_SLOTS], 0);
	stepper_release(&stored);
	stepper_release(&plain);
}

/* What a plan counts is what the back end does: operations, bytes, and the arena's peak. */
static void the_plan_is_the_run(void **state)
{
	static const struct variant variants[] = {
		{false, FAMILY_QWEN2, adapter, "", ", recompute: full", 3},
		{false, FAMILY_QWEN2, adapter, "", ", recompute: full, precision: fp8", 3},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(variants) / sizeof(variants[0]); i++) {
		struct stepper s;

		open_stepper(&s, &variants[i], true);
		load_random(&s);
		fill_adapters(&s);
		train_step(&s, 0, false);
		assert_in_range(s.arena.peak, s.arena.size - ARENA_ALIGN, s.arena.size);
		stepper_release(&s);
	}
}

/* Slots hold W and its transposed copy in E4M3 in the memory of numbers, or the transposed copy alone. */
static void slots_of_fp8_have_no_memory_for_both_forms(void **state)
{
	const struct variant bf16 = {true, FAMILY_QWEN2, fused, "", ", precision: bf16, adapters: separate", 4};
	const struct variant fp8 = {true, FAMILY_QWEN2, fused, "", ", precision: fp8", 4};
	const size_t scales = 2 * 2 * LAYER_LINEARS * 4 * ARENA_ALIGN;
	struct stepper numbers, stored, resident;

	(void)state;
	skip_without_kernels();
	open_sized(&numbers, &bf16, true, true);
	open_sized(&stored, &fp8, true, true);
	open_sized(&resident, &fp8, false, true);
	assert_in_range(stored.arena.kind_used[MEM_SLOTS], numbers.arena.kind_used[MEM_SLOTS],
			numbers.arena.kind_used[MEM_SLOTS] + scales);
	assert_in_range(resident.arena.kind_used[MEM_SLOTS], numbers.arena.kind_used[MEM_SLOTS] / 2,
			numbers.arena.kind_used[MEM_SLOTS] / 2 + scales);
	stepper_release(&numbers);
	stepper_release(&stored);
	stepper_release(&resident);
}

static void only_training_with_an_adapter_has_weights_in_4_bits(void **state)
{
	const struct peft_config lora = {.rank = 2, .alpha = 2, .targets = 1};
	const struct shape shape = shape_of(FAMILY_LLAMA);
	const struct model_options wrong[] = {
		{.full = true, .positions = 8, .storage.form = STORAGE_BNB4},
		{.inference = true, .lora = &lora, .positions = 8, .storage.form = STORAGE_BNB4},
	};
	struct model *m;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct error err = {0};

		assert_int_equal(model_create(&m, &shape, &wrong[i], &err), STATUS_BAD_INPUT);
		assert_non_null(strstr(err.text, "4 bits"));
	}
}

static void an_adapter_is_not_merged_into_a_slot(void **state)
{
	const struct variant v = {false, FAMILY_LLAMA, adapter, "", "", 2};
	struct error err = {0};
	struct stepper s;

	(void)state;
	open_stepper(&s, &v, true);
	assert_int_equal(model_merge(s.model, &s.back, &err), STATUS_UNSUPPORTED);
	assert_non_null(strstr(err.text, "quantized weights"));
	stepper_release(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(training_has_the_bits_of_dequantized_weights),
		cmocka_unit_test(a_gpu_has_these_bits_too),
		cmocka_unit_test(faults_of_the_driver_are_told),
		cmocka_unit_test(a_shape_without_whole_vectors_is_refused),
		cmocka_unit_test(the_plan_counts_stored_bytes_and_slots),
		cmocka_unit_test(the_plan_is_the_run),
		cmocka_unit_test(slots_of_fp8_have_no_memory_for_both_forms),
		cmocka_unit_test(only_training_with_an_adapter_has_weights_in_4_bits),
		cmocka_unit_test(an_adapter_is_not_merged_into_a_slot),
	};

	fakes_take();
	return cmocka_run_group_tests_name("model_storage", tests, NULL, NULL);
}
