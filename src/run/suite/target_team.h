/* SPDX-License-Identifier: Apache-2.0 */
/* Targets of several ranks, and the rank that runs each case of a launched team. Pure. */
#ifndef RUN_SUITE_TARGET_TEAM_H
#define RUN_SUITE_TARGET_TEAM_H
#include "run/suite/target.h"

struct engine;

/* Reads "0,2,5-7" as bits of t->member. False: not a list, a number that is not below `most`, or a number
 * that occurs twice. That number goes into *twice, which otherwise stays unchanged. */
bool members_parse(uint64_t member[TARGET_MEMBERS / 64], const char *text, unsigned most, long *twice);
/* Writes such a list, "0,2-5"; false: it does not fit. */
bool members_text(char *out, size_t size, const uint64_t member[TARGET_MEMBERS / 64]);
void members_add(uint64_t member[TARGET_MEMBERS / 64], unsigned n);
unsigned members_count(const uint64_t member[TARGET_MEMBERS / 64]);
bool members_have(const uint64_t member[TARGET_MEMBERS / 64], unsigned n);
/* The lowest member; 0 if there are none, because an empty list stands for all ranks. */
unsigned members_first(const uint64_t member[TARGET_MEMBERS / 64]);

/* Sets t->ranks of a timed case on this engine. If the case cannot run with this team, *why is the reason of
 * the skip. */
enum status target_ranks(struct target *t, const struct engine *e, const struct machine *m,
			 const struct plan_options *wishes, struct error *why);
/* Whether both targets use the same GPUs. A list of all GPUs equals the node, and so does a team on one node
 * whose ranks have exactly these GPUs. */
bool target_same_gpus(const struct target *a, const struct target *b, const struct machine *m,
		      const struct plan_options *wishes);
/* Whether this rank of the team belongs to the target. An empty list stands for all ranks. */
bool target_takes(const struct target *t, unsigned rank);
/* Whether an engine can be chosen if the suite names none. Among launched ranks: an engine on GPUs if the
 * ranks have GPUs, otherwise an engine on processes. All ranks decide by common knowledge, so they choose the
 * same engine. Without a team: an engine that needs no other process. */
bool target_fits(const struct target *t, const struct engine *e, const struct plan_options *wishes);
/* Whether the case is one of the whole team. Then each rank has it in its plan, in the same order. */
bool target_shared(const struct target *t, const struct engine *e, const struct plan_options *wishes);
/* Whether this rank runs a case that is not one of the whole team. A GPU's case is run by the GPU's rank, any
 * other by the node's lowest rank. *why names the rank that runs it. */
enum status target_mine(const struct target *t, const struct machine *m, const struct plan_options *wishes,
			struct error *why);
/* Whether each GPU of this case belongs to one rank at most. Otherwise the case does not run: GPU_SHARED
 * names the ranks that share a GPU. A reading (`reads`) is run by the lowest of these ranks, and the others
 * get NOT_ASKED. */
enum status target_unshared(const struct target *t, bool reads, const struct machine *m,
			    const struct plan_options *wishes, struct error *why);
#endif
