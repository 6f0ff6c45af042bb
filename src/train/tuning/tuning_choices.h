/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a GPU's run was worked on by and what it chose by time, as its checkpoints keep it: device, libraries,
 * the algorithm of each shape of product, the ways of attention. A run that goes on takes the same, if it is
 * worked on by the same.
 */
#ifndef TRAIN_TUNING_TUNING_CHOICES_H
#define TRAIN_TUNING_TUNING_CHOICES_H
#include <jansson.h>
#include "core/text/text.h"
#include "model/gpu/backend.h"

/* "NVIDIA H100 80GB HBM3" of "NVIDIA H100 80GB HBM3 (0000:1B:00.0)": another card of the same kind takes the
 * same algorithms. Its bytes. */
size_t tuning_choices_kind_size(const char *device);
/* {"device", "gemm", "attention_by", "products": [..], "attention": [..]}. Owner: caller; NULL: no memory. */
json_t *tuning_choices_json(const struct backend *back);
/* Of the products from the *told-th on that were met, which becomes their number; NULL: there are none.
 * Owner: caller. */
json_t *tuning_choices_since(const struct backend *back, size_t *told);
/* Its products and ways of attention; those that are not as tuning_choices_json writes them are left out.
 * Owner: caller, free() both. (Fuzzed.) */
enum status tuning_choices_parse(struct gpu_choice **products, size_t *count,
				 struct gpu_attention_choice **ways, size_t *way_count, const json_t *before,
				 struct error *err);
/* The back end takes what `before` has, which an earlier part of this run chose, as tuning_choices_json wrote
 * it, then what `cached` has, which other runs did (train/tuning/tuning_cache.h); NULL: nothing. Lines of
 * *note say on which other card or by which other library the run goes on. */
enum status tuning_choices_recall(struct backend *back, const json_t *before, const json_t *cached,
				  struct text *note, struct error *err);
#endif
