/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include "model/dtype.h"
#include "model/generate.h"
#include "model/mat.h"

struct generator {
	struct model *model;
	struct back *back;
	struct cache cache;
	struct saved saved;
	struct mat logits; /* [1, vocab] */
	struct sampler_room *room;
	int32_t position[GENERATE_ROWS], target[GENERATE_ROWS];
};

static enum status place(struct generator *g, int64_t positions, struct error *err)
{
	const struct shape *s = &g->model->shape;
	enum status st = STATUS_OK;

	for (int64_t i = 0; !st && i < s->layers; i++) {
		g->cache.kv[i] = (struct mat){
			.rows = positions, .cols = 2 * s->kv_heads * s->head_dim, .dtype = g->back->dtype};
		st = arena_mat(g->back->arena, MEM_CACHE, &g->cache.kv[i], "keys and values", err);
	}
	g->logits = (struct mat){.rows = 1, .cols = s->vocab, .dtype = g->back->dtype};
	return st ? st : arena_mat(g->back->arena, MEM_LOGITS, &g->logits, "logits", err);
}

enum status generator_create(struct generator **out, struct model *m, struct back *back, int64_t positions,
			     struct error *err)
{
	struct generator *g = calloc(1, sizeof(*g));
	enum status st;

	if (!g || !(g->cache.kv = calloc((size_t)m->shape.layers, sizeof(*g->cache.kv)))) {
		free(g);
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no room for a table of layers");
	}
	g->model = m;
	g->back = back;
	st = saved_create(&g->saved, m, RECOMPUTE_FULL, err);
	if (!st && positions > m->positions)
		st = error_set(err, STATUS_BAD_INPUT, "%lld positions, but the model was placed for %lld",
			       (long long)positions, (long long)m->positions);
	if (!st)
		st = place(g, positions, err);
	if (!st)
		st = sampler_room_create(&g->room, m->shape.vocab, err);
	if (st)
		generator_release(&g);
	*out = g;
	return st;
}

void generator_release(struct generator **out)
{
	struct generator *g = *out;

	if (!g)
		return;
	sampler_room_destroy(&g->room);
	saved_release(&g->saved);
	free(g->cache.kv);
	free(g);
	*out = NULL;
}

void generator_rewind(struct generator *g, int64_t rows)
{
	if (rows < g->cache.rows)
		g->cache.rows = rows;
}

/* At most GENERATE_ROWS tokens; logits of the last where they are wanted. */
static enum status feed(struct generator *g, const int32_t *ids, int32_t count, bool logits,
			struct error *err)
{
	const int32_t start[2] = {0, count}, last = count - 1;
	const struct arena_mark mark = arena_mark(g->back->arena);
	const struct batch batch = {
		.token = ids,
		.position = g->position,
		.target = g->target,
		.doc_start = start,
		.tokens = count,
		.docs = 1,
		.doc_len_max = count,
	};
	const struct pass pass = {
		.model = g->model, .back = g->back, .batch = &batch, .saved = &g->saved, .cache = &g->cache};
	enum status st;

	for (int32_t i = 0; i < count; i++) {
		g->position[i] = (int32_t)g->cache.rows + i;
		g->target[i] = BATCH_UNTRAINED;
	}
	st = model_forward(&pass, err);
	if (!st && logits)
		st = model_logits(&pass, &last, 1, g->logits, err);
	arena_reset(g->back->arena, &mark);
	return st;
}

enum status generator_feed(struct generator *g, const int32_t *ids, size_t count, const float **logits,
			   struct error *err)
{
	enum status st = STATUS_OK;

	if (!count)
		return error_set(err, STATUS_BAD_INPUT, "no token to go on from");
	for (size_t i = 0; !st && i < count; i += GENERATE_ROWS) {
		size_t rows = count - i < GENERATE_ROWS ? count - i : GENERATE_ROWS;

		st = feed(g, ids + i, (int32_t)rows, i + rows == count, err);
	}
	*logits = g->logits.data;
	return st;
}

static bool stops(const struct generate_options *o, int32_t id)
{
	for (size_t i = 0; i < o->stops; i++)
		if (o->stop[i] == id)
			return true;
	return false;
}

/* Of NaN none is the likeliest: id 0 would be said for ever. */
static enum status check_logits(const struct generator *g, int64_t token, struct error *err)
{
	if (dtype_finite(DTYPE_F32, g->logits.data, (size_t)g->logits.cols))
		return STATUS_OK;
	return error_set(
		err, STATUS_MISMATCH,
		"token %lld: its logits have NaN or infinity, as numbers of the model or the adapter "
		"leave F32's range; look at the model's norms, and at an adapter of a run that diverged",
		(long long)token);
}

enum status generate(struct generator *g, const int32_t *prompt, size_t count,
		     const struct generate_options *options,
		     bool (*take)(void *arg, int32_t id, const float *logits), void *arg,
		     enum generate_end *end, struct error *err)
{
	const float *logits = NULL;
	enum status st = sampling_check(&options->sampling, err);

	*end = GENERATE_FULL;
	if (!st)
		st = generator_feed(g, prompt, count, &logits, err);
	for (int64_t i = 0; !st && i < options->tokens; i++) {
		int32_t id;

		st = check_logits(g, i + 1, err);
		if (st)
			break;
		id = sampling_choose(&options->sampling, g->room, logits, options->vocab, (uint64_t)i);
		if (stops(options, id)) {
			*end = GENERATE_STOPPED;
			break;
		}
		if (!take(arg, id, logits)) {
			*end = GENERATE_ENDED_BY_CALLER;
			break;
		}
		if (i + 1 == options->tokens || g->cache.rows == g->cache.kv[0].rows)
			break;
		st = generator_feed(g, &id, 1, &logits, err);
	}
	return st;
}
