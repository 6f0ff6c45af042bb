/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include "model/tensor/dtype.h"
#include "model/generation/generator.h"
#include "model/gpu/decode.h"
#include "model/tensor/matrix.h"

struct generator {
	struct model *model;
	struct backend *back;
	struct cache cache;
	struct saved saved;
	struct mat logits;     /* [1, vocab], on the device */
	float *read;	       /* the same in host memory; NULL: logits is in host memory */
	void *packed;	       /* in the device's type */
	struct decode *decode; /* NULL: each token is a pass with one row */
	struct sampler_room *room;
	int32_t rows;		    /* rows of a prompt per pass */
	int32_t *position, *target; /* [rows] */
};

static enum status place(struct generator *g, int64_t positions, struct error *err)
{
	const struct shape *s = &g->model->shape;
	enum status st = STATUS_OK;

	for (int64_t i = 0; !st && i < s->layers; i++) {
		g->cache.kv[i] = (struct mat){
			.rows = positions, .cols = 2 * s->kv_heads * s->head_dim, .dtype = g->back->dtype};
		st = arena_mat(g->back->arena, MEM_CACHE, &g->cache.kv[i], "KV cache", err);
	}
	g->logits = (struct mat){.rows = 1, .cols = s->vocab, .dtype = g->back->dtype};
	if (!st)
		st = arena_mat(g->back->arena, MEM_LOGITS, &g->logits, "logits", err);
	return st || g->back->kind != BACKEND_GPU
		       ? st
		       : decode_create(&g->decode, g->model, g->back, &g->cache, err);
}

static enum status host_rooms(struct generator *g, struct error *err)
{
	const int64_t vocab = g->model->shape.vocab;

	g->rows = g->back->kind == BACKEND_GPU ? GENERATE_ROWS_GPU : GENERATE_ROWS;
	g->position = calloc((size_t)g->rows, sizeof(*g->position));
	g->target = calloc((size_t)g->rows, sizeof(*g->target));
	if (g->back->kind == BACKEND_GPU) {
		g->read = calloc((size_t)vocab, sizeof(*g->read));
		g->packed = calloc((size_t)vocab, sizeof(*g->read));
	}
	if (!g->position || !g->target || (g->back->kind == BACKEND_GPU && !(g->read && g->packed)))
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "no memory for a generator");
	return sampler_room_create(&g->room, vocab, err);
}

enum status generator_create(struct generator **out, struct model *m, struct backend *back, int64_t positions,
			     struct error *err)
{
	struct generator *g = calloc(1, sizeof(*g));
	enum status st;

	if (!g || !(g->cache.kv = calloc((size_t)m->shape.layers, sizeof(*g->cache.kv)))) {
		free(g);
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory for a table of layers");
	}
	g->model = m;
	g->back = back;
	st = saved_create(&g->saved, m, RECOMPUTE_FULL, err);
	if (!st && positions > m->positions)
		st = error_set(err, STATUS_BAD_INPUT,
			       "%lld positions are needed, but the model has room for %lld",
			       (long long)positions, (long long)m->positions);
	if (!st)
		st = place(g, positions, err);
	if (!st)
		st = host_rooms(g, err);
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
	decode_release(&g->decode);
	sampler_room_destroy(&g->room);
	free(g->position);
	free(g->target);
	free(g->read);
	free(g->packed);
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

/* Processes at most g->rows tokens; returns the logits of the last one if wanted. */
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
		.trained = &last,
		.tokens = count,
		.docs = 1,
		.doc_len_max = count,
		.targets = 1,
	};
	struct batch placed;
	const struct pass pass = {
		.model = g->model, .back = g->back, .batch = &placed, .saved = &g->saved, .cache = &g->cache};
	enum status st;

	for (int32_t i = 0; i < count; i++) {
		g->position[i] = (int32_t)g->cache.rows + i;
		g->target[i] = BATCH_UNTRAINED;
	}
	st = g->back->ops->batch(g->back, &batch, &placed, err);
	if (!st)
		st = model_forward(&pass, err);
	if (!st && logits)
		st = model_logits(&pass, placed.trained, 1, g->logits, err);
	arena_reset(g->back->arena, &mark);
	return st;
}

