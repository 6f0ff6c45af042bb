/* SPDX-License-Identifier: Apache-2.0 */
#include "model/json/read.h"

#include "core/text/text.h"
#include "core/text/utf8.h"

/* Instead of the library's own words, which name its flags; NULL: they will do. */
static const char *words_for(enum json_error_code code)
{
	switch (code) {
	case json_error_null_character:
	case json_error_null_byte_in_key:
		return "a text holds \\u0000, which no text here may";
	case json_error_numeric_overflow:
		return "a number does not fit 64 bits: quoted, as a text, it stays as it is";
	case json_error_duplicate_key:
		return "a key stands a second time";
	case json_error_invalid_utf8:
		return "a byte is no UTF-8";
	case json_error_premature_end_of_input:
		return "it ends before it is whole";
	case json_error_end_of_input_expected:
		return "more follows behind its end";
	case json_error_stack_overflow:
		return "it is nested too deeply";
	default:
		return NULL;
	}
}

json_t *json_read(const char *text, size_t size, size_t flags, struct json_wrong *wrong)
{
	json_error_t why;
	const char *words, *near;
	json_t *j;

	utf8_skip_bom(&text, &size);
	j = json_loadb(text, size, flags, &why);
	if (j)
		return j;
	words = words_for(json_error_code(&why));
	near = strstr(why.text, " near ");
	*wrong = (struct json_wrong){.line = why.line, .column = why.column};
	if (near && strstr(near, "end of file"))
		near = NULL;
	if (words)
		snprintf(wrong->text, sizeof(wrong->text), "%s%s%s", words, near ? "," : "",
			 near ? near : "");
	else
		text_copy(wrong->text, sizeof(wrong->text), why.text);
	return NULL;
}

bool json_is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}
