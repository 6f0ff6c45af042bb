/* SPDX-License-Identifier: Apache-2.0 */
#include "report/plot/label_places.h"

void labels_take(struct labels *l, struct label_box box)
{
	if (l->count < LABEL_BOXES)
		l->taken[l->count++] = box;
}

/* True if the box is inside the frame and covers no other box. */
static bool is_free(const struct labels *l, struct label_box box)
{
	if (l->count >= LABEL_BOXES || box.x0 < l->frame.x0 || box.x1 > l->frame.x1 || box.y0 < l->frame.y0 ||
	    box.y1 > l->frame.y1)
		return false;
	for (size_t i = 0; i < l->count; i++) {
		const struct label_box *t = &l->taken[i];

		if (box.x0 < t->x1 && t->x0 < box.x1 && box.y0 < t->y1 && t->y0 < box.y1)
			return false;
	}
	return true;
}

bool labels_try(struct labels *l, const struct label_box *boxes, size_t count)
{
	if (l->count + count > LABEL_BOXES)
		return false;
	for (size_t i = 0; i < count; i++)
		if (!is_free(l, boxes[i]))
			return false;
	for (size_t i = 0; i < count; i++)
		labels_take(l, boxes[i]);
	return true;
}
