/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of a request's body that do not depend on what its fields mean. They come before the fields are
 * read. All return false with the error set. */
#ifndef SERVE_PROTOCOL_BODY_BODY_H
#define SERVE_PROTOCOL_BODY_BODY_H
#include "serve/protocol/request.h"

/* Parses a body that is a JSON object and would not take too much memory. Owner of *body: caller,
 * json_decref; set on failure too. */
bool body_parse(json_t **body, const char *text, size_t size, struct api_error *err);
/* False: U+0000 is in a text other than a prompt or the content of a message. */
bool body_check_null_characters(enum protocol protocol, const json_t *body, struct api_error *err);
/* False: the body has a field of another server that constrains the answer. An answer that ignores one looks
 * right and is not. */
bool body_check_constraints(const json_t *body, struct api_error *err);
/* Notes the fields that no endpoint reads: the names of other servers' fields, and the number of all others.
 * A field that is null asks for nothing. */
void body_note_ignored(struct request *r, const json_t *body);
#endif
