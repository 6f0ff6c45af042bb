/* SPDX-License-Identifier: Apache-2.0 */
/* Names of checkpoint folders in a run directory. */
#ifndef TRAIN_CHECKPOINT_NAMES_H
#define TRAIN_CHECKPOINT_NAMES_H
#include <inttypes.h>
#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include "core/error.h"

#define CHECKPOINT_NAME "checkpoint-%" PRIu64
#define CHECKPOINT_NEW ".new"	      /* suffix: not completely written */
#define CHECKPOINT_NEW_OF ".new-%s"   /* the same on several ranks, with the attempt's random number in hex */
#define CHECKPOINT_DAMAGED ".damaged" /* suffix: the files do not match the manifest */

enum checkpoint_name { CHECKPOINT_NAMED, CHECKPOINT_HALF };
struct checkpoint_list {
	struct {
		uint64_t step;
		enum checkpoint_name state;
		char name[64]; /* of the folder */
	} * entry;	       /* newest first */
	size_t count;
};

void checkpoint_path(char out[PATH_MAX + 64], const char *run, uint64_t step, const char *suffix);
/* Owner: caller, checkpoint_list_release. */
enum status checkpoint_list_read(struct checkpoint_list *list, const char *run, struct error *err);
void checkpoint_list_release(struct checkpoint_list *list);
#endif
