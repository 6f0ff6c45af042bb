/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each layer alone in FP8 beside F32, with the same input and the same gradient of its output. Compared are the
 * gradients of the input and of the adapters. One model is a random layer of Qwen2-7B's shape with planted outliers. The
 * other one is real: SmolLM2-135M-Instruct, whose GGUF file ASSAY_SMOLLM2 names.
 */
#include "test.h"
#include <math.h>
#include "model/decoder/head.h"
#define BED_ROWS 256
#include "model_fp8_bed.h"
#include "text/tokenizer/tokenizer.h"


static const char text[] =
	"<|im_start|>system\nYou may call get_weather(city: string, unit: string).<|im_end|>\n<|im_start|>user\n"
	"What is the weather in Paris, in degrees Celsius?<|im_end|>\n<|im_start|>assistant\n"
	"{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\", \"unit\": \"celsius\"}}<|im_end|>\n"
	"<|im_start|>system\nYou may call book_table(restaurant: string, people: integer, time: string).<|im_end|>\n<|im_start|>user\n"
	"A table for four at Luigi's, half past seven tonight, please.<|im_end|>\n<|im_start|>assistant\n"
	"{\"name\": \"book_table\", \"arguments\": {\"restaurant\": \"Luigi's\", \"people\": 4, \"time\": \"19:30\"}}<|im_end|>\n"
	"<|im_start|>system\nYou may call convert(amount: number, from: string, to: string).<|im_end|>\n<|im_start|>user\n"
	"How many dollars are 250 euros?<|im_end|>\n<|im_start|>assistant\n"
	"{\"name\": \"convert\", \"arguments\": {\"amount\": 250, \"from\": \"EUR\", \"to\": \"USD\"}}<|im_end|>\n";

static void tokens(struct work *w, const char *path)
{
	struct tokenizer_worker *worker;
	struct tokenizer *tokenizer;
	struct token_list ids = {0};
	struct error err = {0};

	must(tokenizer_open(&tokenizer, path, &err), &err);
	must(tokenizer_worker_create(&worker, tokenizer, &err), &err);
	must(tokenizer_encode(worker, text, strlen(text), ADDED_ALL, &ids, &err), &err);
	assert_in_range(ids.count, 48, ROWS);
	make_rows(w, 64);
	for (size_t i = 0; i < ids.count; i++) {
		w->token[i] = ids.id[i];
		w->target[i] = i + 1 < ids.count ? ids.id[i + 1] : ids.id[0];
	}
	w->b.tokens = w->b.targets = w->b.doc_len_max = w->start[1] = (int32_t)ids.count;
	free(ids.id);
	tokenizer_worker_destroy(&worker);
	tokenizer_close(&tokenizer);
}

static void open_model(struct work *w, const struct weights *weights, const char *training)
{
	const struct model_source from = {.weights = weights};
	struct error err = {0};
	const struct params *p;
	struct config c;

	*w = (struct work){0};
	must(read_settings(&c, "cpu", "lora: {r: 16, alpha: 32}\n", training, &err), &err);
	must(stepper_create(&w->s, &weights->shape, &c, THREADS, &err), &err);
	config_release(&c);
	must(model_load(w->s.model, &w->s.back, &from, &err), &err);
	p = &w->s.model->params;
	for (int i = 0; i < p->count; i++) {
		/* B as it is after some steps */
		const bool is_b = strstr(p->table[i].name, ".lora_B.") != NULL;
		const struct random_fill f = {.seed = 4,
					      .stream = (uint32_t)i,
					      .width = is_b ? 1e-3f
							    : (float)(1 / sqrt((double)p->table[i].cols))};

		must(w->s.back.ops->random(&w->s.back, params_view(&p->master, &p->table[i]), &f, &err),
		     &err);
	}
	must(model_loaded(w->s.model, &w->s.back, &err), &err);
	tokens(w, weights->path);
	w->gradient = malloc(p->length * sizeof(*w->gradient));
	assert_non_null(w->gradient);
}

