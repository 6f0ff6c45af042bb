/* SPDX-License-Identifier: Apache-2.0 */
/* Words of a collective by which ranges are selected: the choices that only a run reveals, and the links of
 * its GPUs. */
#ifndef JUDGE_CASE_COLLECTIVE_CHOICE_H
#define JUDGE_CASE_COLLECTIVE_CHOICE_H
#include "judge/case/context.h"

/* Answers "algorithm", "protocol" and "nvls": the reported value, else the assumed one, else the option (nvls
 * has none: NULL). */
const char *choice_word(const struct subject *s, const char *word, char *buffer, size_t size);
/* "nvlinks": the number of the GPU with the fewest, or the number between the GPUs of a pair. Links that are
 * down count, since a machine with a broken link is still the same machine. "nvlink_gen", "pcie_gen": the
 * oldest. NULL: not known. */
const char *choice_link_word(const struct subject *s, const char *word, char *buffer, size_t size);
/* Returns the range for a case that does not report NCCL's choice. Considered are all choices that NCCL may
 * make, or those of one `nvls` ("0" or "1"; NULL: any). The easiest range that fits counts: the
 * lowest low end, or for times the highest high end. So no good figure of a covered choice falls outside it.
 * NULL: none fits. */
const struct band_row *choice_band(const struct subject *s, enum band_slot slot, const char *nvls);
/* Before a run: fills judgement.ahead and its lower reference. */
void choice_reference_of_plan(struct judgement *out, const struct subject *s);
/* True for a collective of GPUs whose algorithm NCCL did not report. */
bool choice_unknown(const struct subject *s);
#endif
