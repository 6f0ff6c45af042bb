/* SPDX-License-Identifier: Apache-2.0 */
/* The cost of a JSON text in memory, before it is parsed. */
#ifndef SERVE_PROTOCOL_BODY_JSON_COST_H
#define SERVE_PROTOCOL_BODY_JSON_COST_H
#include <stddef.h>

/* About the memory of the parsed text in units of 64 bytes, without the bytes of its strings. It only looks
 * at brackets, colons and commas outside of strings, so any text has a cost. */
size_t json_cost(const char *text, size_t size);
#endif
