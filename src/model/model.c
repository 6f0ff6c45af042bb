/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include "core/process/cpu_clear.h"
#include "model/tensor/dtype.h"
#include "model/tensor/fp8.h"
#include "model/tensor/matrix.h"
#include "model/decoder/rope.h"
#include "model/decoder/layer_tensors.h"

/* Full fine-tuning: adds every tensor, in the order of LAYER_TENSORS. */
static enum status add_all(struct model *m, struct error *err)
{
	const struct shape *s = &m->shape;
	struct layer_tensor t[LAYER_TENSOR_COUNT];
	char name[PARAM_NAME];
	enum status st = params_add(&m->params, NAME_EMBED, s->vocab, s->hidden, 1, err);

	layer_tensors(s, t);
	for (int64_t layer = 0; !st && layer < s->layers; layer++)
		for (int i = 0; !st && i < LAYER_TENSOR_COUNT; i++) {
			tensor_name(name, layer, t[i].name);
			if (t[i].rows)
				st = params_add(&m->params, name, t[i].rows, t[i].cols, t[i].rows > 1 ? 1 : 0,
						err);
		}
	if (!st)
		st = params_add(&m->params, NAME_NORM, 1, s->hidden, 0, err);
	if (!st && !s->tied)
		st = params_add(&m->params, NAME_HEAD, s->vocab, s->hidden, 1, err);
	return st;
}

/* Adds the adapters of one linear layer: every A first, so that they form one matrix, then every B. */
static enum status add_map(struct model *m, int64_t layer, size_t linear, struct error *err)
{
	struct linear *l = layer_linear(&m->layer[layer], linear);
	char name[PARAM_NAME];
	enum status st = STATUS_OK;

	for (int part = 0; part < 2; part++)
		for (int i = 0; !st && i < l->adapters; i++) {
			const struct lora_target at = lora_target(&m->shape, l->adapter[i].target);

			lora_name(name, layer, l->adapter[i].target, part ? 'B' : 'A');
			st = params_add(&m->params, name, part ? at.out : l->rank, part ? l->rank : at.in, 1,
					err);
		}
	return st;
}

static enum status add_lora(struct model *m, struct error *err)
{
	static const size_t maps[] = {
		offsetof(struct layer, qkv),
		offsetof(struct layer, o),
		offsetof(struct layer, gate_up),
		offsetof(struct layer, down),
	};
	const struct shape *s = &m->shape;
	enum status st = STATUS_OK;

	if (m->lora.save & PEFT_SAVE_EMBED)
		st = params_add(&m->params, NAME_EMBED, s->vocab, s->hidden, 1, err);
	for (int64_t layer = 0; !st && layer < s->layers; layer++)
		for (size_t i = 0; !st && i < sizeof(maps) / sizeof(maps[0]); i++)
			st = add_map(m, layer, maps[i], err);
	if (!st && m->lora.save & PEFT_SAVE_HEAD)
		st = params_add(&m->params, NAME_HEAD, s->vocab, s->hidden, 1, err);
	return st;
}

/* Whether tensor parallel divides the columns of the linear layer's W. */
static bool split_in_columns(size_t linear)
{
	return linear == offsetof(struct layer, o) || linear == offsetof(struct layer, down);
}

/* Sets the sizes of the linear layers, and their adapters. */
static void lay_out(struct model *m)
{
	for (int64_t layer = 0; layer < m->shape.layers; layer++)
		for (int target = 0; target < PEFT_TARGET_COUNT; target++) {
			const struct lora_target at = lora_target(&m->shape, target);
			struct linear *l = layer_linear(&m->layer[layer], at.linear);

			l->in = at.in;
			l->in_begin = split_in_columns(at.linear) ? at.in * m->split.rank : 0;
			l->out += at.out;
			l->site = (uint32_t)layer;
			if (!(m->lora.targets >> target & 1))
				continue;
			l->rank = m->lora.rank;
			l->owner_rank = m->owners > 1 ? m->lora.rank / m->owners : 0;
			l->lora_scale = (float)peft_scale(&m->lora);
			l->adapter[l->adapters++] =
				(struct adapter){.target = target, .out = at.out, .out_begin = at.out_begin};
		}
}

static const char *const map_names[] = {"q k v", "o", "gate and up", "down"};

