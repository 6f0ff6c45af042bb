/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Engine `cpu` of probe attention: a simple implementation in FP32, so that the probe runs on any machine. A
 * tile of queries goes through its keys in chunks and tracks the largest logit so far. Tiles have different
 * amounts of work because of masks and lists, so each thread takes the next free tile. Chunks without kept
 * pairs are skipped.
 */
#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include "probe/attention/attention.h"
#include "probe/attention/cpu_backward.h"
#include "probe/attention/cpu_loops.h"
#include "probe/attention/attended_pairs.h"
#include "probe/attention/element_types.h"
#include "probe/shared/cpu.h"

enum { SETS = 3 };

struct worker { /* one per thread */
	struct attention_tile *tile;
	struct attention_keys *span; /* (ATTENTION_ROWS, room) */
	uint32_t spans[ATTENTION_ROWS], at[ATTENTION_ROWS];
};

struct attention_cpu {
	struct attention common;
	struct cpu_pool *pool;
	const struct attention_loops *loops;
	struct worker *worker; /* (threads) */
	unsigned threads;
	void *tensor[SETS][ATTENTION_TENSORS];
	unsigned set;				 /* set of the current iteration */
	atomic_uint_fast64_t next;		 /* next tile of the current iteration */
	struct attention_cpu_backward *backward; /* NULL: forward */
};

struct tile_place {
	uint32_t b, h, row, rows; /* first query, number of queries */
};

static enum status supports(const struct machine *m, const struct target *t, const void *opts,
			    struct error *err)
{
	const struct attention_opts *o = opts;
	struct attention_case c;
	enum status st = attention_case_describe(&c, o, err);
	double need = st ? 0 : attention_set_bytes(&c);

	if (st)
		return st;
	attention_case_release(&c);
	if (o->search != ATTENTION_SEARCH_FIRST)
		return error_set_cause(
			err, STATUS_UNSUPPORTED, CAUSE_UNSUPPORTED,
			"attention: the CPU engine has one algorithm, so it supports only search=first");
	return cpu_memory_check(m, t, "attention: Q, K, V and O", need, err);
}

/* -- one tile of queries -- */

static const void *row_of(const struct attention_cpu *s, enum attention_tensor t, uint32_t b, uint32_t h,
			  uint32_t row)
{
	const struct attention_problem *p = &s->common.c.problem;

	return (const char *)s->tensor[s->set][t] +
	       attention_tensor_at(p, t, b, h, row) * attention_type_bytes(attention_tensor_type(p, t));
}

static void load_queries(const struct attention_cpu *s, struct worker *w, const struct tile_place *at)
{
	const struct attention_problem *p = &s->common.c.problem;
	float scale = (float)(attention_scale(p) * M_LOG2E);
	uint32_t room = attention_attended_room(s->common.c.blocks);
	struct attention_tile *t = w->tile;

	memset(t->q, 0, sizeof(t->q));
	memset(t->o, 0, sizeof(t->o));
	for (uint32_t r = 0; r < ATTENTION_ROWS; r++) {
		t->most[r] = ATTENTION_NO_LOGIT;
		t->sum[r] = 0;
		w->at[r] = w->spans[r] = 0;
		if (r >= at->rows)
			continue;
		attention_load(p->type, t->q[r], row_of(s, ATTENTION_Q, at->b, at->h, at->row + r),
			       p->head_dim);
		for (uint32_t d = 0; d < p->head_dim; d++)
			t->q[r][d] *= scale;
		w->spans[r] = attention_pairs_spans(p, s->common.c.blocks, at->b, at->h, at->row + r,
						    w->span + (size_t)r * room);
	}
}

/* For keys first .. first + ATTENTION_KEYS - 1, marks each pair with 0 (kept) or ATTENTION_DROPPED. Returns
 * false if none is kept. */
static bool mark_kept(struct worker *w, uint32_t room, uint32_t first)
{
	uint32_t last = first + ATTENTION_KEYS;
	bool any = false;

	for (uint32_t r = 0; r < ATTENTION_ROWS; r++) {
		const struct attention_keys *span = w->span + (size_t)r * room;

		for (uint32_t c = 0; c < ATTENTION_KEYS; c++)
			w->tile->p[r][c] = ATTENTION_DROPPED;
		while (w->at[r] < w->spans[r] && span[w->at[r]].to <= first)
			w->at[r]++;
		for (uint32_t i = w->at[r]; i < w->spans[r] && span[i].from < last; i++) {
			uint32_t from = span[i].from > first ? span[i].from : first,
				 to = span[i].to < last ? span[i].to : last;

			memset(&w->tile->p[r][from - first], 0, (to - from) * sizeof(float));
			any = true;
		}
	}
	return any;
}

