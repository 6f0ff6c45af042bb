/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/bnb4/bnb4_kernels.h"
#include "model/cpu/invariant/quantised_gemm.h"
#include "model/tensor/fp8.h"
#include "model/tensor/matrix.h"
#include "model/decoder/layer_tensors.h"

void layer_tensors(const struct shape *s, struct layer_tensor out[LAYER_TENSOR_COUNT])
{
	const int64_t q = s->heads * s->head_dim, kv = s->kv_heads * s->head_dim;
	const struct layer_tensor all[] = {
#define X(word, field, first, row_count, col_count)                                                          \
	{.name = word,                                                                                       \
	 .weight = offsetof(struct layer, field),                                                            \
	 .begin = first,                                                                                     \
	 .rows = row_count,                                                                                  \
	 .cols = col_count},
		LAYER_TENSORS(X)
#undef X
	};

	memcpy(out, all, sizeof(all));
}

struct lora_target lora_target(const struct shape *s, enum peft_target target)
{
	const int64_t q = s->heads * s->head_dim, kv = s->kv_heads * s->head_dim;
	const struct lora_target all[PEFT_TARGET_COUNT] = {
		[PEFT_Q] = {offsetof(struct layer, qkv), 0, q, s->hidden},
		[PEFT_K] = {offsetof(struct layer, qkv), q, kv, s->hidden},
		[PEFT_V] = {offsetof(struct layer, qkv), q + kv, kv, s->hidden},
		[PEFT_O] = {offsetof(struct layer, o), 0, s->hidden, q},
		[PEFT_GATE] = {offsetof(struct layer, gate_up), 0, s->ffn, s->hidden},
		[PEFT_UP] = {offsetof(struct layer, gate_up), s->ffn, s->ffn, s->hidden},
		[PEFT_DOWN] = {offsetof(struct layer, down), 0, s->hidden, s->ffn},
	};

	return all[target];
}

/* "self_attn.q_proj". */
static const char *lora_module(enum peft_target target)
{
	static const char *const modules[] = {
#define X(name, leaf, parent) [PEFT_##name] = parent "." leaf,
		PEFT_TARGETS(X)
#undef X
	};

	return modules[target];
}

void tensor_name(char out[PARAM_NAME], int64_t layer, const char *below)
{
	snprintf(out, PARAM_NAME, "model.layers.%lld.%s", (long long)layer, below);
}

void lora_name(char out[PARAM_NAME], int64_t layer, enum peft_target target, char part)
{
	snprintf(out, PARAM_NAME, "model.layers.%lld.%s.lora_%c.weight", (long long)layer,
		 lora_module(target), part);
}

/* Whether the back end multiplies with weights of this type as the file has them. */
static bool multiplies(const struct backend *back, const struct tensor *t)
{
	return cpu_blocks_of(t->dtype) ||
	       (back->invariant && t->rank > 1 && (t->dtype == DTYPE_BF16 || t->dtype == DTYPE_F16));
}

/* The type of a tensor in memory. */
static enum dtype kept_in(const struct model *m, const struct backend *back, const char *name)
{
	struct weights_raw raw;

	if (!m->blocks || !weights_find(&raw, m->blocks, name) || !multiplies(back, raw.tensor))
		return back->dtype;
	/* a head that is trained separately from a tied embedding starts as a copy of it */
	if (m->lora.save && !strcmp(name, NAME_EMBED))
		return back->dtype;
	return raw.tensor->dtype;
}

/* The parts of one weight have the same type. */
static enum dtype layer_kept_in(const struct model *m, const struct backend *back, int64_t layer,
				const struct layer_tensor t[LAYER_TENSOR_COUNT], int first)
{
	char name[PARAM_NAME];
	enum dtype dtype, other;

	tensor_name(name, layer, t[first].name);
	dtype = kept_in(m, back, name);
	for (int j = first + 1; j < LAYER_TENSOR_COUNT && t[j].weight == t[first].weight; j++) {
		tensor_name(name, layer, t[j].name);
		other = kept_in(m, back, name);
		dtype = other == dtype ? dtype : back->dtype;
	}
	return dtype;
}

