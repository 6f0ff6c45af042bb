/* SPDX-License-Identifier: Apache-2.0 */
/* Merges the journals of a team into one record. Used by record.c. */
#ifndef JOURNAL_RECORD_MERGE_H
#define JOURNAL_RECORD_MERGE_H
#include "journal/record/record.h"

/* Reads the journal of one directory only. */
enum status record_read_alone(struct record *r, const char *dir, struct error *err);

/* Adds the journals below nodes/ to rank 0's record. The record stays as it is if it is not of rank 0 of a
 * team, or if its `team` is inconsistent. The only error is NO_RESOURCE. */
enum status record_merge(struct record *r, struct error *err);

/* team.c: fills the nodes from the journal's `team`. node_of: the node of each rank; NULL with *size 0: no
 * team. Owner: caller, free(). */
enum status record_team(struct record *r, unsigned **node_of, unsigned *size, struct error *err);
/* Converts a time of a node's clock to rank 0's clock: subtracts the offset, which is linear between its two
 * readings and constant outside. */
uint64_t record_clock_zero(const struct record_node *n, uint64_t t_ns);
#endif
