/* SPDX-License-Identifier: Apache-2.0 */
/* Memory and models for the decode kernels' cases: places in one piece of memory, which is there on the host and on the device. */
#ifndef TESTS_GPU_DECODE_BED_H
#define TESTS_GPU_DECODE_BED_H
#include "cases.h"
#include "kernel/decode/decode.h"

enum decode_bed_kind { BED_SAME, BED_F32, BED_BF16, BED_BEST, BED_SCRATCH };
struct decode_region {
	uint64_t at, count; /* bytes from the begin; elements, BED_SAME and BED_SCRATCH: bytes */
	enum decode_bed_kind kind;
	bool random, bf16;
	float scale, centre;
	double most; /* difference allowed, of the largest */
};
struct decode_bed {
	uint64_t seed, size;
	int regions;
	struct decode_region region[256];
	uint8_t *host;
	struct guarded device;
};

/* Each reserves a place, 16-byte aligned, and returns its offset. Random numbers: centre +- scale. */
uint64_t decode_bed_random(struct decode_bed *b, uint64_t count, float scale, float centre, bool bf16);
uint64_t decode_bed_out(struct decode_bed *b, uint64_t count, double most, unsigned width);
uint64_t decode_bed_best(struct decode_bed *b, uint64_t count);
uint64_t decode_bed_zeros(struct decode_bed *b, uint64_t bytes); /* equal on both sides afterwards */
uint64_t decode_bed_scratch(struct decode_bed *b, uint64_t bytes);
/* Memory on both sides, filled alike. Owner: caller, decode_bed_close. */
enum status decode_bed_open(struct decode_bed *b, struct kit *k, struct error *err);
enum status decode_bed_compare(struct decode_bed *b, struct kit *k, const char *what, struct error *err);
void decode_bed_close(struct decode_bed *b, struct kit *k);

enum { DECODE_BED_TINY, DECODE_BED_TINY_QWEN3, DECODE_BED_TINY_LORA, DECODE_BED_TINY_STOP, DECODE_BED_SMALL, DECODE_BED_MODELS };

struct decode_bed_layer {
	uint64_t w[4], bias, a[4], b[4][DECODE_ADAPTERS], norm1, norm2, q_norm, k_norm, kv;
};
struct decode_bed_model {
	uint32_t hidden, layers, heads, kv_heads, head_dim, ffn, vocab, rank, stops;
	bool qkv_bias, qk_norm, tied;
	uint32_t before, count; /* tokens in the cache, and to make */
	struct decode_bed_layer layer[4];
	uint64_t table, embed, norm, head, cos_sin, state, chosen, best, barrier, arrived, x, x2, qkv, o, h, u, part, logits;
};
void decode_bed_model(struct decode_bed *b, struct decode_bed_model *m, unsigned which, uint32_t before, uint32_t count,
		      uint32_t blocks);
/* Tables and state on both sides, and the arguments. */
enum status decode_bed_point(struct decode_bed *b, const struct decode_bed_model *m, struct kit *k,
			     struct decode_tokens_args *host, struct decode_tokens_args *device, struct error *err);
/* Sets depth and ring, and returns the bytes of shared memory. */
uint32_t decode_bed_shared(const struct decode_bed_model *m, uint32_t blocks, struct decode_tokens_args *a);

/* Slots of a ring, of 1 .. 4 as many as fit a Hopper's block behind `front`. */
static inline uint32_t decode_bed_depth(uint32_t front, uint32_t wished)
{
	const uint32_t most = decode_depth(front, 232448);

	return wished < most ? wished : most;
}
/* group_decode's timings. */
enum status decode_time(struct kit *k, struct error *err);
#endif
