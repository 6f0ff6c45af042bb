/* SPDX-License-Identifier: Apache-2.0 */
/* Grammars in the notation of llama.cpp (GBNF): rules of literals, character classes, groups, alternatives
 * and repetitions. The rule `root` describes the whole text. */
#ifndef ENGINE_GRAMMAR_AUTOMATON_GBNF_H
#define ENGINE_GRAMMAR_AUTOMATON_GBNF_H
#include "engine/grammar/automaton/expr.h"

/* The rule `root`; 0: the builder has an error. */
uint32_t gbnf_parse(struct builder *b, const char *text, size_t size);
#endif
