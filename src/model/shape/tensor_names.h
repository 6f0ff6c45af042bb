/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tensors of a model: their names in Hugging Face's files and in GGUF, and their sizes, from one table.
 * The rest of the program uses only Hugging Face's names.
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
	int layer; /* -1: not in a layer */
	/* Heads whose rows are interleaved in a GGUF of the llama architecture; 0: none. */
	int64_t interleaved;
};

size_t names_count(const struct shape *s);
/* The tensor with 0 <= index < names_count: embedding, layers in order, last norm, head. */
void names_at(struct named *n, const struct shape *s, size_t index);
/* False: the shape has no tensor of this name. */
bool names_find(struct named *n, const struct shape *s, const char *hf);
#endif
