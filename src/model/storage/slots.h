/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slots: memory of one layer's linear layers as GEMMs read them, for weights that are stored in another form.
 * Layer i uses slot i % count, so struct linear's matrices are views of the slot and never move. They are
 * valid between slots_use and slots_done of the layer. If the weights of FP8 layers are resident, slots have
 * only their transposed copies, and only backward passes use them.
 */
#ifndef MODEL_STORAGE_SLOTS_H
#define MODEL_STORAGE_SLOTS_H
#include "model/backend/ops.h"

struct model;
enum { SLOTS_MOST = 2, LAYER_LINEARS = 4 };
struct slots {
	int count; /* 0: every weight is resident, and the functions below have no effect */
	bool backward_only;
	bool used; /* in the present pass */
	/* Linear layers in the order qkv, o, gate_up, down. `mat` has numbers [out + tail, in + tail]; rows
	 * 0 if backward_only. With FP8, W in E4M3 and its transposed copy share the memory of mat, unless
	 * backward_only. */
	struct mat mat[SLOTS_MOST][LAYER_LINEARS];
	struct mat fp8[SLOTS_MOST][LAYER_LINEARS], transposed[SLOTS_MOST][LAYER_LINEARS];
	struct mat exact[SLOTS_MOST]; /* FP8 only: rows of W of qkv as numbers; rows 0 if backward_only */
	int64_t held[SLOTS_MOST];     /* the layer that the slot has or will have; -1: none */
	bool awaited[SLOTS_MOST];     /* work enqueued from now on finds the layer in the slot */
};

/* Allocates the slots: two on a GPU, so that the next layer is filled while one is read, and one on a CPU. To
 * be called before the layers are placed. */
enum status slots_place(struct model *m, struct backend *back, struct error *err);
/* The slot of a layer, and numbers [out, in] of its i-th linear layer there. */
int slots_of(const struct slots *s, int64_t layer);
struct mat slots_numbers(const struct model *m, int64_t layer, int linear);

/* A pass over layers in ascending or descending order. After begin, nothing enqueued so far reads the slots.
 * After use, enqueued work may read the layer, and `next` (-1: none) is filled meanwhile. */
enum status slots_begin(struct model *m, struct backend *back, bool backward, struct error *err);
enum status slots_use(struct model *m, struct backend *back, int64_t layer, int64_t next, struct error *err);
enum status slots_done(struct model *m, struct backend *back, int64_t layer, struct error *err);

/* The contents of the slots: a pass that begins with the same contents enqueues the same work. */
uint64_t slots_state(const struct slots *s);
void slots_set(struct slots *s, uint64_t state);
/* Sets the contents to those after a pass from one layer to another, in ascending or descending order. */
void slots_left(struct model *m, int64_t first, int64_t last, bool backward);
/* The slots have no layer any longer, because adapters or weights changed. */
void slots_drop(struct slots *s);
#endif
