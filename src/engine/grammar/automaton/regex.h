/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Regular expressions in the common subset of ECMAScript and Python. It has alternatives, groups, classes,
 * greedy and lazy quantifiers. ^ and $ may begin and end the pattern or a top-level alternative. These
 * constructs are refused by name: back references, lookaround, \b, \p, flags and possessive quantifiers.
 *
 * \d, \w and \s mean ASCII. Their complements leave out characters on which the two dialects differ, so a
 * text that is allowed matches in both. "." is any character but line ends.
 */
#ifndef ENGINE_GRAMMAR_AUTOMATON_REGEX_H
#define ENGINE_GRAMMAR_AUTOMATON_REGEX_H
#include "engine/grammar/automaton/expr.h"

/* `whole`: the pattern matches the whole text. Otherwise a match anywhere is enough, unless ^ and $ say
 * otherwise; then `any` is any character of the text. NULL: the builder has an error. */
struct expr *regex_parse(struct builder *b, const char *pattern, size_t size, enum encoding encoding,
			 bool whole, struct expr *any);
/* Least and most characters of a text; most REPEAT_FOREVER: no bound. Both are saturated. */
void expr_lengths(const struct expr *e, uint32_t *least, uint32_t *most);
#endif
