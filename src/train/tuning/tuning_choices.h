/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tuning choices of a GPU run, as its checkpoints record them: device, libraries, the algorithm for each
 * GEMM
 * shape, and the implementation for each attention shape. A resumed run uses the same choices if device and
 * libraries are the same.
 */
#ifndef TRAIN_TUNING_TUNING_CHOICES_H
#define TRAIN_TUNING_TUNING_CHOICES_H
#include <jansson.h>
#include "core/text/text.h"
#include "model/gpu/backend.h"

/* The number of bytes in the name without its PCI address: "NVIDIA H100 80GB HBM3" in "NVIDIA H100 80GB HBM3
 * (0000:1B:00.0)". GPUs with the same name can use the same choices. */
size_t tuning_choices_kind_size(const char *device);
/* {"device", "gemm", "attention_by", "products": [..], "attention": [..]}. Owner: caller; NULL: no memory. */
json_t *tuning_choices_json(const struct backend *back);
/* The GEMM choices from number *emitted on; *emitted becomes their number. NULL: no new ones. Owner: caller.
 */
json_t *tuning_choices_since(const struct backend *back, size_t *emitted);
/* Parses the GEMM and attention choices in `before`. Entries that tuning_choices_json would not write are
 * skipped. Owner: caller, free() both. (Fuzzed.) */
enum status tuning_choices_parse(struct gpu_choice **products, size_t *count,
				 struct gpu_attention_choice **ways, size_t *way_count, const json_t *before,
				 struct error *err);
/* Gives the back end the choices in `before` (an earlier part of this run, from tuning_choices_json), then
 * those in `cached` (other runs, train/tuning/tuning_cache.h). NULL: none. Lines in *note report another GPU
 * or another library. */
enum status tuning_choices_recall(struct backend *back, const json_t *before, const json_t *cached,
				  struct text *note, struct error *err);
#endif