/* A long prompt takes minutes, so `cancel` (may be NULL) is checked before each part. */
static enum status feed_all(struct generator *g, const int32_t *ids, size_t count, bool logits,
			    const volatile sig_atomic_t *cancel, struct error *err)
{
	enum status st = STATUS_OK;

	for (size_t i = 0; !st && i < count; i += (size_t)g->rows) {
		size_t rows = count - i < (size_t)g->rows ? count - i : (size_t)g->rows;

		if (cancel && *cancel)
			return error_set_cause(err, STATUS_CANCELLED, CAUSE_INTERRUPTED,
					       "stopped on request after %zu of %zu tokens of the prompt", i,
					       count);
		st = feed(g, ids + i, (int32_t)rows, logits && i + rows == count, err);
	}
	return st;
}

static enum status feed_and_read(struct generator *g, const int32_t *ids, size_t count,
				 const volatile sig_atomic_t *cancel, const float **logits, struct error *err)
{
	enum status st;

	if (!count)
		return error_set(err, STATUS_BAD_INPUT, "there is no token to continue from");
	st = feed_all(g, ids, count, true, cancel, err);
	*logits = g->read ? g->read : g->logits.data;
	if (st || !g->read || !g->logits.data) /* in host memory already, or planned */
		return st;
	st = g->back->ops->get(g->back, g->logits, g->packed, err);
	if (!st)
		dtype_unpack(g->logits.dtype, g->packed, g->read, (size_t)g->logits.cols);
	return st;
}

enum status generator_feed(struct generator *g, const int32_t *ids, size_t count, const float **logits,
			   struct error *err)
{
	return feed_and_read(g, ids, count, NULL, logits, err);
}

static bool stops(const struct generate_options *o, int32_t id)
{
	for (size_t i = 0; i < o->stops; i++)
		if (o->stop[i] == id)
			return true;
	return false;
}

static enum status infinite(int64_t token, struct error *err)
{
	return error_set(
		err, STATUS_MISMATCH,
		"the logits of token %lld have NaN or infinity, because numbers of the model or adapter "
		"exceed F32; check the model's norms, and whether the adapter comes from a diverged run",
		(long long)token);
}

/* With NaN, no token is the most likely one, and id 0 would be generated forever. */
static enum status check_logits(const struct generator *g, const float *logits, int64_t token,
				struct error *err)
{
	return dtype_finite(DTYPE_F32, logits, (size_t)g->logits.cols) ? STATUS_OK : infinite(token, err);
}

/* A text that is being generated. */
struct making {
	struct generator *g;
	const struct generate_options *o;
	bool (*take)(void *arg, int32_t id, const float *logits);
	void *arg;
	enum generate_end end;
	int64_t made; /* tokens passed to take() */
	bool over;
};

/* Passes a token on. Returns false if it ends the text. */
static bool hand_on(struct making *m, int32_t id, const float *logits)
{
	if (stops(m->o, id)) {
		m->end = GENERATE_STOPPED;
		m->over = true;
	} else {
		m->made++;
		if (!m->take(m->arg, id, logits)) {
			m->end = GENERATE_ENDED_BY_CALLER;
			m->over = true;
		}
	}
	return !m->over;
}

static enum status by_passes(struct making *m, const int32_t *prompt, size_t count, struct error *err)
{
	struct generator *g = m->g;
	const float *logits = NULL;
	enum status st = feed_and_read(g, prompt, count, m->o->cancel, &logits, err);

	for (int64_t i = 0; !st && i < m->o->tokens; i++) {
		int32_t id;

		st = check_logits(g, logits, i + 1, err);
		if (st)
			break;
		id = sampling_choose(&m->o->sampling, g->room, logits, m->o->vocab, (uint64_t)i);
		if (!hand_on(m, id, logits) || i + 1 == m->o->tokens || g->cache.rows == g->cache.kv[0].rows)
			break;
		st = generator_feed(g, &id, 1, &logits, err);
	}
	return st;
}

/* Greedy decode: the next launch is enqueued before the tokens of the one before are read. */
static enum status by_launches(struct making *m, int64_t tokens, struct error *err)
{
	struct decode *d = m->g->decode;
	enum status st = STATUS_OK;