void model_overflow_name(char out[64], int64_t i)
{
	snprintf(out, 64, "layer %lld, %s of %s", (long long)(i / LAYER_OVERFLOWS),
		 i % 2 ? "gradients" : "inputs", map_names[i % LAYER_OVERFLOWS / 2]);
}

/* Chooses the linear layers that compute in FP8. */
static enum status take_fp8(struct model *m, const bool *fp8, struct error *err)
{
	for (int64_t i = 0; fp8 && i < m->shape.layers; i++) {
		struct layer *l = &m->layer[i];
		struct linear *maps[] = {&l->qkv, &l->o, &l->gate_up, &l->down};

		for (int j = 0; fp8[i] && j < 4; j++) {
			if (maps[j]->in % FP8_MULTIPLE || maps[j]->out % FP8_MULTIPLE)
				return error_set(
					err, STATUS_UNSUPPORTED,
					"FP8 needs linear layers whose sizes are multiples of %d; %s of layer %lld is %lld x "
					"%lld",
					FP8_MULTIPLE, map_names[j], (long long)i, (long long)maps[j]->out,
					(long long)maps[j]->in);
			maps[j]->is_fp8 = m->fp8 = true;
		}
		if (!fp8[i])
			continue;
		l->qkv.exact = (struct mat){.rows = m->shape.heads * m->shape.head_dim, .cols = l->qkv.in};
	}
	return STATUS_OK;
}

/* What tensor parallel does not divide yet. */
static enum status check_split(const struct shape *s, const struct model_options *o, struct error *err)
{
	const char *why = o->inference			       ? "text generation"
			  : o->storage.form != STORAGE_NUMBERS ? "load_in_4bit"
			  : o->fp8			       ? "precision: fp8"
			  : o->states.moments == MOMENTS_8BIT  ? "moments in 8 bits"
			  : o->states.master		       ? "master_weights other than fp32"
							       : NULL;
	const int64_t columns = s->heads / o->split.ranks * s->head_dim | s->ffn / o->split.ranks;

	if (why)
		return error_set(err, STATUS_UNSUPPORTED,
				 "training: tensor_parallel_size: %u is not supported with %s; use 1, or "
				 "remove the other setting",
				 o->split.ranks, why);
	if (o->lora && o->lora->dropout > 0 && columns % SPLIT_COLUMNS)
		return error_set(err, STATUS_UNSUPPORTED,
				 "training: tensor_parallel_size: with dropout, each of %u ranks needs a "
				 "multiple of %d columns of o_proj and down_proj",
				 o->split.ranks, SPLIT_COLUMNS);
	return split_check(s, o->split.ranks, err);
}

static enum status check_options(const struct shape *s, const struct model_options *o, struct error *err)
{
	if (o->positions < 1)
		return error_set(err, STATUS_BAD_INPUT, "a model with no positions");
	if (o->blocks && !o->inference)
		return error_set(err, STATUS_BAD_INPUT, "quantized weights are supported only for inference");
	if (o->storage.form == STORAGE_E4M3_ROWS && (!o->inference || o->blocks))
		return error_set(
			err, STATUS_BAD_INPUT,
			"weights in E4M3 are supported only for inference, and not with quantized blocks");
	if (o->fp8 && (o->inference || o->blocks))
		return error_set(err, STATUS_BAD_INPUT, "FP8 arithmetic is supported only for training");
	if (o->storage.form == STORAGE_BNB4 && (o->inference || !o->lora))
		return error_set(err, STATUS_BAD_INPUT,
				 "weights in 4 bits are supported only for training with an adapter");
	if (o->full && o->lora)
		return error_set(err, STATUS_BAD_INPUT, "full fine-tuning cannot have an adapter");
	if (o->lora && o->lora->targets && o->lora->rank < 1)
		return error_set(err, STATUS_BAD_INPUT, "lora: r is %lld; it must be 1 or more",
				 (long long)o->lora->rank);
	if (o->lora && (o->owners > 1 || o->lora->dora) && !o->inference)
		return error_set(
			err, STATUS_UNSUPPORTED,
			"training supports one adapter without use_dora; several and DoRA are supported for inference");
	if (o->owners > 1 && (!o->lora || o->lora->rank % o->owners || o->lora->save))
		return error_set(err, STATUS_BUG, "%d adapters share a rank of %lld", o->owners,
				 (long long)(o->lora ? o->lora->rank : 0));
	if (o->lora && !(o->lora->dropout >= 0 && o->lora->dropout < 1))
		return error_set(err, STATUS_BAD_INPUT,
				 "lora: dropout is %g; it must be at least 0 and below 1", o->lora->dropout);
	if (o->split.ranks > 1) {
		enum status st = check_split(s, o, err);

		if (st)
			return st;
	}
	return shape_check(s, "model", err);
}

