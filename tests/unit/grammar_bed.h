/* SPDX-License-Identifier: Apache-2.0 */
/* A vocabulary of all single bytes and some longer tokens, and questions about whole texts. */
#ifndef TESTS_UNIT_GRAMMAR_BED_H
#define TESTS_UNIT_GRAMMAR_BED_H
#include "test.h"
#include "core/text/text.h"
#include "engine/grammar/grammar.h"

enum { BED_END = 256, BED_CONTROL = 257, BED_FIRST = 258 };

/* Tokens that cross the borders of strings, characters and structures. */
static const char *const bed_tokens[] = {"{\"",
					 "\":",
					 "\": ",
					 "\",",
					 "\", \"",
					 "\"}",
					 "\"}}",
					 "}}",
					 "}\n",
					 "]}",
					 "],",
					 "[]",
					 "{}",
					 "[[",
					 "[{",
					 "}]",
					 "},",
					 ", \"",
					 ": ",
					 ": \"",
					 ",\n",
					 "\n  ",
					 "\n    ",
					 "  ",
					 "hello",
					 " world",
					 "name",
					 "true",
					 "false",
					 "null",
					 "tr",
					 "ue",
					 "12",
					 "123",
					 "0.5",
					 "-1",
					 "1e",
					 "e+",
					 "\\n",
					 "\\u",
					 "\\u00",
					 "00e9",
					 "\\\"",
					 "\"\"",
					 "\xc3",
					 "\xc3\xa9",
					 "\xa9x",
					 "\xf0\x9f",
					 "\x98\x80",
					 "\xf0\x9f\x98\x80",
					 "\xe2\x82\xac",
					 "\xe2\x82",
					 "\xed\xa0",
					 "\x80\"",
					 "<tool_call>",
					 "</tool_call>",
					 "<tool",
					 "_call>\n",
					 "{\"name\"",
					 "arguments",
					 "abc",
					 "ab",
					 "aaaa",
					 "hello",
					 "a\"",
					 "\xff",
					 "The quick brown fox jumps",
					 "    ",
					 "----------------------------------------",
					 "\xc3\xa9\xc3\xa9\xc3\xa9"};
enum { BED_COUNT = BED_FIRST + (int)(sizeof(bed_tokens) / sizeof(bed_tokens[0])) };

static inline struct grammar_vocab *bed_vocab(void)
{
	static char bytes[256];
	struct grammar_token tokens[BED_COUNT];
	struct grammar_vocab *v = NULL;
	struct error err = {0};

	for (int i = 0; i < 256; i++) {
		bytes[i] = (char)i;
		tokens[i] = (struct grammar_token){&bytes[i], 1, GRAMMAR_TOKEN_TEXT};
	}
	tokens[BED_END] = (struct grammar_token){"</s>", 4, GRAMMAR_TOKEN_END};
	tokens[BED_CONTROL] = (struct grammar_token){"<|im_start|>", 12, GRAMMAR_TOKEN_CONTROL};
	for (int i = BED_FIRST; i < BED_COUNT; i++)
		tokens[i] = (struct grammar_token){bed_tokens[i - BED_FIRST],
						   strlen(bed_tokens[i - BED_FIRST]), GRAMMAR_TOKEN_TEXT};
	if (grammar_vocab_create(&v, tokens, BED_COUNT, &err))
		fail_msg("%s", err.text);
	return v;
}

static inline struct grammar *bed_compile(const struct grammar_vocab *v, const char *source)
{
	struct grammar *g = NULL;
	struct error err = {0};

	if (grammar_compile(&g, v, source, strlen(source), NULL, &err))
		fail_msg("%s: %s", source, err.text);
	return g;
}

static inline struct grammar_state *bed_state(struct grammar *g)
{
	struct grammar_state *s = NULL;
	struct error err = {0};

	if (grammar_state_create(&s, g, &err))
		fail_msg("%s", err.text);
	return s;
}

/* True if the grammar allows exactly this text. */
static inline bool bed_takes(struct grammar *g, const char *text, size_t size)
{
	struct grammar_state *s = bed_state(g);
	bool takes = grammar_accept_bytes(s, text, size) == GRAMMAR_ACCEPTED && grammar_is_complete(s);

	grammar_state_destroy(&s);
	return takes;
}

/* `yes` and `no`: lists of texts that end with NULL. */
static inline void bed_expect(const char *source, const char *const *yes, const char *const *no)
{
	struct grammar_vocab *v = bed_vocab();
	struct grammar *g = bed_compile(v, source);

	for (; yes && *yes; yes++)
		if (!bed_takes(g, *yes, strlen(*yes)))
			fail_msg("%s refuses %s", source, *yes);
	for (; no && *no; no++)
		if (bed_takes(g, *no, strlen(*no)))
			fail_msg("%s takes %s", source, *no);
	grammar_release(&g);
	grammar_vocab_destroy(&v);
}
#define YES(...) ((const char *const[]){__VA_ARGS__, NULL})
#define NO(...) ((const char *const[]){__VA_ARGS__, NULL})

static inline void bed_schema(const char *schema, const char *const *yes, const char *const *no)
{
	struct text source = {0};

	text_addf(&source, "{\"type\": \"json_schema\", \"schema\": %s}", schema);
	bed_expect(text_str(&source), yes, no);
	text_release(&source);
}

/* The source is refused with a status and a message that holds these words. */
static inline void bed_refused(const char *source, const struct grammar_limits *limits, enum status status,
			       const char *words)
{
	struct grammar_vocab *v = bed_vocab();
	struct grammar *g = NULL;
	struct error err = {0};
	enum status st = grammar_compile(&g, v, source, strlen(source), limits, &err);

	if (st != status || !strstr(err.text, words))
		fail_msg("%.200s: %s: %s; expected %s: %s", source, status_name(st), err.text,
			 status_name(status), words);
	assert_null(g);
	grammar_vocab_destroy(&v);
}
#endif
