/* SPDX-License-Identifier: Apache-2.0 */
/* One case of sdpa_cases: its tensors here and on the device, its plans, a run of them, and what double
 * precision makes of it. */
#ifndef TESTS_GPU_SDPA_LIFE_H
#define TESTS_GPU_SDPA_LIFE_H

#include "core/text/text.h"
#include "gpu/sdpa/sdpa.h"

/* How rows lie: heads apart, heads side by side, Q K V of one token side by side, sequences of different
 * length. */
enum layout { HEADS, TOKENS, JOINED, LENGTHS, MORE_QUERIES };

struct sdpa_case {
	enum attention_type type;
	uint32_t batch, heads, kv_heads, q_len, kv_len, head_dim;
	enum attention_mask mask;
	uint32_t left, right;
	enum layout layout;
	bool backward;
	double scale; /* 0: the usual */
};

struct bench {
	struct gpu_device *device;
	struct gpu_stream *stream;
	struct sdpa *sdpa;
	const char *filter;
	bool small;
	unsigned each, part, parts;
	unsigned ran, failed, skipped;
};

enum { BATCH_MAX = 16 };

struct shape {
	struct attention_problem p;
	uint32_t q_starts[BATCH_MAX + 1], kv_starts[BATCH_MAX + 1];
};

/* One tensor here and on the device. */
struct tensor {
	enum attention_type type;
	uint64_t count;
	void *host;
	gpu_ptr device;
};

enum { Q, K, V, O, D_O, D_Q, D_K, D_V, TENSORS };

struct life {
	struct bench *b;
	struct shape shape;
	bool backward;
	struct tensor t[TENSORS];
	gpu_ptr lse;
	struct sdpa_plan *forward, *back;
};

struct wanted {
	double *o, *lse, *d_q, *d_k, *d_v;
};

/* Rows' lengths and strides of a case; `s` is pointed into, so it stays where it is. */
void life_shape(struct shape *s, const struct sdpa_case *c);
/* l->b is set. On failure, as on success, life_unmake frees. */
enum status life_make(struct life *l, const struct sdpa_case *c, struct error *err);
void life_unmake(struct life *l);
/* One run of a plan that has a candidate selected, into the stream. */
enum status life_enqueue(struct life *l, struct sdpa_plan *plan, struct error *err);
/* What the tensors' contents have to give; life_forget frees, half built too. */
enum status life_reference(struct life *l, struct wanted *w, struct error *err);
void life_forget(struct wanted *w);
/* STATUS_MISMATCH names the first tensor that is off; said gets the differences. */
enum status life_check(struct life *l, const struct wanted *w, struct text *said, struct error *err);

#endif
