/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include "model/tensor/matrix.h"
#include "model/params.h"

enum status params_add(struct params *p, const char *name, int64_t rows, int64_t cols, float decay,
		       struct error *err)
{
	struct param *param;

	if (p->count == p->room) {
		int room = p->room ? 2 * p->room : 64;
		struct param *table = realloc(p->table, (size_t)room * sizeof(*table));

		if (!table)
			return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
					       "no memory for a table of %d parameters", room);
		p->table = table;
		p->room = room;
	}
	param = &p->table[p->count];
	*param = (struct param){.rows = rows, .cols = cols, .offset = p->length, .decay = decay};
	if ((size_t)snprintf(param->name, sizeof(param->name), "%s", name) >= sizeof(param->name))
		return error_set(err, STATUS_BAD_INPUT, "parameter name %.64s.. is longer than %d", name,
				 PARAM_NAME - 1);
	p->count++;
	p->length += (size_t)rows * (size_t)cols;
	return STATUS_OK;
}

enum status params_place(struct params *p, struct arena *a, enum dtype dtype, enum dtype live, bool trained,
			 struct error *err)
{
	const struct mat flat = {.rows = 1, .cols = (int64_t)p->length, .dtype = dtype};
	enum status st;

	p->master = p->grad = p->m = p->v = flat;
	p->live = (struct mat){.rows = p->length && live != dtype, .cols = (int64_t)p->length, .dtype = live};
	st = arena_mat(a, MEM_TRAINED, &p->master, "trained parameters", err);
	if (!st && p->live.rows)
		st = arena_mat(a, MEM_TRAINED, &p->live, "live copy of the trained parameters", err);
	if (!st && trained)
		st = arena_mat(a, MEM_GRADIENT, &p->grad, "gradient", err);
	if (!st && trained)
		st = arena_mat(a, MEM_OPTIMISER, &p->m, "first moments", err);
	if (!st && trained)
		st = arena_mat(a, MEM_OPTIMISER, &p->v, "second moments", err);
	return st;
}

const struct param *params_find(const struct params *p, const char *name)
{
	for (int i = 0; i < p->count; i++)
		if (!strcmp(p->table[i].name, name))
			return &p->table[i];
	return NULL;
}

struct mat params_view(const struct mat *flat, const struct param *param)
{
	struct mat view = mat_view(flat, 0, (int64_t)param->offset, param->rows, param->cols);

	view.ld = param->cols;
	return view;
}

size_t params_at(const struct params *p, const struct mat *part)
{
	return ((uintptr_t)part->data - (uintptr_t)p->master.data) / sizeof(float);
}

void params_release(struct params *p)
{
	free(p->table);
	*p = (struct params){0};
}
