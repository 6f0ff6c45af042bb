/* SPDX-License-Identifier: Apache-2.0 */
/* A set of Unicode characters, as sorted ranges of code points. */
#ifndef ENGINE_GRAMMAR_AUTOMATON_CHAR_SET_H
#define ENGINE_GRAMMAR_AUTOMATON_CHAR_SET_H
#include <stdbool.h>
#include <stdint.h>

enum { CHAR_RANGES_MOST = 256, CHAR_LAST = 0x10ffff };

struct char_range {
	uint32_t low, high;
};

/* Zeroed is empty. Ranges are in any order until char_set_sort. */
struct char_set {
	struct char_range range[CHAR_RANGES_MOST];
	unsigned count;
	bool overflow; /* more ranges than fit */
};

void char_set_add(struct char_set *set, uint32_t low, uint32_t high);
/* Sorts and joins the ranges. */
void char_set_sort(struct char_set *set);
/* The characters that are not in the set. Sorts. */
void char_set_invert(struct char_set *set);
/* Reads one character from `text`, which ends before `end`; 0 bytes and false: not UTF-8. */
bool char_read(const char **text, const char *end, uint32_t *code);
#endif
