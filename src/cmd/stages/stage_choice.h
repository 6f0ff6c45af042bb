/* SPDX-License-Identifier: Apache-2.0 */
/* The stages that a user's list names, with those that they need. */
#ifndef CMD_STAGES_STAGE_CHOICE_H
#define CMD_STAGES_STAGE_CHOICE_H
#include "core/error.h"

struct stage_choice {
	const char *option; /* "--only", for messages */
	const char *noun;   /* "stage" */
	unsigned count;	    /* at most 32 */
	const char *(*word)(const void *arg, unsigned i);
	unsigned (*needs)(const void *arg, unsigned i); /* bits of others */
	const void *arg;
};
/* Reads numbers (from 1) and words with commas between. `list` NULL: all of them. *asked gets a bit for each.
 * BAD_INPUT: an unknown one, or none. */
enum status stage_choose(unsigned *asked, const struct stage_choice *c, const char *list, struct error *err);
#endif
