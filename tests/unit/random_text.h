/* SPDX-License-Identifier: Apache-2.0 */
/* Strings that tests/oracles/tokenizer.py makes as well, from the same numbers: every script that normalises
 * or splits in its own way, blanks of all kinds, contractions, digits, added tokens whole and broken. */
#ifndef TESTS_UNIT_RANDOM_TEXT_H
#define TESTS_UNIT_RANDOM_TEXT_H
#include <stdint.h>
#include <utf8proc.h>

#include "core/text/text.h"

static const uint32_t random_ranges[][2] = {
	{0x20, 0x7E},	      {0x20, 0x7E},	  {0x61, 0x7A},	      {0x61, 0x7A},	  {0x61, 0x7A},
	{0x41, 0x5A},	      {0x30, 0x39},	  {0x30, 0x39},	      {0x20, 0x20},	  {0x20, 0x20},
	{0x20, 0x20},	      {0x09, 0x0D},	  {0x0A, 0x0A},	      {0x80, 0xA0},	  {0xA1, 0xFF},
	{0xC0, 0x17F},	      {0x300, 0x345},	  {0x300, 0x345},     {0x370, 0x3FF},	  {0x400, 0x4FF},
	{0x591, 0x5C7},	      {0x5D0, 0x5EA},	  {0x61B, 0x669},     {0x900, 0x963},	  {0x9BC, 0x9DF},
	{0xE01, 0xE3A},	      {0xF40, 0xF83},	  {0x1100, 0x1112},   {0x1161, 0x1175},	  {0x11A8, 0x11C2},
	{0x1680, 0x1680},     {0x180E, 0x180E},	  {0x1E00, 0x1EFF},   {0x1F00, 0x1F15},	  {0x2000, 0x200F},
	{0x2010, 0x205F},     {0x2070, 0x2071},	  {0x2100, 0x214F},   {0x2150, 0x2188},	  {0x2200, 0x22FF},
	{0x2460, 0x24FF},     {0x3000, 0x303F},	  {0x3041, 0x3096},   {0x3099, 0x30FF},	  {0x4E00, 0x9FCC},
	{0x4E00, 0x9FCC},     {0xAC00, 0xD7A3},	  {0xF900, 0xFA6D},   {0xFB1D, 0xFB36},	  {0xFF01, 0xFF5E},
	{0xFFFD, 0xFFFD},     {0x10400, 0x1044F}, {0x110A5, 0x110BA}, {0x1D15E, 0x1D164}, {0x1D400, 0x1D454},
	{0x1D7CE, 0x1D7FF},   {0x1F600, 0x1F64F}, {0x1F600, 0x1F64F}, {0x20000, 0x2A6D6}, {0x2F800, 0x2FA1D},
	{0x10FFFF, 0x10FFFF},
};
static const char *const random_phrases[] = {
	"'s",	      "'LL",	       "'\u017f",     "<|im_start|>",
	"<|im_end|>", "<|endoftext|>", "<tool_call>", "</tool_call>",
	"<|im_",      "  \n",	       "\r\n\r\n",    "1234567",
	" 2024",      "e\u0301",       "\u0344",      "\u1100\u1161\u11a8",
	"hello",      " world",	       "the",
};

/* splitmix64 */
static inline uint32_t random_below(uint64_t *state, uint32_t below)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return (uint32_t)((z ^ z >> 31) % below);
}

/* Replaces what *out holds. */
static inline void random_text(uint64_t index, struct text *out)
{
	uint64_t state = index;
	uint32_t count = random_below(&state, 48);

	out->size = 0;
	text_add(out, "");
	while (count--) {
		utf8proc_uint8_t bytes[4];
		const uint32_t *range;
		uint32_t code;

		if (!random_below(&state, 12)) {
			text_add(out, random_phrases[random_below(
					      &state, sizeof(random_phrases) / sizeof(random_phrases[0]))]);
			continue;
		}
		range = random_ranges[random_below(&state, sizeof(random_ranges) / sizeof(random_ranges[0]))];
		code = range[0] + random_below(&state, range[1] - range[0] + 1);
		text_add_bytes(out, (const char *)bytes,
			       (size_t)utf8proc_encode_char((utf8proc_int32_t)code, bytes));
	}
}
#endif