/* The undivided model, and the own part of its sizes. */
static enum status take_split(struct model *m, const struct shape *shape, const struct model_options *options,
			      struct error *err)
{
	struct model_options whole = *options;

	if (options->split.ranks <= 1)
		return STATUS_OK;
	whole.split = (struct model_split){0};
	whole.shards = (struct model_shards){0};
	m->split.rank = options->split.rank;
	m->split.ranks = options->split.ranks;
	m->shape = split_shape(shape, options->split.ranks);
	return model_create(&m->whole, shape, &whole, err);
}

/* Marks the tensors that another rank counts in the gradient's norm. */
static void mark_shared(struct model *m)
{
	for (int i = 0; m->whole && i < m->params.count; i++) {
		const struct param *whole = &m->whole->params.table[i];

		m->params.table[i].elsewhere =
			!split_part_of(&m->split, &m->whole->shape, whole->name, whole->rows, whole->cols)
				 .first;
	}
}

enum status model_create(struct model **out, const struct shape *shape, const struct model_options *options,
			 struct error *err)
{
	enum status st = check_options(shape, options, err);
	struct model *m;

	if (st)
		return st;
	m = calloc(1, sizeof(*m));
	if (!m || !(m->layer = calloc((size_t)shape->layers, sizeof(*m->layer)))) {
		free(m);
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory for a model's tables");
	}
	m->shape = *shape;
	m->full = options->full;
	m->inference = options->inference;
	m->storage = options->storage;
	m->separate = options->separate;
	m->offload_states = options->offload_states;
	m->positions = options->positions;
	m->params.format = options->states;
	if (options->shards.ranks > 1 && options->shards.stage)
		m->shards = options->shards;
	m->owners = options->owners > 1 ? options->owners : 1;
	m->blocks = options->blocks;
	if (options->lora)
		m->lora = *options->lora;
	st = take_split(m, shape, options, err);
	lay_out(m);
	if (!st)
		st = take_fp8(m, options->fp8, err);
	if (st) {
		model_release(m);
		return st;
	}
	if (m->full)
		st = add_all(m, err);
	else if (options->lora)
		st = add_lora(m, err);
	if (!st)
		mark_shared(m);
	if (st)
		model_release(m);
	else
		*out = m;
	return st;
}

void model_release(struct model *m)
{
	if (!m)
		return;
	model_release(m->whole);
	params_release(&m->params);
	divided_release(&m->divided);
	free(m->live);
	free(m->layer);
	free(m);
}

struct params model_whole_params(const struct model *m)
{
	struct params p = m->params;

	if (m->whole) {
		p.table = m->whole->params.table;
		p.count = m->whole->params.count;
		p.length = m->whole->params.length;
		p.offloaded = false; /* a rank has parts in host memory, and nobody the whole */
	}
	return params_whole(&p);
}

/* Tails must begin at multiples of 16 bytes, and the input of A must have no dropout. Numbers that are
 * gathered from all ranks are packed. Adapters are BF16, and the block of a layer in FP8 is not. */
static bool can_extend(const struct model *m, const struct backend *back)
{
	enum { TOGETHER = 8 };
	const struct shape *s = &m->shape;
	const int64_t sizes = s->hidden | s->ffn | s->heads * s->head_dim | s->kv_heads * s->head_dim;

	return back->kind == BACKEND_GPU && back->dtype == DTYPE_BF16 && !m->inference && !m->separate &&
	       !m->fp8 && !(m->shards.stage == 3 && storage_is_resident(&m->storage)) && m->lora.targets &&
	       !(m->lora.dropout > 0) && m->lora.rank % TOGETHER == 0 && sizes % TOGETHER == 0;
}

/* In fused form, lists where in the blocks each tensor of the flat vector has its copy. */
static enum status list_live(struct model *m, struct error *err)
{
	const struct params *p = &m->params;

