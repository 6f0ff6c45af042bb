/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matrices of 4 bits in the safetensors files of transformers and bitsandbytes. A weight NAME is the tensor
 * of codes. Its other parts have names that begin with NAME:
 *
 *   .absmax                             F32, or U8 with double quantization: one per block
 *   .quant_map                          F32: the 16 numbers of the type
 *   .nested_absmax, .nested_quant_map   F32, double quantization only
 *   .quant_state.bitsandbytes__nf4      U8: a JSON object (or __fp4)
 */
#ifndef MODEL_FILES_BNB4_BNB4_FILE_H
#define MODEL_FILES_BNB4_BNB4_FILE_H
#include "core/text/text.h"
#include "model/bnb4/bnb4.h"
#include "model/files/safetensors/shards.h"
#include "model/shape/tensor_names.h"

/* The JSON object of a matrix. */
struct bnb4_state {
	enum bnb4_type type;
	enum dtype dtype; /* of the matrix before it was quantized: F32, BF16 or F16 */
	int64_t rows, cols;
	bool nested;
	float offset; /* 0 unless nested */
};

/* Parses the object, which `path` and `name` identify in messages. UNSUPPORTED: another block size or an
 * unknown key; else BAD_INPUT. */
enum status bnb4_state_parse(struct bnb4_state *out, const void *json, size_t size, const char *path,
			     const char *name, struct error *err);
/* Appends the object. Its length depends on all fields but the offset, so a file's header can be written
 * before the offset is known. The offset must not be negative. */
void bnb4_state_text(struct text *out, const struct bnb4_state *s);

/* A matrix in mapped files. */
struct bnb4_file {
	struct bnb4 m; /* its offset points to state.offset, so the struct must stay where it is */
	struct bnb4_state state;
	const struct tensor *codes;
};

/* Whether the weight has a JSON object of 4 bits. */
bool bnb4_file_has(const struct shards *s, const char *weight);
/* Checks the parts of a weight against each other and against its shape. BAD_INPUT or UNSUPPORTED names the
 * file and the part. Of a matrix without double quantization, the absmax are not read yet: bnb4_finite. */
enum status bnb4_file_open(struct bnb4_file *f, const struct shards *s, const struct named *n,
			   struct error *err);
/* Whether `name` is a part of a weight other than its codes; `weight` becomes that weight's name. */
bool bnb4_file_is_part(char weight[NAME_SIZE], const char *name);

/* Writing: the tensors of one weight, in the order in which they are written. Those whose size is no multiple
 * of 4 come last (`late`), because PyTorch cannot read F32 at other addresses. */
enum { BNB4_PARTS_MOST = 6, BNB4_NAME_SIZE = NAME_SIZE + 64 };
enum bnb4_part_kind {
	BNB4_PART_TABLE,
	BNB4_PART_GROUP_ABSMAX,
	BNB4_PART_MAP,
	BNB4_PART_ABSMAX,
	BNB4_PART_CODES,
	BNB4_PART_STATE
};
struct bnb4_part {
	enum bnb4_part_kind kind;
	char name[BNB4_NAME_SIZE];
	struct tensor tensor; /* its name points to `name`; no data */
	bool late;
};
/* Returns the number of parts. Their sizes are final. s->offset is not used. */
size_t bnb4_parts(struct bnb4_part out[BNB4_PARTS_MOST], const char *weight, const struct bnb4_state *s);
/* Copies the data of part `index` of a quantized matrix to `out`, which has room for the part's size. */
enum status bnb4_part_data(void *out, const struct bnb4_part *part, const struct bnb4_state *s,
			   const struct bnb4 *m, struct error *err);
#endif
