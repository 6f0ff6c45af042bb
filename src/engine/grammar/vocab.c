/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/grammar/vocab.h"
#include "core/text/utf8.h"

const uint32_t vocab_slice_chars[VOCAB_SLICES] = {3, 5, 7, 9, 12, 16, 32, GRAMMAR_TOKEN_BYTES_MOST};

struct sorted_token {
	const char *bytes;
	uint32_t size;
	int32_t id;
};

static int compare_tokens(const void *a, const void *b)
{
	const struct sorted_token *x = a, *y = b;
	int order = memcmp(x->bytes, y->bytes, x->size < y->size ? x->size : y->size);

	if (order)
		return order;
	if (x->size != y->size)
		return x->size < y->size ? -1 : 1;
	return x->id < y->id ? -1 : 1;
}

/* Number of plain characters of a token that consists of nothing else; 0: it holds another byte. */
static uint32_t plain_chars(const char *bytes, size_t size)
{
	char text[GRAMMAR_TOKEN_BYTES_MOST + 4] = {0}; /* utf8_decode needs an end */
	uint32_t chars = 0;
	size_t taken;

	memcpy(text, bytes, size);
	for (size_t at = 0; at < size; at += taken, chars++) {
		uint32_t code = utf8_decode(text + at, &taken);

		if (code < 0x20 || code == '"' || code == '\\' || at + taken > size ||
		    (code == UTF8_REPLACEMENT && taken == 1))
			return 0;
	}
	return chars;
}

static uint8_t slices_of(uint32_t chars)
{
	uint8_t bits = 0;

	for (unsigned k = 0; k < VOCAB_SLICES; k++)
		if (chars && chars <= vocab_slice_chars[k])
			bits |= (uint8_t)(1u << k);
	return bits;
}

static uint32_t shared_prefix(const struct sorted_token *a, const struct sorted_token *b)
{
	uint32_t n = 0;

	while (n < a->size && n < b->size && a->bytes[n] == b->bytes[n])
		n++;
	return n;
}

/* Ends the open subtrees that are deeper than `depth`, and hands their slices to their parents. */
static void close_nodes(struct grammar_vocab *v, uint32_t *open, uint32_t *deep, uint32_t depth)
{
	for (; *deep > depth; --*deep) {
		struct vocab_node *node = &v->nodes[open[*deep]];

		node->next = (uint32_t)v->node_count;
		if (*deep > 1)
			v->nodes[open[*deep - 1]].inside &= node->inside;
	}
}

static void fill_tree(struct grammar_vocab *v, const struct sorted_token *sorted, size_t count)
{
	uint32_t open[GRAMMAR_TOKEN_BYTES_MOST + 1], deep = 0;

	for (size_t i = 0; i < count; i++) {
		const struct sorted_token *t = &sorted[i];
		uint32_t shared = i ? shared_prefix(&sorted[i - 1], t) : 0;
		uint8_t bits = slices_of(plain_chars(t->bytes, t->size));
		struct vocab_node *node;

		if (shared == t->size && deep == t->size) { /* equal to the previous token */
			v->same[t->id] = v->same[v->nodes[open[deep]].token];
			v->same[v->nodes[open[deep]].token] = t->id;
		} else {
			close_nodes(v, open, &deep, shared);
			while (deep < t->size) {
				open[++deep] = (uint32_t)v->node_count;
				v->nodes[v->node_count++] =
					(struct vocab_node){.token = -1,
							    .depth = (uint16_t)deep,
							    .byte = (uint8_t)t->bytes[deep - 1],
							    .inside = (1u << VOCAB_SLICES) - 1};
			}
			node = &v->nodes[open[deep]];
			node->token = t->id;
			node->inside &= bits;
		}
		for (unsigned k = 0; k < VOCAB_SLICES; k++)
			if (bits >> k & 1)
				v->slices[k * v->words + (size_t)t->id / 32] |= 1u << t->id % 32;
	}
	close_nodes(v, open, &deep, 0);
}

