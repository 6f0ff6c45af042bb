/* SPDX-License-Identifier: Apache-2.0 */
/* What a figure is compared with, in words. */
#ifndef REPORT_TEXT_BASIS_H
#define REPORT_TEXT_BASIS_H
#include "core/text/text.h"
#include "judge/judge.h"

/* The confidence of the expectation: "low", "medium", "high", or "" if unknown. Static. */
const char *basis_confidence(const struct judgement *j);
/* Appends "an expected range of 670–800 TFLOPS, low confidence: one GPU, 3 runs of 6 s; SOURCE, DATE";
 * nothing if the figure was not judged. */
void basis_add(struct text *out, const struct judgement *j);
#endif
