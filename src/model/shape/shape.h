/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a model is: sizes and switches, read from config.json (of old and new transformers) or a GGUF's
 * metadata. What a model asks for and this program does not do is refused here, before anything is loaded.
 */
#ifndef MODEL_SHAPE_SHAPE_H
#define MODEL_SHAPE_SHAPE_H
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include "core/error.h"
#include "model/tensor/tensor.h"

struct gguf;

/* name, model_type of config.json and architecture of a GGUF, class as config.json names it */
/* clang-format off */
#define FAMILY_LIST(X)                               \
	X(LLAMA, "llama", "LlamaForCausalLM")        \
	X(QWEN2, "qwen2", "Qwen2ForCausalLM")        \
	X(QWEN3, "qwen3", "Qwen3ForCausalLM")
/* clang-format on */
#define X(name, ...) FAMILY_##name,
/* LLAMA: Llama 3.x and SmolLM2 as well; QWEN2: Qwen2.5 as well. */
enum family { FAMILY_LIST(X) FAMILY_COUNT };
#undef X

/* Frequencies of RoPE below low are divided by factor, above high they stay, between them it is blended:
 * "llama3" of config.json. */
struct rope_scaling {
	bool llama3; /* false: none, and the rest is 0 */
	double factor, low, high;
	int64_t context; /* positions that the model was trained with first */
};

struct shape {
	enum family family;
	int64_t hidden, layers, heads, kv_heads, head_dim, ffn;
	int64_t vocab;	 /* rows of the embedding: at least the tokenizer's ids */
	int64_t context; /* positions that it was made for */
	bool tied;	 /* the head is the embedding */
	bool qkv_bias;	 /* q, k and v have biases */
	bool qk_norm;	 /* q and k are normed head by head */
	double norm_eps, rope_theta;
	struct rope_scaling rope;
};

/* From config.json: `path` is the file's name in messages. */
enum status shape_of_config(struct shape *s, const json_t *config, const char *path, struct error *err);
enum status shape_of_gguf(struct shape *s, const struct gguf *g, struct error *err);
/* Sizes fit each other and stay within limits under which no product of them overflows. */
enum status shape_check(const struct shape *s, const char *path, struct error *err);
/* config.json of this shape, readable by old and new transformers. Owner: caller; NULL without memory. */
json_t *shape_config(const struct shape *s, enum dtype dtype);
/* "qwen2-7b", "tiny" ..: a released shape, or a small one for tests. Unknown: BAD_INPUT with the nearest. */
enum status shape_by_name(struct shape *s, const char *name, struct error *err);
/* Names of shape_by_name in order, NULL ends. */
extern const char *const shape_names[];
/* Parameters, each counted once (a tied head is the embedding). */
int64_t shape_parameters(const struct shape *s);
#endif