static struct layer_run run_of(const struct pass *p)
{
	return (struct layer_run){.linear = {.back = p->back},
				  .shape = &p->model->shape,
				  .batch = p->batch,
				  .cos_sin = p->model->cos_sin,
				  .recompute = RECOMPUTE_NONE};
}

static struct pass pass_of(struct work *w)
{
	return (struct pass){.model = w->s.model, .back = &w->s.back, .batch = &w->b, .saved = &w->s.saved};
}

static struct mat place(struct work *w, int64_t rows, int64_t cols)
{
	struct mat m = {.rows = rows, .cols = cols, .dtype = DTYPE_F32};
	struct error err = {0};

	must(arena_mat(&w->s.arena, MEM_SCRATCH, &m, "a gradient", &err), &err);
	return m;
}

static void copy(const struct mat *from, const struct mat *to)
{
	memcpy(to->data, from->data, (size_t)(from->rows * from->cols) * sizeof(float));
}

struct least {
	double dx, adapters, sum;
	int count;
	const char *name;
};

static void compare_adapters(struct least *l, struct work *f32, struct work *fp8, int64_t layer)
{
	const struct params *p = &f32->s.model->params, *q = &fp8->s.model->params;
	char prefix[PARAM_NAME];

	snprintf(prefix, sizeof(prefix), "model.layers.%lld.", (long long)layer);
	for (int i = 0; i < p->count; i++) {
		const struct mat x = params_view(&p->grad, &p->table[i]), y = params_view(&q->grad, &q->table[i]);
		double is;

		if (strncmp(p->table[i].name, prefix, strlen(prefix)))
			continue;
		is = cosine(x.data, y.data, x.rows * x.cols);
		l->name = is < l->adapters ? p->table[i].name : l->name;
		l->adapters = fmin(l->adapters, is);
		l->sum += is;
		l->count++;
	}
}

/* Both models have run forward. Goes down the layers with the gradient of F32. */
static struct least compare_layers(struct work *f32, struct work *fp8)
{
	const struct pass p = pass_of(f32), q = pass_of(fp8);
	const struct layer_run run32 = run_of(&p), run8 = run_of(&q);
	struct least l = {.dx = 1, .adapters = 1, .name = ""};
	struct error err = {0};
	struct mat dx, dx8;
	double loss = 0;

	must(stepper_begin(&f32->s, &err), &err);
	must(stepper_begin(&fp8->s, &err), &err);
	must(model_forward(&p, &err), &err);
	must(model_forward(&q, &err), &err);
	dx = place(f32, f32->b.tokens, f32->s.model->shape.hidden);
	dx8 = place(fp8, dx.rows, dx.cols);
	must(f32->s.back.ops->zero(&f32->s.back, dx, &err), &err);
	must(head_backward(&p, (float)(1.0 / (double)f32->b.targets), dx, &loss, &err), &err);
	must(slots_begin(q.model, q.back, true, &err), &err);
	for (int64_t i = f32->s.model->shape.layers - 1; i >= 0; i--) {
		const struct layer_saved *s = &f32->s.saved.layer[i], *s8 = &fp8->s.saved.layer[i];

		copy(&s->x, &s8->x);
		copy(&dx, &dx8);
		must(layer_forward(&run8, &fp8->s.model->layer[i], s8, fp8->s.saved.out, &err), &err);
		must(layer_backward(&run32, &f32->s.model->layer[i], s, dx, true, &err), &err);
		must(slots_use(q.model, q.back, i, -1, &err), &err);
		must(layer_backward(&run8, &fp8->s.model->layer[i], s8, dx8, true, &err), &err);
		l.dx = fmin(l.dx, cosine(dx.data, dx8.data, dx.rows * dx.cols));
		compare_adapters(&l, f32, fp8, i);
	}
	must(stepper_overflows(&fp8->s, &fp8->took, &err), &err);
	print_message("# least cosine of dX %.5f, of dA and dB %.5f (%s), mean of %d %.5f\n", l.dx, l.adapters,
		      l.name, l.count, l.sum / l.count);
	assert_int_equal(fp8->took.overflows, 0);
	return l;
}

