/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tensors of a layer, in the order of the flat vector: the weight of struct layer that each belongs to,
 * and its place in it. Names, slots and places all come from this table.
 */
#ifndef MODEL_DECODER_LAYER_TENSORS_H
#define MODEL_DECODER_LAYER_TENSORS_H
#include "model/model.h"

/* name below "model.layers.N.", weight of struct layer, first row in it (for a vector: column), rows,
 * columns */
/* clang-format off */
#define LAYER_TENSORS(X)                                                                     \
	X("input_layernorm.weight", norm1, 0, 1, s->hidden)                                  \
	X("self_attn.q_proj.weight", qkv.w, 0, q, s->hidden)                                 \
	X("self_attn.k_proj.weight", qkv.w, q, kv, s->hidden)                                \
	X("self_attn.v_proj.weight", qkv.w, q + kv, kv, s->hidden)                           \
	X("self_attn.q_proj.bias", qkv.bias, 0, s->qkv_bias, q)                              \
	X("self_attn.k_proj.bias", qkv.bias, q, s->qkv_bias, kv)                             \
	X("self_attn.v_proj.bias", qkv.bias, q + kv, s->qkv_bias, kv)                        \
	X("self_attn.q_norm.weight", q_norm, 0, s->qk_norm, s->head_dim)                     \
	X("self_attn.k_norm.weight", k_norm, 0, s->qk_norm, s->head_dim)                     \
	X("self_attn.o_proj.weight", o.w, 0, s->hidden, q)                                   \
	X("post_attention_layernorm.weight", norm2, 0, 1, s->hidden)                         \
	X("mlp.gate_proj.weight", gate_up.w, 0, s->ffn, s->hidden)                           \
	X("mlp.up_proj.weight", gate_up.w, s->ffn, s->ffn, s->hidden)                        \
	X("mlp.down_proj.weight", down.w, 0, s->hidden, s->ffn)
/* clang-format on */
#define X(...) +1
enum { LAYER_TENSOR_COUNT = 0 LAYER_TENSORS(X) };
#undef X

struct layer_tensor {
	const char *name;
	size_t weight;	    /* offset of its struct weight in struct layer */
	int64_t begin;	    /* first row; for a vector the first column */
	int64_t rows, cols; /* rows 0: not in this shape */
};
/* The same for all layers of a shape. */
void layer_tensors(const struct shape *s, struct layer_tensor out[LAYER_TENSOR_COUNT]);
static inline struct weight *layer_weight(const struct layer *l, const struct layer_tensor *t)
{
	return (struct weight *)((uint8_t *)l + t->weight);
}

/* The linear layer whose W the tensor is part of; NULL: none. */
struct linear *layer_linear_of(const struct layer *l, const struct layer_tensor *t);

/* LoRA's targets: the linear layer of struct layer, the place in it, and its input. */
struct lora_target {
	size_t linear;
	int64_t out_begin, out, in;
};
struct lora_target lora_target(const struct shape *s, enum peft_target target);
static inline struct linear *layer_linear(const struct layer *l, size_t linear)
{
	return (struct linear *)((uint8_t *)l + linear);
}
/* Names in the table of parameters; part: A or B. */
void tensor_name(char out[PARAM_NAME], int64_t layer, const char *below);
void lora_name(char out[PARAM_NAME], int64_t layer, enum peft_target target, char part);
#define NAME_EMBED "model.embed_tokens.weight"
#define NAME_NORM "model.norm.weight"
#define NAME_HEAD "lm_head.weight"

/* Bytes of a layer's frozen linear layers as they are stored, each tensor aligned. */
uint64_t tensors_base_bytes(const struct model *m, const struct backend *back);
/* Places everything that stays in memory, according to the table of trained parameters. */
enum status tensors_place(struct model *m, struct backend *back, struct error *err);
#endif
