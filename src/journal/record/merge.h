/* SPDX-License-Identifier: Apache-2.0 */
/* One record of the journals of a team: for record.c. */
#ifndef JOURNAL_RECORD_MERGE_H
#define JOURNAL_RECORD_MERGE_H
#include "journal/record/record.h"

/* The journal of one directory and nothing else. */
enum status record_read_alone(struct record *r, const char *dir, struct error *err);
void record_drop_phases(struct record_case *c);

/* Rank 0's record gains what lies below its nodes/. One that is no rank 0 of several, or whose `team` does
 * not hold together, stays alone. NO_RESOURCE alone is an error. */
enum status record_merge(struct record *r, struct error *err);

/* team.c: the nodes, by what the journal says of its team. node_of: by rank; NULL with *size 0: no
 * team. */
enum status record_team(struct record *r, unsigned **node_of, unsigned *size, struct error *err);
/* A time of a node's clock on rank 0's: less the offset, linear between its two readings, constant outside.
 */
uint64_t record_clock_zero(const struct record_node *n, uint64_t t_ns);
#endif
