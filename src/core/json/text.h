/* SPDX-License-Identifier: Apache-2.0 */
/* Writes JSON as Python's json.dumps does with ensure_ascii=False, because models were trained on that form.
 */
#ifndef CORE_JSON_TEXT_H
#define CORE_JSON_TEXT_H
#include <jansson.h>
#include "core/text/text.h"

/* indent 0: one line, with ", " and ": ". */
void json_text_add(struct text *out, const json_t *value, unsigned indent);
/* Appends a finite number in the shortest digits that read back as the same number, with an exponent below
 * 1e-4 and from 1e16 on: Python's repr. */
void json_text_add_real(struct text *out, double value);
#endif
