/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shape of a model: sizes and switches, read from config.json (of old and new transformers) or a GGUF's
 * metadata. Models with unsupported features are refused here, before anything is loaded.
 */
#ifndef MODEL_SHAPE_SHAPE_H
#define MODEL_SHAPE_SHAPE_H
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include "core/error.h"
#include "model/tensor/tensor.h"

struct gguf;

/* name, model_type of config.json and architecture of a GGUF, class name in config.json */
/* clang-format off */
#define FAMILY_LIST(X)                               \
	X(LLAMA, "llama", "LlamaForCausalLM")        \
	X(QWEN2, "qwen2", "Qwen2ForCausalLM")        \
	X(QWEN3, "qwen3", "Qwen3ForCausalLM")
/* clang-format on */
#define X(name, ...) FAMILY_##name,
/* LLAMA includes Llama 3.x and SmolLM2; QWEN2 includes Qwen2.5. */
enum family { FAMILY_LIST(X) FAMILY_COUNT };
#undef X

/* The scaling "llama3" of config.json: RoPE frequencies below `low` are divided by factor, those above
 * `high` stay, and those between are interpolated. "yarn": the same with a ramp between the frequencies that
 * turn `high` and `low` times in `context` positions; cosines and sines are then multiplied by `attention`.
 */
struct rope_scaling {
	bool llama3, yarn; /* both false: no scaling, all other fields are 0 */
	double factor, low, high;
	int64_t context; /* positions of the model's first training */
	double attention;
	bool smooth; /* yarn: the ramp's ends are not rounded to whole frequencies */
};

struct shape {
	enum family family;
	int64_t hidden, layers, heads, kv_heads, head_dim, ffn;
	int64_t vocab;	 /* rows of the embedding; at least the number of the tokenizer's ids */
	int64_t context; /* positions that the model was trained for */
	bool tied;	 /* head and embedding share one matrix */
	bool qkv_bias;	 /* q, k and v have biases */
	bool qk_norm;	 /* each head of q and k has a norm */
	double norm_eps, rope_theta;
	struct rope_scaling rope;
};

const char *family_type(enum family family); /* "qwen2" */
bool family_of_type(enum family *out, const char *type);
/* The families as listed in messages. */
#define FAMILY_WORDS "llama, qwen2 and qwen3"
/* Reads config.json; `path` is its name in messages. */
enum status shape_of_config(struct shape *s, const json_t *config, const char *path, struct error *err);
/* Checks config.json's quantization_config. UNSUPPORTED: another form than E4M3 with a scale per tensor, per
 * row or per 128 x 128 elements, or 4 bits of bitsandbytes. */
enum status shape_check_quantization(const json_t *config, const char *path, struct error *err);
enum status shape_of_gguf(struct shape *s, const struct gguf *g, struct error *err);
/* Checks that the sizes fit together and are small enough that no multiplication of them overflows. */
enum status shape_check(const struct shape *s, const char *path, struct error *err);
/* A config.json of this shape that old and new transformers can read. Owner: caller; NULL: no memory. */
json_t *shape_config(const struct shape *s, enum dtype dtype);
/* A released shape or a small one for tests: "qwen2-7b", "tiny" .. BAD_INPUT names the nearest known name. */
enum status shape_by_name(struct shape *s, const char *name, struct error *err);
/* Names for shape_by_name, in order; NULL-terminated. */
extern const char *const shape_names[];
/* Number of parameters; a tied head is not counted again. */
int64_t shape_parameters(const struct shape *s);
#endif
