/* SPDX-License-Identifier: Apache-2.0 */
#include "core/math/heap.h"

#include <stdlib.h>

bool heap_create(struct heap *h, uint32_t capacity)
{
	*h = (struct heap){
		.items = calloc(capacity, sizeof *h->items),
		.places = calloc(capacity, sizeof *h->places),
		.keys = calloc(capacity, sizeof *h->keys),
	};
	return h->items && h->places && h->keys;
}

void heap_free(struct heap *h)
{
	free(h->items);
	free(h->places);
	free(h->keys);
	*h = (struct heap){0};
}

static void put(struct heap *h, uint32_t at, uint32_t item)
{
	h->items[at] = item;
	h->places[item] = at + 1;
}

static void sift_up(struct heap *h, uint32_t at, uint32_t item)
{
	while (at) {
		uint32_t parent = (at - 1) / 2;

		if (h->keys[h->items[parent]] <= h->keys[item])
			break;
		put(h, at, h->items[parent]);
		at = parent;
	}
	put(h, at, item);
}

static void sift_down(struct heap *h, uint32_t at, uint32_t item)
{
	for (;;) {
		uint32_t child = 2 * at + 1;

		if (child >= h->count)
			break;
		if (child + 1 < h->count && h->keys[h->items[child + 1]] < h->keys[h->items[child]])
			child++;
		if (h->keys[h->items[child]] >= h->keys[item])
			break;
		put(h, at, h->items[child]);
		at = child;
	}
	put(h, at, item);
}

void heap_insert(struct heap *h, uint32_t item, uint64_t key)
{
	h->keys[item] = key;
	sift_up(h, h->count++, item);
}

void heap_remove(struct heap *h, uint32_t item)
{
	uint32_t at = h->places[item], last;

	if (!at)
		return;
	h->places[item] = 0;
	last = h->items[--h->count];
	if (last == item)
		return;
	at--;
	if (at && h->keys[h->items[(at - 1) / 2]] > h->keys[last])
		sift_up(h, at, last);
	else
		sift_down(h, at, last);
}

bool heap_contains(const struct heap *h, uint32_t item)
{
	return h->places[item];
}

uint32_t heap_first(const struct heap *h)
{
	return h->items[0];
}

uint64_t heap_first_key(const struct heap *h)
{
	return h->count ? h->keys[h->items[0]] : UINT64_MAX;
}
