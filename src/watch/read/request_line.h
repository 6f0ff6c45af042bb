/* SPDX-License-Identifier: Apache-2.0 */
/* A line of a server's log of requests. */
#ifndef WATCH_READ_REQUEST_LINE_H
#define WATCH_READ_REQUEST_LINE_H
#include <stdbool.h>
#include <stddef.h>

/* Finds member "first_token_s" of a line. A busy server logs hundreds of requests a second, perhaps with
 * their texts, so the line is searched, not parsed. False: the line is not in braces, has no such member, or
 * the member's value is not a JSON number of at most 31 bytes that a comma or brace follows. */
bool request_first_token(double *seconds, const char *line, size_t size);
#endif
