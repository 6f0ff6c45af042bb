/* SPDX-License-Identifier: Apache-2.0 */
/*
 * y = x W' + bias + residual + s * drop(x) A' B': the only file that knows what is added to a linear map.
 * Fused maps (q, k, v; gate, up) are one W of stacked rows; their adapters share one stacked A, and each has
 * its own B on its own columns of y.
 *
 * Extended, W, A and every B are views of one block, [W B; A 0] with B on its own rows and columns, and u = s
 * x A' stands behind x's columns: then y = [x u] [W B]' and dx = [dy v] [W; A] with v = s dy B, which stands
 * behind dy's, so that nothing goes over y and dx a second time. Without dropout alone.
 */
#ifndef MODEL_DECODER_LINEAR_H
#define MODEL_DECODER_LINEAR_H
#include "model/backend/ops.h"
#include "model/params.h"
#include "model/files/peft/peft.h"

/* A parameter: what products read; frozen, it is that alone. Trained, `master` and `grad` are its parts of
 * the flat vector, and w is master itself or its part of the live copy. */
struct weight {
	struct mat w, master, grad; /* rows 0: absent */
};

struct adapter {
	enum peft_target target;
	int64_t out, out_begin; /* its columns of y */
	struct weight b;	/* [out, rank] */
};

struct linear {
	int64_t in, out;
	struct weight w, bias; /* [out, in]; [1, out] or absent */
	struct mat block;      /* [out + adapters * rank, in + adapters * rank]; rows 0: not extended */
	int64_t rank;
	int adapters;	 /* 0 .. 3, in the order of their columns */
	struct weight a; /* [adapters * rank, in] */
	struct adapter adapter[3];
	float lora_scale;
	uint32_t site; /* its layer's number: with the target, dropout's site */
};

struct linear_run {
	struct backend *back;
	float dropout_p; /* 0: none, as in evaluation */
	uint64_t dropout_seed, row_begin;
};

/* x [T, in]; residual [T, out] or absent, may be y; u [T, adapters * rank] is kept for backward; extended, x
 * has a tail, which is u or is copied to it. */
enum status linear_forward(const struct linear_run *run, const struct linear *l, struct mat x, struct mat y,
			   struct mat residual, struct mat u, struct error *err);
/* Extended, dy has a tail to work in. Adds to the gradient of what is trained; dx (absent: not wanted)
 * becomes its gradient. */
enum status linear_backward(const struct linear_run *run, const struct linear *l, struct mat x, struct mat u,
			    struct mat dy, struct mat dx, struct error *err);
/* The same in two halves, between which x may be made where dx was: dx first, with v behind dy where it is
 * extended, then what is trained. Not of separate adapters, whose v has no such place. */
bool linear_has_halves(const struct linear *l);
enum status linear_backward_input(const struct linear_run *run, const struct linear *l, struct mat dy,
				  struct mat dx, struct error *err);
enum status linear_backward_trained(const struct linear_run *run, const struct linear *l, struct mat x,
				    struct mat u, struct mat dy, struct error *err);
bool linear_is_trained(const struct linear *l);
/* Columns that what the map reads, and the gradient of what it makes, have behind their own; 0: not extended.
 */
int64_t linear_tail(const struct linear *l);
/* W += s B A on a W that is not trained: for generation. Its adapters are gone then. */
enum status linear_merge(struct backend *back, struct linear *l, struct error *err);
/* Extended: the block's places that no B has become 0, once. Else nothing. */
enum status linear_clear(struct backend *back, const struct linear *l, struct error *err);
/* Extended: where A and each B go, appended to `live`. Else nothing. */
void linear_live(const struct linear *l, const struct params *p, struct live_part *live, int *count);
#endif
