/* SPDX-License-Identifier: Apache-2.0 */
/* Against transformers and PEFT (tests/oracles/model_gradients.py): logits, loss, every gradient. Fifty
 * steps: train_torch.c */
#include "unit/test.h"
#include <math.h>
#include "model/cpu/cpu.h"
#include "model/model.h"
#include "model/files/peft/peft.h"
#include "model/files/safetensors/safetensors.h"
#include "model/tensor/matrix.h"
#include "unit/must.h"
#include "unit/rank_threads.h"

enum { ROWS = 64 };
static const char *const models[] = {"qwen2", "qwen3", "llama", "llama_tied"};

struct bed {
	char dir[512];
	struct weights weights;
	struct safetensors expected;
	struct peft adapter; /* as PEFT wrote it */
	struct arena arena;
	struct backend back;
	struct model *model;
	struct saved saved;
	struct batch batch;
	struct pass pass;
	int32_t position[ROWS], trained[ROWS], doc_start[ROWS];
	double loss; /* of a rank that is a thread */
	enum status st;
	struct error err;
};

static const struct tensor *tensor(const struct safetensors *s, const char *prefix, const char *name)
{
	char full[256];

	snprintf(full, sizeof(full), "%s%s", prefix, name);
	return tensor_of(s, full);
}

static float at(const struct tensor *t, size_t i)
{
	float value;

	memcpy(&value, t->data + 4 * i, 4);
	return value;
}

static void open_file(struct safetensors *s, const struct bed *b, const char *name)
{
	char path[1024];
	struct error err = {0};

	snprintf(path, sizeof(path), "%s/%s", b->dir, name);
	must(safetensors_open(s, path, &err), &err);
}

/* The documents that transformers saw one by one, packed. */
static void make_batch(struct bed *b)
{
	const struct tensor *docs = tensor(&b->expected, "", "documents");
	const int32_t *target = (const int32_t *)(const void *)tensor(&b->expected, "", "target")->data;
	int32_t row = 0, longest = 0, trained = 0;
	int64_t count = docs->dim[0];

	for (int64_t d = 0; d < count; d++) {
		int32_t length;

		memcpy(&length, docs->data + 4 * d, 4);
		longest = length > longest ? length : longest;
		for (int32_t t = 0; t < length; t++, row++) {
			b->position[row] = t;
			if (target[row] >= 0)
				b->trained[trained++] = row;
		}
		b->doc_start[d + 1] = row;
	}
	b->batch = (struct batch){
		.token = (const int32_t *)(const void *)tensor(&b->expected, "", "token")->data,
		.position = b->position,
		.target = target,
		.doc_start = b->doc_start,
		.trained = b->trained,
		.tokens = row,
		.docs = count,
		.doc_len_max = longest,
		.targets = trained,
	};
}

static void load_adapter(struct bed *b)
{
	struct peft_slot *slots;
	struct named *names;
	struct error err = {0};
	size_t count;

	must(model_peft_slots(b->model, &b->model->params.master, &slots, &names, &count, &err), &err);
	must(peft_load(&b->adapter, slots, count, &err), &err);
	free(slots);
	free(names);
}

static void load(struct bed *b, bool lora)
{
	struct weights_slot *slots;
	struct named *names;
	struct error err = {0};
	size_t count;

	must(model_weight_slots(b->model, &slots, &names, &count, &err), &err);
	must(weights_load(&b->weights, slots, count, &err), &err);
	free(slots);
	free(names);
	must(model_loaded(b->model, &b->back, &err), &err);
	if (lora && !b->model->whole) /* the test copies the parts */
		load_adapter(b);
	must(model_refresh(b->model, &b->back, &err), &err);
}

static void open_part(struct bed *b, const char *name, bool lora, struct model_split split)
{
	struct error err = {0};
	char path[1024];

	memset(b, 0, sizeof(*b));
	snprintf(b->dir, sizeof(b->dir), "%s/tests/data/model/%s", SOURCE_DIR, name);
	must(weights_open(&b->weights, b->dir, &err), &err);
	open_file(&b->expected, b, "expected.safetensors");
	snprintf(path, sizeof(path), "%s/adapter", b->dir);
	must(peft_open(&b->adapter, path, &b->weights.shape, &err), &err);
	make_batch(b);
	must(cpu_backend_create(&b->back, &(struct cpu_options){.threads = 2}, &b->arena, &err), &err);
	b->arena.size = 16u << 20;
	b->arena.base = aligned_alloc(ARENA_ALIGN, b->arena.size);
	assert_non_null(b->arena.base);
	must(model_create(&b->model, &b->weights.shape,
			  &(struct model_options){.lora = lora ? &b->adapter.config : NULL,
						  .full = !lora,
						  .positions = 64,
						  .split = split},
			  &err),
	     &err);
	must(model_place(b->model, &b->back, &err), &err);
	must(saved_create(&b->saved, b->model, RECOMPUTE_NONE, &err), &err);
	load(b, lora);
	b->pass = (struct pass){.model = b->model, .back = &b->back, .batch = &b->batch, .saved = &b->saved};
}

