/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tokens one at a time on a GPU: a launch makes up to DECODE_LAUNCH of them by kernel/decode/decode.cu over
 * the model's own weights and cache, the likeliest each time, and goes on by itself from where the one before
 * ended. So the host reads what was made while the next launch runs.
 */
#ifndef MODEL_GPU_DECODE_H
#define MODEL_GPU_DECODE_H
#include "model/model.h"

enum { DECODE_LAUNCH = 8, DECODE_FLIGHT = 2 /* launches that are not fetched */ };

struct decode;
struct decode_ask {
	int64_t vocab;	     /* ids below it may be made */
	const int32_t *stop; /* as many as DECODE_STOPS are known to the device, which then makes no more */
	size_t stops;
};
struct decode_made {
	const int32_t *id; /* lent until the next decode_enqueue */
	int64_t count;
	bool stopped;	  /* the last of them is a stop */
	int64_t infinite; /* the one whose logits have NaN or infinity, counted from 1; 0: none */
};

/* UNSUPPORTED: a GPU makes no text with such heads, neither by launches of this nor by passes. */
enum status decode_check_heads(int64_t head_dim, struct error *err);
/* Places what it needs in back->arena, which may plan, beside the model's places and the cache's. *d stays
 * NULL, with OK, where the kernels do not take this model or device (rows of no 16 bytes, too little shared
 * memory): a token is a pass like any other then. Owner: caller, decode_release. */
enum status decode_create(struct decode **d, const struct model *m, struct backend *back,
			  const struct cache *cache, struct error *err);
void decode_release(struct decode **d);
/* The next launch feeds `token` at `position`. After weights, or adapters, have changed too. Nothing is in
 * flight. */
enum status decode_begin(struct decode *d, int32_t token, int64_t position, const struct decode_ask *ask,
			 struct error *err);
/* 1 .. DECODE_LAUNCH tokens more; at most DECODE_FLIGHT launches are in flight, and the cache has room for
 * all. */
enum status decode_enqueue(struct decode *d, int64_t count, struct error *err);
/* Waits for the oldest in flight. */
enum status decode_fetch(struct decode *d, struct decode_made *made, struct error *err);
int decode_in_flight(const struct decode *d);
/* Logits [vocab] of the last token fed, nothing being in flight: lent until the next call. */
enum status decode_logits(struct decode *d, const float **logits, struct error *err);
#endif
