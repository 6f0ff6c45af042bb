/* SPDX-License-Identifier: Apache-2.0 */
/* A growing list of events. */
#ifndef ENGINE_EVENT_LIST_H
#define ENGINE_EVENT_LIST_H
#include "core/error.h"
#include "engine/message.h"

struct event_list {
	struct engine_event *event;
	size_t count, room;
};
/* Copies the event. NO_RESOURCE: out of memory. */
enum status event_list_add(struct event_list *l, const struct engine_event *event, struct error *err);
void event_list_clear(struct event_list *l);
void event_list_release(struct event_list *l);
#endif
