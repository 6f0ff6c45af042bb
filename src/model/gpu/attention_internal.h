/* SPDX-License-Identifier: Apache-2.0 */
/* What attention.c and attention_cudnn.c share. */
#ifndef MODEL_GPU_ATTENTION_INTERNAL_H
#define MODEL_GPU_ATTENTION_INTERNAL_H
#include "gpu/attention/own_forward.h"
#include "gpu/attention/own_backward.h"
#include "gpu/sdpa/sdpa.h"
#include "model/gpu/internal.h"

/* A pair of cuDNN's plans for documents of one length. */
struct pair {
	int64_t docs, length;
	struct attention at;
	int64_t ld_qkv, ld_o;
	struct sdpa_plan *forward, *backward; /* NULL, both: cuDNN does not take it */
	bool timed, by_own;    /* backward, by our tensor-core kernels: lse is in the same order */
	bool recalled, cached; /* as gpu_attention_choice has them */
};

struct building; /* plans that a thread makes */

/* Our tensor-core kernels, for the batch that is worked on: making them costs little. */
struct fast {
	int64_t docs, tokens, length; /* of the longest */
	bool one_length;
	uint64_t lengths; /* of documents of different length: how even their work is follows from them */
	struct attention at;
	int64_t ld_qkv, ld_o;
	struct attention_own *forward; /* NULL, both: they do not take it */
	struct attention_own_backward *backward;
};

struct attention_state {
	const struct gpu_state *gpu;
	struct sdpa *sdpa; /* NULL: our kernels alone */
	struct pair *pair;
	size_t count, room;
	struct building *building; /* of the first pair; NULL: none */
	struct fast fast;
	bool chosen; /* candidate of our backward pass, by time */
	char candidate[64];
	bool recalled, cached;		    /* as gpu_attention_choice has them */
	double planned_s;		    /* spent on the library's plans, or on waiting for them */
	struct gpu_attention_choice *known; /* chosen by a run before */
	size_t known_count;
	char name[64];
};

/* cuDNN, where it is wanted and, unless it must be, is there. */
enum status attention_state_open_cudnn(struct attention_state *a, struct error *err);
/* What a run before chose for so many documents of one length, or (0, 0) of ours; NULL: nothing. */
const struct gpu_attention_choice *attention_state_known(const struct attention_state *a, int64_t docs,
							 int64_t length);
/* The length of every document; 0: they differ. */
int64_t attention_state_one_length(const struct batch *b);
/* `docs` sequences of `length` rows, or at most so long where the caller adds starts. */
struct attention_problem attention_state_problem(const struct attention *at, int64_t docs, int64_t length,
						 int64_t ld_qkv, int64_t ld_o);
/* cuDNN's plans for the batch, made when it is met first; *out NULL: it does not take it, or they are being
 * built while choices are held (gpu_backend_hold). */
enum status attention_state_pair(struct attention_state *a, const struct attention *at, const struct batch *b,
				 int64_t ld_qkv, int64_t ld_o, struct pair **out, struct error *err);
/* Waits for plans that are being built; whether there were any. */
bool attention_state_wait(struct attention_state *a);
#endif
