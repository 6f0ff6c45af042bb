/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include "model/tensor/matrix.h"
#include "model/params.h"
#include "model/backend/ops.h"

const char *moments_name(enum moments moments)
{
	static const char *const names[] = {
#define X(name, word) word,
		MOMENTS_LIST(X)
#undef X
	};

	return names[moments];
}

const char *master_name(enum master master)
{
	static const char *const names[] = {
#define X(name, word) word,
		MASTER_LIST(X)
#undef X
	};

	return names[master];
}

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

/* Gives each parameter its place in the scales or among the small tensors. */
static void place_blocks(struct params *p, int64_t *blocks, int64_t *small)
{
	for (int i = 0; i < p->count; i++) {
		struct param *one = &p->table[i];
		const int64_t count = one->rows * one->cols;

		one->is_small = count < PARAMS_8BIT_LEAST;
		one->state = (size_t)(one->is_small ? *small : *blocks);
		*(one->is_small ? small : blocks) +=
			one->is_small ? count : (count + ADAMW_BLOCK - 1) / ADAMW_BLOCK;
	}
}

static enum status place_moments(struct params *p, struct arena *a, enum dtype dtype, struct error *err)
{
	static const enum dtype types[] = {
		[MOMENTS_F32] = DTYPE_F32, [MOMENTS_BF16] = DTYPE_BF16, [MOMENTS_8BIT] = DTYPE_U8};
	const enum dtype of = p->format.moments ? types[p->format.moments] : dtype;
	int64_t blocks = 0, small = 0;
	enum status st = STATUS_OK;

	if (p->format.moments == MOMENTS_8BIT)
		place_blocks(p, &blocks, &small);
	p->m = p->v = (struct mat){.rows = 1, .cols = (int64_t)p->length, .dtype = of};
	p->m_scale = p->v_scale = (struct mat){.rows = blocks > 0, .cols = blocks, .dtype = DTYPE_F32};
	p->m_small = p->v_small = (struct mat){.rows = small > 0, .cols = small, .dtype = DTYPE_F32};
	for (int i = PARAMS_STATE_m; !st && i < PARAMS_STATE_COUNT; i++) {
		struct mat *one = params_state(p, (enum params_state)i);

		if (i != PARAMS_STATE_rest && one->rows)
			st = arena_mat(a, MEM_OPTIMISER, one, "moments of the optimizer", err);
	}
	return st;
}

enum status params_place(struct params *p, struct arena *a, struct arena *host, enum dtype dtype,
			 enum dtype live, bool trained, struct error *err)
{
	const bool whole = p->format.master == MASTER_F32;
	const enum dtype weight = whole ? dtype : DTYPE_BF16;
	const struct mat flat = {.rows = 1, .cols = (int64_t)p->length, .dtype = weight};
	struct arena *const states = host ? host : a;
	enum status st;

	if (dtype != DTYPE_F32 && (!whole || p->format.moments))
		return error_set(err, STATUS_BUG, "optimizer states of %s for parameters in %s",
				 moments_name(p->format.moments), dtype_name(dtype));
	p->master = p->grad = flat;
	p->live =
		(struct mat){.rows = p->length && live != weight, .cols = (int64_t)p->length, .dtype = live};
	p->rest = (struct mat){
		.rows = p->format.master == MASTER_SPLIT, .cols = (int64_t)p->length, .dtype = DTYPE_I16};
	p->offloaded = host != NULL;
	st = arena_mat(p->live.rows ? states : a, MEM_TRAINED, &p->master, "trained parameters", err);
	if (!st && p->rest.rows)
		st = arena_mat(states, MEM_TRAINED, &p->rest, "lower halves of the trained parameters", err);
	if (!st && p->live.rows)
		st = arena_mat(a, MEM_TRAINED, &p->live, "live copy of the trained parameters", err);
	if (!st && trained)
		st = arena_mat(a, MEM_GRADIENT, &p->grad, "gradient", err);
	if (!st && params_state_offloaded(p, PARAMS_STATE_master))
		p->loading = p->grad;
	return st || !trained ? st : place_moments(p, states, dtype, err);
}

const char *params_state_name(enum params_state which)
{
	static const char *const names[] = {
#define X(name, word) word,
		PARAMS_STATES(X)
#undef X
	};

	return names[which];
}

struct mat *params_state(struct params *p, enum params_state which)
{
	struct mat *const all[] = {
#define X(name, ...) &p->name,
		PARAMS_STATES(X)
#undef X
	};

	return all[which];
}

uint64_t params_state_bytes(const struct params *p, enum params_state which)
{
	const struct mat *const all[] = {
#define X(name, ...) &p->name,
		PARAMS_STATES(X)
#undef X
	};

	return dtype_bytes(all[which]->dtype, (uint64_t)(all[which]->rows * all[which]->cols));
}

bool params_state_offloaded(const struct params *p, enum params_state which)
{
	return p->offloaded && params_state_bytes(p, which) && (which != PARAMS_STATE_master || p->live.rows);
}

struct params_range params_range(const struct params *p, const struct param *param, enum params_state which)
{
	const size_t count = (size_t)(param->rows * param->cols);
	const bool scale = which == PARAMS_STATE_m_scale || which == PARAMS_STATE_v_scale;
	const bool small = which == PARAMS_STATE_m_small || which == PARAMS_STATE_v_small;

	if (!params_state_bytes(p, which) || (scale && param->is_small) || (small && !param->is_small))
		return (struct params_range){0};
	if (scale)
		return (struct params_range){param->state, (count + ADAMW_BLOCK - 1) / ADAMW_BLOCK};
	return (struct params_range){small ? param->state : param->offset, count};
}

/* Elements of a state of 8-bit moments that belong to elements [0, end) of the flat vector. */
static size_t state_before(const struct params *p, size_t end, enum params_state which)
{
	size_t sum = 0;

	for (int i = 0; i < p->count && p->table[i].offset < end; i++) {
		const struct param *one = &p->table[i];
		const size_t whole = params_range(p, one, which).count, within = end - one->offset;
		const bool scale = which == PARAMS_STATE_m_scale || which == PARAMS_STATE_v_scale;
		const size_t part = scale ? (within + ADAMW_BLOCK - 1) / ADAMW_BLOCK : within;

		sum += part < whole ? part : whole;
	}
	return sum;
}

struct params_range params_part(const struct params *p, size_t begin, size_t end, enum params_state which)
{
	size_t first;

	if (!params_state_bytes(p, which))
		return (struct params_range){0};
	if (which < PARAMS_STATE_m_scale)
		return (struct params_range){begin, end - begin};
	first = state_before(p, begin, which);
	return (struct params_range){first, state_before(p, end, which) - first};
}

void params_master(const struct params *p, size_t first, size_t count, float *out)
{
	const uint16_t *half = p->master.data;
	const int16_t *rest = p->rest.data;

	if (p->format.master == MASTER_F32) {
		memcpy(out, (const float *)p->master.data + first, count * sizeof(*out));
		return;
	}
	for (size_t i = 0; i < count; i++)
		out[i] = params_join(half[first + i], p->rest.rows ? rest[first + i] : 0);
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
	return ((uintptr_t)part->data - (uintptr_t)p->master.data) / dtype_bytes(p->master.dtype, 1);
}

void params_release(struct params *p)
{
	free(p->table);
	*p = (struct params){0};
}
