/* SPDX-License-Identifier: Apache-2.0 */
/* Targets of several ranks, and what is whose where ranks were launched. Pure. */
#ifndef RUN_SUITE_TARGET_TEAM_H
#define RUN_SUITE_TARGET_TEAM_H
#include "run/suite/target.h"

struct engine;

/* "0,2,5-7" as bits of t->member; false: no such list, a number from `most` on, or one that stands there
 * twice, which is told in *twice (else it is left as it is). */
bool members_parse(uint64_t member[TARGET_MEMBERS / 64], const char *text, unsigned most, long *twice);
/* As such a list, "0,2-5"; false: it does not fit. */
bool members_text(char *out, size_t size, const uint64_t member[TARGET_MEMBERS / 64]);
void members_add(uint64_t member[TARGET_MEMBERS / 64], unsigned n);
unsigned members_count(const uint64_t member[TARGET_MEMBERS / 64]);
bool members_have(const uint64_t member[TARGET_MEMBERS / 64], unsigned n);
/* The lowest; 0 where there are none: then it is everybody. */
unsigned members_first(const uint64_t member[TARGET_MEMBERS / 64]);

/* The ranks of a timed case on this engine, into t->ranks; why it cannot run as it stands (skip). */
enum status target_ranks(struct target *t, const struct engine *e, const struct machine *m,
			 const struct plan_wishes *wishes, struct error *why);
/* Does one of them come to the same GPUs as the other? A list of all GPUs is the node, and so is a team on
 * one node whose ranks have all of these. */
bool target_same_gpus(const struct target *a, const struct target *b, const struct machine *m,
		      const struct plan_wishes *wishes);
/* Is this rank of the team one of the target's? A list of none is all of them. */
bool target_takes(const struct target *t, unsigned rank);
/* Where nobody named an engine: is it one to be chosen? Among launched ranks one that works on GPUs where
 * ranks have them, else one that works on processes: by what all know of each other, so that all come to the
 * same. Alone: one that needs no other process. */
bool target_fits(const struct target *t, const struct engine *e, const struct plan_wishes *wishes);
/* A case of all ranks: each has it in its plan, in the same order. */
bool target_shared(const struct target *t, const struct engine *e, const struct plan_wishes *wishes);
/* Is what is no case of all done by this rank? A GPU's by its rank, the rest by the node's lowest. `why` says
 * who does it. */
enum status target_mine(const struct target *t, const struct machine *m, const struct plan_wishes *wishes,
			struct error *why);
/* Is each GPU of this case one rank's at most? GPU_SHARED names those that have another together: it is no
 * case of any of them; the lowest alone `reads` it (NOT_ASKED of the others). */
enum status target_unshared(const struct target *t, bool reads, const struct machine *m,
			    const struct plan_wishes *wishes, struct error *why);
/* Which GPUs of the machine are this rank's: the bits of their numbers. */
unsigned target_own_gpus(uint16_t gpu[TARGET_GPUS], const struct machine *m,
			 const struct plan_wishes *wishes);
#endif
