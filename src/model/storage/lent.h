/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of the gradient that passes use before the gradient is written, if a step has one micro-batch. The
 * backward pass first writes the gradient of norm and head. Layers follow, from the last to the first, and
 * then the embedding:
 *
 *     pass      | dx | scratch matrices      | saved by layer 0, 1, .. | output |
 *     gradient  | lead | embedding           | layer 0 | layer 1 | ..              | norm | head |
 *
 * A layer's saved matrices must end before its gradient begins, and dx before the embedding's. The lead is as
 * long as that needs. If ranks divide the gradient (divided.h), a rank has its range of it:
 *
 *     gradient  | lead | layer 7, from a border on | layer 8 | .. | layer 11, up to a border |
 *
 * The range gets the sum of layer i after the backward pass of layer i - 1. So the saved matrices of layers
 * below i - 1 must end before it, and all of the pass has ended when layer 0, embedding, norm and head come.
 * docs/explanation/design/training.md, "The gradient's memory".
 */
#ifndef MODEL_STORAGE_LENT_H
#define MODEL_STORAGE_LENT_H
#include "model/params.h"

struct pass;
struct saved;
struct lent {
	/* Set by the caller. Memory of the saved matrices. All other matrices of a pass are in back->arena,
	 * which then ends where this begins. NULL: nothing is lent, and back->arena has all matrices. */
	struct arena *saved;
	size_t elements; /* set by the caller: passes overwrite so many elements, from the first one on */
	/* Parts of the gradient: 0 is the embedding, i + 1 is layer i, the last one is norm and head.
	 * begin[part]: its first element. end[part]: while the part is written, the pass reads so many bytes
	 * of `saved`. */
	size_t *begin, *end; /* [layers + 2] */
	/* Set by a pass: bytes of back->arena in which the backward pass of the embedding has its matrices */
	size_t embedding;
	int64_t layers;
};

/* Fills l->begin. Owner: caller, lent_release. */
enum status lent_create(struct lent *l, const struct params *p, int64_t layers, struct error *err);
void lent_release(struct lent *l);
/* The smallest lead, after a pass that was planned. scratch: its peak in back->arena, in bytes. Ranks
 * that divide the gradient get the same lead, which is enough for each rank. */
size_t lent_lead(const struct saved *s, const struct params *p, size_t scratch);
/* Before work that writes the gradient of `layer`: -1 is the embedding, and the number of layers is norm and
 * head. Clears the part that was lent. BUG: matrices that are still read lie in it. No effect if ranks divide
 * the gradient: this work then writes other memory. */
enum status lent_return(const struct pass *p, int64_t layer, struct error *err);
/* After the backward pass of a layer (-1 is the embedding): tells struct divided which matrices the rest of
 * the pass reads. No effect if ranks do not divide the gradient. */
void lent_left(const struct pass *p, int64_t layer);
/* Clears all that was lent, if no gradient is computed. */
enum status lent_return_all(const struct pass *p, struct error *err);
/* BUG: the gradient of this part would overwrite what a pass reads. */
enum status lent_overlap(int64_t part, struct error *err);
#endif
