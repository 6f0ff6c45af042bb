/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/timeline/build.h"
#include "core/math/fnv1a.h"

uint64_t hash_bytes(const void *data, size_t size)
{
	uint64_t hash = fnv1a_add(FNV1A_BEGIN, data, size);

	return hash ^ hash >> 29;
}

uint32_t hash_find(const struct hash *h, uint64_t hash, bool (*same)(const void *arg, uint32_t index),
		   const void *arg)
{
	if (!h->room)
		return TIMELINE_NONE;
	for (size_t i = hash & (h->room - 1); h->slot[i].index != TIMELINE_NONE; i = (i + 1) & (h->room - 1))
		if (h->slot[i].hash == hash && same(arg, h->slot[i].index))
			return h->slot[i].index;
	return TIMELINE_NONE;
}

static void put(struct hash *h, uint64_t hash, uint32_t index)
{
	size_t i = hash & (h->room - 1);

	while (h->slot[i].index != TIMELINE_NONE)
		i = (i + 1) & (h->room - 1);
	h->slot[i] = (struct hash_slot){.hash = hash, .index = index};
}

static bool grow(struct hash *h)
{
	struct hash more = {.room = h->room ? h->room * 2 : 1024, .count = h->count};

	more.slot = malloc(more.room * sizeof(*more.slot));
	if (!more.slot)
		return false;
	for (size_t i = 0; i < more.room; i++)
		more.slot[i].index = TIMELINE_NONE;
	for (size_t i = 0; i < h->room; i++)
		if (h->slot[i].index != TIMELINE_NONE)
			put(&more, h->slot[i].hash, h->slot[i].index);
	free(h->slot);
	*h = more;
	return true;
}

bool hash_add(struct hash *h, uint64_t hash, uint32_t index)
{
	if (h->count * 4 >= h->room * 3 && !grow(h))
		return false;
	put(h, hash, index);
	h->count++;
	return true;
}

void hash_release(struct hash *h)
{
	free(h->slot);
	*h = (struct hash){0};
}
