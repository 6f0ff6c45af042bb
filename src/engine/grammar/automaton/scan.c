/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/grammar/automaton/scan.h"

bool scan_char(const char **at, const char *end, char c)
{
	if (*at == end || **at != c)
		return false;
	++*at;
	return true;
}

bool scan_number(const char **at, const char *end, uint32_t *out)
{
	const char *begin = *at;

	for (*out = 0; *at < end && **at >= '0' && **at <= '9'; ++*at)
		*out = *out < SCAN_NUMBER_MOST ? *out * 10 + (uint32_t)(**at - '0') : *out;
	return *at > begin;
}

bool scan_hex(const char **at, const char *end, unsigned digits, uint32_t *out)
{
	*out = 0;
	for (unsigned i = 0; i < digits; i++, ++*at) {
		char c = *at < end ? **at : '\0';
		int digit = c >= '0' && c <= '9'		 ? c - '0'
			    : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10
								 : -1;

		if (digit < 0)
			return false;
		*out = *out << 4 | (uint32_t)digit;
	}
	return true;
}
