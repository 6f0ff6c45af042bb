/* SPDX-License-Identifier: Apache-2.0 */
/* The private state of the page pool, shared by its operations and its check. */
#ifndef ENGINE_PAGES_POOL_H
#define ENGINE_PAGES_POOL_H
#include "core/math/heap.h"
#include "engine/pages/pages.h"

/* What the pool knows about the contents of a page. */
enum page_state {
	PAGE_FREE,
	PAGE_PRIVATE,	 /* only its holder knows the contents */
	PAGE_ANNOUNCED,	 /* in the index, not yet computed */
	PAGE_REGISTERED, /* in the index and computed; cached if it has no references */
	PAGE_DRAINING,
};

struct page {
	enum page_state state;
	uint32_t references;
	uint32_t parent, owner;
	uint32_t children; /* registered ones */
	uint32_t next;	   /* of its bucket, or of the free or draining list; 0: none */
	uint32_t hash;
	struct pages_key key;
	uint64_t stamp; /* registered: when the last reference went; draining: the step that it waits for */
};

struct pages {
	struct pages_options options;
	struct page *pages; /* [options.pages] */
	int32_t *tokens;    /* [options.pages, page_tokens] of pages in the index */
	uint32_t *buckets;  /* [bucket_mask + 1] first page; 0: none */
	uint32_t bucket_mask;
	uint32_t free_first; /* newest first */
	uint32_t draining_first, draining_last;
	struct heap leaves; /* cached pages without children, by stamp */
	uint64_t clock;	    /* of stamps */
	uint64_t ended;	    /* the last step that has ended */
	struct pages_counts counts;
};

/* The page of the index with this parent, key and tokens; 0: none. */
uint32_t pages_lookup(const struct pages *pool, uint32_t parent, const struct pages_key *key,
		      const int32_t *tokens);
#endif
