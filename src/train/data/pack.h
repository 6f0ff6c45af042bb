/* SPDX-License-Identifier: Apache-2.0 */
/* Rows put together into packs of a length: longest first, each into the first pack that has room. */
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
 * `room` tokens a pack; 0: one row a pack, in order. Rows of equal length go in the order of their keys, then
 * of their numbers; how many packs come out does not depend on the keys. No row is longer than the room.
 * Owner: caller, packs_release.
 */
enum status packs_make(struct packs *p, const uint64_t *begin, uint64_t rows, uint64_t room,
		       const uint64_t *key, struct error *err);
void packs_release(struct packs *p);
#endif