static enum status check_tokens(const struct grammar_token *tokens, size_t count, size_t *bytes,
				size_t *longest, struct error *err)
{
	bool end = false;

	if (!count || count > GRAMMAR_TOKENS_MOST)
		return error_set(err, STATUS_BAD_INPUT, "a vocabulary of %zu tokens: expected 1 to %d", count,
				 GRAMMAR_TOKENS_MOST);
	for (size_t i = 0; i < count; i++) {
		if (tokens[i].size > GRAMMAR_TOKEN_BYTES_MOST)
			return error_set(err, STATUS_BAD_INPUT,
					 "token %zu has %zu bytes: at most %d are supported", i,
					 tokens[i].size, GRAMMAR_TOKEN_BYTES_MOST);
		end |= tokens[i].kind == GRAMMAR_TOKEN_END;
		if (tokens[i].kind == GRAMMAR_TOKEN_TEXT) {
			*bytes += tokens[i].size;
			*longest = tokens[i].size > *longest ? tokens[i].size : *longest;
		}
	}
	if (!end)
		return error_set(err, STATUS_BAD_INPUT,
				 "the vocabulary has no token that ends a text, so no grammar could end");
	return STATUS_OK;
}

static bool allocate(struct grammar_vocab *v, size_t bytes)
{
	v->nodes = malloc((bytes + 1) * sizeof(*v->nodes));
	v->same = malloc(v->count * sizeof(*v->same));
	v->text_at = malloc((v->count + 1) * sizeof(*v->text_at));
	v->text = malloc(bytes + 1);
	v->slices = calloc(VOCAB_SLICES * v->words, sizeof(*v->slices));
	v->end = calloc(v->words, sizeof(*v->end));
	return v->nodes && v->same && v->text_at && v->text && v->slices && v->end;
}

static size_t copy_texts(struct grammar_vocab *v, const struct grammar_token *tokens,
			 struct sorted_token *sorted)
{
	uint32_t at = 0;
	size_t used = 0;

	for (size_t i = 0; i < v->count; i++) {
		v->same[i] = -1;
		v->text_at[i] = at;
		if (tokens[i].kind == GRAMMAR_TOKEN_END)
			v->end[i / 32] |= 1u << i % 32;
		if (tokens[i].kind != GRAMMAR_TOKEN_TEXT || !tokens[i].size)
			continue;
		memcpy(v->text + at, tokens[i].bytes, tokens[i].size);
		sorted[used++] = (struct sorted_token){v->text + at, (uint32_t)tokens[i].size, (int32_t)i};
		at += (uint32_t)tokens[i].size;
	}
	v->text_at[v->count] = at;
	return used;
}

enum status grammar_vocab_create(struct grammar_vocab **out, const struct grammar_token *tokens, size_t count,
				 struct error *err)
{
	struct sorted_token *sorted = NULL;
	struct grammar_vocab *v = NULL;
	struct vocab_node *fitted;
	size_t bytes = 0, longest = 0, used;
	enum status st = check_tokens(tokens, count, &bytes, &longest, err);

	*out = NULL;
	if (!st && bytes > UINT32_MAX / 2)
		st = error_set(err, STATUS_BAD_INPUT,
			       "the vocabulary has %zu bytes of text: at most %u are supported", bytes,
			       UINT32_MAX / 2);
	if (st)
		return st;
	v = calloc(1, sizeof(*v));
	sorted = malloc(count * sizeof(*sorted));
	if (v) {
		v->count = count;
		v->words = (count + 31) / 32;
		v->longest = longest;
	}
	if (!v || !sorted || !allocate(v, bytes)) {
		free(sorted);
		grammar_vocab_destroy(&v);
		return error_set(err, STATUS_NO_RESOURCE, "out of memory for a vocabulary of %zu tokens",
				 count);
	}
	used = copy_texts(v, tokens, sorted);
	qsort(sorted, used, sizeof(*sorted), compare_tokens);
	fill_tree(v, sorted, used);
	free(sorted);
	fitted = realloc(v->nodes, (v->node_count + 1) * sizeof(*fitted));
	v->nodes = fitted ? fitted : v->nodes;
	*out = v;
	return STATUS_OK;
}

void grammar_vocab_destroy(struct grammar_vocab **v)
{
	if (!*v)
		return;
	free((*v)->nodes);
	free((*v)->same);
	free((*v)->text_at);
	free((*v)->text);
	free((*v)->slices);
	free((*v)->end);
	free(*v);
	*v = NULL;
}

size_t grammar_vocab_words(const struct grammar_vocab *v)
{
	return v->words;
}
