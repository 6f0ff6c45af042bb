/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of collectives of each part of a run (a step, an evaluation), compared between the ranks before a
 * collective is entered. So a rank that asks for another size, type or order is named before the others wait
 * for it for ever. The ranks compare over the connections of their workers, never through MPI or NCCL.
 *
 * The first time a part comes, its collectives are compared one by one, and become its table. From then on
 * the ranks compare one hash per part. A thread does that while the part computes, so that only the first
 * collective may wait for it. Each collective is then compared with the agreed table, without messages.
 */
#ifndef TRAIN_MESH_COLLECTIVE_TABLE_H
#define TRAIN_MESH_COLLECTIVE_TABLE_H
#include "core/error.h"
#include "team/links/flight.h"
#include "team/team.h"

struct collective {
	enum team_flight_kind kind;
	uint32_t type;	/* enum dtype + 1; 0: bytes of the host */
	uint64_t bytes; /* of one rank */
};
struct collective_table;

/* `team`: lent; its connections belong to the table until it is freed, except between calls of
 * collective_table_quiet and the next call. Owner: caller, collective_table_free. */
enum status collective_table_create(struct collective_table **out, const struct team *team,
				    struct error *err);
void collective_table_free(struct collective_table **t);
/* All collectives until the next call belong to part `name`, number `number` (for messages, and compared).
 * `shape`: as in comm_part. Returns at once. BUG: the part before ended with fewer
 * collectives than the ranks agreed on. */
enum status collective_table_part(struct collective_table *t, const char *name, uint64_t number,
				  uint64_t shape, struct error *err);
/* Call before each collective. Waits until all ranks have begun the part. BUG names the rank, the collective
 * and the difference: it must not be entered. Another error: a rank is gone. */
enum status collective_table_enter(struct collective_table *t, const struct collective *c, struct error *err);
/* Waits for the thread, so that the caller may use the connections. */
enum status collective_table_quiet(struct collective_table *t, struct error *err);
/* Number of messages between ranks so far, for tests of their cost. */
uint64_t collective_table_gathers(const struct collective_table *t);
#endif
