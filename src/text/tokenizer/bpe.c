/* SPDX-License-Identifier: Apache-2.0 */
#include "text/tokenizer/bpe.h"

enum {
	CACHE_SLOTS = 1 << 14,
	CACHE_BYTES = 34, /* longer words, or words with more tokens, are not cached */
	CACHE_IDS = 6,
	WORD_MAX = 1 << 30,
};

/* A cached word, in 64 bytes. */
struct cached {
	int32_t id[CACHE_IDS];
	uint32_t hash; /* upper half of the hash; the lower half selects the slot */
	uint8_t size, count;
	char bytes[CACHE_BYTES];
};

struct symbol {
	int32_t id;	    /* -1: merged into the symbol before it */
	int32_t prev, next; /* -1: none */
};

/* Two adjacent symbols that may merge. The heap's first is the one with the lowest rank, then the leftmost.
 */
struct candidate {
	int32_t rank, at, id;
};

struct bpe {
	struct cached *cache;
	struct symbol *symbols;
	size_t symbols_room;
	struct candidate *heap;
	size_t heap_count, heap_room;
};

enum status token_list_add(struct token_list *list, const int32_t *ids, size_t count, struct error *err)
{
	size_t room = list->room ? list->room : 256;
	int32_t *grown;

	while (room < list->count + count)
		room *= 2;
	if (room != list->room) {
		grown = realloc(list->id, room * sizeof(*grown));
		if (!grown)
			return error_set(err, STATUS_NO_RESOURCE, "%zu tokens", room);
		list->id = grown;
		list->room = room;
	}
	if (count)
		memcpy(list->id + list->count, ids, count * sizeof(*ids));
	list->count += count;
	return STATUS_OK;
}

void token_list_release(struct token_list *list)
{
	free(list->id);
	*list = (struct token_list){0};
}

enum status bpe_create(struct bpe **b, struct error *err)
{
	struct bpe *made = calloc(1, sizeof(*made));

	if (made)
		made->cache = calloc(CACHE_SLOTS, sizeof(*made->cache));
	if (!made || !made->cache) {
		bpe_destroy(&made);
		return error_set(err, STATUS_NO_RESOURCE, "the workspace of a tokenizer");
	}
	*b = made;
	return STATUS_OK;
}

void bpe_destroy(struct bpe **b)
{
	if (!*b)
		return;
	free((*b)->cache);
	free((*b)->symbols);
	free((*b)->heap);
	free(*b);
	*b = NULL;
}

static int comes_before(const struct candidate *a, const struct candidate *b)
{
	return a->rank != b->rank ? a->rank < b->rank : a->at < b->at;
}

