/* SPDX-License-Identifier: Apache-2.0 */
/* The vocabulary of a byte-level BPE: tokens by id and by bytes, merges by pair. Some ids may have no token.
 */
#ifndef TEXT_TOKENIZER_VOCAB_H
#define TEXT_TOKENIZER_VOCAB_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/error.h"
#include "core/text/text.h"

enum { VOCAB_IDS_MAX = 1 << 22 };

enum vocab_kind {
	VOCAB_HOLE,    /* no token has this id */
	VOCAB_TEXT,    /* result of merges */
	VOCAB_MARKUP,  /* added token, matched as a whole, visible to readers: <tool_call> */
	VOCAB_CONTROL, /* added token, matched as a whole, left out of text for readers: <|im_end|> */
};

struct vocab_token {
	size_t begin; /* offset in vocab.bytes */
	uint32_t size;
	enum vocab_kind kind;
};

struct vocab_merge {
	uint64_t pair; /* left << 32 | right */
	int32_t rank, id;
};

struct vocab {
	struct vocab_token *tokens; /* [count] */
	int32_t count;		    /* one more than the largest id */
	int32_t room;
	struct text bytes;
	int32_t *by_bytes; /* hash table with open addressing: id, or -1; only text tokens */
	size_t by_bytes_slots;
	struct vocab_merge *merges; /* hash table with open addressing; rank < 0: empty */
	size_t merges_slots, merges_count;
	int32_t of_byte[256]; /* the token of a single byte, or -1 */
};

/* Adds a token. BAD_INPUT: the id exists already or, for text tokens, the bytes do. */
enum status vocab_add(struct vocab *v, int32_t id, const char *bytes, size_t size, enum vocab_kind kind,
		      struct error *err);
/* Makes an existing token one that is matched as a whole and never results from merges. */
void vocab_set_kind(struct vocab *v, int32_t id, enum vocab_kind kind);
/* To be called once, after the last token and before merges and look-ups. */
enum status vocab_index(struct vocab *v, struct error *err);
/* Allocates room for `count` merges. */
enum status vocab_merges_room(struct vocab *v, size_t count, struct error *err);
/* Adds the merge with the next rank. BAD_INPUT: one of its three tokens is not in the vocabulary. */
enum status vocab_add_merge(struct vocab *v, int32_t rank, const char *left, size_t left_size,
			    const char *right, size_t right_size, struct error *err);
void vocab_release(struct vocab *v);

/* The text token with these bytes, or -1. */
int32_t vocab_find(const struct vocab *v, const char *bytes, size_t size);
/* The merge of two neighbours, or NULL. */
const struct vocab_merge *vocab_merge(const struct vocab *v, int32_t left, int32_t right);
/* Bytes of a token, not terminated; NULL for an id without one. */
const char *vocab_bytes(const struct vocab *v, int32_t id, size_t *size);
enum vocab_kind vocab_kind_of(const struct vocab *v, int32_t id);
/* Of bytes, for tables of a size that is a power of two. */
uint64_t vocab_hash(const char *bytes, size_t size);
#endif
