/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps as CUDA graphs. Work runs as it is when its key first occurs, so that plans exist and candidates are
 * timed. The next time it is captured, and from then on its graph is launched.
 */
#include <stdlib.h>
#include "model/gpu/gemm/gemm.h"
#include "model/gpu/internal.h"

enum { GRAPHS = 128 }; /* a new one replaces the least recently used */

struct known {
	uint64_t key;		 /* 0: free */
	uint64_t used;		 /* time of last use, as a count of launches */
	struct gpu_graph *graph; /* NULL: not captured yet */
	struct op_cost cost;
	bool direct; /* a capture failed: the work runs as it is */
};

struct replays {
	struct known known[GRAPHS];
	uint64_t now;
	struct error why; /* of the last capture that failed */
};

void replays_release(struct replays **out)
{
	for (int i = 0; *out && i < GRAPHS; i++)
		gpu_graph_destroy(&(*out)->known[i].graph);
	free(*out);
	*out = NULL;
}

static struct known *find(struct replays *r, uint64_t key)
{
	for (int i = 0; i < GRAPHS; i++)
		if (r->known[i].key == key)
			return &r->known[i];
	return NULL;
}

/* Replaces the least recently used entry. Its graph may still be running. */
static enum status take(struct gpu_state *g, uint64_t key, struct known **out, struct error *err)
{
	struct known *oldest = &g->replays->known[0];
	enum status st = STATUS_OK;

	for (int i = 1; i < GRAPHS; i++)
		if (g->replays->known[i].used < oldest->used)
			oldest = &g->replays->known[i];
	*out = oldest;
	if (oldest->graph)
		st = gpu_stream_wait(g->stream, err);
	gpu_graph_destroy(&oldest->graph);
	*oldest = (struct known){.key = st ? 0 : key};
	return st;
}

/* If that fails, the caller runs the work as it is, now and later. */
static void capture(struct backend *back, const struct replay *work, struct known *k)
{
	struct gpu_state *g = gpu_of(back);
	const struct arena_mark mark = arena_mark(back->arena);
	const struct op_cost before = back->cost;
	struct error why = {0};
	enum status st = gpu_capture_begin(g->stream, &why), ended = STATUS_OK;

	if (!st) {
		g->capturing = true;
		back->cost = (struct op_cost){0};
		st = work->run(work->arg, &why);
		k->cost = back->cost;
		g->capturing = false;
		ended = gpu_capture_end(g->stream, &k->graph, st ? NULL : &why);
		back->cost = before;
		arena_reset(back->arena, &mark);
	}
	if (!st && !ended)
		return;
	gpu_graph_destroy(&k->graph);
	k->direct = true;
	g->replays->why = why;
}

enum status gpu_replay(struct backend *back, const struct replay *work, struct error *err)
{
	struct gpu_state *g = gpu_of(back);
	struct known *k;
	enum status st;

	/* While held, other work is enqueued than later; with parts, events are recorded between kernels. */
	if (!work->key || !g->options.graphs || g->held || g->parts || g->capturing ||
	    (g->choices && g->choices->watching))
		return work->run(work->arg, err);
	if (!g->replays)
		g->replays = calloc(1, sizeof(*g->replays));
	if (!g->replays)
		return work->run(work->arg, err);
	k = find(g->replays, work->key);
	if (!k) {
		st = take(g, work->key, &k, err);
		k->used = ++g->replays->now;
		return st ? st : work->run(work->arg, err);
	}
	k->used = ++g->replays->now;
	if (!k->graph && !k->direct && gemm_plans_settled(g))
		capture(back, work, k);
	if (!k->graph)
		return work->run(work->arg, err);
	cost_add(&back->cost, &k->cost);
	return gpu_graph_launch(k->graph, g->stream, err);
}

const char *gpu_backend_replay_refused(const struct backend *back)
{
	const struct replays *r = gpu_of(back)->replays;

	return r && r->why.status ? r->why.text : NULL;
}
