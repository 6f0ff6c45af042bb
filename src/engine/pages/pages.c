/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/pages/pool.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static enum status check_options(const struct pages_options *o, struct error *err)
{
	if (o->pages < 2 || o->pages > PAGES_MOST)
		return error_set(err, STATUS_BAD_INPUT,
				 "a KV cache of %" PRId64
				 " pages is not possible: it needs 2 to %d, page 0 included",
				 o->pages, PAGES_MOST);
	if (o->page_tokens < PAGES_TOKENS_LEAST || o->page_tokens > PAGES_TOKENS_MOST ||
	    (o->page_tokens & (o->page_tokens - 1)))
		return error_set(err, STATUS_BAD_INPUT,
				 "a page of %" PRId32 " tokens is not possible: use 16, 32 or 64",
				 o->page_tokens);
	return STATUS_OK;
}

enum status pages_create(struct pages **out, const struct pages_options *options, struct error *err)
{
	struct pages *pool;
	uint32_t buckets = 1;

	*out = NULL;
	if (check_options(options, err))
		return STATUS_BAD_INPUT;
	while (buckets < options->pages)
		buckets *= 2;
	pool = calloc(1, sizeof *pool);
	if (!pool)
		return error_set(err, STATUS_NO_RESOURCE, "no memory for the page pool");
	pool->options = *options;
	pool->bucket_mask = buckets - 1;
	pool->pages = calloc(options->pages, sizeof *pool->pages);
	pool->tokens = malloc(options->pages * options->page_tokens * sizeof *pool->tokens);
	pool->buckets = calloc(buckets, sizeof *pool->buckets);
	if (!heap_create(&pool->leaves, options->pages) || !pool->pages || !pool->tokens || !pool->buckets) {
		pages_free(&pool);
		return error_set(err, STATUS_NO_RESOURCE, "no memory for a pool of %" PRId64 " pages",
				 options->pages);
	}
	for (uint32_t page = options->pages - 1; page; page--) {
		pool->pages[page].next = pool->free_first;
		pool->free_first = page;
	}
	pool->counts.pages = pool->counts.free = options->pages - 1;
	*out = pool;
	return STATUS_OK;
}

void pages_free(struct pages **pool)
{
	if (!*pool)
		return;
	heap_free(&(*pool)->leaves);
	free((*pool)->pages);
	free((*pool)->tokens);
	free((*pool)->buckets);
	free(*pool);
	*pool = NULL;
}

/* The finalizer of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014). */
static uint64_t mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
	return x ^ (x >> 31);
}

static uint32_t hash_of(const struct pages *pool, uint32_t parent, const struct pages_key *key,
			const int32_t *tokens)
{
	uint64_t h = mix(pool->options.seed ^ mix(key->salt + parent)) ^ key->adapter;

	for (int32_t i = 0; i < pool->options.page_tokens; i += 2)
		h = mix(h ^ ((uint64_t)(uint32_t)tokens[i] << 32 | (uint32_t)tokens[i + 1]));
	return h;
}

static int32_t *tokens_of(const struct pages *pool, uint32_t page)
{
	return pool->tokens + (size_t)page * pool->options.page_tokens;
}

static uint32_t lookup_hash(const struct pages *pool, uint32_t hash, uint32_t parent,
			    const struct pages_key *key, const int32_t *tokens)
{
	uint32_t page = pool->buckets[hash & pool->bucket_mask];

	for (; page; page = pool->pages[page].next) {
		const struct page *p = pool->pages + page;

		if (p->hash == hash && p->parent == parent && p->key.salt == key->salt &&
		    p->key.adapter == key->adapter &&
		    !memcmp(tokens_of(pool, page), tokens, pool->options.page_tokens * sizeof *tokens))
			break;
	}
	return page;
}

uint32_t pages_lookup(const struct pages *pool, uint32_t parent, const struct pages_key *key,
		      const int32_t *tokens)
{
	return lookup_hash(pool, hash_of(pool, parent, key, tokens), parent, key, tokens);
}

static void index_insert(struct pages *pool, uint32_t page, uint32_t hash, uint32_t parent,
			 const struct pages_key *key, const int32_t *tokens)
{
	struct page *p = pool->pages + page;
	uint32_t *bucket = pool->buckets + (hash & pool->bucket_mask);

	p->hash = hash;
	p->parent = parent;
	p->key = *key;
	memcpy(tokens_of(pool, page), tokens, pool->options.page_tokens * sizeof *tokens);
	p->next = *bucket;
	*bucket = page;
}

static void index_remove(struct pages *pool, uint32_t page)
{
	uint32_t *link = pool->buckets + (pool->pages[page].hash & pool->bucket_mask);

	while (*link != page)
		link = &pool->pages[*link].next;
	*link = pool->pages[page].next;
	pool->pages[page].next = 0;
	pool->pages[page].state = PAGE_PRIVATE;
}

static void reference(struct pages *pool, uint32_t page)
{
	if (pool->pages[page].references++)
		return;
	heap_remove(&pool->leaves, page);
	pool->counts.cached--;
	pool->counts.used++;
}

