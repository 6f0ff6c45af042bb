/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes by name: released models, and small ones for tests. */
#include "core/input/opt.h"
#include "model/shape/shape.h"

#define QWEN2 .family = FAMILY_QWEN2, .qkv_bias = true, .norm_eps = 1e-6, .rope_theta = 1e6, .context = 32768
#define QWEN3 .family = FAMILY_QWEN3, .qk_norm = true, .norm_eps = 1e-6, .rope_theta = 1e6, .context = 40960
#define LLAMA3(factor_)                                                                                      \
	.family = FAMILY_LLAMA, .norm_eps = 1e-5, .rope_theta = 5e5, .context = 131072,                      \
	.rope = {.llama3 = true, .factor = factor_, .low = 1, .high = 4, .context = 8192}
/* Six heads share two KV heads, and head_dim is not hidden / heads, so that tests notice if these are
 * confused. */
#define TINY .hidden = 96, .layers = 2, .heads = 6, .kv_heads = 2, .head_dim = 32, .ffn = 160, .vocab = 320
/* The same with heads that a GPU generates text with. */
#define TINY_64 .hidden = 96, .layers = 2, .heads = 6, .kv_heads = 2, .head_dim = 64, .ffn = 160, .vocab = 320
#define SIZES(h, l, q, kv, d, f, v)                                                                          \
	.hidden = h, .layers = l, .heads = q, .kv_heads = kv, .head_dim = d, .ffn = f, .vocab = v

/* clang-format off */
#define SHAPES(X)                                                                                  \
	X("tiny", QWEN2, TINY)                                                                     \
	X("tiny-qwen3", QWEN3, TINY, .tied = true)                                                 \
	X("tiny-llama", LLAMA3(8), TINY, .tied = true)                                             \
	X("tiny-64", QWEN2, TINY_64)                                                               \
	X("tiny-qwen3-64", QWEN3, TINY_64, .tied = true)                                           \
	X("tiny-llama-64", LLAMA3(8), TINY_64, .tied = true)                                       \
	X("smollm2-135m", .family = FAMILY_LLAMA, .norm_eps = 1e-5, .rope_theta = 1e5, .context = 8192, \
	  SIZES(576, 30, 9, 3, 64, 1536, 49152), .tied = true)                                     \
	X("qwen2-0.5b", QWEN2, SIZES(896, 24, 14, 2, 64, 4864, 151936), .tied = true)              \
	X("qwen2-1.5b", QWEN2, SIZES(1536, 28, 12, 2, 128, 8960, 151936), .tied = true)            \
	X("qwen2-7b", QWEN2, SIZES(3584, 28, 28, 4, 128, 18944, 152064))                           \
	X("qwen2.5-3b", QWEN2, SIZES(2048, 36, 16, 2, 128, 11008, 151936), .tied = true)           \
	X("qwen2.5-14b", QWEN2, SIZES(5120, 48, 40, 8, 128, 13824, 152064))                        \
	X("qwen2.5-32b", QWEN2, SIZES(5120, 64, 40, 8, 128, 27648, 152064))                        \
	X("qwen2-72b", QWEN2, SIZES(8192, 80, 64, 8, 128, 29568, 152064))                          \
	X("qwen3-0.6b", QWEN3, SIZES(1024, 28, 16, 8, 128, 3072, 151936), .tied = true)            \
	X("qwen3-4b", QWEN3, SIZES(2560, 36, 32, 8, 128, 9728, 151936), .tied = true)              \
	X("qwen3-8b", QWEN3, SIZES(4096, 36, 32, 8, 128, 12288, 151936))                           \
	X("llama-3.2-1b", LLAMA3(32), SIZES(2048, 16, 32, 8, 64, 8192, 128256), .tied = true)      \
	X("llama-3.1-8b", LLAMA3(8), SIZES(4096, 32, 32, 8, 128, 14336, 128256))
/* clang-format on */

static const struct shape shapes[] = {
#define X(name, ...) {__VA_ARGS__},
	SHAPES(X)
#undef X
};

const char *const shape_names[] = {
#define X(name, ...) name,
	SHAPES(X)
#undef X
		NULL,
};

enum status shape_by_name(struct shape *s, const char *name, struct error *err)
{
	const size_t count = sizeof(shapes) / sizeof(shapes[0]);
	const char *near = opt_nearest(name, shape_names, count);

	for (size_t i = 0; i < count; i++) {
		if (!strcmp(shape_names[i], name)) {
			*s = shapes[i];
			return STATUS_OK;
		}
	}
	return error_set(err, STATUS_BAD_INPUT, "unknown shape \"%.60s\"%s%s%s", name,
			 near ? ", did you mean \"" : "", near ? near : "", near ? "\"?" : "");
}
