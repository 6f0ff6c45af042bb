/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/event_list.h"
#include <stdlib.h>

enum { ROOM_LEAST = 256 };

enum status event_list_add(struct event_list *l, const struct engine_event *event, struct error *err)
{
	if (l->count == l->room) {
		const size_t room = l->room ? 2 * l->room : ROOM_LEAST;
		struct engine_event *wider = realloc(l->event, room * sizeof(*wider));

		if (!wider)
			return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
					       "cannot allocate memory for %zu events", room);
		l->event = wider;
		l->room = room;
	}
	l->event[l->count++] = *event;
	return STATUS_OK;
}

void event_list_clear(struct event_list *l)
{
	l->count = 0;
}

void event_list_release(struct event_list *l)
{
	free(l->event);
	*l = (struct event_list){0};
}
