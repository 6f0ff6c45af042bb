/* SPDX-License-Identifier: Apache-2.0 */
/* DoRA's norms of rows, computed from the model's file in host memory. */
#ifndef ENGINE_LOAD_DORA_H
#define ENGINE_LOAD_DORA_H
#include "model/files/peft/peft.h"
#include "model/model.h"

/* "model.layers.0.self_attn.q_proj.weight" */
void dora_weight_name(char out[NAME_SIZE], int64_t layer, enum peft_target target);
/* Overwrites the model's adapted weights with those of base and adapter. UNSUPPORTED: weights in E4M3 or
 * quantized blocks. */
enum status dora_merge_weights(const struct peft *p, struct model *m, struct backend *back,
			       const struct weights *w, struct error *err);
/* Fills linear.ratio of all layers: one row per adapter, 1 for modules and adapters without DoRA. */
enum status dora_load_ratios(const struct peft *p, int32_t count, struct model *m, struct backend *back,
			     const struct weights *w, struct error *err);
#endif
