/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decode on a GPU for one sequence. A launch of kernel/decode/decode.cu generates up to DECODE_LAUNCH tokens,
 * the most likely one each time, with the model's weights and KV cache in place. It continues where the
 * launch before ended, so the host reads tokens while the next launch runs.
 */
#ifndef MODEL_GPU_DECODE_H
#define MODEL_GPU_DECODE_H
#include "model/model.h"

enum { DECODE_LAUNCH = 8, DECODE_FLIGHT = 2 /* launches in flight */ };

struct decode;
struct decode_ask {
	int64_t vocab; /* only token ids below this are generated */
	/* The device knows the first DECODE_STOPS of them, and generates nothing after one of these. */
	const int32_t *stop;
	size_t stops;
};
struct decode_made {
	const int32_t *id; /* lent until the next decode_enqueue */
	int64_t count;
	bool stopped;	  /* the last token is a stop token */
	int64_t infinite; /* number of the first token, from 1, whose logits have NaN or infinity; 0: none */
};

/* UNSUPPORTED: with this head size a GPU generates no text, neither with these launches nor with passes. */
enum status decode_check_heads(int64_t head_dim, struct error *err);
/* Allocates its workspace in back->arena, which may be a plan, after the model and the KV cache. *d stays
 * NULL, with OK, if the kernels do not support the model or device (rows that are not multiples of 16 bytes,
 * weights in E4M3, or too little shared memory); then each token needs a pass. Owner: caller, decode_release.
 */
enum status decode_create(struct decode **d, const struct model *m, struct backend *back,
			  const struct cache *cache, struct error *err);
void decode_release(struct decode **d);
/* Starts decode: the next launch processes `token` at `position`. Also needed after weights or adapters have
 * changed. Nothing may be in flight. */
enum status decode_begin(struct decode *d, int32_t token, int64_t position, const struct decode_ask *ask,
			 struct error *err);
/* Enqueues 1 .. DECODE_LAUNCH more tokens. At most DECODE_FLIGHT launches may be in flight, and the KV cache
 * must have room for all tokens. */
enum status decode_enqueue(struct decode *d, int64_t count, struct error *err);
/* Waits for the oldest launch in flight and returns its tokens. */
enum status decode_fetch(struct decode *d, struct decode_made *made, struct error *err);
int decode_in_flight(const struct decode *d);
/* The logits [vocab] of the last processed token. Nothing may be in flight. Lent until the next call. */
enum status decode_logits(struct decode *d, const float **logits, struct error *err);
#endif