static enum status place_frozen(struct backend *back, struct mat *w, const char *name, struct error *err)
{
	struct mat scale = {.rows = 1, .cols = w->rows, .dtype = DTYPE_F32};
	enum status st = arena_mat(back->arena, MEM_WEIGHTS, w, name, err);

	if (st || w->dtype != DTYPE_E4M3)
		return st;
	st = arena_mat(back->arena, MEM_WEIGHTS, &scale, name, err);
	w->scales = scales_of_rows(scale.data, w->cols);
	return st;
}

/* Places a weight of rows x cols: in the flat vector if its first part has this name there, else as a frozen
 * one. */
static enum status place(struct model *m, struct backend *back, struct weight *w, int64_t rows, int64_t cols,
			 const char *name, enum dtype kept, struct error *err)
{
	const struct param *param = params_find(&m->params, name);
	struct param whole;

	*w = (struct weight){.w = {.rows = rows, .cols = cols, .dtype = back->dtype}};
	if (!param) {
		w->w.dtype = kept;
		return place_frozen(back, &w->w, name, err);
	}
	whole = *param;
	whole.rows = rows;
	whole.cols = cols;
	if (!m->inference)
		w->grad = m->divided.gradient ? divided_grad(&m->divided, &m->params, &whole)
					      : params_view(&m->params.grad, &whole);
	w->master = params_load_apart(&m->params) ? w->grad : params_view(&m->params.master, &whole);
	if (m->divided.weights)
		w->w = divided_weight(&m->divided, &m->params, &whole);
	else
		w->w = m->params.live.rows ? params_view(&m->params.live, &whole) : w->master;
	return STATUS_OK;
}

struct linear *layer_linear_of(const struct layer *l, const struct layer_tensor *t)
{
	static const size_t maps[] = {offsetof(struct layer, qkv), offsetof(struct layer, o),
				      offsetof(struct layer, gate_up), offsetof(struct layer, down)};

	for (size_t i = 0; i < sizeof(maps) / sizeof(maps[0]); i++)
		if (t->weight == maps[i] + offsetof(struct linear, w))
			return layer_linear(l, maps[i]);
	return NULL;
}

static enum status place_block(struct backend *back, struct linear *l, const char *name, struct error *err)
{
	const int64_t tail = l->adapters * l->rank;
	enum status st;

	l->block = (struct mat){.rows = l->out + tail, .cols = l->in + tail, .dtype = back->dtype};
	st = arena_mat(back->arena, MEM_WEIGHTS, &l->block, name, err);
	l->w = (struct weight){.w = mat_view(&l->block, 0, 0, l->out, l->in)};
	return st;
}

static enum status place_fp8_mat(struct backend *back, struct mat *m, int64_t rows, int64_t cols,
				 const char *name, struct error *err)
{
	struct mat scale = {.rows = 1, .cols = fp8_weight_scales(rows, cols), .dtype = DTYPE_F32};
	enum status st;

	*m = (struct mat){.rows = rows, .cols = cols, .dtype = DTYPE_E4M3};
	st = arena_mat(back->arena, MEM_WEIGHTS, m, name, err);
	if (!st)
		st = arena_mat(back->arena, MEM_WEIGHTS, &scale, name, err);
	m->scales = fp8_scales_of_weights(scale.data, cols);
	return st;
}

/* W in E4M3; its transposed copy is in a slot. A trained W has its place in the flat vector too. */
static enum status place_fp8(struct model *m, struct backend *back, int64_t layer, struct linear *l,
			     const char *name, struct error *err)
{
	const int slot = slots_of(&m->slots, layer);
	enum status st = place_fp8_mat(back, &l->fp8, l->out, l->in, name, err);

	l->fp8_transposed = m->slots.transposed[slot][l - &m->layer[layer].qkv];
	if (st || !params_find(&m->params, name)) {
		l->w = (struct weight){.w = l->fp8};
		l->exact.dtype = back->dtype;
		return st || !l->exact.rows ? st : arena_mat(back->arena, MEM_WEIGHTS, &l->exact, name, err);
	}
	st = place(m, back, &l->w, l->out, l->in, name, back->dtype, err);
	if (!st && l->exact.rows)
		l->exact = mat_rows(&l->w.w, 0, l->exact.rows);
	return st;
}