static void heap_push(struct bpe *b, struct candidate c)
{
	size_t at = b->heap_count++;

	while (at && comes_before(&c, &b->heap[(at - 1) / 2])) {
		b->heap[at] = b->heap[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	b->heap[at] = c;
}

static struct candidate heap_pop(struct bpe *b)
{
	struct candidate top = b->heap[0], last = b->heap[--b->heap_count];
	size_t at = 0, child;

	for (; (child = at * 2 + 1) < b->heap_count; at = child) {
		if (child + 1 < b->heap_count && comes_before(&b->heap[child + 1], &b->heap[child]))
			child++;
		if (!comes_before(&b->heap[child], &last))
			break;
		b->heap[at] = b->heap[child];
	}
	b->heap[at] = last;
	return top;
}

/* A word of n bytes has n - 1 pairs at first, and each merge adds at most two. */
static enum status make_room(struct bpe *b, size_t size, struct error *err)
{
	struct symbol *symbols = b->symbols;
	struct candidate *heap = b->heap;

	if (size > WORD_MAX)
		return error_set(err, STATUS_BAD_INPUT, "a word of %zu bytes", size);
	if (size > b->symbols_room) {
		symbols = realloc(symbols, size * 2 * sizeof(*symbols));
		if (symbols) {
			b->symbols = symbols;
			b->symbols_room = size * 2;
		}
	}
	if (size * 3 > b->heap_room) {
		heap = realloc(heap, size * 6 * sizeof(*heap));
		if (heap) {
			b->heap = heap;
			b->heap_room = size * 6;
		}
	}
	return symbols && heap ? STATUS_OK : error_set(err, STATUS_NO_RESOURCE, "a word of %zu bytes", size);
}

static void offer(struct bpe *b, const struct vocab *v, int32_t at)
{
	const struct symbol *left = &b->symbols[at];
	const struct vocab_merge *m;

	if (left->next < 0)
		return;
	m = vocab_merge(v, left->id, b->symbols[left->next].id);
	if (m)
		heap_push(b, (struct candidate){.rank = m->rank, .at = at, .id = m->id});
}

/* Makes each byte a symbol. Bytes without a token are left out, as in the reference implementation. */
static int32_t symbols_of(struct bpe *b, const struct vocab *v, const char *word, size_t size)
{
	int32_t count = 0, i;
	size_t at;

	for (at = 0; at < size; at++) {
		int32_t id = v->of_byte[(unsigned char)word[at]];

		if (id < 0)
			continue;
		b->symbols[count] = (struct symbol){.id = id, .prev = count - 1, .next = count + 1};
		count++;
	}
	if (count)
		b->symbols[count - 1].next = -1;
	b->heap_count = 0;
	for (i = 0; i < count; i++)
		offer(b, v, i);
	return count;
}

static void merge_all(struct bpe *b, const struct vocab *v)
{
	while (b->heap_count) {
		struct candidate c = heap_pop(b);
		struct symbol *left = &b->symbols[c.at], *right;
		const struct vocab_merge *m;

		if (left->id < 0 || left->next < 0)
			continue;
		right = &b->symbols[left->next];
		m = vocab_merge(v, left->id, right->id);
		if (!m || m->id != c.id) /* one of the two has merged meanwhile */
			continue;
		left->id = c.id;
		left->next = right->next;
		right->id = -1;
		if (left->next >= 0)
			b->symbols[left->next].prev = c.at;
		if (left->prev >= 0)
			offer(b, v, left->prev);
		offer(b, v, c.at);
	}
}

static enum status merge_word(struct bpe *b, const struct vocab *v, const char *word, size_t size,
			      struct token_list *out, struct error *err)
{
	enum status st = make_room(b, size, err);
	int32_t at;

	if (st || !symbols_of(b, v, word, size))
		return st;
	merge_all(b, v);
	for (at = 0; at >= 0 && !st; at = b->symbols[at].next)
		st = token_list_add(out, &b->symbols[at].id, 1, err);
	return st;
}

enum status bpe_word(struct bpe *b, const struct vocab *v, bool whole_first, const char *word, size_t size,
		     struct token_list *out, struct error *err)
{
	uint64_t hash = vocab_hash(word, size);
	struct cached *slot = &b->cache[hash % CACHE_SLOTS];
	size_t before = out->count;
	enum status st;
	int32_t whole;

	if (slot->size == size && slot->hash == hash >> 32 && !memcmp(slot->bytes, word, size))
		return token_list_add(out, slot->id, slot->count, err);
	whole = whole_first ? vocab_find(v, word, size) : -1;
	if (whole >= 0)
		st = token_list_add(out, &whole, 1, err);
	else
		st = merge_word(b, v, word, size, out, err);
	if (st || size > CACHE_BYTES || out->count - before > CACHE_IDS)
		return st;
	*slot = (struct cached){.hash = (uint32_t)(hash >> 32),
				.size = (uint8_t)size,
				.count = (uint8_t)(out->count - before)};
	memcpy(slot->bytes, word, size);
	if (slot->count)
		memcpy(slot->id, out->id + before, slot->count * sizeof(*slot->id));
	return STATUS_OK;
}
