/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trained parameters as one flat vector with a table of names, for optimizer, checkpoints, sharding and
 * all-reduce. Tensors are in the table's order without gaps, so that adjacent ones of equal width (q, k, v;
 * gate, up; the A of one input) also form one matrix.
 */
#ifndef MODEL_PARAMS_H
#define MODEL_PARAMS_H
#include "model/tensor/arena.h"

enum { PARAM_NAME = 112 };

struct param {
	char name[PARAM_NAME]; /* "model.layers.0.self_attn.q_proj.lora_A.weight", "lm_head.weight" */
	int64_t rows, cols;    /* a vector has one row */
	size_t offset;	       /* element in the flat vector */
	float decay;	       /* factor of weight decay: 1, or 0 for biases and norms */
};

struct params {
	struct param *table; /* freed by params_release */
	int count, room;
	size_t length;
	/* [1, length]; F32 (F64 when a test compares gradients with differences). */
	struct mat master, grad, m, v;
	struct mat live; /* master in the type that GEMMs read, if that is another type; else absent */
};

/* Appends a parameter. BAD_INPUT: its name is too long. */
enum status params_add(struct params *p, const char *name, int64_t rows, int64_t cols, float decay,
		       struct error *err);
/* To be called after the last params_add. Allocates master, its live copy if `live` differs from `dtype`,
 * and with `trained` gradient and moments. Nothing is initialized. */
enum status params_place(struct params *p, struct arena *a, enum dtype dtype, enum dtype live, bool trained,
			 struct error *err);
/* NULL: there is no such parameter. */
const struct param *params_find(const struct params *p, const char *name);
/* One parameter's part of master, grad, m or v. Lent. */
struct mat params_view(const struct mat *flat, const struct param *param);
/* Index of the first element of `part`, which is part of an F32 master; 0 while planning. */
size_t params_at(const struct params *p, const struct mat *part);
void params_release(struct params *p);
#endif
