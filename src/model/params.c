/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "model/tensor/matrix.h"
#include "model/params.h"
#include "model/backend/cost.h"
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

/* Sizes of complete moments. */
static void size_moments(struct params *p, enum dtype dtype)
{
	static const enum dtype types[] = {
		[MOMENTS_F32] = DTYPE_F32, [MOMENTS_BF16] = DTYPE_BF16, [MOMENTS_8BIT] = DTYPE_U8};
	const enum dtype of = p->format.moments ? types[p->format.moments] : dtype;
	int64_t blocks = 0, small = 0;

	if (p->format.moments == MOMENTS_8BIT)
		place_blocks(p, &blocks, &small);
	p->m = p->v = (struct mat){.rows = 1, .cols = (int64_t)p->length, .dtype = of};
	p->m_scale = p->v_scale = (struct mat){.rows = blocks > 0, .cols = blocks, .dtype = DTYPE_F32};
	p->m_small = p->v_small = (struct mat){.rows = small > 0, .cols = small, .dtype = DTYPE_F32};
}

/* The own range of a state. */
static void cut_state(struct params *p, const struct params *whole, enum params_state which)
{
	struct mat *m = params_state(p, which);

	if (m->rows)
		m->cols = (int64_t)params_part(whole, params_begin(p), params_end(p), which).count;
}

static enum status place_moments(struct params *p, struct arena *a, enum dtype dtype, struct error *err)
{
	struct params whole;
	enum status st = STATUS_OK;

	size_moments(p, dtype);
	whole = *p;
	for (int i = PARAMS_STATE_m; p->border && i < PARAMS_STATE_COUNT; i++)
		if (i != PARAMS_STATE_rest)
			cut_state(p, &whole, (enum params_state)i);
	for (int i = PARAMS_STATE_m; !st && i < PARAMS_STATE_COUNT; i++) {
		struct mat *one = params_state(p, (enum params_state)i);

		if (i != PARAMS_STATE_rest && one->rows)
			st = arena_mat(a, MEM_OPTIMISER, one, "moments of the optimizer", err);
	}
	return st;
}

/* The nearest place to element `at` where a range may end: the begin of a tensor, or of a block of
 * REDUCE_BLOCK elements in it. Blocks of 8-bit moments are parts of these. */
static size_t border_near(const struct params *p, size_t at)
{
	const struct param *one = p->table;
	size_t count, block;

	for (int i = 1; i < p->count && p->table[i].offset <= at; i++)
		one = &p->table[i];
	count = (size_t)(one->rows * one->cols);
	block = (at - one->offset + REDUCE_BLOCK / 2) / REDUCE_BLOCK * REDUCE_BLOCK;
	if (count < REDUCE_BLOCK)
		block = at - one->offset < (count + 1) / 2 ? 0 : count;
	return one->offset + (block < count ? block : count);
}

static enum status make_borders(struct params *p, struct error *err)
{
	const size_t ranks = p->shards.ranks;

	if (!ranks || p->border)
		return STATUS_OK;
	p->border = calloc(ranks + 1, sizeof(*p->border));
	if (!p->border)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory for the ranges of %zu ranks", ranks);
	for (size_t r = 1; r < ranks && p->count; r++)
		p->border[r] = border_near(p, r * p->length / ranks);
	p->border[ranks] = p->length;
	return STATUS_OK;
}

size_t params_begin(const struct params *p)
{
	return p->border ? p->border[p->shards.rank] : 0;
}

size_t params_end(const struct params *p)
{
	return p->border ? p->border[p->shards.rank + 1] : p->length;
}

size_t params_first(const struct params *p, enum params_state which)
{
	return which == PARAMS_STATE_master && !p->shards.master
		       ? 0
		       : params_part(p, 0, params_begin(p), which).count;
}

void params_borders(const struct params *p, size_t first, size_t last, size_t *out)
{
	for (unsigned r = 0; r <= p->shards.ranks; r++) {
		const size_t at = p->border[r] > first ? p->border[r] - first : 0;

		out[r] = at < last - first ? at : last - first;
	}
}

