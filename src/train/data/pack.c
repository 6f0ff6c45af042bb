/* SPDX-License-Identifier: Apache-2.0 */
#include "train/data/pack.h"

struct item {
	uint64_t length, key;
	uint32_t row;
};

static int longest_first(const void *a_, const void *b_)
{
	const struct item *a = a_, *b = b_;

	if (a->length != b->length)
		return a->length > b->length ? -1 : 1;
	if (a->key != b->key)
		return a->key < b->key ? -1 : 1;
	return a->row < b->row ? -1 : a->row > b->row;
}

/* The free room of each pack, in a binary tree of maxima: it finds the first pack that fits in O(log n). */
struct rooms {
	uint64_t *most;
	uint64_t leaves; /* a power of two */
};

static enum status rooms_make(struct rooms *r, uint64_t count, uint64_t room, struct error *err)
{
	r->leaves = 1;
	while (r->leaves < count)
		r->leaves *= 2;
	r->most = malloc(2 * r->leaves * sizeof(*r->most));
	if (!r->most)
		return error_set(err, STATUS_NO_RESOURCE, "packs of %llu rows", (unsigned long long)count);
	for (uint64_t i = 0; i < 2 * r->leaves; i++)
		r->most[i] = room;
	return STATUS_OK;
}

/* Returns the first pack with room for `length`, and takes that room. */
static uint64_t rooms_take(struct rooms *r, uint64_t length)
{
	uint64_t at = 1, leaf;

	while (at < r->leaves)
		at = r->most[2 * at] >= length ? 2 * at : 2 * at + 1;
	leaf = at;
	r->most[at] -= length;
	for (at /= 2; at; at /= 2)
		r->most[at] = r->most[2 * at] > r->most[2 * at + 1] ? r->most[2 * at] : r->most[2 * at + 1];
	return leaf - r->leaves;
}

/* Sorts rows by pack, and within a pack in their given order. */
static void sort_by_pack(struct packs *p, const struct item *items, const uint64_t *pack_of, uint64_t rows)
{
	for (uint64_t i = 0; i < rows; i++)
		p->begin[pack_of[i] + 1]++;
	for (uint64_t i = 0; i < p->count; i++)
		p->begin[i + 1] += p->begin[i];
	for (uint64_t i = rows; i--;) /* backwards: begin[k + 1] decreases to the start of pack k */
		p->row[--p->begin[pack_of[i] + 1]] = items[i].row;
	for (uint64_t i = 0; i < p->count; i++)
		p->begin[i] = p->begin[i + 1];
	p->begin[p->count] = rows;
}

static enum status fill(struct packs *p, struct item *items, uint64_t rows, uint64_t room, struct error *err)
{
	uint64_t *pack_of = malloc((rows + 1) * sizeof(*pack_of));
	struct rooms rooms = {0};
	enum status st =
		pack_of ? rooms_make(&rooms, rows, room, err)
			: error_set(err, STATUS_NO_RESOURCE, "packs of %llu rows", (unsigned long long)rows);

	if (st) {
		free(pack_of);
		return st;
	}
	qsort(items, rows, sizeof(*items), longest_first);
	for (uint64_t i = 0; i < rows; i++) {
		pack_of[i] = rooms_take(&rooms, items[i].length);
		if (p->count <= pack_of[i])
			p->count = pack_of[i] + 1;
	}
	sort_by_pack(p, items, pack_of, rows);
	free(rooms.most);
	free(pack_of);
	return STATUS_OK;
}

enum status packs_make(struct packs *p, const uint64_t *begin, uint64_t rows, uint64_t room,
		       const uint64_t *key, struct error *err)
{
	struct item *items = malloc((rows + 1) * sizeof(*items));
	enum status st = STATUS_OK;

	*p = (struct packs){.row = malloc((rows + 1) * sizeof(*p->row)),
			    .begin = calloc(rows + 2, sizeof(*p->begin))};
	if (!items || !p->row || !p->begin || rows > UINT32_MAX) {
		st = error_set(err, STATUS_NO_RESOURCE, "packs of %llu rows", (unsigned long long)rows);
		goto out;
	}
	for (uint64_t i = 0; i < rows; i++) {
		items[i] =
			(struct item){.length = begin[i + 1] - begin[i], .key = key[i], .row = (uint32_t)i};
		p->row[i] = (uint32_t)i;
		p->begin[i] = i;
	}
	p->begin[rows] = rows;
	p->count = rows;
	if (room) {
		memset(p->begin, 0, (rows + 2) * sizeof(*p->begin));
		p->count = 0;
		st = fill(p, items, rows, room, err);
	}
out:
	free(items);
	if (st)
		packs_release(p);
	return st;
}

void packs_release(struct packs *p)
{
	free(p->row);
	free(p->begin);
	*p = (struct packs){0};
}
