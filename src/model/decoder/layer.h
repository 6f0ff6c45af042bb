/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One decoder layer, forward and backward: norm, q k v, RoPE, attention, o, norm, gate and up, SwiGLU, down.
 */
#ifndef MODEL_DECODER_LAYER_H
#define MODEL_DECODER_LAYER_H
#include "model/decoder/linear.h"
#include "model/decoder/split.h"
#include "model/tensor/arena.h"

struct layer {
	struct weight norm1, norm2, q_norm, k_norm; /* q_norm and k_norm: Qwen3 only, else absent */
	struct linear qkv, o, gate_up, down;
};

/* NONE saves everything that backward reads, except silu(gate) * up if SwiGLU's backward pass can make it in
 * the place of its gradient (linear_has_halves). CHEAP recomputes the norms and silu(gate) * up. FULL saves
 * only each layer's input and x A' of down's adapter, and runs the layer again. The gradient is
 * bit-identical, unless the MLP is divided into tiles (mlp_rows). */
enum recompute { RECOMPUTE_NONE, RECOMPUTE_CHEAP, RECOMPUTE_FULL };

/* Matrices that backward reads: field, columns (of struct shape *s), has the statistics' type, saved by
 * CHEAP, saved by FULL. */
/* clang-format off */
#define LAYER_SAVED(X)                                                                      \
	X(x, s->hidden, false, true, true)                                                  \
	X(rstd1, 1, true, true, false)                                                      \
	X(n1, s->hidden, false, false, false)                                               \
	X(qkv, (s->heads + 2 * s->kv_heads) * s->head_dim, false, true, false)              \
	X(raw, s->qk_norm ? (s->heads + s->kv_heads) * s->head_dim : 0, false, true, false) \
	X(head_rstd, s->qk_norm ? s->heads + s->kv_heads : 0, true, true, false)            \
	X(o, s->heads * s->head_dim, false, true, false)                                    \
	X(lse, s->heads, true, true, false)                                                 \
	X(x2, s->hidden, false, true, false)                                                \
	X(rstd2, 1, true, true, false)                                                      \
	X(n2, s->hidden, false, false, false)                                               \
	X(gate_up, 2 * s->ffn, false, true, false)                                          \
	X(h, s->ffn, false, false, false)
/* clang-format on */
struct layer_saved {
#define X(field, ...) struct mat field;
	LAYER_SAVED(X)
#undef X
	/* X A' of the adapters: saved by CHEAP; u_down also by FULL. */
	struct mat u_qkv, u_o, u_gate_up, u_down;
};

/* Heads of a shape, and the scale 1/sqrt(head_dim) of their scores. */
struct attention layer_attention(const struct shape *s);

struct layer_run {
	struct linear_run linear;
	const struct shape *shape;
	const struct batch *batch;
	struct mat cos_sin; /* [positions, head_dim] */
	enum recompute recompute;
	/* Attention's backward pass may use the arena from here on, because the MLP's matrices are not read
	 * any longer. NULL: it may not. */
	const struct arena_mark *mlp;
	/* The same for the GEMM of gate and up, because h is not there yet. */
	const struct arena_mark *to_gate_up;
	struct split *split; /* tensor parallel */
	/* Called after each gather of activations, with this argument. NULL: nothing. */
	enum status (*gathered)(const void *, struct error *);
	const void *gathered_arg;
	/* Rows of gate_up and h, which then are of one tile of rows at a time; 0: all. With FULL only. */
	int64_t mlp_rows;
};

/* With tensor parallel, x, x2, their statistics, `out` and dx are the rank's own rows; everything else has
 * all rows, and the columns of the rank's heads and features. */

/* saved->x is the input. The output goes to `out`, which may be another layer's x. */
enum status layer_forward(const struct layer_run *run, const struct layer *l, const struct layer_saved *saved,
			  struct mat out, struct error *err);
/* dx: gradient of the output on entry, of the input on return. If input_wanted is false (nothing below is
 * trained), it is undefined on return. What `saved` does not have is recomputed. gate_up is overwritten. */
enum status layer_backward(const struct layer_run *run, const struct layer *l,
			   const struct layer_saved *saved, struct mat dx, bool input_wanted,
			   struct error *err);
#endif
