/* SPDX-License-Identifier: Apache-2.0 */
/* A stepper for full fine-tuning whose passes may have the gradient's memory (train/step/lending.h). */
#ifndef TESTS_UNIT_LENDING_BED_H
#define TESTS_UNIT_LENDING_BED_H
#include "model_gpu_bed.h"

enum { LAYERS = 5 };

/* A pass needs the memory of the embedding and of several layers. */
static inline struct shape lending_shape(enum family family)
{
	struct shape s = shape_of(family);

	s.layers = LAYERS;
	s.vocab = 192;
	s.ffn = 160;
	s.tied = false;
	return s;
}

/* NaN in the memory of the passes. A read before the first write shows. */
static inline void poison(struct stepper *s)
{
	const struct arena *room = &s->lending.room;
	struct mat to = {.data = room->base, .rows = 1, .cols = (int64_t)room->size, .ld = (int64_t)room->size, .dtype = DTYPE_U8};
	struct error err = {0};
	uint8_t *nan;

	if (!s->lending.on)
		return;
	nan = malloc(room->size);
	memset(nan, 0xff, room->size);
	must(s->back.ops->put(&s->back, to, nan, &err), &err);
	free(nan);
}
#endif
