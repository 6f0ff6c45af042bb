/* SPDX-License-Identifier: Apache-2.0 */
/* Items that wait. Items of one client are in their order, and clients take turns. */
#ifndef ENGINE_TURNS_H
#define ENGINE_TURNS_H
#include <stdbool.h>
#include <stdint.h>

/* The first member of what waits. */
struct turn_item {
	struct turn_item *next;
	uint64_t client;
};

struct turn_client;
struct turns {
	struct turn_client *first; /* has the next turn; NULL: nothing waits */
};

/* False: out of memory; then the item was not added. Otherwise it is lent until it is taken out. */
bool turns_add(struct turns *t, struct turn_item *item);
/* Takes out the next item, whose client's turn is then over. NULL: none. */
struct turn_item *turns_take(struct turns *t);
/* Takes out the first item that `wanted` says yes to. NULL: none; then it has seen every item. No turn is
 * over. */
struct turn_item *turns_pick(struct turns *t, bool (*wanted)(void *arg, const struct turn_item *item),
			     void *arg);
#endif
