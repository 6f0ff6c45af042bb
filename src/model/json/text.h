/* SPDX-License-Identifier: Apache-2.0 */
/* JSON as Python's json.dumps writes it with ensure_ascii off: what the models saw when they were trained. */
#ifndef MODEL_JSON_TEXT_H
#define MODEL_JSON_TEXT_H
#include <jansson.h>
#include "core/text/text.h"

/* indent 0: on one line, with ", " and ": ". */
void json_text_add(struct text *out, const json_t *value, unsigned indent);
#endif
