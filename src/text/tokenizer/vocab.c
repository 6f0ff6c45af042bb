/* SPDX-License-Identifier: Apache-2.0 */
#include "text/tokenizer/vocab.h"

static uint64_t mix(uint64_t x)
{
	x ^= x >> 32;
	x *= 0x9e3779b97f4a7c15u;
	return x ^ x >> 29;
}

uint64_t vocab_hash(const char *bytes, size_t size)
{
	uint64_t hash = 0x243f6a8885a308d3u ^ size, word;

	for (; size >= 8; bytes += 8, size -= 8) {
		memcpy(&word, bytes, 8);
		hash = mix(hash ^ word) * 0xd6e8feb86659fd93u;
	}
	word = 0;
	memcpy(&word, bytes, size);
	return mix(mix(hash ^ word) * 0xd6e8feb86659fd93u);
}

/* A power of two, so that `count` entries fill at most two thirds. */
static size_t slots_for(size_t count)
{
	size_t slots = 16;

	while (slots / 3 * 2 < count)
		slots *= 2;
	return slots;
}

static enum status tokens_grow(struct vocab *v, int32_t id, struct error *err)
{
	int32_t room = v->room ? v->room : 1024;
	struct vocab_token *grown;

	while (room <= id)
		room *= 2;
	if (room != v->room) {
		grown = realloc(v->tokens, (size_t)room * sizeof(*grown));
		if (!grown)
			return error_set(err, STATUS_NO_RESOURCE, "a vocabulary of %d tokens", room);
		memset(grown + v->room, 0, (size_t)(room - v->room) * sizeof(*grown));
		v->tokens = grown;
		v->room = room;
	}
	if (v->count <= id)
		v->count = id + 1;
	return STATUS_OK;
}

enum status vocab_add(struct vocab *v, int32_t id, const char *bytes, size_t size, enum vocab_kind kind,
		      struct error *err)
{
	enum status st;

	if (id < 0 || id >= VOCAB_IDS_MAX)
		return error_set(err, STATUS_BAD_INPUT, "token id %d is outside 0 to %d", id,
				 VOCAB_IDS_MAX - 1);
	if (!size || size > 65535)
		return error_set(err, STATUS_BAD_INPUT, "token %d has %zu bytes", id, size);
	st = tokens_grow(v, id, err);
	if (st)
		return st;
	if (v->tokens[id].kind != VOCAB_HOLE)
		return error_set(err, STATUS_BAD_INPUT, "token id %d is given twice", id);
	v->tokens[id] = (struct vocab_token){.begin = v->bytes.size, .size = (uint32_t)size, .kind = kind};
	text_add_bytes(&v->bytes, bytes, size);
	return v->bytes.failed ? error_set(err, STATUS_NO_RESOURCE, "a vocabulary's bytes") : STATUS_OK;
}

void vocab_set_kind(struct vocab *v, int32_t id, enum vocab_kind kind)
{
	v->tokens[id].kind = kind;
}

const char *vocab_bytes(const struct vocab *v, int32_t id, size_t *size)
{
	if (vocab_kind_of(v, id) == VOCAB_HOLE)
		return NULL;
	*size = v->tokens[id].size;
	return v->bytes.data + v->tokens[id].begin;
}

enum vocab_kind vocab_kind_of(const struct vocab *v, int32_t id)
{
	return id < 0 || id >= v->count ? VOCAB_HOLE : v->tokens[id].kind;
}

/* The slot of these bytes, or the empty slot where they belong. */
static int32_t *slot_of(const struct vocab *v, const char *bytes, size_t size)
{
	size_t mask = v->by_bytes_slots - 1, at = vocab_hash(bytes, size) & mask;

	for (;; at = (at + 1) & mask) {
		int32_t id = v->by_bytes[at];

		if (id < 0 ||
		    (v->tokens[id].size == size && !memcmp(v->bytes.data + v->tokens[id].begin, bytes, size)))
			return &v->by_bytes[at];
	}
}

int32_t vocab_find(const struct vocab *v, const char *bytes, size_t size)
{
	return *slot_of(v, bytes, size);
}

enum status vocab_index(struct vocab *v, struct error *err)
{
	int32_t id, *slot;
	size_t i;

	v->by_bytes_slots = slots_for((size_t)v->count);
	v->by_bytes = malloc(v->by_bytes_slots * sizeof(*v->by_bytes));
	if (!v->by_bytes)
		return error_set(err, STATUS_NO_RESOURCE, "a table of %zu tokens", v->by_bytes_slots);
	for (i = 0; i < v->by_bytes_slots; i++)
		v->by_bytes[i] = -1;
	for (id = 0; id < v->count; id++) {
		if (v->tokens[id].kind != VOCAB_TEXT)
			continue;
		slot = slot_of(v, v->bytes.data + v->tokens[id].begin, v->tokens[id].size);
		if (*slot >= 0)
			return error_set(err, STATUS_BAD_INPUT, "tokens %d and %d have the same bytes", *slot,
					 id);
		*slot = id;
	}
	for (i = 0; i < 256; i++)
		v->of_byte[i] = vocab_find(v, &(char){(char)i}, 1);
	return STATUS_OK;
}

enum status vocab_merges_room(struct vocab *v, size_t count, struct error *err)
{
	size_t i;

	v->merges_slots = slots_for(count);
	v->merges = malloc(v->merges_slots * sizeof(*v->merges));
	if (!v->merges)
		return error_set(err, STATUS_NO_RESOURCE, "a table of %zu merges", count);
	for (i = 0; i < v->merges_slots; i++)
		v->merges[i].rank = -1;
	return STATUS_OK;
}

static struct vocab_merge *merge_slot(const struct vocab *v, uint64_t pair)
{
	size_t mask = v->merges_slots - 1, at = mix(pair * 0xd6e8feb86659fd93u) & mask;

	while (v->merges[at].rank >= 0 && v->merges[at].pair != pair)
		at = (at + 1) & mask;
	return &v->merges[at];
}

const struct vocab_merge *vocab_merge(const struct vocab *v, int32_t left, int32_t right)
{
	const struct vocab_merge *m = merge_slot(v, (uint64_t)left << 32 | (uint32_t)right);

	return m->rank < 0 ? NULL : m;
}

enum status vocab_add_merge(struct vocab *v, int32_t rank, const char *left, size_t left_size,
			    const char *right, size_t right_size, struct error *err)
{
	char both[512];
	struct vocab_merge *slot;
	int32_t a = vocab_find(v, left, left_size), b = vocab_find(v, right, right_size), id = -1;

	if (left_size + right_size <= sizeof(both)) {
		memcpy(both, left, left_size);
		memcpy(both + left_size, right, right_size);
		id = vocab_find(v, both, left_size + right_size);
	}
	if (a < 0 || b < 0 || id < 0)
		return error_set(err, STATUS_BAD_INPUT, "merge %d: its %s is not in the vocabulary", rank,
				 a < 0	 ? "left part"
				 : b < 0 ? "right part"
					 : "result");
	slot = merge_slot(v, (uint64_t)a << 32 | (uint32_t)b);
	if (slot->rank >= 0)
		return STATUS_OK; /* given twice: the first one counts */
	*slot = (struct vocab_merge){.pair = (uint64_t)a << 32 | (uint32_t)b, .rank = rank, .id = id};
	v->merges_count++;
	return STATUS_OK;
}

void vocab_release(struct vocab *v)
{
	free(v->tokens);
	free(v->by_bytes);
	free(v->merges);
	text_release(&v->bytes);
	*v = (struct vocab){0};
}
