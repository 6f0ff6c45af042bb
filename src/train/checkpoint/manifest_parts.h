/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of tensors in a manifest of schema 4, which ranks of tensor parallel wrote. "parts" has an entry for
 * each rank of a copy: the length of its flat vector, and for each tensor of "parameters", in the same order,
 * which rows and columns of it begin where in that vector. Each shard names its part.
 */
#ifndef TRAIN_CHECKPOINT_MANIFEST_PARTS_H
#define TRAIN_CHECKPOINT_MANIFEST_PARTS_H
#include <jansson.h>
#include <stdbool.h>
#include "train/checkpoint/parts.h"

/* Owner: caller; NULL: no memory. */
json_t *manifest_parts_json(const struct checkpoint_parts *p);
/* Checks the form of "parts" beside "parameters", which are valid: each tensor is covered. */
enum status manifest_parts_check(const json_t *manifest, const char *path, struct error *err);
/* Number of flat vectors: 1 without parts. */
size_t manifest_parts_count(const json_t *manifest);
/* Length of a part's vector; without parts that of the checkpoint's. */
uint64_t manifest_part_length(const json_t *manifest, size_t part);
/* Where tensor number `index` of "parameters" is in a part. Without parts it is there whole. */
struct manifest_tensor {
	int64_t row, rows, col, cols; /* in the whole tensor */
	uint64_t offset;	      /* in the part's vector */
};
struct manifest_tensor manifest_tensor(const json_t *manifest, size_t index, size_t part);
#endif
