/* SPDX-License-Identifier: Apache-2.0 */
/* Packs rows into sequences of a given length: longest row first, each into the first pack with room. */
#ifndef TRAIN_DATA_PACK_H
#define TRAIN_DATA_PACK_H
#include <stdint.h>
#include "core/error.h"

struct packs {
	uint32_t *row;	 /* rows of pack p: row[begin[p]] to row[begin[p + 1]] */
	uint64_t *begin; /* [count + 1] */
	uint64_t count;
};

/*
 * `room`: tokens per pack; 0: one row per pack, in order. Rows of equal length are sorted by their keys, then
 * by number; the number of packs does not depend on the keys. No row may be longer than `room`. Owner:
 * caller, packs_release.
 */
enum status packs_make(struct packs *p, const uint64_t *begin, uint64_t rows, uint64_t room,
		       const uint64_t *key, struct error *err);
void packs_release(struct packs *p);
#endif
