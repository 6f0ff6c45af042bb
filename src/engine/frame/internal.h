/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies of frames: the layouts, for both directions. */
#ifndef ENGINE_FRAME_INTERNAL_H
#define ENGINE_FRAME_INTERNAL_H
#include "core/text/text.h"
#include "engine/frame/frame.h"

/* Arrays that a decoded message points to. */
struct frame_arrays {
	int32_t *prompt, *stop;
	struct engine_bias *bias;
	struct engine_event *events;
	size_t prompt_room, events_room;
};
void frame_arrays_release(struct frame_arrays *a);

void frame_put_request(struct text *out, const struct engine_request *r);
void frame_put_ready(struct text *out, const struct engine_ready *ready);
void frame_put_step(struct text *out, const struct engine_facts *facts, const struct engine_event *events,
		    size_t count);

/* Each reads a whole body. BAD_INPUT: it is too short, too long, or has a value out of range. */
enum status frame_get_request(struct engine_request *r, struct frame_arrays *a, const void *body, size_t size,
			      struct error *err);
enum status frame_get_ready(struct engine_ready *ready, const void *body, size_t size, struct error *err);
enum status frame_get_step(struct frame_step *step, struct frame_arrays *a, const void *body, size_t size,
			   struct error *err);
#endif
