/* SPDX-License-Identifier: Apache-2.0 */
/* Parsers of Slurm's shorthands for lists of node names and for tasks per node. No side effects; fuzzed. */
#ifndef TEAM_LAUNCHER_NODELIST_H
#define TEAM_LAUNCHER_NODELIST_H
#include <stddef.h>
#include "core/error.h"

enum { NODELIST_MAX = 65536, NODELIST_NAME = 256 };

struct nodelist {
	char **name;
	size_t count;
};

/* Expands "gpu[001-003,7],login1,rack[1-2]n[01-04]" to at most `most` names, in order. BAD_INPUT: nested
 * brackets, empty items, or characters that no host name has. Owner: caller, nodelist_release, which also
 * accepts a zeroed list. */
enum status nodelist_parse(struct nodelist *l, const char *text, size_t most, struct error *err);
void nodelist_release(struct nodelist *l);
/* Number of tasks on node `index` by a text such as "2(x3),1". BAD_INPUT: `index` is past its end. */
enum status nodelist_tasks(unsigned *tasks, const char *text, unsigned index, struct error *err);
#endif
