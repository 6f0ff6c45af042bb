/* SPDX-License-Identifier: Apache-2.0 */
/* Writes JSON into a text without a tree. */
#ifndef SERVE_PROTOCOL_JSON_OUT_H
#define SERVE_PROTOCOL_JSON_OUT_H
#include <jansson.h>
#include "core/text/text.h"

/* Appends the inside of a JSON string. `s` is valid UTF-8, which is kept. */
void json_out_escaped(struct text *out, const char *s, size_t size);
/* Appends a JSON string with its quotes. Bytes that are not UTF-8 become U+FFFD. */
void json_out_text(struct text *out, const char *s);
void json_out_bytes(struct text *out, const char *s, size_t size);
/* Appends a value, compact. */
void json_out_value(struct text *out, const json_t *value);
/* Appends a finite number with the digits that reading gives back as a float; -9999 for others. */
void json_out_logprob(struct text *out, double value);
#endif
