/* SPDX-License-Identifier: Apache-2.0 */
/* Compiled grammars by their source, least recently used first out. */
#include "core/math/fnv1a.h"
#include "engine/grammar/compiled.h"

enum { ENTRIES_MOST = 1024 };

struct entry {
	struct entry *newer, *older, *chain;
	struct grammar *grammar;
	uint64_t hash;
	size_t size;
	char source[];
};

struct grammar_cache {
	pthread_mutex_t lock;
	const struct grammar_vocab *vocab;
	struct grammar_limits limits;
	struct entry *buckets[ENTRIES_MOST];
	struct entry *newest, *oldest;
	struct grammar_cache_counts counts;
	size_t most;
};

enum status grammar_cache_create(struct grammar_cache **out, const struct grammar_vocab *vocab, size_t bytes,
				 const struct grammar_limits *limits, struct error *err)
{
	struct grammar_cache *c = calloc(1, sizeof(*c));

	*out = c;
	if (!c)
		return error_set(err, STATUS_NO_RESOURCE, "out of memory for the cache of grammars");
	pthread_mutex_init(&c->lock, NULL);
	c->vocab = vocab;
	c->most = bytes;
	if (limits)
		c->limits = *limits;
	return STATUS_OK;
}

static void unlink_entry(struct grammar_cache *c, struct entry *e)
{
	*(e->newer ? &e->newer->older : &c->newest) = e->older;
	*(e->older ? &e->older->newer : &c->oldest) = e->newer;
}

static void link_newest(struct grammar_cache *c, struct entry *e)
{
	e->newer = NULL;
	e->older = c->newest;
	*(c->newest ? &c->newest->newer : &c->oldest) = e;
	c->newest = e;
}

static void drop(struct grammar_cache *c, struct entry *e)
{
	struct entry **at = &c->buckets[e->hash % ENTRIES_MOST];

	while (*at != e)
		at = &(*at)->chain;
	*at = e->chain;
	unlink_entry(c, e);
	grammar_release(&e->grammar);
	free(e);
	c->counts.grammars--;
}

void grammar_cache_destroy(struct grammar_cache **c)
{
	if (!*c)
		return;
	while ((*c)->oldest)
		drop(*c, (*c)->oldest);
	pthread_mutex_destroy(&(*c)->lock);
	free(*c);
	*c = NULL;
}

static struct entry *find(struct grammar_cache *c, uint64_t hash, const char *source, size_t size)
{
	struct entry *e = c->buckets[hash % ENTRIES_MOST];

	while (e && (e->hash != hash || e->size != size || memcmp(e->source, source, size) != 0))
		e = e->chain;
	return e;
}

/* States grow while grammars are in use, so their bytes are summed anew. */
static void evict(struct grammar_cache *c)
{
	size_t bytes = 0;
	struct entry *e;

	for (e = c->newest; e; e = e->older)
		bytes += grammar_bytes(e->grammar) + e->size;
	while (c->oldest && c->oldest != c->newest &&
	       (bytes > c->most || c->counts.grammars > ENTRIES_MOST)) {
		bytes -= grammar_bytes(c->oldest->grammar) + c->oldest->size;
		drop(c, c->oldest);
		c->counts.evicted++;
	}
	c->counts.bytes = bytes;
}

static struct entry *make_entry(uint64_t hash, const char *source, size_t size, struct grammar *g)
{
	struct entry *e = malloc(sizeof(*e) + size);

	if (!e)
		return NULL;
	*e = (struct entry){.grammar = g, .hash = hash, .size = size};
	memcpy(e->source, source, size);
	return e;
}

static struct grammar *take_known(struct grammar_cache *c, uint64_t hash, const char *source, size_t size)
{
	struct entry *e = find(c, hash, source, size);

	if (!e)
		return NULL;
	unlink_entry(c, e);
	link_newest(c, e);
	return grammar_retain(e->grammar);
}

enum status grammar_cache_get(struct grammar_cache *c, struct grammar **out, const char *source, size_t size,
			      struct error *err)
{
	uint64_t hash = fnv1a_add(FNV1A_BEGIN, source, size);
	struct grammar *made = NULL;
	struct entry *e;
	enum status st;

	pthread_mutex_lock(&c->lock);
	*out = take_known(c, hash, source, size);
	*(*out ? &c->counts.hits : &c->counts.misses) += 1;
	pthread_mutex_unlock(&c->lock);
	if (*out)
		return STATUS_OK;
	st = grammar_compile(&made, c->vocab, source, size, &c->limits, err);
	if (st)
		return st;
	pthread_mutex_lock(&c->lock);
	*out = take_known(c, hash, source, size); /* another thread was first */
	if (!*out && (e = make_entry(hash, source, size, made))) {
		e->chain = c->buckets[hash % ENTRIES_MOST];
		c->buckets[hash % ENTRIES_MOST] = e;
		link_newest(c, e);
		c->counts.grammars++;
		*out = grammar_retain(made);
		made = NULL; /* the entry has its reference */
		evict(c);
	} else if (!*out) { /* no memory to keep it: the caller still gets it */
		*out = grammar_retain(made);
	}
	pthread_mutex_unlock(&c->lock);
	grammar_release(&made);
	return STATUS_OK;
}

struct grammar_cache_counts grammar_cache_counts(struct grammar_cache *c)
{
	struct grammar_cache_counts counts;

	pthread_mutex_lock(&c->lock);
	counts = c->counts;
	pthread_mutex_unlock(&c->lock);
	return counts;
}