static void open_bed(struct bed *b, const char *name, bool lora)
{
	open_part(b, name, lora, (struct model_split){0});
}

static void close_bed(struct bed *b)
{
	saved_release(&b->saved);
	model_release(b->model);
	cpu_backend_release(&b->back);
	free(b->arena.base);
	safetensors_release(&b->expected);
	peft_release(&b->adapter);
	weights_release(&b->weights);
}

/* What peft_open says of an adapter, held against its two files as they are. */
static void check_adapter(const struct bed *b)
{
	const struct peft_config *c = &b->adapter.config;
	const struct params *params = &b->model->params;
	json_t *config, *targets;
	unsigned listed = 0;
	char path[1024];

	snprintf(path, sizeof(path), "%s/adapter/adapter_config.json", b->dir);
	config = json_load_file(path, 0, NULL);
	assert_non_null(config);
	targets = json_object_get(config, "target_modules");
	assert_true(json_array_size(targets) > 0);
	for (size_t i = 0; i < json_array_size(targets); i++)
		listed |= peft_target_by_name(json_string_value(json_array_get(targets, i)));
	assert_int_equal(c->targets, listed);
	assert_int_equal(c->rank, json_integer_value(json_object_get(config, "r")));
	assert_true(c->alpha == json_number_value(json_object_get(config, "lora_alpha")));
	assert_int_equal(c->rslora, json_is_true(json_object_get(config, "use_rslora")));
	json_decref(config);
	assert_int_equal(params->count, b->adapter.file.count);
	for (int i = 0; i < params->count; i++) {
		const struct param *p = &params->table[i];
		const struct tensor *t = tensor(&b->adapter.file, "base_model.model.", p->name);

		assert_int_equal(t->size, (uint64_t)(p->rows * p->cols) * 4);
		assert_memory_equal((float *)params->master.data + p->offset, t->data, t->size);
	}
}

static void test_torch__adapters_that_peft_wrote_are_loaded_as_they_are(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
		struct bed b;

		open_bed(&b, models[i], true);
		assert_false(peft_does_nothing(&b.adapter));
		check_adapter(&b);
		close_bed(&b);
	}
}

/* Every element within 1e-5 of the tensor's largest. */
static void near(const char *what, const float *found, const struct tensor *t)
{
	size_t count = t->size / 4;
	double most = 0, apart = 0;

	for (size_t i = 0; i < count; i++) {
		most = fmax(most, fabs((double)at(t, i)));
		apart = fmax(apart, fabs((double)at(t, i) - (double)found[i]));
	}
	if (!(apart <= 1e-5 * most) || most == 0)
		fail_msg("%s: %g apart, largest element %g", what, apart, most);
}

/* Mean loss of the batch, its gradient in the flat vector. */
static double step_loss(struct bed *b)
{
	const struct arena_mark mark = arena_mark(&b->arena);
	struct error err = {0};
	double sum = 0;

	must(b->back.ops->zero(&b->back, b->model->params.grad, &err), &err);
	must(model_forward(&b->pass, &err), &err);
	must(model_backward(&b->pass, 1.0f / (float)b->batch.targets, &sum, &err), &err);
	arena_reset(&b->arena, &mark);
	return sum / (double)b->batch.targets;
}

static void check_logits(struct bed *b, const char *prefix)
{
	const struct arena_mark mark = arena_mark(&b->arena);
	struct mat logits = {.rows = b->batch.tokens, .cols = b->model->shape.vocab, .dtype = DTYPE_F32};
	int32_t row[ROWS];
	struct error err = {0};

	for (int i = 0; i < ROWS; i++)
		row[i] = i;
	must(arena_mat(&b->arena, MEM_LOGITS, &logits, "logits", &err), &err);
	must(model_forward(&b->pass, &err), &err);
	must(model_logits(&b->pass, row, b->batch.tokens, logits, &err), &err);
	near("logits", logits.data, tensor(&b->expected, prefix, "logits"));
	arena_reset(&b->arena, &mark);
}

static void check_gradients(bool lora)
{
	const char *prefix = lora ? "lora." : "full.";
	char grad[64];

	snprintf(grad, sizeof(grad), "%sgrad.", prefix);
	for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
		struct bed b;
		size_t gradients = 0;

		open_bed(&b, models[i], lora);
		check_logits(&b, prefix);
		assert_true(fabs(step_loss(&b) / (double)at(tensor(&b.expected, prefix, "loss"), 0) - 1) <
			    1e-5);
		for (int j = 0; j < b.model->params.count; j++) {
			const struct param *p = &b.model->params.table[j];
			char name[256];

			snprintf(name, sizeof(name), "%s: %s", models[i], p->name);
			near(name, (float *)b.model->params.grad.data + p->offset,
			     tensor(&b.expected, grad, p->name));
		}
		for (size_t j = 0; j < b.expected.count; j++)
			gradients += !strncmp(b.expected.tensors[j].name, grad, strlen(grad));
		assert_int_equal(gradients, b.model->params.count);
		close_bed(&b);
	}
}