/* A linear layer whose W is read from a slot: places the stored form of its tensors, which are parts `first`
 * and following of the table. */
static enum status place_stored(struct model *m, struct backend *back, int64_t layer, struct linear *l,
				const struct layer_tensor t[LAYER_TENSOR_COUNT], int first, struct error *err)
{
	const int slot = slots_of(&m->slots, layer), linear = (int)(l - &m->layer[layer].qkv);
	char name[PARAM_NAME];
	enum status st = STATUS_OK;

	l->w = (struct weight){.w = slots_numbers(m, layer, linear)};
	if (m->extended && l->adapters)
		l->block = m->slots.mat[slot][linear];
	if (l->is_fp8) {
		if (l->exact.rows)
			l->exact = m->slots.exact[slot];
		l->fp8 = l->w.w = m->slots.fp8[slot][linear];
		l->fp8_transposed = m->slots.transposed[slot][linear];
	}
	l->stored_count = 0;
	for (int i = first; !st && i < LAYER_TENSOR_COUNT && t[i].weight == t[first].weight; i++) {
		struct stored *s = &l->stored[l->stored_count++];

		tensor_name(name, layer, t[i].name);
		*s = (struct stored){.begin = t[i].begin,
				     .bnb4 = {.rows = t[i].rows,
					      .cols = t[i].cols,
					      .type = m->storage.type,
					      .nested = m->storage.nested}};
		if (back->kind == BACKEND_GPU)
			st = bnb4_kernels_check(t[i].rows, t[i].cols, err);
		if (!st && m->divided.base)
			bnb4_place(&s->bnb4, divided_base_take(&m->divided, layer, stored_bytes(s)));
		else if (!st)
			st = stored_place(s, back->arena, name, err);
	}
	return st;
}

/* A linear layer whose W is gathered from all ranks. */
static void place_gathered(struct model *m, const struct backend *back, int64_t layer, struct linear *l)
{
	struct mat w = {.rows = l->out, .cols = l->in, .ld = l->in, .dtype = back->dtype};

	w.data = divided_base_take(&m->divided, layer, dtype_bytes(w.dtype, (uint64_t)(w.rows * w.cols)));
	l->w = (struct weight){.w = w};
}

uint64_t tensors_base_bytes(const struct model *m, const struct backend *back)
{
	struct layer_tensor t[LAYER_TENSOR_COUNT];
	uint64_t bytes = 0;

	layer_tensors(&m->shape, t);
	for (int i = 0; i < LAYER_TENSOR_COUNT; i++) {
		const struct linear *l = layer_linear_of(&m->layer[0], &t[i]);

		if (l && !storage_is_resident(&m->storage))
			bytes += divided_base_room(bnb4_bytes(t[i].rows, t[i].cols, m->storage.nested));
		else if (l && !t[i].begin)
			bytes += divided_base_room(dtype_bytes(back->dtype, (uint64_t)(l->out * l->in)));
	}
	return bytes;
}

/* Parts of one weight are adjacent in the table; the first one begins at 0. */
static enum status place_layer(struct model *m, struct backend *back, int64_t layer, struct error *err)
{
	struct layer_tensor t[LAYER_TENSOR_COUNT];
	char name[PARAM_NAME];
	enum status st = STATUS_OK;

