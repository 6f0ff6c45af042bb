/* SPDX-License-Identifier: Apache-2.0 */
/* Memory and models for the decode kernels' cases: places in one piece of memory, which is there on the host and on the device. */
#ifndef TESTS_GPU_DECODE_BED_H
#define TESTS_GPU_DECODE_BED_H
#include "cases.h"
#include "kernel/decode/decode.h"

enum decode_bed_kind { BED_SAME, BED_F32, BED_BF16, BED_SCRATCH };
struct decode_region {
	uint64_t at, count; /* bytes from the begin; elements, BED_SAME and BED_SCRATCH: bytes */
	enum decode_bed_kind kind;
	bool random, bf16, e4m3;
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
uint64_t decode_bed_e4m3(struct decode_bed *b, uint64_t count); /* of magnitudes below E4M3's largest */
uint64_t decode_bed_out(struct decode_bed *b, uint64_t count, double most, unsigned width);
uint64_t decode_bed_zeros(struct decode_bed *b, uint64_t bytes); /* equal on both sides afterwards */
uint64_t decode_bed_scratch(struct decode_bed *b, uint64_t bytes);
/* The KV cache of one sequence: its pages in random order, and between them some that are nobody's. */
struct decode_pages {
	uint32_t bits;
	uint32_t keys, count; /* positions of the sequence; those at and behind keys - count are not written yet */
};
uint32_t decode_pages_rows(const struct decode_pages *p); /* rows of a layer's cache */
/* A layer's cache; `row` elements per row. */
uint64_t decode_bed_cache(struct decode_bed *b, const struct decode_pages *p, uint64_t row);
uint64_t decode_bed_table(struct decode_bed *b, const struct decode_pages *p);
/* After decode_bed_open: page numbers, and NaN in each row of the caches that must not be read. On the host only. */
void decode_bed_set_pages(const struct decode_bed *b, const struct decode_pages *p, uint64_t table, const uint64_t *cache,
			  uint32_t caches, uint64_t row);
/* Memory on both sides, filled alike. Owner: caller, decode_bed_close. */
enum status decode_bed_open(struct decode_bed *b, struct kit *k, struct error *err);
enum status decode_bed_compare(struct decode_bed *b, struct kit *k, const char *what, struct error *err);
enum status decode_bed_copy(const struct decode_bed *b, struct kit *k, struct error *err); /* to the device */
void decode_bed_close(struct decode_bed *b, struct kit *k);

enum {
	DECODE_BED_TINY,
	DECODE_BED_TINY_QWEN3,
	DECODE_BED_TINY_LORA,
	DECODE_BED_TINY_E4M3,
	DECODE_BED_SMALL,
	DECODE_BED_SMALL_E4M3,
	DECODE_BED_MODELS
};

struct decode_bed_layer {
	uint64_t w[4], w_scale[4], bias, a[4], b[4][DECODE_ADAPTERS], norm1, norm2, q_norm, k_norm, kv;
};
struct decode_bed_model {
	uint32_t hidden, layers, heads, kv_heads, head_dim, ffn, vocab, rank, page_bits;
	bool qkv_bias, qk_norm, tied, e4m3;
	uint32_t before, count; /* tokens in the cache, and launches */
	struct decode_bed_layer layer[4];
	uint64_t table, embed, norm, head, cos_sin, lists, last, page, barrier, arrived, x, x2, qkv, o, h, u, part, logits;
};
enum { DECODE_BED_PLACES = 3 };
void decode_bed_model(struct decode_bed *b, struct decode_bed_model *m, unsigned which, uint32_t before, uint32_t count);
/* Tables on both sides, and the arguments. */
enum status decode_bed_point(struct decode_bed *b, const struct decode_bed_model *m, struct kit *k,
			     struct decode_token_args *host, struct decode_token_args *device, struct error *err);
/* The lists of launch i on both sides: first an id, then one that `last` holds, then one of a place that is not there. */
enum status decode_bed_lists(struct decode_bed *b, const struct decode_bed_model *m, struct kit *k, uint32_t i,
			     struct error *err);
/* Sets depth and ring, and returns the bytes of shared memory. */
uint32_t decode_bed_shared(const struct decode_bed_model *m, uint32_t blocks, struct decode_token_args *a);

/* Slots of a ring, of 1 .. 4 as many as fit a Hopper's block behind `front`. */
static inline uint32_t decode_bed_depth(uint32_t front, uint32_t wished)
{
	const uint32_t most = decode_depth(front, 232448);

	return wished < most ? wished : most;
}
/* group_decode's timings. */
enum status decode_time(struct kit *k, struct error *err);
#endif
