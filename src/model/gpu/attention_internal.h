/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by attention.c and attention_cudnn.c. */
#ifndef MODEL_GPU_ATTENTION_INTERNAL_H
#define MODEL_GPU_ATTENTION_INTERNAL_H
#include "gpu/attention/own_forward.h"
#include "gpu/attention/own_backward.h"
#include "gpu/sdpa/sdpa.h"
#include "model/gpu/internal.h"

/* cuDNN's plans of both passes for sequences of equal length. */
struct pair {
	int64_t docs, length;
	struct attention at;
	int64_t ld_qkv, ld_o;
	struct sdpa_plan *forward, *backward; /* both NULL: cuDNN does not support the shape */
	/* by_own: backward uses assay's tensor-core kernels, whose lse has the same order. */
	bool timed, by_own;
	bool recalled, cached; /* see gpu_attention_choice */
};

struct building; /* plans that a thread builds */

/* Assay's tensor-core kernels for the present batch. They are made for each batch, which takes little time.
 */
struct fast {
	int64_t docs, tokens, length; /* length: of the longest sequence */
	bool one_length;
	/* Hash of the start rows of sequences with unequal length, which determine how evenly the work is
	 * divided. */
	uint64_t lengths;
	struct attention at;
	int64_t ld_qkv, ld_o;
	struct attention_own *forward; /* both NULL: they do not support the problem */
	struct attention_own_backward *backward;
};

struct attention_state {
	const struct gpu_state *gpu;
	struct sdpa *sdpa; /* NULL: cuDNN is not used */
	struct pair *pair;
	size_t count, room;
	struct building *building; /* for the first pair; NULL: none */
	struct fast fast;
	bool chosen; /* a candidate of assay's backward pass was chosen by time */
	char candidate[64];
	bool recalled, cached;		    /* see gpu_attention_choice */
	double planned_s;		    /* time spent building cuDNN's plans or waiting for them */
	struct gpu_attention_choice *known; /* choices of earlier runs */
	size_t known_count;
	char name[64];
};

/* Whether only the plain kernels are used. */
bool attention_state_plain(const struct attention_state *a);
/* Opens cuDNN if it is wanted. A missing cuDNN is an error only if the options require it. */
enum status attention_state_open_cudnn(struct attention_state *a, struct error *err);
/* The choice of an earlier run for `docs` sequences of this length, or for (0, 0) assay's own candidate;
 * NULL: none. */
const struct gpu_attention_choice *attention_state_known(const struct attention_state *a, int64_t docs,
							 int64_t length);
/* The common length of all sequences; 0: the lengths differ. */
int64_t attention_state_one_length(const struct batch *b);
/* The problem of `docs` sequences of `length` rows; if the caller adds starts, `length` is the longest. */
struct attention_problem attention_state_problem(const struct attention *at, int64_t docs, int64_t length,
						 int64_t ld_qkv, int64_t ld_o);
/* cuDNN's plans for the batch, made when a shape first occurs. *out NULL: cuDNN does not support the batch,
 * or a thread is still building the plans (gpu_backend_hold). */
enum status attention_state_pair(struct attention_state *a, const struct attention *at, const struct batch *b,
				 int64_t ld_qkv, int64_t ld_o, struct pair **out, struct error *err);
/* Waits for plans that a thread is building. Returns whether there were any. */
bool attention_state_wait(struct attention_state *a);
#endif
