/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inputs of layers that full recomputation saves, in host memory (struct saved: offload). The device has two
 * slots; layer i always uses slot i % 2. The forward pass copies an input out while its layer computes, and
 * the backward pass copies it in while the layer above computes. The last two layers' inputs are in the slots
 * when the backward pass begins, so they are never copied.
 */
#ifndef MODEL_DECODER_INPUTS_H
#define MODEL_DECODER_INPUTS_H
#include "model/model.h"

/* Allocates a layer's place in host memory and, for the first layers, the slots in `slots`. Sets x->data and
 * x->ld, of which rows, cols and dtype are given. To be called for every layer, in ascending order. */
enum status inputs_place(const struct pass *p, int64_t layer, struct arena *slots, struct mat *x,
			 struct error *err);
/* Before the forward work of a layer: copies its input out, and waits for the slot of its output. */
enum status inputs_forward(const struct pass *p, int64_t layer, struct error *err);
/* Before the backward work of a layer: waits for its input, and begins to copy the one of the layer below. */
enum status inputs_backward(const struct pass *p, int64_t layer, struct error *err);
/* After it: the slot is free. */
enum status inputs_done(const struct pass *p, int64_t layer, struct error *err);
#endif