	layer_tensors(&m->shape, t);
	for (int i = 0; !st && i < LAYER_TENSOR_COUNT; i++) {
		int64_t rows = t[i].rows, cols = t[i].cols;
		struct linear *map = layer_linear_of(&m->layer[layer], &t[i]);

		if (t[i].begin || !t[i].rows)
			continue;
		for (int j = i + 1; j < LAYER_TENSOR_COUNT && t[j].weight == t[i].weight; j++) {
			rows += t[i].rows > 1 ? t[j].rows : 0;
			cols += t[i].rows > 1 ? 0 : t[j].cols;
		}
		tensor_name(name, layer, t[i].name);
		if (!storage_is_resident(&m->storage) && map) {
			st = place_stored(m, back, layer, map, t, i, err);
			continue;
		}
		if (m->divided.base && map) {
			place_gathered(m, back, layer, map);
			continue;
		}
		if (m->extended && map && map->adapters) {
			st = place_block(back, map, name, err);
			continue;
		}
		if (map && map->is_fp8) {
			st = place_fp8(m, back, layer, map, name, err);
			continue;
		}
		st = place(m, back, layer_weight(&m->layer[layer], &t[i]), rows, cols, name,
			   m->storage.form == STORAGE_E4M3_ROWS && map ? DTYPE_E4M3
								       : layer_kept_in(m, back, layer, t, i),
			   err);
	}
	return st;
}

/* DoRA's ratios of the layer's four linear layers. */
static enum status place_ratios(struct model *m, struct backend *back, int64_t layer, struct error *err)
{
	struct linear *maps[] = {&m->layer[layer].qkv, &m->layer[layer].o, &m->layer[layer].gate_up,
				 &m->layer[layer].down};
	enum status st = STATUS_OK;

	for (size_t i = 0; !st && m->lora.dora && i < sizeof(maps) / sizeof(maps[0]); i++) {
		if (!maps[i]->adapters)
			continue;
		maps[i]->ratio = (struct mat){.rows = m->owners, .cols = maps[i]->out, .dtype = DTYPE_F32};
		st = arena_mat(back->arena, MEM_WEIGHTS, &maps[i]->ratio, "ratios of DoRA", err);
	}
	return st;
}

static enum status place_adapters(struct model *m, struct backend *back, int64_t layer, struct error *err)
{
	enum status st = STATUS_OK;
	char name[PARAM_NAME];

	for (int target = 0; !st && target < PEFT_TARGET_COUNT; target++) {
		const struct lora_target at = lora_target(&m->shape, target);
		struct linear *l = layer_linear(&m->layer[layer], at.linear);

		for (int i = 0; !st && i < l->adapters; i++) {
			if (l->adapter[i].target != (enum peft_target)target)
				continue;
			lora_name(name, layer, target, 'B');
			st = place(m, back, &l->adapter[i].b, at.out, l->rank, name, back->dtype, err);
			if (l->block.rows)
				l->adapter[i].b.w = mat_view(&l->block, at.out_begin, at.in + i * l->rank,
							     at.out, l->rank);
			lora_name(name, layer, target, 'A');
			if (!st && i == 0)
				st = place(m, back, &l->a, l->adapters * l->rank, at.in, name, back->dtype,
					   err);
			if (l->block.rows && i == 0)
				l->a.w = mat_view(&l->block, l->out, 0, l->adapters * l->rank, at.in);
		}
	}
	return st;
}

enum status tensors_place(struct model *m, struct backend *back, struct error *err)
{
	const struct shape *s = &m->shape;
	enum status st =
		place(m, back, &m->embed, s->vocab, s->hidden, NAME_EMBED, kept_in(m, back, NAME_EMBED), err);

	for (int64_t i = 0; !st && i < s->layers; i++) {
		st = place_layer(m, back, i, err);
		if (!st)
			st = place_adapters(m, back, i, err);
		if (!st)
			st = place_ratios(m, back, i, err);
	}
	if (!st)
		st = place(m, back, &m->norm, 1, s->hidden, NAME_NORM, back->dtype, err);
	if (st)
		return st;
	/* A tied head shares the embedding's matrix, unless one of them or both are trained in addition to
	 * adapters. */
	if (s->tied && (m->full || !(m->lora.save & (PEFT_SAVE_EMBED | PEFT_SAVE_HEAD))))
		m->head = m->embed;
	else
		st = place(m, back, &m->head, s->vocab, s->hidden, NAME_HEAD, kept_in(m, back, NAME_HEAD),
			   err);
	return st;
}
