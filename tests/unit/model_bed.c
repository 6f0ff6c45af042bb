/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/test.h"
#include "core/math/random.h"
#include "model/tensor/matrix.h"
#include "model/decoder/layer_tensors.h"
#include "unit/model_bed.h"
#include "unit/must.h"

static void shape_of(struct bed *b)
{
	const enum family family = b->options.family;

	b->shape = (struct shape){
		.family = family,
		.hidden = family == FAMILY_QWEN3 ? 32 : 48,
		.layers = 2,
		.heads = b->options.heads ? b->options.heads : 6,
		.kv_heads = b->options.kv_heads ? b->options.kv_heads : 2,
		.head_dim = 8,
		.ffn = b->options.ffn ? b->options.ffn : 40,
		.vocab = b->options.vocab ? b->options.vocab : 56,
		.context = 256,
		.tied = b->options.tied,
		.qkv_bias = family == FAMILY_QWEN2,
		.qk_norm = family == FAMILY_QWEN3,
		.norm_eps = 1e-5,
		.rope_theta = 10000,
	};
	if (family == FAMILY_LLAMA)
		b->shape.rope = (struct rope_scaling){
			.llama3 = true, .factor = 8, .low = 1, .high = 4, .context = 32};
}

double bed_get(const struct mat *flat, size_t i)
{
	return flat->dtype == DTYPE_F64 ? ((const double *)flat->data)[i]
					: (double)((const float *)flat->data)[i];
}

void bed_set(const struct mat *flat, size_t i, double value)
{
	if (flat->dtype == DTYPE_F64)
		((double *)flat->data)[i] = value;
	else
		((float *)flat->data)[i] = (float)value;
}

/* Numbers around 1 for norms, around 0 for the rest. */
static void fill(const struct mat *m, uint32_t stream, bool norm)
{
	for (int64_t i = 0; i < m->rows; i++)
		for (int64_t j = 0; j < m->cols; j++)
			bed_set(m, (size_t)(i * m->ld + j),
				(norm ? 1 : 0) +
					0.3 * (double)random_f32(7, stream, (uint64_t)(i * m->cols + j)));
}

static void fill_weights(struct bed *b)
{
	struct layer_tensor t[LAYER_TENSOR_COUNT];
	const struct params *p = &b->model->params;
	uint32_t stream = 100;

	layer_tensors(&b->model->shape, t);
	for (int64_t layer = 0; layer < b->shape.layers; layer++)
		for (int i = 0; i < LAYER_TENSOR_COUNT; i++)
			if (!t[i].begin && t[i].rows)
				fill(&layer_weight(&b->model->layer[layer], &t[i])->w, stream++,
				     strstr(t[i].name, "norm") != NULL);
	fill(&b->model->embed.w, 1, false);
	fill(&b->model->norm.w, 2, true);
	if (!b->shape.tied)
		fill(&b->model->head.w, 3, false);
	for (int i = 0; i < p->count; i++)
		if (strstr(p->table[i].name, ".lora_")) {
			struct mat view = params_view(&p->master, &p->table[i]);

			fill(&view, 1000 + (uint32_t)i, false);
		}
}

void bed_batch(struct bed *b, const int *docs)
{
	int32_t row = 0, doc = 0, longest = 0, trained = 0;

	for (; docs[doc]; doc++) {
		b->doc_start[doc] = row;
		longest = docs[doc] > longest ? docs[doc] : longest;
		for (int t = 0; t < docs[doc]; t++, row++) {
			uint32_t r = random_u32(9, 0, (uint64_t)row);

			assert_true(row < BED_ROWS);
			b->token[row] = (int32_t)(r % (uint32_t)b->shape.vocab);
			b->position[row] = t;
			b->target[row] = r >> 16 & 3 ? (int32_t)((r >> 8) % (uint32_t)b->shape.vocab)
						     : BATCH_UNTRAINED;
			if (b->target[row] >= 0)
				b->trained[trained++] = row;
		}
	}
	b->doc_start[doc] = row;
	b->batch = (struct batch){
		.token = b->token,
		.position = b->position,
		.target = b->target,
		.doc_start = b->doc_start,
		.trained = b->trained,
		.tokens = row,
		.docs = doc,
		.doc_len_max = longest,
		.targets = trained,
		.row_begin = 5,
	};
}

static void open_back(struct bed *b)
{
	const struct cpu_options cpu = {.threads = b->options.threads, .own_gemm = b->options.own_gemm};
	struct error err = {0};

	if (b->options.plan) {
		plan_backend_cpu(&b->back, b->options.threads, &b->arena);
		return;
	}
	must(cpu_backend_create(&b->back, &cpu, &b->arena, &err), &err);
	b->arena.size = 32u << 20;
	b->arena.base = aligned_alloc(ARENA_ALIGN, b->arena.size);
	assert_non_null(b->arena.base);
	memset(b->arena.base, 0xff, b->arena.size); /* NaN: what is read before it was written shows */
	if (!b->options.wide)
		return;
	b->back.ops = &cpu_ops_f64;
	b->back.dtype = b->back.stat = DTYPE_F64;
}

void bed_open(struct bed *b, const struct bed_options *options)
{
	static const int docs[] = {1, 2, 7, 3, 64, 2, 0};
	struct error err = {0};

	memset(b, 0, sizeof(*b));
	b->options = *options;
	b->options.threads = options->threads ? options->threads : 2;
	shape_of(b);
	b->lora = (struct peft_config){
		.rank = options->rank ? options->rank : 4,
		.alpha = 6, /* not r, so that a scale left out or used twice shows */
		.dropout = (double)options->dropout,
		.targets = options->targets,
		.save = options->save,
	};
	open_back(b);
	must(model_create(&b->model, &b->shape,
			  &(struct model_options){.lora = options->full ? NULL : &b->lora,
						  .full = options->full,
						  .split = options->split,
						  .shards = options->shards,
						  .positions = 128},
			  &err),
	     &err);
	b->model->split.chunks = options->chunks;
	must(model_place(b->model, &b->back, &err), &err);
	must(saved_create(&b->saved, b->model, options->mode, &err), &err);
	bed_batch(b, options->docs ? options->docs : docs);
	if (!options->plan) {
		must(batch_check(&b->batch, b->shape.vocab, &err), &err);
		fill_weights(b);
		must(model_loaded(b->model, &b->back, &err), &err);
	}
	b->pass = (struct pass){
		.model = b->model,
		.back = &b->back,
		.batch = &b->batch,
		.saved = &b->saved,
		.dropout_seed = 11,
		.dropout = options->dropout > 0,
		.head_chunk = options->head_chunk,
		.mlp_tile = options->mlp_tile,
	};
}

void bed_close(struct bed *b)
{
	saved_release(&b->saved);
	model_release(b->model);
	cpu_backend_release(&b->back);
	free(b->arena.base);
}

double bed_loss(struct bed *b, bool gradient)
{
	const struct arena_mark mark = arena_mark(&b->arena);
	struct error err = {0};
	double sum = 0;

	if (gradient)
		must(b->back.ops->zero(&b->back, b->model->params.grad, &err), &err);
	must(model_forward(&b->pass, &err), &err);
	if (gradient)
		must(model_backward(&b->pass, 0.5f, &sum, &err), &err);
	else
		must(model_loss(&b->pass, &sum, &err), &err);
	arena_reset(&b->arena, &mark);
	return sum;
}
