/* SPDX-License-Identifier: Apache-2.0 */
/* The model's tensors by their names in files: where weights are loaded to, and what an adapter is written
 * from. */
#include <stdlib.h>
#include "model/tensor/matrix.h"
#include "model/decoder/layer_tensors.h"

/* Weights are loaded once: into the flat vector if they are trained, else into the matrix that GEMMs read. */
static struct mat loaded_into(const struct weight *w)
{
	return w->master.rows ? w->master : w->w;
}

static struct mat part_of(const struct layer *l, const struct layer_tensor *t)
{
	const struct mat whole = loaded_into(layer_weight(l, t));

	return t->rows > 1 ? mat_view(&whole, t->begin, 0, t->rows, t->cols)
			   : mat_view(&whole, 0, t->begin, 1, t->cols);
}

/* For a name that the shape has. model/shape/tensor_names.h and LAYER_TENSORS name the same tensors. */
static bool find(const struct model *m, const struct named *n, struct mat *to)
{
	struct layer_tensor t[LAYER_TENSOR_COUNT];
	char name[PARAM_NAME];

	if (n->layer < 0) {
		*to = loaded_into(!strcmp(n->hf, NAME_EMBED)  ? &m->embed
				  : !strcmp(n->hf, NAME_NORM) ? &m->norm
							      : &m->head);
		return true;
	}
	layer_tensors(&m->shape, t);
	for (int i = 0; i < LAYER_TENSOR_COUNT; i++) {
		tensor_name(name, n->layer, t[i].name);
		if (strcmp(name, n->hf))
			continue;
		*to = part_of(&m->layer[n->layer], &t[i]);
		return true;
	}
	return false;
}

enum status model_weight_slots(const struct model *m, struct weights_slot **slots, struct named **names,
			       size_t *count, struct error *err)
{
	*count = names_count(&m->shape);
	*slots = calloc(*count, sizeof(**slots));
	*names = calloc(*count, sizeof(**names));
	if (!*slots || !*names)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory for a list of tensors");
	for (size_t i = 0; i < *count; i++) {
		names_at(&(*names)[i], &m->shape, i);
		(*slots)[i].name = (*names)[i].hf;
		if (!find(m, &(*names)[i], &(*slots)[i].to))
			return error_set(err, STATUS_BUG, "no place for tensor %s", (*names)[i].hf);
	}
	return STATUS_OK;
}

/* The linear layer in FP8 whose frozen weight a slot fills; NULL: the slot is filled as it is. */
static const struct linear *quantized(const struct model *m, const struct named *n)
{
	struct layer_tensor t[LAYER_TENSOR_COUNT];
	char name[PARAM_NAME];

	layer_tensors(&m->shape, t);
	for (int i = 0; n->layer >= 0 && i < LAYER_TENSOR_COUNT; i++) {
		const struct linear *l = layer_map(&m->layer[n->layer], t[i].weight);

		tensor_name(name, n->layer, t[i].name);
		if (!strcmp(name, n->hf))
			return l && l->is_fp8 && !l->w.master.rows ? l : NULL;
	}
	return NULL;
}

/* Fills the slots of one linear layer in scratch memory, and quantizes it. The slots' matrices are parts of
 * l->fp8, and become the same parts of the scratch memory. */
static enum status load_quantized(struct backend *back, const struct linear *l, struct weights_slot *slots,
				  size_t count, model_fill *fill, void *arg, struct error *err)
{
	const struct arena_mark mark = arena_mark(back->arena);
	struct mat numbers = {.rows = l->out, .cols = l->in, .dtype = back->dtype};
	enum status st =
		arena_mat(back->arena, MEM_SCRATCH, &numbers, "weights before they are quantized", err);

	for (size_t i = 0; i < count; i++) {
		const int64_t row =
			((uint8_t *)slots[i].to.data - (uint8_t *)l->fp8.data) / (l->fp8.ld ? l->fp8.ld : 1);

		slots[i].to = mat_rows(&numbers, row, slots[i].to.rows);
	}
	if (!st)
		st = fill(arg, slots, count, err);
	if (!st)
		st = back->ops->quantize(back, numbers, l->fp8, l->fp8_transposed, NULL, err);
	arena_reset(back->arena, &mark);
	return st;
}

struct load_list {
	struct weights_slot *slots;
	struct named *names;
	size_t count;
	const struct linear **of; /* of each slot; NULL: filled as it is */
	struct weights_slot *now; /* the slots of one call */
};

static void load_list_release(struct load_list *l)
{
	free(l->slots);
	free(l->names);
	free(l->of);
	free(l->now);
}

static enum status list_slots(struct load_list *l, const struct model *m, struct error *err)
{
	enum status st = model_weight_slots(m, &l->slots, &l->names, &l->count, err);

	l->of = calloc(l->count + 1, sizeof(*l->of));
	l->now = calloc(l->count + 1, sizeof(*l->now));
	if (!st && (!l->of || !l->now))
		st = error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				     "no memory for a list of tensors");
	for (size_t i = 0; !st && i < l->count; i++)
		l->of[i] = quantized(m, &l->names[i]);
	return st;
}

/* Collects the slots of one linear layer, or with NULL all that are filled as they are. */
static size_t collect(struct load_list *l, const struct linear *of)
{
	size_t count = 0;

	for (size_t i = 0; i < l->count; i++)
		if (l->of[i] == of)
			l->now[count++] = l->slots[i];
	return count;
}

enum status model_load(struct model *m, struct backend *back, model_fill *fill, void *arg, struct error *err)
{
	struct load_list l = {0};
	enum status st = list_slots(&l, m, err);
	size_t count;

	if (!st && (count = collect(&l, NULL)))
		st = fill(arg, l.now, count, err);
	for (int64_t i = 0; !st && i < m->shape.layers; i++) {
		struct layer *layer = &m->layer[i];
		const struct linear *maps[] = {&layer->qkv, &layer->o, &layer->gate_up, &layer->down};

		for (int j = 0; !st && j < 4; j++)
			if ((count = collect(&l, maps[j])))
				st = load_quantized(back, maps[j], l.now, count, fill, arg, err);
	}
	load_list_release(&l);
	return st;
}

/* "..q_proj.lora_A.weight" is part A of "..q_proj.weight". */
static enum peft_part split(const char *name, char out[NAME_SIZE])
{
	const char *lora = strstr(name, ".lora_");
	int length = lora ? (int)(lora - name) : (int)strlen(name);

	snprintf(out, NAME_SIZE, "%.*s%s", length, name, lora ? ".weight" : "");
	if (!lora)
		return PEFT_WHOLE;
	return lora[6] == 'A' ? PEFT_A : PEFT_B;
}

enum status model_peft_slots(const struct model *m, const struct mat *flat, struct peft_slot **slots,
			     struct named **names, size_t *count, struct error *err)
{
	*count = (size_t)m->params.count;
	*slots = calloc(*count + 1, sizeof(**slots));
	*names = calloc(*count + 1, sizeof(**names));
	if (!*slots || !*names)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory for a list of tensors");
	for (size_t i = 0; i < *count; i++) {
		const struct param *p = &m->params.table[i];

		(*slots)[i] = (struct peft_slot){.part = split(p->name, (*names)[i].hf),
						 .name = (*names)[i].hf,
						 .mat = params_view(flat, p)};
	}
	return STATUS_OK;
}
