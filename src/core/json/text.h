/* SPDX-License-Identifier: Apache-2.0 */
/* Writes JSON as Python's json.dumps does with ensure_ascii=False, because models were trained on that form.
 */
#ifndef CORE_JSON_TEXT_H
#define CORE_JSON_TEXT_H
#include <jansson.h>
#include "core/text/text.h"

/* indent 0: one line, with ", " and ": ". */
void json_text_add(struct text *out, const json_t *value, unsigned indent);
#endif
