/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the state of the page pool with itself. */
#include "engine/pages/pool.h"

#include <inttypes.h>
#include <stdlib.h>

#define EXPECT(condition, page)                                                                              \
	do {                                                                                                 \
		if (!(condition))                                                                            \
			return error_set(err, STATUS_MISMATCH,                                               \
					 "page pool: page %" PRIu32 ": %s does not hold", (uint32_t)(page),  \
					 #condition);                                                        \
	} while (0)

/* A registered page: its parent is registered, and is held if the page is held. */
static enum status check_registered(const struct pages *pool, uint32_t page, struct error *err)
{
	const struct page *p = pool->pages + page, *parent = pool->pages + p->parent;
	bool leaf = !p->references && !p->children;

	EXPECT(heap_contains(&pool->leaves, page) == leaf, page);
	if (!p->parent)
		return STATUS_OK;
	EXPECT(p->parent < pool->options.pages, page);
	EXPECT(parent->state == PAGE_REGISTERED, page);
	EXPECT(parent->children, page);
	EXPECT(!p->references || parent->references, page);
	EXPECT(parent->key.salt == p->key.salt && parent->key.adapter == p->key.adapter, page);
	return STATUS_OK;
}

static enum status check_page(const struct pages *pool, uint32_t page, struct error *err)
{
	const struct page *p = pool->pages + page;
	bool indexed = p->state == PAGE_ANNOUNCED || p->state == PAGE_REGISTERED;
	const int32_t *tokens = pool->tokens + (size_t)page * pool->options.page_tokens;

	EXPECT(!p->references || (p->state != PAGE_FREE && p->state != PAGE_DRAINING), page);
	EXPECT(p->references || (p->state != PAGE_PRIVATE && p->state != PAGE_ANNOUNCED), page);
	EXPECT(!indexed || pages_lookup(pool, p->parent, &p->key, tokens) == page, page);
	EXPECT(!p->children || p->state == PAGE_REGISTERED, page);
	EXPECT(p->state != PAGE_ANNOUNCED || !p->parent || pool->pages[p->parent].references, page);
	if (p->state == PAGE_REGISTERED)
		return check_registered(pool, page, err);
	EXPECT(!heap_contains(&pool->leaves, page), page);
	return STATUS_OK;
}

static enum status check_lists(const struct pages *pool, struct error *err)
{
	const struct pages_counts *c = &pool->counts;
	int64_t free = 0, draining = 0;
	uint32_t last = 0;

	for (uint32_t page = pool->free_first; page; page = pool->pages[page].next, free++) {
		EXPECT(pool->pages[page].state == PAGE_FREE, page);
		EXPECT(free < c->pages, page);
	}
	for (uint32_t page = pool->draining_first; page; page = pool->pages[page].next, draining++) {
		EXPECT(pool->pages[page].state == PAGE_DRAINING, page);
		EXPECT(pool->pages[page].stamp > pool->ended, page);
		EXPECT(draining < c->pages, page);
		last = page;
	}
	EXPECT(last == pool->draining_last, last);
	EXPECT(free == c->free, 0);
	EXPECT(draining == c->draining, 0);
	return STATUS_OK;
}

/* Counts of states and of children, against those that the operations keep. */
static enum status check_counts(const struct pages *pool, uint32_t *children, struct error *err)
{
	const struct pages_counts *c = &pool->counts;
	int64_t used = 0, cached = 0, indexed = 0, chained = 0;

	for (uint32_t page = 1; page < pool->options.pages; page++) {
		const struct page *p = pool->pages + page;

		if (check_page(pool, page, err))
			return STATUS_MISMATCH;
		used += p->references > 0;
		cached += !p->references && p->state == PAGE_REGISTERED;
		indexed += p->state == PAGE_ANNOUNCED || p->state == PAGE_REGISTERED;
		if (p->state == PAGE_REGISTERED)
			children[p->parent]++;
	}
	for (uint32_t page = 1; page < pool->options.pages; page++)
		EXPECT(children[page] == pool->pages[page].children, page);
	for (uint32_t i = 0; i <= pool->bucket_mask; i++)
		for (uint32_t page = pool->buckets[i]; page && chained <= indexed;
		     page = pool->pages[page].next)
			chained++;
	EXPECT(chained == indexed, 0);
	EXPECT(used == c->used, 0);
	EXPECT(cached == c->cached, 0);
	EXPECT(c->free + c->used + c->cached + c->draining == c->pages, 0);
	return STATUS_OK;
}

enum status pages_check(const struct pages *pool, struct error *err)
{
	uint32_t *children = calloc(pool->options.pages, sizeof *children);
	enum status st;

	if (!children)
		return error_set(err, STATUS_NO_RESOURCE, "no memory to check the page pool");
	st = check_counts(pool, children, err);
	free(children);
	return st ? st : check_lists(pool, err);
}
