/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of the gradient that passes use before the gradient is written. If a step has one micro-batch, the
 * backward pass writes the gradient of the head first, then of each layer from the last to the first, and of
 * the embedding at the end. Until then it lends its memory:
 *
 *     pass      | dx | scratch matrices      | saved by layer 0, 1, .. | output |
 *     gradient  | lead | embedding           | layer 0 | layer 1 | ..              | norm | head |
 *
 * A layer's saved matrices must end before its gradient begins, and dx before the embedding's. The lead is as
 * long as that needs. docs/explanation/design/training.md, "The gradient's memory".
 */
#ifndef MODEL_STORAGE_LENT_H
#define MODEL_STORAGE_LENT_H
#include "model/params.h"

struct pass;
struct saved;
struct lent {
	/* Set by the caller. Where a pass saves matrices; everything else is in back->arena, in front of
	 * them. NULL: nothing is lent, and all is in back->arena. */
	struct arena *saved;
	size_t elements; /* of the gradient, from its begin on: passes overwrite them */
	/* Parts of the gradient: the embedding's is 0, layer i's is i + 1, that of norm and head is the last.
	 * end[part]: bytes of `saved` that hold what is read while that part is written. */
	size_t *begin, *end; /* [layers + 2]; begin: the first element */
	int64_t layers;
};

/* Fills l->begin. Owner: caller, lent_release. */
enum status lent_create(struct lent *l, const struct params *p, int64_t layers, struct error *err);
void lent_release(struct lent *l);
/* The smallest lead, after a pass that was planned. scratch: its peak in back->arena, in bytes. */
size_t lent_lead(const struct saved *s, const struct params *p, size_t scratch);
/* Before work that writes the gradient of `layer`: -1 is the embedding, and the number of layers is norm and
 * head. Clears the part that was lent. BUG: matrices that are still read lie in it. */
enum status lent_return(const struct pass *p, int64_t layer, struct error *err);
/* Clears all that was lent, if no gradient is computed. */
enum status lent_return_all(const struct pass *p, struct error *err);
#endif