	for (int64_t asked = 0; !st && !m->over && (asked < tokens || decode_in_flight(d));) {
		struct decode_made made = {0};

		while (!st && asked < tokens && decode_in_flight(d) < DECODE_FLIGHT) {
			int64_t some = tokens - asked < DECODE_LAUNCH ? tokens - asked : DECODE_LAUNCH;

			st = decode_enqueue(d, some, err);
			asked += some;
		}
		if (!st)
			st = decode_fetch(d, &made, err);
		for (int64_t i = 0; !st && !m->over && i < made.count; i++) {
			if (made.infinite == i + 1)
				st = infinite(m->made + 1, err);
			else
				hand_on(m, made.id[i], NULL);
		}
	}
	while (decode_in_flight(d)) {
		struct decode_made left;
		enum status last = decode_fetch(d, &left, st ? NULL : err);

		st = st ? st : last;
	}
	return st;
}

/* Decode with the logits on the host after each token, because the host chooses or the caller wants them. */
static enum status by_launch_each(struct making *m, int32_t id, const struct decode_ask *ask, int64_t tokens,
				  struct error *err)
{
	struct generator *g = m->g;
	enum status st = STATUS_OK;

	for (int64_t i = 0; !st && !m->over && i < tokens; i++) {
		struct decode_made made;
		const float *logits = NULL;

		st = decode_begin(g->decode, id, g->cache.rows + i, ask, err);
		if (!st)
			st = decode_enqueue(g->decode, 1, err);
		if (!st)
			st = decode_fetch(g->decode, &made, err);
		if (!st)
			st = decode_logits(g->decode, &logits, err);
		if (!st)
			st = check_logits(g, logits, i + 1, err);
		if (st)
			break;
		id = sampling_choose(&m->o->sampling, g->room, logits, m->o->vocab, (uint64_t)i);
		hand_on(m, id, logits);
	}
	return st;
}

/* Whether the logits are needed on the host after each token. */
static bool wants_each(const struct generate_options *o)
{
	return o->logits || o->sampling.temperature > 0;
}

uint64_t generate_at_once(const struct generator *g, const struct generate_options *options)
{
	return g->decode && !wants_each(options) ? DECODE_LAUNCH : 1;
}

/* Prefill by passes up to the last token of the prompt, which begins the first launch. */
static enum status by_device(struct making *m, const int32_t *prompt, size_t count, struct error *err)
{
	struct generator *g = m->g;
	const bool each = wants_each(m->o);
	const struct decode_ask ask = {
		.vocab = m->o->vocab, .stop = m->o->stop, .stops = each ? 0 : m->o->stops};
	int64_t tokens = m->o->tokens;
	enum status st;

	if (!count)
		return error_set(err, STATUS_BAD_INPUT, "there is no token to continue from");
	st = feed_all(g, prompt, count - 1, false, m->o->cancel, err);
	if (st)
		return st;
	if (g->cache.rows == g->cache.kv[0].rows)
		return error_set(err, STATUS_BAD_INPUT,
				 "%lld rows and 1 more do not fit into the KV cache of %lld rows",
				 (long long)g->cache.rows, (long long)g->cache.kv[0].rows);
	if (tokens > g->cache.kv[0].rows - g->cache.rows)
		tokens = g->cache.kv[0].rows - g->cache.rows;
	if (each) {
		st = by_launch_each(m, prompt[count - 1], &ask, tokens, err);
	} else {
		st = decode_begin(g->decode, prompt[count - 1], g->cache.rows, &ask, err);
		if (!st)
			st = by_launches(m, tokens, err);
	}
	/* the last token was generated but not processed, unless it precedes a stop token */
	g->cache.rows += m->made + (m->end == GENERATE_STOPPED);
	return st;
}

enum status generate(struct generator *g, const int32_t *prompt, size_t count,
		     const struct generate_options *options,
		     bool (*take)(void *arg, int32_t id, const float *logits), void *arg,
		     enum generate_end *end, struct error *err)
{
	struct making m = {.g = g, .o = options, .take = take, .arg = arg, .end = GENERATE_FULL};
	enum status st = sampling_check(&options->sampling, err);

	if (!st)
		st = g->decode ? by_device(&m, prompt, count, err) : by_passes(&m, prompt, count, err);
	*end = m.end;
	return st;
}
