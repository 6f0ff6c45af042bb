/* SPDX-License-Identifier: Apache-2.0 */
/* Events of requests, until the caller has read them. */
#include "core/text/text.h"
#include "engine/internal.h"

void outbox_forget_read(struct engine *e)
{
	if (e->events_read)
		event_list_clear(&e->events);
	e->events_read = false;
}

enum status outbox_add(struct engine *e, const struct engine_event *event, struct error *err)
{
	outbox_forget_read(e);
	return event_list_add(&e->events, event, err);
}

enum status outbox_pass(struct engine *e, struct error *err)
{
	struct schedule_event event;
	enum status st = STATUS_OK;

	while (!st && schedule_event(e->schedule, &event)) {
		struct engine_event out = {
			.kind = event.kind == SCHEDULE_EVENT_BEGUN ? ENGINE_EVENT_BEGUN : ENGINE_EVENT_END,
			.id = event.id,
			.prompt_tokens = event.prompt_tokens,
			.cached_tokens = event.cached_tokens,
			.end = event.end,
			.tokens = event.tokens,
		};

		if (event.kind == SCHEDULE_EVENT_ENDED)
			text_copy(out.text, sizeof(out.text), event.text);
		st = outbox_add(e, &out, err);
	}
	return st;
}

size_t engine_events(struct engine *e, const struct engine_event **events)
{
	outbox_forget_read(e);
	*events = e->events.event;
	e->events_read = true;
	return e->events.count;
}
