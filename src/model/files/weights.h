/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model on disk: a Hugging Face folder (config.json, safetensors in one or several files) or a GGUF file.
 * Matrices may be quantized: E4M3, the 4 bits of bitsandbytes, or a GGUF's blocks.
 * Opening reads only headers and compares every tensor with the shape; a missing or extra tensor, a wrong
 * size and an unsupported type are refused. Loading copies numbers directly from the mapped file to memory of
 * the caller.
 */
#ifndef MODEL_FILES_WEIGHTS_H
#define MODEL_FILES_WEIGHTS_H
#include "model/files/e4m3_file.h"
#include "model/shape/tensor_names.h"
#include "model/backend/ops.h"
#include "model/shape/shape.h"
#include "model/tensor/tensor.h"

struct bnb4;
struct bnb4_file;
struct gguf;
struct shards;

struct weights {
	struct shape shape;
	struct gguf *gguf;	/* NULL: a folder */
	struct shards *shards;	/* NULL: a GGUF file */
	struct bnb4_file *bnb4; /* the matrices of 4 bits, in no order */
	size_t bnb4_count;
	char path[4096]; /* as given: the folder or the GGUF file */
};

/* Opens a model. Owner: caller, weights_release. */
enum status weights_open(struct weights *w, const char *path, struct error *err);
void weights_release(struct weights *w);
uint64_t weights_bytes(const struct weights *w); /* size of its files */
/* Whether a matrix is E4M3 with one scale, or one per row: a GPU can hold it as it is in the file. */
bool weights_are_e4m3_of_rows(const struct weights *w);

/* Destination of a tensor with Hugging Face's name: F32, BF16, F16 or the file's own type, with any ld. A
 * vector is one row. For weights_load_to on a GPU it may be E4M3 with a scale per row: other types, and E4M3
 * with scales of blocks, are then quantized on the device. */
struct weights_slot {
	const char *name;
	struct mat to;
	/* The rank's part of the tensor begins at row and column `row`, `col` and has the size of `to`.
	 * is_part false: `to` has the whole tensor. */
	bool is_part;
	int64_t row, col;
};

/* Fills each slot, with as many threads as there are CPUs. Pages of the file are given back after reading,
 * so that weights are not in memory twice. BAD_INPUT: the model has no tensor of this name and size, or the
 * file has a NaN or infinity; the error names the tensor. Conversions round to nearest, ties to even. */
enum status weights_load(const struct weights *w, const struct weights_slot *slots, size_t count,
			 struct error *err);

/* The same for matrices of a back end. */
enum status weights_load_to(const struct weights *w, struct backend *back, const struct weights_slot *slots,
			    size_t count, struct error *err);

/* Gives the files' pages back, so that they no longer count as this process's memory. */
void weights_forget(const struct weights *w);

/* Reads rows of a tensor as floats; a vector is one row. NaN and infinity are refused, as in weights_load. */
enum status weights_rows(const struct weights *w, const char *name, int64_t row, int64_t rows, float *out,
			 struct error *err);

/* A tensor as stored in the file, for callers that keep it quantized. */
struct weights_raw {
	const struct tensor *tensor;
	int64_t interleaved;	 /* number of heads whose rows are interleaved; 0: rows are in order */
	struct e4m3_scale scale; /* E4M3 only */
	/* NULL: not in 4 bits. Else `tensor` holds its codes, and weights_row is not available. Of a matrix
	 * without double quantization, callers of its own form check the absmax: bnb4_finite. */
	const struct bnb4 *bnb4;
};

/* False: there is no such tensor (a tied head has none). */
bool weights_find(struct weights_raw *raw, const struct weights *w, const char *name);
/* The bytes of the model's row `row`, wherever the file stores it. Length: tensor's bytes / rows. */
const uint8_t *weights_row(const struct weights_raw *raw, int64_t row);
#endif
