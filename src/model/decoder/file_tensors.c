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

static bool is_stored(const struct layer *l, const struct layer_tensor *t)
{
	const struct linear *linear = layer_linear_of(l, t);

	return linear && (linear->stored_count || linear_is_quantized(linear));
}

/* For a name that the shape has. model/shape/tensor_names.h and LAYER_TENSORS name the same tensors. to->rows
 * 0: the tensor is stored in another form. */
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
		*to = is_stored(&m->layer[n->layer], &t[i]) ? (struct mat){0}
							    : part_of(&m->layer[n->layer], &t[i]);
		return true;
	}
	return false;
}

/* Tensor parallel: the rank's part of the file's tensor. Rows beyond the vocabulary are in no file. */
static void take_part(const struct model *m, struct weights_slot *slot)
{
	struct split_part part;
	struct named whole;

	if (!m->whole || !slot->to.rows || !names_find(&whole, &m->whole->shape, slot->name))
		return;
	part = split_part_of(&m->split, &m->whole->shape, slot->name, whole.rows, whole.cols);
	slot->is_part = true;
	slot->row = part.row;
	slot->col = part.col;
	slot->to = mat_rows(&slot->to, 0, part.rows);
}

enum status model_weight_slots(const struct model *m, struct weights_slot **slots, struct named **names,
			       size_t *count, struct error *err)
{
	const size_t all = names_count(&m->shape);

	*count = 0;
	*slots = calloc(all, sizeof(**slots));
	*names = calloc(all, sizeof(**names));
	if (!*slots || !*names)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory for a list of tensors");
	for (size_t i = 0; i < all; i++) {
		struct named *n = &(*names)[*count];
		struct weights_slot *slot = &(*slots)[*count];

		names_at(n, &m->shape, i);
		slot->name = n->hf;
		if (!find(m, n, &slot->to))
			return error_set(err, STATUS_BUG, "no place for tensor %s", n->hf);
		take_part(m, slot);
		*count += slot->to.rows > 0;
	}
	return STATUS_OK;
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
