/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/turns.h"
#include <stdlib.h>

/* A client with at least one item. */
struct turn_client {
	struct turn_client *next;
	uint64_t id;
	struct turn_item *first, **end;
};

/* The place in the list that leads to this client, or the list's end. */
static struct turn_client **place_of(struct turns *t, uint64_t id)
{
	struct turn_client **at = &t->first;

	while (*at && (*at)->id != id)
		at = &(*at)->next;
	return at;
}

bool turns_add(struct turns *t, struct turn_item *item)
{
	struct turn_client **at = place_of(t, item->client);

	if (!*at) {
		*at = calloc(1, sizeof(**at));
		if (!*at)
			return false;
		(*at)->id = item->client;
		(*at)->end = &(*at)->first;
	}
	item->next = NULL;
	*(*at)->end = item;
	(*at)->end = &item->next;
	return true;
}

static struct turn_item *take_from(struct turn_client *c, struct turn_item **at)
{
	struct turn_item *item = *at;

	*at = item->next;
	if (!*at)
		c->end = at;
	return item;
}

/* A client without items leaves. */
static void leave(struct turn_client **at)
{
	struct turn_client *c = *at;

	*at = c->next;
	free(c);
}

static void move_to_end(struct turns *t)
{
	struct turn_client *c = t->first, **at = &t->first;

	*at = c->next;
	while (*at)
		at = &(*at)->next;
	*at = c;
	c->next = NULL;
}

struct turn_item *turns_take(struct turns *t)
{
	struct turn_item *item;

	if (!t->first)
		return NULL;
	item = take_from(t->first, &t->first->first);
	if (t->first->first)
		move_to_end(t);
	else
		leave(&t->first);
	return item;
}

struct turn_item *turns_pick(struct turns *t, bool (*wanted)(void *arg, const struct turn_item *item),
			     void *arg)
{
	for (struct turn_client **c = &t->first; *c; c = &(*c)->next)
		for (struct turn_item **at = &(*c)->first; *at; at = &(*at)->next) {
			struct turn_item *item;

			if (!wanted(arg, *at))
				continue;
			item = take_from(*c, at);
			if (!(*c)->first)
				leave(c);
			return item;
		}
	return NULL;
}
