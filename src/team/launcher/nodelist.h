/* SPDX-License-Identifier: Apache-2.0 */
/* Slurm's two shorthands: names of nodes, and tasks a node. Pure (fuzzed). */
#ifndef TEAM_LAUNCHER_NODELIST_H
#define TEAM_LAUNCHER_NODELIST_H
#include <stddef.h>
#include "core/error.h"

enum { NODELIST_MAX = 65536, NODELIST_NAME = 256 };

struct nodelist {
	char **name;
	size_t count;
};

/* "gpu[001-003,7],login1,rack[1-2]n[01-04]": at most `most` names, in order. Brackets inside brackets, empty
 * items and signs that no host has are BAD_INPUT. Owner: nodelist_release, which a list of zeros stands too.
 */
enum status nodelist_parse(struct nodelist *l, const char *text, size_t most, struct error *err);
void nodelist_release(struct nodelist *l);
/* "2(x3),1": how many tasks node `index` has; past the end is BAD_INPUT. */
enum status nodelist_tasks(unsigned *tasks, const char *text, unsigned index, struct error *err);
#endif
