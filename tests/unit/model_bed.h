/* SPDX-License-Identifier: Apache-2.0 */
/* A tiny model of each family with random numbers in it, in float or in double, and a batch of packed
 * documents. */
#ifndef UNIT_MODEL_BED_H
#define UNIT_MODEL_BED_H
#include "model/cpu/cpu.h"
#include "model/model.h"
#include "model/backend/plan_backend.h"

extern const struct ops cpu_ops_f64; /* the CPU's sources, compiled in double */

enum { BED_ROWS = 96 };

struct bed_options {
	enum family family;
	bool tied, full, wide; /* wide: F64 */
	bool plan;	       /* no memory, no numbers */
	bool own_gemm;
	unsigned threads; /* 0: 2 */
	unsigned targets, save;
	int64_t rank;
	float dropout;
	enum recompute mode;
	const int *docs; /* lengths, 0 ends; NULL: 1, 2, 7, 3, 64, 2 */
	int64_t head_chunk, mlp_tile;
	int64_t heads, kv_heads, vocab, ffn; /* 0: 6, 2, 56, 40 */
	int chunks;			     /* of tensor parallel; 0: by size */
	struct model_split split;	     /* a rank of tensor parallel; the test loads its parts */
	struct model_shards shards;	     /* of ranks that divide the states; the test loads its range */
};

struct bed {
	struct bed_options options;
	struct shape shape;
	struct peft_config lora;
	struct arena arena;
	struct backend back;
	struct model *model;
	struct saved saved;
	struct batch batch;
	struct pass pass;
	int32_t token[BED_ROWS], position[BED_ROWS], target[BED_ROWS], trained[BED_ROWS],
		doc_start[BED_ROWS + 1];
};

/* Fails the test where anything fails. */
void bed_open(struct bed *b, const struct bed_options *options);
void bed_close(struct bed *b);
/* The batch's lists from lengths of documents; about two rows in three are trained. */
void bed_batch(struct bed *b, const int *docs);
/* Sum of losses; with `gradient` the flat gradient is made anew of it. */
double bed_loss(struct bed *b, bool gradient);
/* Element of a flat vector. */
double bed_get(const struct mat *flat, size_t i);
void bed_set(const struct mat *flat, size_t i, double value);
#endif
