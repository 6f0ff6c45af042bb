/* SPDX-License-Identifier: Apache-2.0 */
#include "core/json/read.h"

#include "core/text/text.h"
#include "core/text/utf8.h"

/* A plain message instead of jansson's, which names its flags; NULL: jansson's is fine. */
static const char *words_for(enum json_error_code code)
{
	switch (code) {
	case json_error_null_character:
	case json_error_null_byte_in_key:
		return "a text contains \\u0000, which is not supported";
	case json_error_numeric_overflow:
		return "a number does not fit into 64 bits; as a quoted text it is preserved";
	case json_error_duplicate_key:
		return "a key occurs twice";
	case json_error_invalid_utf8:
		return "a byte is not UTF-8";
	case json_error_premature_end_of_input:
		return "it ends too early";
	case json_error_end_of_input_expected:
		return "there is more text after its end";
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
