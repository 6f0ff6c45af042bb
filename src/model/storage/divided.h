/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ZeRO stages 2 and 3 (docs/explanation/design/mesh.md): the gradient and the weights of full fine-tuning, of
 * which each rank has its range of the flat vector; and the frozen linear layers below adapters, of which it
 * has an equal part of the bytes of each layer as they are stored. Layer i computes with slot i % 2 and adds
 * its gradient to buffer i % 2. The vector has these parts: what is before the layers (the embedding), each
 * layer, and what is behind them (the last norm and the head). The first and the last part, the ends, have
 * memory of their own.
 *
 * All ranks call the functions below in the same order, also a rank that has nothing to compute. Without a
 * communication (in a plan) nothing is sent.
 */
#ifndef MODEL_STORAGE_DIVIDED_H
#define MODEL_STORAGE_DIVIDED_H
#include "model/backend/comm.h"
#include "model/backend/ops.h"
#include "model/params.h"

struct model;
enum { DIVIDED_TURNS = 2 };
struct divided {
	/* What is divided; nothing: the functions below have no effect. base: frozen linear layers. */
	bool gradient, weights, base;
	struct comm *comm;			       /* lent; NULL: nothing is sent */
	int64_t layers, lowest;			       /* lowest: the layer at which a backward pass ends */
	size_t layers_begin, layer_length, layers_end; /* in the flat vector */
	size_t *border;				   /* [layers + 2][ranks + 1]: ranges in each part; owned */
	struct mat grad[DIVIDED_TURNS], grad_ends; /* F32 [1, length of a layer; of the ends] */
	struct mat slot[DIVIDED_TURNS], ends;	   /* the same, of the type that GEMMs read */
	struct mat room[DIVIDED_TURNS];		   /* base: a layer's stored bytes, as F32 [1, words] */
	struct mat *own;			   /* base: [layers] this rank's part of each layer; owned */
	size_t *base_border; /* base: [ranks + 1] parts of each layer, in words; owned */
	int64_t placing;     /* base: layer of the last divided_base_take */
	size_t taken;	     /* base: bytes of it */
	int64_t summed;	     /* the part whose sum has begun, or is due; -1: none */
	/* With tensor parallel, a layer's sum and a gather of weights begin in the next layer, after its
	 * first gather of activations. -1: none is due. */
	int64_t due_sum, due_gather;
	/* Set by the caller: a step has one backward pass. Then a part of the gradient begins with zeros, and
	 * its sum replaces what the own range has. */
	bool one_pass;
	uintptr_t read_end; /* the pass still reads memory below this address (lent_left); 0: none of it */
	int64_t held[DIVIDED_TURNS]; /* the layer that a slot has or will have; -1: none */
	bool awaited[DIVIDED_TURNS]; /* later work finds it there */
};

/* Allocates buffers and slots, after params_place. Owner: caller, divided_release. */
enum status divided_place(struct divided *d, const struct params *p, int64_t layers, bool weights,
			  struct backend *back, struct error *err);
/* Frozen linear layers whose stored forms need `bytes` for each layer, of which divided_base_take gives parts
 * in the order of calls. */
enum status divided_place_base(struct divided *d, unsigned rank, unsigned ranks, uint64_t bytes,
			       struct backend *back, struct error *err);
uint64_t divided_base_room(uint64_t bytes); /* what a part takes, so that the next one is aligned */
void *divided_base_take(struct divided *d, int64_t layer, uint64_t bytes);
void divided_release(struct divided *d);
/* The places of a parameter of this shape: in the gradient's buffers, and in the slots. */
struct mat divided_grad(const struct divided *d, const struct params *p, const struct param *param);
struct mat divided_weight(const struct divided *d, const struct params *p, const struct param *param);

/* The part that a tensor of this layer belongs to; layer -1: one of the ends. Parts are loaded one after the
 * other to the gradient's buffers. */
enum status divided_loaded(struct model *m, struct backend *back, int64_t layer, struct error *err);
/* After a change of the own range: drops the slots, and gathers the ends. */
enum status divided_gather(struct model *m, struct backend *back, struct error *err);

/* A forward or backward pass: work enqueued from now on may read the layer's weights; those of `next` (-1:
 * none) come meanwhile. */
enum status divided_use(struct model *m, struct backend *back, int64_t layer, int64_t next,
			struct error *err);
/* With tensor parallel: begins what divided_use and divided_layer_done left for a later point of the layer,
 * where only GEMMs follow. All collectives of a GPU use one stream, so the layer's first one would wait for
 * it. To be called after that one; later calls have no effect. */
enum status divided_due(struct model *m, struct backend *back, struct error *err);
/* A backward pass. begin and end: around it, with the head's part before the layers. layer and layer_done:
 * around the backward pass of a layer. Buffers begin with what the own range has so far. A layer's sum comes
 * to the own range in layer_done of the layer below, and those of layer 0 and of the ends in divided_end.
 * BUG: matrices that the pass still reads lie there. */
enum status divided_begin(struct model *m, struct backend *back, struct error *err);
enum status divided_layer(struct model *m, struct backend *back, int64_t layer, struct error *err);
enum status divided_layer_done(struct model *m, struct backend *back, int64_t layer, struct error *err);
enum status divided_end(struct model *m, struct backend *back, struct error *err);

/* Forgets what the slots hold, so that passes gather it again. */
void divided_drop(struct divided *d);
/* A number for the layers in the slots, which later passes do not gather again; below (layers + 1) squared.
 * It is the same on all ranks. */
uint64_t divided_state(const struct divided *d);

/* Passes without rows, for a rank that has none: only their collectives. */
enum status divided_empty_forward(struct model *m, struct backend *back, struct error *err);
enum status divided_empty_backward(struct model *m, struct backend *back, struct error *err);
#endif
