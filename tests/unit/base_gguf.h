/* SPDX-License-Identifier: Apache-2.0 */
/* The GGUF file of a model that `assay make-model --dtype f32 --seed N` makes, with matrices in Q8_0. */
#ifndef TESTS_UNIT_BASE_GGUF_H
#define TESTS_UNIT_BASE_GGUF_H
#include "test.h"
#include <math.h>
#include "gguf_bed.h"
#include "model/files/random_weights.h"
#include "model/shape/tensor_names.h"

/* Blocks with a factor of 2^-11. The largest number of the base model is 71 times this factor. */
static inline void put_q8(uint8_t *out, const float *x, int64_t count)
{
	for (int64_t i = 0; i < count; i++) {
		uint8_t *block = out + i / 32 * 34;

		block[0] = 0;
		block[1] = 0x10;
		block[2 + i % 32] = (uint8_t)(int8_t)lrintf(x[i] * 2048);
	}
}

/* A model of random numbers as a GGUF file: vectors in F32, matrices in Q8_0. */
static inline void base_gguf_write(const char *path, const struct shape *s, uint64_t seed)
{
	const struct {
		const char *key;
		int64_t value;
	} sizes[] = {
		{"qwen2.embedding_length", s->hidden},	       {"qwen2.block_count", s->layers},
		{"qwen2.attention.head_count", s->heads},      {"qwen2.attention.head_count_kv", s->kv_heads},
		{"qwen2.context_length", s->context},	       {"qwen2.attention.key_length", s->head_dim},
		{"qwen2.attention.value_length", s->head_dim}, {"qwen2.feed_forward_length", s->ffn}};
	const size_t count = names_count(s);
	struct gguf_bed b;
	size_t size, at;
	uint8_t *file;
	FILE *out;

	bed_begin(&b, 3, count, 3 + sizeof(sizes) / sizeof(sizes[0]));
	bed_string(&b, "general.architecture", "qwen2");
	bed_f32(&b, "qwen2.rope.freq_base", (float)s->rope_theta);
	bed_f32(&b, "qwen2.attention.layer_norm_rms_epsilon", (float)s->norm_eps);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		bed_u32(&b, sizes[i].key, (uint32_t)sizes[i].value);
	for (size_t i = 0; i < count; i++) {
		struct named n;

		names_at(&n, s, i);
		bed_tensor(&b, n.gguf, n.vector ? 0 : (uint64_t)n.rows, (uint64_t)n.cols, n.vector ? 0 : 8,
			   (uint64_t)(n.rows * n.cols) * (n.vector ? 128 : 34) / 32);
	}
	at = (b.head.size + 31) / 32 * 32;
	file = bed_end(&b, &size);
	for (size_t i = 0; i < count; i++) {
		float *x;
		struct named n;

		names_at(&n, s, i);
		x = malloc((size_t)(n.rows * n.cols) * sizeof(*x));
		assert_non_null(x);
		random_weights(&n, seed, 0, n.rows, x);
		if (n.vector)
			memcpy(file + at, x, (size_t)n.cols * sizeof(*x));
		else
			put_q8(file + at, x, n.rows * n.cols);
		at = (at + (size_t)(n.rows * n.cols) * (n.vector ? 128 : 34) / 32 + 31) / 32 * 32;
		free(x);
	}
	assert_int_equal(at, size);
	out = fopen(path, "wb");
	assert_non_null(out);
	assert_int_equal(fwrite(file, 1, size, out), size);
	fclose(out);
	free(file);
}

#endif
