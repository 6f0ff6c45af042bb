/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the readers of grammars and of regular expressions. *at moves behind the text that was read. */
#ifndef ENGINE_GRAMMAR_AUTOMATON_SCAN_H
#define ENGINE_GRAMMAR_AUTOMATON_SCAN_H
#include <stdbool.h>
#include <stdint.h>

enum { SCAN_NUMBER_MOST = 1000000 };

/* False, with *at unchanged: another character stands there. */
bool scan_char(const char **at, const char *end, char c);
/* A decimal number. *out is at least SCAN_NUMBER_MOST if it is greater than that. False: no digit. */
bool scan_number(const char **at, const char *end, uint32_t *out);
/* That many hexadecimal digits. False: *at is where one is missing. */
bool scan_hex(const char **at, const char *end, unsigned digits, uint32_t *out);
#endif
