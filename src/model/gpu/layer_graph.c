/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA graphs for the layers of a small micro-batch, whose kernels run shorter than their launches take. The
 * launches of one micro-batch are captured as a graph, which is launched for the next one of the same shape.
 * The launches are equal if these are equal: the addresses of the lists and the first operand, the used part
 * of the arena, the numbers of rows and documents, the longest document, and what the slots of weights hold.
 * Operations depend on nothing else (struct layer_work).
 */
#include <stdlib.h>
#include "model/gpu/internal.h"

enum {
	SPANS = 16, /* number of graphs; a new one replaces the least recently used */
	DIRECT_TIMES =
		2, /* the first run makes plans and times candidates; the second is like all later ones */
	ELEMENTS_MOST = 8192 * 576, /* of the residual stream; measurements show a gain up to this size */
};

struct span_key {
	const void *token, *first;
	int64_t rows, docs, longest;
	size_t taken; /* used part of the arena */
	uint64_t state;
};

struct known_span {
	struct span_key key;
	struct gpu_graph *graph; /* NULL: not captured yet */
	struct op_cost cost;
	unsigned times;
	uint64_t used; /* time of last use, as a count of launches */
};

struct layer_graphs {
	struct known_span known[SPANS];
	uint64_t now, launches;
	bool refused; /* a capture failed (see `why`); no other is tried */
	struct error why;
};

void layer_graphs_release(struct layer_graphs **out)
{
	for (int i = 0; *out && i < SPANS; i++)
		gpu_graph_destroy(&(*out)->known[i].graph);
	free(*out);
	*out = NULL;
}

/* Finds the entry of the key, or replaces the least recently used one. */
static enum status place_of(struct gpu_state *g, const struct span_key *key, struct known_span **out,
			    struct error *err)
{
	struct layer_graphs *s = g->spans;
	struct known_span *oldest = &s->known[0];
	enum status st = STATUS_OK;

	*out = NULL;
	for (int i = 0; i < SPANS && !*out; i++) {
		struct known_span *k = &s->known[i];

		if (k->times && !memcmp(&k->key, key, sizeof(*key)))
			*out = k;
		if (k->used < oldest->used)
			oldest = k;
	}
	if (!*out) {
		if (oldest->graph)
			st = gpu_stream_wait(g->stream, err); /* the graph may still be running */
		gpu_graph_destroy(&oldest->graph);
		*oldest = (struct known_span){.key = *key};
		*out = oldest;
	}
	(*out)->used = ++s->now;
	(*out)->times++;
	return st;
}

static void refuse(struct layer_graphs *s, const struct error *why)
{
	s->refused = true;
	s->why = *why;
}

/* Captures the graph. If that fails, its partial effects are undone, and the caller runs the work directly.
 */
static void capture(struct backend *back, const struct layer_work *span, struct known_span *k)
{
	struct gpu_state *g = gpu_of(back);
	const struct arena_mark mark = arena_mark(back->arena);
	const struct op_cost before = back->cost;
	struct error why = {0};
	enum status st = gpu_capture_begin(g->stream, &why), ended;

	if (st) {
		refuse(g->spans, &why);
		return;
	}
	g->capturing = true;
	back->cost = (struct op_cost){0};
	st = span->run(span->arg, &why);
	k->cost = back->cost;
	g->capturing = false;
	ended = gpu_capture_end(g->stream, &k->graph, &why);
	if (st || ended) {
		gpu_graph_destroy(&k->graph);
		refuse(g->spans, &why);
	}
	back->cost = before;
	arena_reset(back->arena, &mark);
}

enum status gpu_layer_graph(struct backend *back, const struct layer_work *span, struct error *err)
{
	struct gpu_state *g = gpu_of(back);
	struct span_key key;
	struct known_span *k;
	enum status st;

	/* A held step enqueues other work than later steps do, so it does not count. */
	if (!g->options.graphs || g->held || g->parts ||
	    span->first.rows * span->first.cols > ELEMENTS_MOST || (g->spans && g->spans->refused))
		return span->run(span->arg, err);
	if (!g->spans)
		g->spans = calloc(1, sizeof(*g->spans));
	if (!g->spans)
		return span->run(span->arg, err);
	memset(&key, 0, sizeof(key)); /* compared as bytes */
	key.token = span->batch->token;
	key.first = span->first.data;
	key.rows = span->batch->tokens;
	key.docs = span->batch->docs;
	key.longest = span->batch->doc_len_max;
	key.taken = arena_mark(back->arena).used;
	key.state = span->state;
	st = place_of(g, &key, &k, err);
	if (st)
		return st;
	if (!k->graph && k->times > DIRECT_TIMES && gemm_plans_settled(g))
		capture(back, span, k);
	if (!k->graph)
		return span->run(span->arg, err);
	cost_add(&back->cost, &k->cost);
	g->spans->launches++;
	return gpu_graph_launch(k->graph, g->stream, err);
}

uint64_t gpu_backend_graph_launches(const struct backend *back)
{
	const struct layer_graphs *s = gpu_of(back)->spans;

	return s ? s->launches : 0;
}

const char *gpu_backend_graphs_refused(const struct backend *back)
{
	const struct layer_graphs *s = gpu_of(back)->spans;

	return s && s->refused ? s->why.text : NULL;
}
