/* SPDX-License-Identifier: Apache-2.0 */
/* Splits a template into tokens and applies the control of white space. */
#ifndef TEXT_JINJA_PARSE_LEXER_H
#define TEXT_JINJA_PARSE_LEXER_H
#include "text/jinja/value/value.h"

/* name, text in messages */
/* clang-format off */
#define TOKEN_LIST(X) \
	X(END, "the end of the template") X(TEXT, "text") X(BLOCK_BEGIN, "{%") X(BLOCK_END, "%}") \
	X(PRINT_BEGIN, "{{") X(PRINT_END, "}}") X(NAME, "a name") X(STRING, "a string") \
	X(INTEGER, "a number") X(FLOAT, "a number") \
	X(FLOOR, "//") X(POWER, "**") X(EQUAL, "==") X(UNEQUAL, "!=") X(GREATER_EQUAL, ">=") \
	X(LESS_EQUAL, "<=") X(ADD, "+") X(SUBTRACT, "-") X(DIVIDE, "/") X(MULTIPLY, "*") X(MODULO, "%") \
	X(TILDE, "~") X(OPEN_LIST, "[") X(CLOSE_LIST, "]") X(OPEN, "(") X(CLOSE, ")") X(OPEN_DICT, "{") \
	X(CLOSE_DICT, "}") X(GREATER, ">") X(LESS, "<") X(ASSIGN, "=") X(DOT, ".") X(COLON, ":") \
	X(PIPE, "|") X(COMMA, ",") X(SEMICOLON, ";")
/* clang-format on */
#define X(name, text) TOKEN_##name,
enum token_type { TOKEN_LIST(X) TOKEN_TYPES };
#undef X

struct token {
	enum token_type type;
	int line, column;
	const char *bytes; /* TEXT, NAME, STRING (without quotes and escapes) */
	size_t size;
	int64_t integer;
	double real;
};

struct tokens {
	struct token *items;
	size_t count, room;
};

const char *token_text(enum token_type type);
/* Texts belong to `arena`. The last token is END. Messages begin with `name`. Owner: caller, tokens_release.
 */
enum status tokens_read(struct tokens *out, struct jinja_arena *arena, const char *name, const char *source,
			size_t size, struct error *err);
void tokens_release(struct tokens *t);
#endif
