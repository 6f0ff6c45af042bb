/* SPDX-License-Identifier: Apache-2.0 */
/* What a figure was held against, in words. */
#ifndef REPORT_TEXT_BASIS_H
#define REPORT_TEXT_BASIS_H
#include "core/text/text.h"
#include "judge/judge.h"

/* "low" "medium" "high"; "" where nothing tells one. */
const char *basis_confidence(const struct judgement *j);
/* "a band of 670–800 TFLOPS, low confidence: one card, 3 runs of 6 s; SOURCE, DATE"; nothing where
 * nothing judged it. */
void basis_add(struct text *out, const struct judgement *j);
#endif
