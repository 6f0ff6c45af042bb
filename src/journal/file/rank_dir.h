/* SPDX-License-Identifier: Apache-2.0 */
/* Folders for the journals of a team's other ranks, in the run directory of rank 0. src/team writes them,
 * record_read reads them. */
#ifndef JOURNAL_FILE_RANK_DIR_H
#define JOURNAL_FILE_RANK_DIR_H
#include <stddef.h>

#define NODES_DIR "nodes"

/* Writes DIR/nodes/NAME/rank-R to `out`. Letters, digits and - _ . of the name stay; other characters and a
 * leading dot become '_', so that no name leads out of DIR/nodes. */
void rank_dir_path(char *out, size_t size, const char *dir, const char *name, unsigned rank);
#endif
