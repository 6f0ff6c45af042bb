/* SPDX-License-Identifier: Apache-2.0 */
#include "train/checkpoint/parts.h"
#include <stdlib.h>
#include "model/model.h"

enum status checkpoint_parts_make(struct checkpoint_parts *p, const struct model *m, struct error *err)
{
	const int count = m->params.count;

	*p = (struct checkpoint_parts){
		.ranks = m->split.ranks,
		.rank = m->split.rank,
		.local = params_whole(&m->params),
		.whole = model_whole_params(m),
		.place = calloc((size_t)count * m->split.ranks + 1, sizeof(struct split_part))};
	if (!p->place)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory for the places of %d tensors", count);
	for (unsigned r = 0; r < p->ranks; r++)
		for (int i = 0; i < count; i++) {
			const struct param *one = &p->whole.table[i];
			const struct split s = {.rank = r, .ranks = p->ranks};

			p->place[(size_t)count * r + (size_t)i] =
				split_part_of(&s, &m->whole->shape, one->name, one->rows, one->cols);
		}
	return STATUS_OK;
}

void checkpoint_parts_release(struct checkpoint_parts *p)
{
	free(p->place);
	*p = (struct checkpoint_parts){0};
}

const struct split_part *checkpoint_parts_place(const struct checkpoint_parts *p, unsigned part, int i)
{
	return &p->place[(size_t)p->local.count * part + (size_t)i];
}
