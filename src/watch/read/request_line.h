/* SPDX-License-Identifier: Apache-2.0 */
/* A line of a server's log of requests. */
#ifndef WATCH_READ_REQUEST_LINE_H
#define WATCH_READ_REQUEST_LINE_H
#include <stdbool.h>
#include <stddef.h>

/* Finds member "first_token_s" of a line. A busy server logs hundreds of requests a second, perhaps with
 * their texts, so the line is searched, not parsed. The line must be in braces. The value must be a JSON
 * number of at most 31 bytes, followed by a comma or a brace. Otherwise the result is false. */
bool request_first_token(double *seconds, const char *line, size_t size);
#endif
