/* SPDX-License-Identifier: Apache-2.0 */
/* Compiled grammars and refusals by their source, least recently used first out. */
#include "core/math/fnv1a.h"
#include "engine/grammar/compiled.h"

enum { ENTRIES_MOST = 1024 };

struct source {
	const char *text;
	size_t size;
	uint64_t hash;
};

struct entry {
	struct entry *newer, *older, *chain;
	struct grammar *grammar; /* NULL: the source is refused */
	struct error refusal;
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
	*(e->grammar ? &c->counts.grammars : &c->counts.refusals) -= 1;
	grammar_release(&e->grammar);
	free(e);
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

static struct entry *find(struct grammar_cache *c, const struct source *s)
{
	struct entry *e = c->buckets[s->hash % ENTRIES_MOST];

	while (e && (e->hash != s->hash || e->size != s->size || memcmp(e->source, s->text, s->size) != 0))
		e = e->chain;
	return e;
}

static size_t entry_bytes(const struct entry *e)
{
	return sizeof(*e) + e->size + (e->grammar ? grammar_bytes(e->grammar) : 0);
}

/* States grow while grammars are in use, so their bytes are summed anew. */
static void evict(struct grammar_cache *c)
{
	size_t bytes = 0;
	struct entry *e;

	for (e = c->newest; e; e = e->older)
		bytes += entry_bytes(e);
	while (c->oldest && c->oldest != c->newest &&
	       (bytes > c->most || c->counts.grammars + c->counts.refusals > ENTRIES_MOST)) {
		bytes -= entry_bytes(c->oldest);
		drop(c, c->oldest);
		c->counts.evicted++;
	}
	c->counts.bytes = bytes;
}

/* Gives the caller what the entry holds. */
static void give(struct entry *e, struct grammar **out, struct error *refusal)
{
	if (e->grammar)
		*out = grammar_retain(e->grammar);
	else
		*refusal = e->refusal;
}

static bool take_known(struct grammar_cache *c, const struct source *s, struct grammar **out,
		       struct error *refusal)
{
	struct entry *e = find(c, s);

	if (!e)
		return false;
	unlink_entry(c, e);
	link_newest(c, e);
	give(e, out, refusal);
	return true;
}

/* The next time there may be enough memory. Every other refusal follows from the source alone. */
static bool is_lasting(const struct error *refusal)
{
	return refusal->cause != CAUSE_NO_MEMORY;
}

/* Adds an entry, which has a reference of its own. Without memory there is no entry. */
static void keep(struct grammar_cache *c, const struct source *s, struct grammar *made,
		 const struct error *refusal)
{
	struct entry *e = malloc(sizeof(*e) + s->size), **bucket = &c->buckets[s->hash % ENTRIES_MOST];

	if (!e)
		return;
	*e = (struct entry){.refusal = *refusal, .hash = s->hash, .size = s->size, .chain = *bucket};
	memcpy(e->source, s->text, s->size);
	if (made)
		e->grammar = grammar_retain(made);
	*bucket = e;
	link_newest(c, e);
	*(made ? &c->counts.grammars : &c->counts.refusals) += 1;
	evict(c);
}

/* Another thread may have compiled the same source meanwhile. */
static void compile(struct grammar_cache *c, const struct source *s, struct grammar **out,
		    struct error *refusal)
{
	struct grammar *made = NULL;
	struct error why = {0};

	grammar_compile(&made, c->vocab, s->text, s->size, &c->limits, &why);
	pthread_mutex_lock(&c->lock);
	if (!take_known(c, s, out, refusal)) {
		if (is_lasting(&why))
			keep(c, s, made, &why);
		*refusal = why;
		*out = made;
		made = NULL;
	}
	pthread_mutex_unlock(&c->lock);
	grammar_release(&made);
}

enum status grammar_cache_get(struct grammar_cache *c, struct grammar **out, const char *source, size_t size,
			      struct error *err)
{
	const struct source s = {source, size, fnv1a_add(FNV1A_BEGIN, source, size)};
	struct error refusal = {0};
	bool known;

	*out = NULL;
	pthread_mutex_lock(&c->lock);
	known = take_known(c, &s, out, &refusal);
	*(known ? &c->counts.hits : &c->counts.misses) += 1;
	pthread_mutex_unlock(&c->lock);
	if (!known)
		compile(c, &s, out, &refusal);
	return *out ? STATUS_OK
		    : error_set_at(err, refusal.status, refusal.cause, refusal.file, refusal.line, "%s",
				   refusal.text);
}

struct grammar_cache_counts grammar_cache_counts(struct grammar_cache *c)
{
	struct grammar_cache_counts counts;

	pthread_mutex_lock(&c->lock);
	counts = c->counts;
	pthread_mutex_unlock(&c->lock);
	return counts;
}
