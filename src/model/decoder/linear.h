/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A linear layer: y = x W' + bias + residual + s * drop(x) A' B'. Only this file knows the terms. Combined
 * layers (q, k, v; gate, up) are one W with stacked rows. Their adapters share one stacked A, and each has
 * its own B for its own columns of y.
 *
 * In fused form, W, A and every B are views of one block, [W B; A 0], with B at its own rows and columns. u =
 * s x A' is the tail of x, in the columns after its own. Then y = [x u] [W B]' and dx = [dy v] [W; A] with v
 * = s dy B, which is the tail of dy. So y and dx are written only once. This form is used only without
 * dropout.
 *
 * For text generation, several adapters may be one of `owners` times their rank. A row of x uses one of them
 * or none: the columns of u that belong to others become 0. DoRA multiplies each row of W + s B A by a ratio.
 */
#ifndef MODEL_DECODER_LINEAR_H
#define MODEL_DECODER_LINEAR_H
#include "model/backend/ops.h"
#include "model/params.h"
#include "model/files/peft/peft.h"

/* A parameter. `w` is the matrix that GEMMs read. If it is trained, `master` and `grad` are its parts of the
 * flat vector, and w is master itself or its part of the live copy. */
struct weight {
	struct mat w, master, grad; /* rows 0: absent */
};

struct adapter {
	enum peft_target target;
	int64_t out, out_begin; /* the adapter's columns of y */
	struct weight b;	/* [out, rank] */
};

struct linear {
	int64_t in, out;
	int64_t in_begin;      /* tensor parallel: the first column of the whole W that this rank holds */
	struct weight w, bias; /* [out, in]; [1, out] or absent */
	struct mat block;      /* [out + adapters * rank, in + adapters * rank]; rows 0: not in fused form */
	/* W as it is stored; count 0: w is resident. Else w, block and fp8 are in a slot
	 * (model/storage/slots.h). */
	struct stored stored[STORED_MOST];
	int stored_count;
	/* W in E4M3 with block scales, and transposed in a slot, if this layer computes in FP8; else rows 0.
	 * A frozen w is fp8 itself. */
	struct mat fp8, fp8_transposed;
	/* FP8 only: the first rows of W as numbers. The forward pass computes their outputs from them
	 * (q_proj's; docs/explanation/design/fp8.md). rows 0: none. */
	struct mat exact;
	int32_t *overflows; /* FP8 only, device memory [2]: counts of inputs, and of gradients */
	bool is_fp8;
	int64_t rank;	    /* of all owners together */
	int64_t owner_rank; /* of each owner; 0: one adapter, which every row uses */
	struct mat ratio;   /* F32 [owners, out]: DoRA's ratio of each row of W; rows 0: no DoRA */
	int adapters;	    /* 0 .. 3, in the order of their columns */
	struct weight a;    /* [adapters * rank, in] */
	struct adapter adapter[3];
	float lora_scale;
	uint32_t site; /* number of the layer; together with the target it is dropout's site */
};

struct linear_run {
	struct backend *back;
	float dropout_p; /* 0: no dropout, as in evaluation */
	uint64_t dropout_seed, row_begin;
	const int32_t *owner; /* [T] the adapter of each row, or -1; read if there are several owners */
	bool base;	      /* no row uses an adapter */
	bool has_u;	      /* linear_forward_columns: u is there already */
};

/* The stored form of the tensor whose first row of W is `begin`; NULL: W is resident. */
const struct stored *linear_stored(const struct linear *l, int64_t begin);

/* x [T, in]. residual [T, out] or absent, never in the place of y. u [T, adapters * rank] is saved for
 * backward. In fused form, x has a tail, and u is that tail or is copied to it. */
enum status linear_forward(const struct linear_run *run, const struct linear *l, struct mat x, struct mat y,
			   struct mat residual, struct mat u, struct error *err);
/* Columns [first, first + count) of the output without a residual, for a layer whose adapter, if any, has all
 * columns. y has these columns alone. The call with first 0 computes u, which the others use. */
enum status linear_forward_columns(const struct linear_run *run, const struct linear *l, struct mat x,
				   struct mat y, struct mat u, int64_t first, struct error *err);
/* The same for the layer of gate and up, with h = silu(gate) * up. y is room for gate and up, and may stay
 * unwritten. */
enum status linear_forward_swiglu(const struct linear_run *run, const struct linear *l, struct mat x,
				  struct mat y, struct mat h, struct mat u, struct error *err);
/* A gradient in E4M3, in both orientations. */
struct gradient_copies {
	struct mat rows, columns;
};
/* Full fine-tuning in FP8 on a GPU: gives dy both copies for the GEMMs of `l`, unless it has one. They are in
 * the arena. */
enum status linear_quantize_gradient(const struct linear_run *run, const struct linear *l, struct mat *dy,
				     struct gradient_copies *copies, struct error *err);
/* In fused form, dy has a tail to work in. Adds to the gradient of the trained parameters. dx (absent: not
 * wanted) becomes the gradient of x. */
enum status linear_backward(const struct linear_run *run, const struct linear *l, struct mat x, struct mat u,
			    struct mat dy, struct mat dx, struct error *err);
/* The same in two calls: first dx, then the trained parameters. Between them x may be computed in the place
 * of dx. Separate adapters with dropout have no halves, and in F32 neither, because they come after W there.
 */
bool linear_has_halves(const struct linear_run *run, const struct linear *l);
enum status linear_backward_input(const struct linear_run *run, const struct linear *l, struct mat dy,
				  struct mat dx, struct error *err);
enum status linear_backward_trained(const struct linear_run *run, const struct linear *l, struct mat x,
				    struct mat u, struct mat dy, struct error *err);
bool linear_is_trained(const struct linear *l);
/* Columns of the tail of the layer's input, and of its output's gradient; 0: not in fused form. */
int64_t linear_tail(const struct linear *l);
/* W += s B A for a frozen W, for generation. The layer then has no adapters. */
enum status linear_merge(struct backend *back, struct linear *l, struct error *err);
/* Whether a frozen W is E4M3 with scales of blocks: numbers are quantized when they are loaded. */
bool linear_is_quantized(const struct linear *l);
/* Makes the copy in E4M3 of a trained W. Otherwise no effect. */
enum status linear_quantize(struct backend *back, const struct linear *l, struct error *err);
/* In fused form: sets the places of the block without a B to 0, once. Otherwise no effect. */
enum status linear_clear(struct backend *back, const struct linear *l, struct error *err);
/* In fused form: appends the places of A and each B in the block to `live`. Otherwise no effect. */
void linear_live(const struct linear *l, const struct params *p, struct live_part *live, int *count);
#endif