/* Takes a registered page without children out of its tree. Its parent may become a leaf. */
static void unregister(struct pages *pool, uint32_t page)
{
	uint32_t parent = pool->pages[page].parent;

	heap_remove(&pool->leaves, page);
	index_remove(pool, page);
	if (parent && !--pool->pages[parent].children && !pool->pages[parent].references)
		heap_insert(&pool->leaves, parent, pool->pages[parent].stamp);
}

static void make_free(struct pages *pool, uint32_t page)
{
	pool->pages[page] = (struct page){.state = PAGE_FREE, .next = pool->free_first};
	pool->free_first = page;
	pool->counts.free++;
}

/* For a page that is in no list and no count. */
static void drain(struct pages *pool, uint32_t page, uint64_t step)
{
	if (step <= pool->ended) {
		make_free(pool, page);
		return;
	}
	if (pool->draining_last && pool->pages[pool->draining_last].stamp > step)
		step = pool->pages[pool->draining_last].stamp;
	pool->pages[page] = (struct page){.state = PAGE_DRAINING, .stamp = step};
	if (pool->draining_last)
		pool->pages[pool->draining_last].next = page;
	else
		pool->draining_first = page;
	pool->draining_last = page;
	pool->counts.draining++;
}

int32_t pages_find(struct pages *pool, const struct pages_key *key, const int32_t *tokens, int32_t count,
		   uint32_t *table, struct pages_next *next)
{
	int32_t found = 0;
	uint32_t parent = 0;

	*next = (struct pages_next){0};
	for (int32_t i = 0; i < count; i++) {
		uint32_t page =
			pages_lookup(pool, parent, key, tokens + (size_t)i * pool->options.page_tokens);

		if (!page)
			break;
		parent = page;
		if (pool->pages[page].state == PAGE_REGISTERED && found == i) {
			reference(pool, page);
			table[found++] = page;
			continue;
		}
		*next = (struct pages_next){page, pool->pages[page].owner};
	}
	return found;
}

uint32_t pages_take(struct pages *pool)
{
	uint32_t page = pool->free_first;

	if (page) {
		pool->free_first = pool->pages[page].next;
		pool->counts.free--;
	} else if (pool->leaves.count) {
		page = heap_first(&pool->leaves);
		unregister(pool, page);
		pool->counts.cached--;
		pool->counts.evicted++;
	} else {
		return 0;
	}
	pool->pages[page] = (struct page){.state = PAGE_PRIVATE, .references = 1};
	pool->counts.used++;
	return page;
}

void pages_announce(struct pages *pool, uint32_t page, uint32_t parent, const struct pages_key *key,
		    const int32_t *tokens, uint32_t owner)
{
	uint32_t hash = hash_of(pool, parent, key, tokens);

	if (pool->pages[page].state == PAGE_ANNOUNCED)
		index_remove(pool, page);
	if (pool->pages[page].state != PAGE_PRIVATE || lookup_hash(pool, hash, parent, key, tokens))
		return;
	index_insert(pool, page, hash, parent, key, tokens);
	pool->pages[page].state = PAGE_ANNOUNCED;
	pool->pages[page].owner = owner;
}

uint32_t pages_register(struct pages *pool, uint32_t page, uint32_t parent, const struct pages_key *key,
			const int32_t *tokens, uint64_t step)
{
	uint32_t hash = hash_of(pool, parent, key, tokens);
	uint32_t equal = lookup_hash(pool, hash, parent, key, tokens);

	if (equal && equal != page && pool->pages[equal].state == PAGE_REGISTERED) {
		reference(pool, equal);
		pages_release(pool, page, step);
		return equal;
	}
	if (equal && equal != page) /* announced by a sequence that is slower */
		index_remove(pool, equal);
	if (pool->pages[page].state == PAGE_ANNOUNCED)
		index_remove(pool, page);
	index_insert(pool, page, hash, parent, key, tokens);
	pool->pages[page].state = PAGE_REGISTERED;
	if (parent)
		pool->pages[parent].children++;
	return page;
}

void pages_release(struct pages *pool, uint32_t page, uint64_t step)
{
	struct page *p = pool->pages + page;

	if (--p->references)
		return;
	pool->counts.used--;
	if (p->state == PAGE_REGISTERED) {
		pool->counts.cached++;
		p->stamp = ++pool->clock;
		if (!p->children)
			heap_insert(&pool->leaves, page, p->stamp);
		return;
	}
	if (p->state == PAGE_ANNOUNCED)
		index_remove(pool, page);
	drain(pool, page, step);
}

void pages_discard(struct pages *pool, uint32_t page, uint64_t step)
{
	struct page *p = pool->pages + page;

	if (p->state == PAGE_REGISTERED && p->references == 1 && !p->children)
		unregister(pool, page);
	pages_release(pool, page, step);
}

void pages_ended(struct pages *pool, uint64_t step)
{
	pool->ended = step;
	while (pool->draining_first && pool->pages[pool->draining_first].stamp <= step) {
		uint32_t page = pool->draining_first;

		pool->draining_first = pool->pages[page].next;
		if (!pool->draining_first)
			pool->draining_last = 0;
		pool->counts.draining--;
		make_free(pool, page);
	}
}

struct pages_counts pages_counts(const struct pages *pool)
{
	return pool->counts;
}

int64_t pages_available(const struct pages *pool)
{
	return pool->counts.free + pool->counts.cached;
}

int64_t pages_references(const struct pages *pool, uint32_t page)
{
	return pool->pages[page].references;
}