struct mat params_cut(const struct params *p, const struct mat *flat, size_t first, size_t count)
{
	const bool whole = flat->cols == (int64_t)p->length;
	struct mat m;

	if (!flat->rows)
		return *flat;
	m = mat_cols(flat, (int64_t)(first - (whole ? 0 : params_begin(p))), (int64_t)count);
	m.ld = m.cols;
	return m;
}

struct params params_whole(const struct params *p)
{
	struct params whole = *p;

	whole.shards = (struct params_shards){0};
	whole.border = NULL;
	size_moments(&whole, p->m.dtype);
	for (int i = 0; i < PARAMS_STATE_COUNT; i++) {
		struct mat *m = params_state(&whole, (enum params_state)i);

		m->data = NULL;
		if (i == PARAMS_STATE_master || (i == PARAMS_STATE_rest && m->rows))
			m->cols = m->ld = (int64_t)p->length;
	}
	return whole;
}

/* The own range of a vector, if ranks divide it. */
static void cut_flat(const struct params *p, struct mat *flat, bool divided)
{
	if (p->border && divided)
		flat->cols = (int64_t)(params_end(p) - params_begin(p));
}

enum status params_place(struct params *p, struct arena *a, struct arena *host, enum dtype dtype,
			 enum dtype live, bool trained, struct error *err)
{
	const bool whole = p->format.master == MASTER_F32;
	const enum dtype weight = whole ? dtype : DTYPE_BF16;
	const struct mat flat = {.rows = 1, .cols = (int64_t)p->length, .dtype = weight};
	struct arena *const states = host ? host : a;
	struct mat lead = {.rows = 1, .cols = (int64_t)p->lead, .dtype = DTYPE_U8};
	enum status st;

	if (dtype != DTYPE_F32 && (!whole || p->format.moments))
		return error_set(err, STATUS_BUG, "optimizer states of %s for parameters in %s",
				 moments_name(p->format.moments), dtype_name(dtype));
	st = make_borders(p, err);
	if (st)
		return st;
	p->master = p->grad = flat;
	p->live =
		(struct mat){.rows = p->length && live != weight, .cols = (int64_t)p->length, .dtype = live};
	p->rest = (struct mat){
		.rows = p->format.master == MASTER_SPLIT, .cols = (int64_t)p->length, .dtype = DTYPE_I16};
	cut_flat(p, &p->master, p->shards.master);
	cut_flat(p, &p->grad, p->shards.gradient);
	cut_flat(p, &p->live, p->shards.live);
	cut_flat(p, &p->rest, true);
	p->offloaded = host != NULL;
	st = arena_mat(p->live.rows ? states : a, MEM_TRAINED, &p->master, "trained parameters", err);
	if (!st && p->rest.rows)
		st = arena_mat(states, MEM_TRAINED, &p->rest, "lower halves of the trained parameters", err);
	if (!st && p->live.rows)
		st = arena_mat(a, MEM_TRAINED, &p->live, "live copy of the trained parameters", err);
	if (!st && trained && p->lead)
		st = arena_mat(a, MEM_SCRATCH, &lead, "memory of passes", err);
	if (!st && trained)
		st = arena_mat(a, MEM_GRADIENT, &p->grad, "gradient", err);
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

bool params_load_apart(const struct params *p)
{
	return p->shards.master || params_state_offloaded(p, PARAMS_STATE_master);
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

size_t params_layer_begin(const struct params *p, int64_t layer)
{
	char prefix[64];
	size_t begin = p->length;

	snprintf(prefix, sizeof(prefix), "model.layers.%" PRId64 ".", layer);
	for (int i = 0; i < p->count; i++)
		if (!strncmp(p->table[i].name, prefix, strlen(prefix)) && p->table[i].offset < begin)
			begin = p->table[i].offset;
	return begin;
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
	free(p->border);
	*p = (struct params){0};
}
