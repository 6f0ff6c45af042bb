/* SPDX-License-Identifier: Apache-2.0 */
/* Classes of characters in a program built without utf8proc: letters outside ASCII have no case. */
#include "text/jinja/value/unicode.h"

bool unicode_is_letter(uint32_t code)
{
	return unicode_is_upper(code) || unicode_is_lower(code) || code >= 0xc0;
}

bool unicode_is_digit(uint32_t code)
{
	return code >= '0' && code <= '9';
}

bool unicode_is_upper(uint32_t code)
{
	return code >= 'A' && code <= 'Z';
}

bool unicode_is_lower(uint32_t code)
{
	return code >= 'a' && code <= 'z';
}

bool unicode_prints(uint32_t code)
{
	return (code >= ' ' && code < 0x7f) || (code > 0xa0 && code != 0xad && !unicode_is_space(code));
}

uint32_t unicode_upper(uint32_t code)
{
	return unicode_is_lower(code) ? code - 'a' + 'A' : code;
}

uint32_t unicode_lower(uint32_t code)
{
	return unicode_is_upper(code) ? code - 'A' + 'a' : code;
}

uint32_t unicode_title(uint32_t code)
{
	return unicode_upper(code);
}
