/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/protocol/json_out.h"

#include <math.h>

#include "core/text/utf8.h"

void json_out_escaped(struct text *out, const char *s, size_t size)
{
	size_t from = 0, i;

	for (i = 0; i < size; i++) {
		unsigned char c = (unsigned char)s[i];

		if (c >= 0x20 && c != '"' && c != '\\')
			continue;
		text_add_bytes(out, s + from, i - from);
		from = i + 1;
		if (c == '"')
			text_add_bytes(out, "\\\"", 2);
		else if (c == '\\')
			text_add_bytes(out, "\\\\", 2);
		else if (c == '\n')
			text_add_bytes(out, "\\n", 2);
		else
			text_addf(out, "\\u%04x", c);
	}
	text_add_bytes(out, s + from, size - from);
}

void json_out_text(struct text *out, const char *s)
{
	json_out_bytes(out, s, strlen(s));
}

/* Appends with U+FFFD for each invalid byte. */
static void add_valid(struct text *out, const char *s, size_t size)
{
	struct text ended = {0};
	size_t at = 0, step, good = 0;

	text_add_bytes(&ended, s, size); /* utf8_decode reads up to a NUL */
	while (!ended.failed && at < size) {
		uint32_t code = ended.data[at] ? utf8_decode(ended.data + at, &step) : (step = 1, 0);

		if (code == UTF8_REPLACEMENT && step == 1) {
			json_out_escaped(out, ended.data + good, at - good);
			text_add(out, "\xef\xbf\xbd");
			good = at + 1;
		}
		at += step ? step : 1;
	}
	if (!ended.failed)
		json_out_escaped(out, text_str(&ended) + good, size - good);
	out->failed |= ended.failed;
	text_release(&ended);
}

void json_out_bytes(struct text *out, const char *s, size_t size)
{
	text_add_bytes(out, "\"", 1);
	add_valid(out, s, size);
	text_add_bytes(out, "\"", 1);
}

static int add_piece(const char *piece, size_t size, void *out)
{
	text_add_bytes(out, piece, size);
	return 0;
}

void json_out_value(struct text *out, const json_t *value)
{
	if (json_dump_callback(value, add_piece, out, JSON_COMPACT | JSON_ENCODE_ANY))
		text_add(out, "null");
}

void json_out_logprob(struct text *out, double value)
{
	text_addf(out, "%.9g", isfinite(value) ? value : -9999.0);
}
