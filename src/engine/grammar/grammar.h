/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Constrains generated text to a grammar: a JSON schema, tool calls, a regular expression, a list of choices
 * or a context-free grammar. A source is compiled once to a pushdown automaton on bytes. Each sequence has a
 * state in it. The state accepts token ids and yields a mask of the ids that may come next.
 *
 * Threads: a vocabulary is immutable. Several threads may use one compiled grammar and one cache, each with
 * its own states; a state belongs to one thread at a time. A call may wait while another thread computes a
 * mask of the same grammar.
 */
#ifndef ENGINE_GRAMMAR_GRAMMAR_H
#define ENGINE_GRAMMAR_GRAMMAR_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/error.h"
#include "core/text/text.h"

enum grammar_token_kind {
	GRAMMAR_TOKEN_TEXT,    /* stands for its bytes. Added tokens such as <tool_call> belong here */
	GRAMMAR_TOKEN_CONTROL, /* never allowed */
	GRAMMAR_TOKEN_END,     /* ends the text: allowed exactly where the grammar may end */
};

/* One token id. The bytes are lent for the call that takes them. */
struct grammar_token {
	const char *bytes; /* not NUL-terminated; may hold parts of a character */
	size_t size;	   /* 0: the token is treated as GRAMMAR_TOKEN_CONTROL unless it is an END */
	enum grammar_token_kind kind;
};

enum {
	GRAMMAR_TOKENS_MOST = 1 << 22,	 /* most ids of a vocabulary */
	GRAMMAR_TOKEN_BYTES_MOST = 1024, /* longest token */
	GRAMMAR_WARNINGS_MOST = 16,	 /* warnings kept for one grammar; more are only counted */
};

struct grammar_vocab;
/* `tokens[i]` is the token with id i. BAD_INPUT: no token, too many, a token that is too long, or no END.
 * Owner: caller, grammar_vocab_destroy, after the last grammar that uses it. */
enum status grammar_vocab_create(struct grammar_vocab **out, const struct grammar_token *tokens, size_t count,
				 struct error *err);
void grammar_vocab_destroy(struct grammar_vocab **v); /* NULL-safe; sets NULL */
/* 32-bit words of a mask: one bit per id. */
size_t grammar_vocab_words(const struct grammar_vocab *v);

/* Bounds of one grammar. A zero stands for the default. */
struct grammar_limits {
	size_t source_bytes; /* longest source text; 1 MiB */
	size_t nodes;	     /* nodes of the automaton; 200,000 */
	size_t steps;	     /* units of work of the compiler; 4,000,000, about a second */
	size_t depth;	     /* nesting of objects, arrays and rules in a text; 128 */
	size_t cache_bytes;  /* states and masks kept while sequences run; 64 MiB, at least 1 MiB */
	size_t mask_steps;   /* units of work of one call on a state; 4,000,000, about 0.3 s */
};

/*
 * Source: one JSON object.
 *   {"type": "json_object"}
 *   {"type": "json_schema", "schema": {..}, "strict": true|false}
 *   {"type": "regex", "pattern": ".."}                 matches the whole text
 *   {"type": "choice", "choices": ["..", ..]}
 *   {"type": "grammar", "grammar": ".."}               GBNF; starts at the rule `root`
 *   {"type": "tool_calls", "format": "chatml"|"llama"|"mistral", "tools": [{"type": "function", "function":
 *    {"name": "..", "parameters": {schema}, "strict": bool}}, ..], "mode": "auto"|"required"|"named",
 *    "name": "..", "parallel": bool, "answer": {a json_object or json_schema source}}
 *    `answer` is for mode auto: the grammar of a text without a call. Without it, any text is one.
 * Members of every kind: "whitespace": "flexible" (default) or "compact", for JSON; "after": a text such as
 * "</think>": any text may come first, and the grammar begins after the first place where this text ends.
 * With "opening" beside "after", a text such as "<think>", the text before the grammar may be left out. If it
 * is there, it begins with the opening, after at most four blanks and newlines. JSON and calls may have these
 * before them too.
 *
 * Strict refuses a schema keyword that the automaton cannot enforce. Otherwise the keyword becomes a warning.
 * The default is false.
 *
 * Errors name the JSON path. BAD_INPUT: the source is malformed. UNSUPPORTED: a keyword or construct cannot
 * be enforced. NO_RESOURCE: a limit, which is named, or memory is exceeded.
 */
struct grammar;
enum status grammar_compile(struct grammar **out, const struct grammar_vocab *vocab, const char *source,
			    size_t size, const struct grammar_limits *limits, struct error *err);
/* References are counted. A new grammar has one; each state holds one. */
struct grammar *grammar_retain(struct grammar *g);
void grammar_release(struct grammar **g); /* NULL-safe; sets NULL */
/* Number of keywords that are not enforced, and the text of one of the first GRAMMAR_WARNINGS_MOST. */
size_t grammar_warnings(const struct grammar *g);
const char *grammar_warning(const struct grammar *g, size_t i);
/* Memory of the automaton, its states and its masks. */
size_t grammar_bytes(struct grammar *g);

struct grammar_state;
/* A state before the first token. Owner: caller, grammar_state_destroy. */
enum status grammar_state_create(struct grammar_state **out, struct grammar *g, struct error *err);
enum status grammar_state_copy(struct grammar_state **out, const struct grammar_state *from,
			       struct error *err);
void grammar_state_destroy(struct grammar_state **s); /* NULL-safe; sets NULL */

enum grammar_accepted {
	GRAMMAR_ACCEPTED,
	GRAMMAR_ENDED,	 /* the token was an END at a place where the grammar may end */
	GRAMMAR_REFUSED, /* the grammar does not allow the token here; the state is unchanged */
	GRAMMAR_FAILED,	 /* memory or the limit cache_bytes was exceeded; the state is unchanged */
};
enum grammar_accepted grammar_accept(struct grammar_state *s, int32_t token);
/* The same for bytes that need not be tokens. */
enum grammar_accepted grammar_accept_bytes(struct grammar_state *s, const char *bytes, size_t size);
/* Writes grammar_vocab_words() words. Bit i % 32 of word i / 32 is 1 if token i may come next. After the end
 * only END tokens are set. All bits are 0 if no token of the vocabulary can continue the text. */
enum status grammar_mask(struct grammar_state *s, uint32_t *words, struct error *err);
/* True if the text may end here, or has ended. */
bool grammar_is_complete(const struct grammar_state *s);

/* Compiled grammars, and refusals of sources, by their source; the least recently used one goes first. */
struct grammar_cache;
/* `bytes`: bound of the memory of both. A grammar that is in use stays alive when it leaves the cache. */
enum status grammar_cache_create(struct grammar_cache **out, const struct grammar_vocab *vocab, size_t bytes,
				 const struct grammar_limits *limits, struct error *err);
void grammar_cache_destroy(struct grammar_cache **c); /* NULL-safe; sets NULL */
/* Finds or compiles. Compilation holds no lock, so other threads go on; two threads may compile one source at
 * once, and the first result is kept. Errors as grammar_compile, also for a source that was refused before.
 * Owner of *out: caller, grammar_release. */
enum status grammar_cache_get(struct grammar_cache *c, struct grammar **out, const char *source, size_t size,
			      struct error *err);

struct grammar_cache_counts {
	uint64_t hits, misses, evicted;
	size_t grammars, refusals, bytes;
};
struct grammar_cache_counts grammar_cache_counts(struct grammar_cache *c);
#endif
