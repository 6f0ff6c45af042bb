/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/line_text.h"
#include <string.h>
#include "core/text/utf8.h"
#include "watch/state.h"

/* The property Default_Ignorable_Code_Point of Unicode, and the marks of annotations. */
static bool is_invisible(uint32_t code)
{
	static const struct {
		uint32_t first, last;
	} rows[] = {{0xad, 0xad},      {0x34f, 0x34f},	 {0x61c, 0x61c},     {0x115f, 0x1160},
		    {0x17b4, 0x17b5},  {0x180b, 0x180f}, {0x200b, 0x200d},   {0x2060, 0x2065},
		    {0x206a, 0x206f},  {0x3164, 0x3164}, {0xfe00, 0xfe0f},   {0xfeff, 0xfeff},
		    {0xffa0, 0xffa0},  {0xfff0, 0xfffb}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a},
		    {0xe0000, 0xe0fff}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]) && code >= rows[i].first; i++)
		if (code <= rows[i].last)
			return true;
	return false;
}

void line_text_clean(char out[WATCH_TEXT_MAX], const char *s)
{
	size_t at = 0, size;

	for (uint32_t code; (code = utf8_decode(s, &size)); s += size) {
		const char *from = code == UTF8_REPLACEMENT ? "\xef\xbf\xbd" : s;
		size_t bytes = code == UTF8_REPLACEMENT ? 3 : size;

		if (is_invisible(code))
			continue;
		if (utf8_is_control(code)) {
			from = " ";
			bytes = 1;
		}
		if (at + bytes >= WATCH_TEXT_MAX)
			break;
		memcpy(out + at, from, bytes);
		at += bytes;
	}
	out[at] = '\0';
}

bool line_text_is_name(const char *s)
{
	size_t size = strlen(s);

	return size && size < 128 && !strchr("0123456789", *s) &&
	       strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_:") == size;
}

bool line_text_is_metric(const char *s)
{
	char name[128];
	size_t size = strcspn(s, "{");

	if (size >= sizeof(name))
		return false;
	memcpy(name, s, size);
	name[size] = '\0';
	return line_text_is_name(name) && strlen(s) < 256 && (!s[size] || s[strlen(s) - 1] == '}');
}