static void test_torch__every_gradient_of_full_fine_tuning(void **state)
{
	(void)state;
	check_gradients(false);
}

static void test_torch__every_gradient_of_peft_s_adapter(void **state)
{
	(void)state;
	check_gradients(true);
}

static struct split_part part_of(const struct bed *b, int i)
{
	const struct param *whole = &b->model->whole->params.table[i];

	return split_part_of(&b->model->split, &b->model->whole->shape, whole->name, whole->rows,
			     whole->cols);
}

static float *element(const struct bed *b, const struct mat *flat, int i, int64_t row, int64_t col)
{
	const struct mat m = params_view(flat, &b->model->params.table[i]);

	return (float *)m.data + row * m.ld + col;
}

static void copy_adapter(const struct bed *one, const struct bed *part)
{
	for (int i = 0; i < part->model->params.count; i++) {
		const struct split_part at = part_of(part, i);

		for (int64_t row = 0; row < at.rows; row++)
			for (int64_t col = 0; col < at.cols; col++)
				*element(part, &part->model->params.master, i, row, col) = *element(
					one, &one->model->params.master, i, at.row + row, at.col + col);
	}
}

static void *rank_step(void *arg)
{
	struct bed *b = arg;

	b->st = b->back.ops->zero(&b->back, b->model->params.grad, &b->err);
	if (!b->st)
		b->st = model_forward(&b->pass, &b->err);
	if (!b->st)
		b->st = model_backward(&b->pass, 1.0f / (float)b->batch.targets, &b->loss, &b->err);
	if (!b->st)
		b->st = split_sum_gradient(b->model, &b->back, &b->err);
	return NULL;
}

/* The rank's part of each gradient within 1e-5 of the tensor's largest element. */
static void check_part(const struct bed *b, const char *grad)
{
	for (int i = 0; i < b->model->params.count; i++) {
		const struct param *p = &b->model->params.table[i];
		const struct split_part own = part_of(b, i);
		const struct tensor *t = tensor(&b->expected, grad, p->name);
		double most = 0, apart = 0;

		for (size_t k = 0; k < t->size / 4; k++)
			most = fmax(most, fabs((double)at(t, k)));
		for (int64_t row = 0; row < own.rows; row++)
			for (int64_t col = 0; col < own.cols; col++)
				apart = fmax(apart,
					     fabs((double)*element(b, &b->model->params.grad, i, row, col) -
						  (double)at(t, (size_t)((own.row + row) * own.all_cols +
									 own.col + col))));
		if (!(apart <= 1e-5 * most) || most == 0)
			fail_msg("%s: %g apart, largest element %g", p->name, apart, most);
	}
}

/* Two ranks that share a model, each of which reads its rows and columns of the files. */
static void check_split(const char *name, bool lora)
{
	enum { RANKS = 2 };
	struct rank_threads threads;
	struct bed one, rank[RANKS];
	pthread_t thread[RANKS];

	open_bed(&one, name, lora);
	rank_threads_open(&threads, RANKS);
	for (unsigned r = 0; r < RANKS; r++) {
		open_part(&rank[r], name, lora, (struct model_split){.rank = r, .ranks = RANKS});
		if (lora)
			copy_adapter(&one, &rank[r]);
		rank[r].model->split.comm = &threads.rank[r].comm;
	}
	for (unsigned r = 0; r < RANKS; r++)
		assert_int_equal(pthread_create(&thread[r], NULL, rank_step, &rank[r]), 0);
	for (unsigned r = 0; r < RANKS; r++)
		pthread_join(thread[r], NULL);
	for (unsigned r = 0; r < RANKS; r++) {
		must(rank[r].st, &rank[r].err);
		assert_true(
			fabs(rank[r].loss / (double)one.batch.targets /
				     (double)at(tensor(&one.expected, lora ? "lora." : "full.", "loss"), 0) -
			     1) < 1e-5);
		check_part(&rank[r], lora ? "lora.grad." : "full.grad.");
		close_bed(&rank[r]);
	}
	rank_threads_close(&threads);
	close_bed(&one);
}

static void test_torch__every_gradient_of_two_ranks_that_share_a_model(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
		check_split(models[i], false);
		check_split(models[i], true);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_torch__adapters_that_peft_wrote_are_loaded_as_they_are),
		cmocka_unit_test(test_torch__every_gradient_of_full_fine_tuning),
		cmocka_unit_test(test_torch__every_gradient_of_peft_s_adapter),
		cmocka_unit_test(test_torch__every_gradient_of_two_ranks_that_share_a_model),
	};

	return cmocka_run_group_tests_name("torch", tests, NULL, NULL);
}