	m->live = calloc((size_t)p->count, sizeof(*m->live));
	if (!m->live)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory for a model's tables");
	if (m->embed.master.rows)
		m->live[m->live_count++] = (struct live_part){.to = m->embed.w};
	m->live_layers = m->live_count;
	for (int64_t layer = 0; layer < m->shape.layers; layer++) {
		const struct layer *l = &m->layer[layer];
		const struct linear *maps[] = {&l->qkv, &l->o, &l->gate_up, &l->down};

		for (int i = 0; i < 4; i++)
			linear_live(maps[i], p, m->live, &m->live_count);
	}
	m->live_per_layer = (m->live_count - m->live_layers) / (int)m->shape.layers;
	if (m->head.master.rows && m->head.w.data != m->embed.w.data)
		m->live[m->live_count++] =
			(struct live_part){.begin = params_at(p, &m->head.master), .to = m->head.w};
	return STATUS_OK;
}

static enum status place_overflows(struct model *m, struct backend *back, struct error *err)
{
	enum status st;

	m->overflows = (struct mat){.rows = 1, .cols = m->shape.layers * LAYER_OVERFLOWS, .dtype = DTYPE_I32};
	st = arena_mat(back->arena, MEM_WORKSPACE, &m->overflows, "counts of overflows", err);
	for (int64_t i = 0; !st && i < m->shape.layers; i++) {
		struct layer *l = &m->layer[i];
		struct linear *maps[] = {&l->qkv, &l->o, &l->gate_up, &l->down};

		for (int j = 0; m->overflows.data && j < 4; j++)
			maps[j]->overflows =
				(int32_t *)m->overflows.data + i * LAYER_OVERFLOWS + (int64_t)2 * j;
	}
	return st;
}

/* Whether the trained weights are in slots (ZeRO-3). */
static bool divides_weights(const struct model *m)
{
	return m->full && m->shards.stage == 3;
}

/* Whether the frozen linear layers are divided. */
static bool divides_base(const struct model *m)
{
	return !m->full && m->shards.stage == 3;
}

/* What is divided of the trained parameters. Adapters are small, so only their moments are. */
static struct params_shards shards_of(const struct model *m, bool has_live)
{
	return (struct params_shards){
		.rank = m->shards.rank,
		.ranks = m->shards.ranks,
		.master = m->shards.ranks && m->full && (has_live || divides_weights(m)),
		.gradient = m->full && m->shards.stage >= 2 && !m->shards.whole_gradient,
		.live = divides_weights(m),
	};
}

enum status model_place(struct model *m, struct backend *back, struct error *err)
{
	const enum dtype flat = back->dtype == DTYPE_F64 ? DTYPE_F64 : DTYPE_F32;
	const enum dtype weight = m->params.format.master ? DTYPE_BF16 : flat;
	enum dtype live = back->dtype;
	enum status st;

	if (m->params.format.master && (back->dtype != DTYPE_BF16 || !m->full))
		return error_set(
			err, STATUS_UNSUPPORTED,
			"master weights \"%s\" need full fine-tuning on a device that computes in BF16",
			master_name(m->params.format.master));
	m->extended = can_extend(m, back);
	if (m->extended && !m->lora.save) /* the blocks hold all copies */
		live = flat;
	if (m->shards.stage == 3 && m->fp8)
		return error_set(
			err, STATUS_BAD_INPUT,
			"zero_stage: 3 divides the weights, and precision: fp8 needs them whole to quantize "
			"them; use zero_stage: 2 or precision: bf16");
	m->params.shards = shards_of(m, live != weight);
	if (divides_weights(m) &&
	    !m->offload_states) /* GEMMs read the slots, which are filled from the weights */
		live = weight;
	st = params_place(&m->params, back->arena, m->offload_states ? back->host : NULL, flat, live,
			  !m->inference, err);
	if (!st)
		st = divided_place(&m->divided, &m->params, m->shape.layers, divides_weights(m), back, err);
	if (!st && divides_base(m))
		st = divided_place_base(&m->divided, m->shards.rank, m->shards.ranks,
					tensors_base_bytes(m, back), back, err);
	if (!st)
		st = slots_place(m, back, err);
	if (!st)
		st = tensors_place(m, back, err);
	m->cos_sin = (struct mat){.rows = m->positions, .cols = m->shape.head_dim, .dtype = flat};
	m->shared_grad = (struct mat){.rows = 1, .cols = (int64_t)split_room(m), .dtype = flat};
	if (!st && m->shared_grad.cols)
		st = arena_mat(back->arena, MEM_GRADIENT, &m->shared_grad,
			       "gradients of tensors that several ranks hold", err);
	if (!st)
		st = arena_mat(back->arena, MEM_WEIGHTS, &m->cos_sin, "RoPE table", err);
	if (!st && m->fp8)
		st = place_overflows(m, back, err);
	m->divided.lowest = model_lowest_trained(m);
	return st || !m->extended ? st : list_live(m, err);
}

