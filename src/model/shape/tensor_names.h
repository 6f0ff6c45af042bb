/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tensors of a model: their names in Hugging Face's files and in GGUF, and their sizes, all from one
 * table. Everything else in the program knows Hugging Face's names alone.
 */
#ifndef MODEL_SHAPE_TENSOR_NAMES_H
#define MODEL_SHAPE_TENSOR_NAMES_H
#include <stddef.h>
#include "model/shape/shape.h"

enum { NAME_SIZE = 96 };

struct named {
	char hf[NAME_SIZE];   /* "model.layers.3.self_attn.q_proj.weight" */
	char gguf[NAME_SIZE]; /* "blk.3.attn_q.weight" */
	int64_t rows, cols;   /* a vector is one row */
	bool vector;
	int layer;	     /* -1: of none */
	int64_t interleaved; /* heads whose rows a GGUF of the llama architecture keeps interleaved; 0: none
			      */
};

size_t names_count(const struct shape *s);
/* 0 <= index < names_count: embedding, layers in order, last norm, head. */
void names_at(struct named *n, const struct shape *s, size_t index);
/* False: the shape has no tensor of this name. */
bool names_find(struct named *n, const struct shape *s, const char *hf);
#endif
