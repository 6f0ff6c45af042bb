/* SPDX-License-Identifier: Apache-2.0 */
/* The report of a hang: the flight records of all ranks, and who keeps the others waiting. */
#ifndef CMD_TRAIN_HANG_H
#define CMD_TRAIN_HANG_H
#include <jansson.h>
#include <stdbool.h>

struct training;

/* Adds the flight record of this rank, and what its host thread did when the hang was found, to `out`. */
void train_hang_record(const struct training *t, json_t *out);
/* Explains a hang by the records of all ranks, in t->end.text: who is behind, who asked for another
 * collective, or that nobody is behind. False: no rank recorded a collective. */
bool train_hang_explain(struct training *t, const json_t *all);
#endif