/* Weights were loaded to the gradient's memory: takes them to host memory, or the own range, and makes the
 * copy that GEMMs read. */
static enum status take_loaded(struct params *p, struct backend *back, struct error *err)
{
	const size_t begin = params_begin(p), count = params_end(p) - begin;
	struct mat own;
	enum status st;

	if (!params_load_apart(p) || p->shards.gradient)
		return STATUS_OK;
	own = params_cut(p, &p->grad, begin, count);
	st = p->live.rows && p->live.cols
		     ? back->ops->convert(back, p->shards.live ? own : p->grad, p->live, err)
		     : STATUS_OK;
	if (st || !count)
		return st;
	return params_state_offloaded(p, PARAMS_STATE_master) ? back->ops->get(back, own, p->master.data, err)
							      : back->ops->convert(back, own, p->master, err);
}

/* The gradient, and every state that is not a weight. An 8-bit block with scale 0 is zero, whatever its
 * codes. */
static enum status zero_flat(struct model *m, struct backend *back, struct error *err)
{
	struct params *p = &m->params;
	enum status st = m->inference ? STATUS_OK : back->ops->zero(back, p->grad, err);

	for (int i = PARAMS_STATE_m; !st && !m->inference && i < PARAMS_STATE_COUNT; i++) {
		const struct mat *state = params_state(p, (enum params_state)i);

		if (!state->rows)
			continue;
		if (!params_state_offloaded(p, (enum params_state)i))
			st = back->ops->zero(back, *state, err);
		else if (state->data) /* not a plan */
			cpu_clear(state->data, params_state_bytes(p, (enum params_state)i));
	}
	return st;
}

static enum status put_rope(const struct model *m, struct backend *back, struct error *err)
{
	struct mat table = m->cos_sin;
	enum status st;

	table.data = malloc(dtype_bytes(table.dtype, (uint64_t)(table.rows * table.cols)));
	if (!table.data)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory for the RoPE table");
	rope_table(&m->shape, table);
	st = back->ops->put(back, m->cos_sin, table.data, err);
	free(table.data);
	return st;
}

static enum status of_maps(const struct layer *l, struct backend *back,
			   enum status (*act)(struct backend *, const struct linear *, struct error *),
			   struct error *err)
{
	const struct linear *maps[] = {&l->qkv, &l->o, &l->gate_up, &l->down};
	enum status st = STATUS_OK;

	for (int j = 0; !st && j < 4; j++)
		st = act(back, maps[j], err);
	return st;
}

/* The quantized matrices; a tied head is the embedding. */
static enum status pack(struct model *m, struct backend *back, struct error *err)
{
	const bool tied = m->head.w.data == m->embed.w.data;
	enum status st = back->ops->pack(back, &m->embed.w, err);

	if (!st && tied)
		m->head.w.panels = m->embed.w.panels;
	else if (!st)
		st = back->ops->pack(back, &m->head.w, err);
	for (int64_t i = 0; !st && i < m->shape.layers; i++) {
		struct layer *l = &m->layer[i];
		struct linear *maps[] = {&l->qkv, &l->o, &l->gate_up, &l->down};

		for (int j = 0; !st && j < 4; j++)
			st = back->ops->pack(back, &maps[j]->w.w, err);
	}
	return st;
}

/* Layers with a block of their own: those in slots share the slots' blocks. */
static int64_t blocks_of(const struct model *m)
{
	return m->slots.count ? m->slots.count : m->shape.layers;
}

