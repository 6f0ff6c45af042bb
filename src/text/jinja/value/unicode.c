/* SPDX-License-Identifier: Apache-2.0 */
#include "text/jinja/value/unicode.h"

#include <utf8proc.h>

static utf8proc_category_t category(uint32_t code)
{
	return utf8proc_category((utf8proc_int32_t)code);
}

bool unicode_is_letter(uint32_t code)
{
	utf8proc_category_t c = category(code);

	return c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_LO;
}

bool unicode_is_digit(uint32_t code)
{
	return category(code) == UTF8PROC_CATEGORY_ND;
}

bool unicode_is_upper(uint32_t code)
{
	return category(code) == UTF8PROC_CATEGORY_LU;
}

bool unicode_is_lower(uint32_t code)
{
	return category(code) == UTF8PROC_CATEGORY_LL || code == 0xaa || code == 0xba;
}

bool unicode_prints(uint32_t code)
{
	utf8proc_category_t c = category(code);

	return code == ' ' || (c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_SO);
}

uint32_t unicode_upper(uint32_t code)
{
	return (uint32_t)utf8proc_toupper((utf8proc_int32_t)code);
}

uint32_t unicode_lower(uint32_t code)
{
	return (uint32_t)utf8proc_tolower((utf8proc_int32_t)code);
}

uint32_t unicode_title(uint32_t code)
{
	return (uint32_t)utf8proc_totitle((utf8proc_int32_t)code);
}
