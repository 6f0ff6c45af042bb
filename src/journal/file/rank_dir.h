/* SPDX-License-Identifier: Apache-2.0 */
/* Where the journals of a team's other ranks lie in the run directory of rank 0. Written by src/team, read by
 * record_read. */
#ifndef JOURNAL_FILE_RANK_DIR_H
#define JOURNAL_FILE_RANK_DIR_H
#include <stddef.h>

#define NODES_DIR "nodes"

/* DIR/nodes/NAME/rank-R. Of the name letters, digits, - _ . are kept, others become '_', and so does a dot at
 * its begin: no name leads out of DIR/nodes. */
void rank_dir_path(char *out, size_t size, const char *dir, const char *name, unsigned rank);
#endif
