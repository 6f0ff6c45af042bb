/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page pool of the KV cache. It knows the free pages, the references on the others, and the tokens that a
 * full page was computed from. It does not know device memory or requests.
 *
 * A page is in exactly one state. Page 0 has none: it is never given out, and padding rows write there.
 *
 *   free      no reference, no contents
 *   used      at least one reference
 *   cached    no reference, but registered. A later request or an eviction may take it.
 *   draining  released without being registered. An enqueued step may still write to it.
 *
 * Registered pages form trees. An entry is: parent page (0 for the first page of a sequence), the page's
 * tokens, salt, and load generation of the adapter. A lookup compares all four. The hash only finds
 * candidates. A registered page keeps its parent registered, because eviction takes only leaves, least
 * recently used first. One pool belongs to one cache type and page size, so these are in no entry.
 *
 * A page that a running request is going to fill with known tokens may be announced. Announced pages are
 * found by lookups of others, who may then wait for them; they cannot be taken.
 *
 * Every operation on one page takes constant time, or O(log pages) if it changes the eviction order. All
 * memory is allocated by pages_create.
 */
#ifndef ENGINE_PAGES_PAGES_H
#define ENGINE_PAGES_PAGES_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/error.h"

enum { PAGES_TOKENS_LEAST = 16, PAGES_TOKENS_MOST = 64, PAGES_MOST = 1 << 26 };

struct pages_options {
	int64_t pages;	     /* page 0 included: 2 .. PAGES_MOST */
	int32_t page_tokens; /* positions of a page: a power of two, PAGES_TOKENS_LEAST .. PAGES_TOKENS_MOST
			      */
	uint64_t seed; /* seed of the hash. Clients must not be able to guess it, or they could make long
			  chains. */
};

struct pages;
/* BAD_INPUT if an option is out of range, NO_RESOURCE without memory. Owner: caller, pages_free. */
enum status pages_create(struct pages **out, const struct pages_options *options, struct error *err);
void pages_free(struct pages **pool); /* NULL-safe */

/* Only sequences with equal keys share pages. */
struct pages_key {
	uint64_t salt;	  /* struct engine_request's cache_salt */
	uint64_t adapter; /* generation of the adapter's loading; 0: the base model. A new load is a new
			     number. */
};

/* An announced page that a lookup has met behind the pages that it took. */
struct pages_next {
	uint32_t page;	/* the deepest announced page with the same tokens; 0: none */
	uint32_t owner; /* as given to pages_announce */
};

/* Finds the longest registered prefix of `tokens` [count, page_tokens]. Takes a reference on each of its
 * pages and writes their numbers to `table` [count]. Returns how many there are. *next gets the last of the
 * announced pages that follow. */
int32_t pages_find(struct pages *pool, const struct pages_key *key, const int32_t *tokens, int32_t count,
		   uint32_t *table, struct pages_next *next);
/* A free page, or the least recently used cached leaf, with one reference. 0: there is none now. */
uint32_t pages_take(struct pages *pool);
/* Says that the holder of `page` (from pages_take) will fill it with `tokens` [page_tokens] behind `parent`.
 * If an equal page is already registered or announced, nothing is announced. A second call replaces the
 * first. */
void pages_announce(struct pages *pool, uint32_t page, uint32_t parent, const struct pages_key *key,
		    const int32_t *tokens, uint32_t owner);
/* Registers a page that was filled with finite values. `parent` must be registered and held by the same
 * sequence, or be 0. Returns the page that the sequence uses from now on: `page`, or an equal page that was
 * registered before. In the latter case the reference moves: `page` is released as by pages_release with
 * `step`. */
uint32_t pages_register(struct pages *pool, uint32_t page, uint32_t parent, const struct pages_key *key,
			const int32_t *tokens, uint64_t step);
/* Gives one reference back. Without references a registered page becomes cached. Any other page becomes free
 * once step `step` has ended (pages_ended); 0: at once. A sequence releases its last page first, so that the
 * ends of sequences are evicted before their beginnings. */
void pages_release(struct pages *pool, uint32_t page, uint64_t step);
/* As pages_release, for a page of a failed sequence: it does not stay cached, unless another sequence holds
 * it or a page behind it. */
void pages_discard(struct pages *pool, uint32_t page, uint64_t step);
/* All steps up to `step` have ended: their draining pages become free. */
void pages_ended(struct pages *pool, uint64_t step);

struct pages_counts {
	int64_t pages;			      /* all that can be given out: page 0 is not counted */
	int64_t free, used, cached, draining; /* their sum is `pages` */
	uint64_t evicted;		      /* since the start */
};
struct pages_counts pages_counts(const struct pages *pool);
/* Pages that pages_take can give out now: free and cached. */
int64_t pages_available(const struct pages *pool);
/* References of a page. */
int64_t pages_references(const struct pages *pool, uint32_t page);

/* For tests: compares every list, count, link and index of the pool with each other, in O(pages). MISMATCH
 * with the first difference. */
enum status pages_check(const struct pages *pool, struct error *err);
#endif