/* Loads the keys of the chunk; keys beyond the end of the sequence become 0. */
static void load_keys(const struct attention_cpu *s, struct attention_tile *t, const struct tile_place *at,
		      uint32_t first)
{
	const struct attention_problem *p = &s->common.c.problem;
	uint32_t keys = attention_kv_len(p, at->b), g = at->h / (p->heads / p->kv_heads);
	float key[ATTENTION_HEAD_DIM_MAX];

	for (uint32_t c = 0; c < ATTENTION_KEYS; c++) {
		bool there = first + c < keys;

		memset(key, 0, sizeof(key));
		memset(t->v[c], 0, sizeof(t->v[c]));
		if (there) {
			attention_load(p->type, key, row_of(s, ATTENTION_K, at->b, g, first + c),
				       p->head_dim);
			attention_load(p->type, t->v[c], row_of(s, ATTENTION_V, at->b, g, first + c),
				       p->head_dim);
		}
		for (uint32_t d = 0; d < p->head_dim; d++)
			t->k[d][c] = key[d];
	}
}

static void store_rows(struct attention_cpu *s, struct attention_tile *t, const struct tile_place *at)
{
	const struct attention_problem *p = &s->common.c.problem;
	float *lse = s->tensor[s->set][ATTENTION_LSE];

	for (uint32_t r = 0; r < at->rows; r++) {
		float share = t->sum[r] > 0 ? 1 / t->sum[r] : 0;
		uint32_t row = at->row + r;

		for (uint32_t d = 0; d < p->head_dim; d++)
			t->o[r][d] *= share;
		attention_store(p->out_type,
				(char *)s->tensor[s->set][ATTENTION_O] +
					attention_tensor_at(p, ATTENTION_O, at->b, at->h, row) *
						attention_type_bytes(p->out_type),
				t->o[r], p->head_dim);
		lse[attention_tensor_at(p, ATTENTION_LSE, at->b, at->h, row)] =
			t->sum[r] > 0 ? t->most[r] * (float)M_LN2 + logf(t->sum[r]) : -INFINITY;
	}
}

static void attend(struct attention_cpu *s, struct worker *w, const struct tile_place *at)
{
	const struct attention_problem *p = &s->common.c.problem;
	uint32_t room = attention_attended_room(s->common.c.blocks), keys = attention_kv_len(p, at->b);

	load_queries(s, w, at);
	for (uint32_t first = 0; first < keys; first += ATTENTION_KEYS) {
		if (!mark_kept(w, room, first))
			continue;
		load_keys(s, w->tile, at, first);
		s->loops->add(w->tile, p->head_dim);
	}
	store_rows(s, w->tile, at);
}

static void attend_work(void *arg, unsigned thread)
{
	struct attention_cpu *s = arg;
	const struct attention_problem *p = &s->common.c.problem;
	uint64_t tiles = (p->q_len + ATTENTION_ROWS - 1) / ATTENTION_ROWS,
		 all = (uint64_t)p->batch * p->heads * tiles, i;

	while ((i = atomic_fetch_add_explicit(&s->next, 1, memory_order_relaxed)) < all) {
		/* With a causal mask the last queries have the most keys, so they come first. */
		struct tile_place at = {.b = (uint32_t)(i / tiles / p->heads),
					.h = (uint32_t)(i / tiles % p->heads),
					.row = (uint32_t)(tiles - 1 - i % tiles) * ATTENTION_ROWS};
		uint32_t rows = attention_q_len(p, at.b);

		if (at.row >= rows)
			continue;
		at.rows = rows - at.row < ATTENTION_ROWS ? rows - at.row : ATTENTION_ROWS;
		attend(s, &s->worker[thread], &at);
	}
}

static void attend_all(struct attention_cpu *s, unsigned set)
{
	s->set = set;
	atomic_store(&s->next, 0);
	cpu_pool_run(s->pool, attend_work, s);
}

static enum status run(void *state, unsigned set, struct error *err)
{
	struct attention_cpu *s = state;

	(void)err;
	if (s->backward)
		attention_cpu_backward_run(s->backward, s->tensor[set]);
	else
		attend_all(s, set);
	return STATUS_OK;
}

/* Computes O and log-sum-exp for verification; the backward pass of this engine needs neither. */
static enum status forward(void *state, struct error *err)
{
	struct attention_cpu *s = state;

	(void)err;
	for (unsigned set = 0; set < s->common.sets; set++)
		attend_all(s, set);
	return STATUS_OK;
}

static enum status enqueue(void *state, uint64_t i, struct error *err)
{
	struct attention_cpu *s = state;
	unsigned set = (unsigned)(i % s->common.sets);

	s->common.written |= 1u << set;
	return run(s, set, err);
}

/* -- verification -- */

static enum status write_tensor(void *state, enum attention_tensor t, const void *data, struct error *err)
{
	struct attention_cpu *s = state;

	(void)err;
	for (unsigned set = 0; set < s->common.sets; set++)
		memcpy(s->tensor[set][t], data, attention_tensor_bytes(&s->common.c.problem, t));
	return STATUS_OK;
}

static enum status poison(void *state, struct error *err)
{
	struct attention_cpu *s = state;
	const struct attention_problem *p = &s->common.c.problem;