enum status model_loaded(struct model *m, struct backend *back, struct error *err)
{
	const struct mat *head = m->head.master.rows ? &m->head.master : &m->head.w;
	const struct mat *embed = m->embed.master.rows ? &m->embed.master : &m->embed.w;
	enum status st = take_loaded(&m->params, back, err);

	slots_drop(&m->slots);
	if (!st)
		st = zero_flat(m, back, err);
	if (!st)
		st = put_rope(m, back, err);
	for (int64_t i = 0; !st && m->extended && i < blocks_of(m); i++)
		st = of_maps(&m->layer[i], back, linear_clear, err);
	if (!st && m->shape.tied && head->data != embed->data)
		st = back->ops->convert(back, *embed, *head, err);
	if (!st && m->fp8)
		st = back->ops->zero(back, m->overflows, err);
	if (!st && m->inference && back->ops->pack)
		st = pack(m, back, err);
	return st ? st : model_refresh(m, back, err);
}

struct live_range model_live_of_layer(const struct model *m, int64_t layer)
{
	return (struct live_range){.all = m->live,
				   .total = m->live_count,
				   .first = m->live_layers + (int)layer * m->live_per_layer,
				   .count = m->live_per_layer};
}

static enum status refresh_range(struct model *m, struct backend *back, int first, int end, struct error *err)
{
	const struct live_range range = {
		.all = m->live, .total = m->live_count, .first = first, .count = end - first};

	return range.count ? back->ops->refresh(back, m->params.master, &range, err) : STATUS_OK;
}

/* Adapters of layers in slots are copied when a slot is filled. */
static enum status refresh_resident(struct model *m, struct backend *back, struct error *err)
{
	const int layers_end = m->live_layers + (int)m->shape.layers * m->live_per_layer;
	enum status st = refresh_range(m, back, 0, m->live_layers, err);

	slots_drop(&m->slots);
	return st ? st : refresh_range(m, back, layers_end, m->live_count, err);
}

enum status model_refresh(struct model *m, struct backend *back, struct error *err)
{
	const struct params *p = &m->params;

	enum status st = STATUS_OK;

	if (m->extended)
		return m->slots.count ? refresh_resident(m, back, err)
				      : refresh_range(m, back, 0, m->live_count, err);
	if (m->full)
		slots_drop(&m->slots); /* of transposed weights */
	if (p->live.rows && !params_load_apart(p))
		st = back->ops->convert(back, p->master, p->live, err);
	for (int64_t i = 0; !st && m->fp8 && i < m->shape.layers; i++)
		st = of_maps(&m->layer[i], back, linear_quantize, err);
	return st;
}

enum status model_merge(struct model *m, struct backend *back, struct error *err)
{
	enum status st = STATUS_OK;

	for (int64_t i = 0; !st && i < m->shape.layers; i++) {
		struct layer *l = &m->layer[i];
		struct linear *maps[] = {&l->qkv, &l->o, &l->gate_up, &l->down};

		for (int j = 0; !st && j < 4; j++)
			st = linear_merge(back, maps[j], err);
	}
	return st;
}

/* A is uniform between -1 / sqrt(in) and 1 / sqrt(in), as in PEFT. The random stream is the index in the
 * table, so every A gets different numbers. */
static enum status init_a(const struct model *m, int index, struct backend *back, uint64_t seed,
			  struct error *err)
{
	const struct params *p = &m->params;
	const struct param *param = &p->table[index];
	const int64_t cols = m->whole ? m->whole->params.table[index].cols : param->cols;
	const struct split_part part = split_part_of(&m->split, m->whole ? &m->whole->shape : &m->shape,
						     param->name, param->rows, cols);
	const struct random_fill fill = {
		.seed = seed,
		.stream = (uint32_t)index,
		.width = (float)(1 / sqrt((double)cols)),
	};

	return split_random(back, params_view(&p->master, param), &fill, &part, err);
}

enum status model_init_adapter(struct model *m, struct backend *back, uint64_t seed, struct error *err)
{
	const struct params *p = &m->params;
	enum status st = STATUS_OK;

	for (int i = 0; !st && i < p->count; i++) {
		if (strstr(p->table[i].name, ".lora_A."))
			st = init_a(m, i, back, seed, err);
		else if (strstr(p->table[i].name, ".lora_B."))
			st = back->ops->zero(back, params_view(&p->master, &p->table[i]), err);
	}
	return st;
}