static void test_fp8_layers__of_smollm2_are_within_a_cosine_of_99(void **state)
{
	const char *path = getenv("ASSAY_SMOLLM2");
	struct weights weights;
	struct work f32, fp8;
	struct error err = {0};
	struct least l;

	(void)state;
	if (!path) {
		print_message("# ASSAY_SMOLLM2 names no SmolLM2-135M-Instruct.Q4_1.gguf\n");
		skip();
	}
	must(weights_open(&weights, path, &err), &err);
	open_model(&f32, &weights, ", recompute: none");
	open_model(&fp8, &weights, ", precision: fp8, recompute: none");
	l = compare_layers(&f32, &fp8);
	assert_int_equal(l.count, 30 * 14);
	assert_true(l.dx >= 0.99 && l.adapters >= 0.99);
	close_work(&f32);
	close_work(&fp8);
	weights_release(&weights);
}

static void test_fp8_layers__of_7b_are_within_a_cosine_of_99(void **state)
{
	struct shape shape;
	struct work f32, fp8;
	struct error err = {0};
	struct least l;

	(void)state;
	must(shape_by_name(&shape, "qwen2-7b", &err), &err);
	shape.layers = 1;
	shape.vocab = 64;
	open_shape(&f32, "cpu", &shape, lora, ", recompute: none");
	open_shape(&fp8, "cpu", &shape, lora, ", precision: fp8, recompute: none");
	f32.b.tokens = f32.b.targets = f32.b.doc_len_max = f32.start[1] = 32;
	fp8.b.tokens = fp8.b.targets = fp8.b.doc_len_max = fp8.start[1] = 32;
	l = compare_layers(&f32, &fp8);
	assert_int_equal(l.count, 14);
	assert_true(l.dx >= 0.99 && l.adapters >= 0.99);
	close_work(&f32);
	close_work(&fp8);
}

/* With columns in E4M3, h is not written in BF16. Only SwiGLU's backward pass in the place of h's gradient writes them. */
static void test_fp8_layers__an_h_that_was_not_written_is_not_read(void **state)
{
	struct error err = {0};
	struct layer_saved saved;
	struct layer_run run;
	struct shape shape;
	struct work w;
	struct pass p;
	struct mat dx;

	(void)state;
	must(shape_by_name(&shape, "tiny", &err), &err);
	open_shape(&w, "cpu", &shape, lora, ", recompute: none");
	w.b.tokens = w.b.targets = w.b.doc_len_max = w.start[1] = 32; /* the rest of the memory is free for dx */
	p = pass_of(&w);
	run = run_of(&p);
	must(stepper_begin(&w.s, &err), &err);
	must(model_forward(&p, &err), &err);
	dx = place(&w, w.b.tokens, shape.hidden);
	must(w.s.back.ops->zero(&w.s.back, dx, &err), &err);
	saved = w.s.saved.layer[0];
	assert_false(linear_has_halves(&run.linear, &w.s.model->layer[0].down));
	saved.h.e4m3_columns = &saved.h;
	assert_int_equal(layer_backward(&run, &w.s.model->layer[0], &saved, dx, true, &err), STATUS_BUG);
	assert_string_equal(err.text, "the gradient of down reads an h that was not written");
	saved.h.e4m3_columns = NULL;
	err = (struct error){0};
	must(layer_backward(&run, &w.s.model->layer[0], &saved, dx, true, &err), &err);
	close_work(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fp8_layers__of_7b_are_within_a_cosine_of_99),
		cmocka_unit_test(test_fp8_layers__of_smollm2_are_within_a_cosine_of_99),
		cmocka_unit_test(test_fp8_layers__an_h_that_was_not_written_is_not_read),
	};

	return cmocka_run_group_tests_name("model_fp8_layers", tests, NULL, NULL);
}
