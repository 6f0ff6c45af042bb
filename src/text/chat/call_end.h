/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the end of a call between <tool_call> and </tool_call>. A mark in a JSON string is part of the
 * string. */
#ifndef TEXT_CHAT_CALL_END_H
#define TEXT_CHAT_CALL_END_H
#include <stdbool.h>
#include <stddef.h>

#define CALL_OPEN_MARK "<tool_call>"
#define CALL_CLOSE_MARK "</tool_call>"

/* How far a body has been read. Zeroed: nothing yet. */
struct call_scan {
	size_t at;
	bool begun, in_string, escaped;
};
enum call_end {
	CALL_END_UNKNOWN, /* the body may go on */
	CALL_END_OPEN,	  /* the next call's mark, because the closing mark is missing */
	CALL_END_CLOSE,
	CALL_END_BROKEN, /* the body is no JSON object */
};

/* `text` is the body from its first byte. It may have grown since the last call. *at is where the mark
 * begins. */
enum call_end call_end_find(struct call_scan *s, const char *text, size_t size, size_t *at);
#endif
