/* SPDX-License-Identifier: Apache-2.0 */
/* A source either compiles or is refused with a reason. Masks of its states agree with accept. */
#ifndef TESTS_FUZZ_GRAMMAR_H
#define TESTS_FUZZ_GRAMMAR_H
#include "fuzz.h"

#include "engine/grammar/grammar.h"

enum { FUZZ_END = 256, FUZZ_TOKENS = 260 };

static struct grammar_vocab *fuzz_vocab(void)
{
	static const char *const longer[] = {"\"}", "\": ", "aa"};
	struct grammar_token tokens[FUZZ_TOKENS];
	static char bytes[256];
	struct grammar_vocab *v = NULL;

	for (int i = 0; i < 256; i++) {
		bytes[i] = (char)i;
		tokens[i] = (struct grammar_token){&bytes[i], 1, GRAMMAR_TOKEN_TEXT};
	}
	tokens[FUZZ_END] = (struct grammar_token){NULL, 0, GRAMMAR_TOKEN_END};
	for (int i = 0; i < 3; i++)
		tokens[257 + i] = (struct grammar_token){longer[i], strlen(longer[i]), GRAMMAR_TOKEN_TEXT};
	FUZZ_CHECK(!grammar_vocab_create(&v, tokens, FUZZ_TOKENS, NULL));
	return v;
}

/* Follows the masks for some tokens, and holds each mask against accept. */
static void fuzz_walk(struct grammar *g, uint32_t random)
{
	uint32_t mask[(FUZZ_TOKENS + 31) / 32];
	struct grammar_state *s = NULL;

	if (grammar_state_create(&s, g, NULL))
		return; /* its states exceed the budget */
	for (int step = 0; step < 12; step++) {
		int32_t chosen = -1;

		if (grammar_mask(s, mask, NULL))
			break;
		for (int32_t id = 0; id < FUZZ_TOKENS; id++) {
			bool may = mask[id / 32] >> id % 32 & 1;
			struct grammar_state *copy = NULL;
			enum grammar_accepted a;

			FUZZ_CHECK(!grammar_state_copy(&copy, s, NULL));
			a = grammar_accept(copy, id);
			grammar_state_destroy(&copy);
			if (a == GRAMMAR_FAILED)
				continue;
			FUZZ_CHECK(may == (a != GRAMMAR_REFUSED));
			if (a == GRAMMAR_REFUSED)
				continue;
			random = random * 1664525 + 1013904223;
			if (chosen < 0 || random >> 24 < 40)
				chosen = id;
		}
		if (chosen < 0 || grammar_accept(s, chosen) != GRAMMAR_ACCEPTED)
			break;
	}
	grammar_state_destroy(&s);
}

static void fuzz_source(const char *source, size_t size)
{
	static const struct grammar_limits limits = {.nodes = 5000, .steps = 50000, .cache_bytes = 1 << 20};
	static struct grammar_vocab *v;
	struct grammar *g = NULL;
	struct error err = {0};
	enum status st;

	v = v ? v : fuzz_vocab();
	st = grammar_compile(&g, v, source, size, &limits, &err);
	FUZZ_CHECK(!st == !!g && !st == !err.text[0]);
	FUZZ_CHECK(st == STATUS_OK || st == STATUS_BAD_INPUT || st == STATUS_UNSUPPORTED ||
		   st == STATUS_NO_RESOURCE);
	if (!st)
		fuzz_walk(g, (uint32_t)size);
	grammar_release(&g);
}

/* The input as the text of one member. */
static inline void fuzz_member(const char *begin, const char *end, const uint8_t *data, size_t size)
{
	char *source = malloc(strlen(begin) + size * 6 + strlen(end) + 8), *at = source;

	if (!source)
		abort();
	at += snprintf(at, strlen(begin) + 1, "%s", begin);
	for (size_t i = 0; i < size; i++) {
		if (data[i] < 0x20 || data[i] == '"' || data[i] == '\\')
			at += snprintf(at, 7, "\\u%04x", data[i]);
		else
			*at++ = (char)data[i];
	}
	at += snprintf(at, strlen(end) + 1, "%s", end);
	fuzz_source(source, (size_t)(at - source));
	free(source);
}
#endif