	(void)err;
	for (unsigned set = 0; set < s->common.sets; set++)
		for (enum attention_tensor t = 0; t < ATTENTION_TENSORS; t++)
			if (attention_writes(&s->common.c, t)) /* NaN */
				memset(s->tensor[set][t], 0xff, attention_tensor_bytes(p, t));
	return STATUS_OK;
}

static enum status read_tensor(void *state, unsigned set, enum attention_tensor t, void *data,
			       struct error *err)
{
	struct attention_cpu *s = state;

	(void)err;
	memcpy(data, s->tensor[set][t], attention_tensor_bytes(&s->common.c.problem, t));
	return STATUS_OK;
}

static const struct attention_access cpu_access = {
	.write = write_tensor,
	.poison = poison,
	.run = run,
	.read = read_tensor,
	.forward = forward,
};

/* -- begin and end -- */

static enum status workers_alloc(struct attention_cpu *s, struct error *err)
{
	uint32_t room = attention_attended_room(s->common.c.blocks);

	s->worker = calloc(s->threads, sizeof(*s->worker));
	for (unsigned i = 0; s->worker && i < s->threads; i++) {
		struct worker *w = &s->worker[i];

		w->tile = aligned_alloc(64, (sizeof(*w->tile) + 63) / 64 * 64);
		w->span = malloc((size_t)ATTENTION_ROWS * room * sizeof(*w->span));
		if (!w->tile || !w->span)
			return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
					       "attention: not enough memory for the threads");
		memset(w->tile, 0, sizeof(*w->tile));
	}
	if (!s->worker)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "attention: not enough memory for the threads");
	return STATUS_OK;
}

static enum status sets_alloc(struct attention_cpu *s, const struct bench *b, struct error *err)
{
	const struct attention_problem *p = &s->common.c.problem;
	double fit = (double)cpu_memory_bytes(b->machine, b->target) / attention_set_bytes(&s->common.c);
	enum status st = STATUS_OK;

	s->common.sets = fit < 1 ? 1 : fit > SETS ? SETS : (unsigned)fit;
	for (unsigned set = 0; !st && set < s->common.sets; set++)
		for (enum attention_tensor t = 0; !st && t < ATTENTION_TENSORS; t++)
			if (attention_has(&s->common.c, t))
				st = cpu_pages_alloc(&s->tensor[set][t], attention_tensor_bytes(p, t), err);
	return st;
}

static void report(const struct attention_cpu *s, struct result *out)
{
	char text[64];

	if (s->backward)
		snprintf(text, sizeof(text), "a row at a time in double precision");
	else
		snprintf(text, sizeof(text), "tiles of %d x %d in fp32, %s", ATTENTION_ROWS, ATTENTION_KEYS,
			 s->loops->isa);
	result_text(out, &attention_fields[ATTENTION_FIELD_kernel], text);
	result_u64(out, &field_threads, s->threads);
	attention_report(&s->common, out);
}

static enum status prepare(void *state, const struct bench *b, const void *opts, struct error *err)
{
	struct attention_cpu *s = state;
	const struct attention_opts *o = opts;
	enum status st = attention_begin(&s->common, b, o, &cpu_access, err);

	s->loops = attention_loops_for(machine_cpu(b->machine)->isa);
	if (!st)
		st = cpu_bench_threads(b, o->threads, &s->threads, err);
	if (!st)
		st = cpu_pool_create(&s->pool, b->cpus, s->threads, err);
	if (st)
		return st;
	s->common.pool = s->pool;
	st = workers_alloc(s, err);
	if (!st && s->common.c.backward)
		st = attention_cpu_backward_create(&s->backward, &s->common, err);
	if (!st)
		st = sets_alloc(s, b, err);
	if (!st)
		st = attention_fill(&s->common, s->common.data, err);
	if (!st && b->out)
		report(s, b->out);
	return st;
}

static uint64_t cpu_time_ns(void *state)
{
	return cpu_pool_time_ns(((struct attention_cpu *)state)->pool);
}

static void release(void *state)
{
	struct attention_cpu *s = state;

	for (unsigned set = 0; set < SETS; set++)
		for (int t = 0; t < ATTENTION_TENSORS; t++)
			if (s->tensor[set][t])
				cpu_pages_free(&s->tensor[set][t],
					       attention_tensor_bytes(&s->common.c.problem,
								      (enum attention_tensor)t));
	for (unsigned i = 0; s->worker && i < s->threads; i++) {
		free(s->worker[i].tile);
		free(s->worker[i].span);
	}
	free(s->worker);
	attention_cpu_backward_free(&s->backward);
	cpu_pool_destroy(&s->pool);
	attention_end(&s->common);
}

const struct engine attention_cpu_engine = {
	.name = "cpu",
	.libs = "",
	.targets = TARGET_CPU,
	.state_size = sizeof(struct attention_cpu),
	.supports = supports,
	.prepare = prepare,
	.enqueue = enqueue,
	.cpu_time_ns = cpu_time_ns,
	.release = release,
};
