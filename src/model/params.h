/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is trained, as optimiser, sharding, checkpoints and all-reduce see it: one flat vector with a table of
 * names. Tensors lie in it without gaps, in the table's order, so that neighbours of equal width (q, k, v;
 * gate, up; the A of one input) are one matrix too.
 */
#ifndef MODEL_PARAMS_H
#define MODEL_PARAMS_H
#include "model/tensor/arena.h"

enum { PARAM_NAME = 112 };

struct param {
	char name[PARAM_NAME]; /* "model.layers.0.self_attn.q_proj.lora_A.weight", "lm_head.weight" */
	int64_t rows, cols;    /* a vector has one row */
	size_t offset;	       /* element in the flat vector */
	float decay;	       /* weight decay's factor: 1; 0 for biases and norms */
};

struct params {
	struct param *table; /* owner: params_release */
	int count, room;
	size_t length;
	struct mat master, grad, m, v; /* [1, length]; F32 (F64 where gradients are checked by differences) */
	struct mat live; /* master in the type that products read, where that is another one; else absent */
};

/* Appends one. BAD_INPUT where its name is too long. */
enum status params_add(struct params *p, const char *name, int64_t rows, int64_t cols, float decay,
		       struct error *err);
/* Places master, its live copy where `live` is not `dtype`, and, where `trained`, gradient and moments; all
 * uninitialised. After the last params_add. */
enum status params_place(struct params *p, struct arena *a, enum dtype dtype, enum dtype live, bool trained,
			 struct error *err);
/* NULL where there is none of that name. */
const struct param *params_find(const struct params *p, const char *name);
/* One tensor's part of master, grad, m or v; lent. */
struct mat params_view(const struct mat *flat, const struct param *param);
/* Where a part of master, of F32, begins; 0 while planning. */
size_t params_at(const struct params *p, const struct mat *part);
void params_release(struct params *p);
#endif
