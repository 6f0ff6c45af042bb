/* SPDX-License-Identifier: Apache-2.0 */
/* Words of a suite ("cpu", "gpu", "pair", "gpu0>gpu1") to targets of this machine, with the reason where
 * there is none. */
#ifndef RUN_SUITE_TARGET_H
#define RUN_SUITE_TARGET_H
#include "machine/machine.h"
#include "run/plan/case.h"

struct probe;

struct target_found {
	struct target target;
	char text[TARGET_TEXT];
	enum status skip; /* STATUS_OK: it can be used */
	enum cause cause;
	char reason[256];
};

enum { TARGETS_MAX = 256 }; /* every ordered pair of the GPUs that a target holds */

/* Fills `out` (room for TARGETS_MAX) with what the word means here; at least one, with its reason where
 * nothing is there. `team` NULL: alone. An unknown word is BAD_INPUT, `place` leading the message. Pure. */
enum status target_expand(struct target_found *out, unsigned *count, const char *word,
			  const struct machine *m, const struct team_shape *team, const char *place,
			  struct error *err);
/* Back from a case's own text ("cpu:node1", "gpu0", "gpu0>gpu1", "node:0,2", "team:0-3") and the PCI
 * addresses beside it. */
enum status target_parse(struct target *t, const char *text, const json_t *gpus, const struct machine *m,
			 struct error *err);
/* Could --target say this on some machine? BAD_INPUT where it could not. */
enum status target_word(const char *word, struct error *err);
/* What --target says must be a target of this machine; BAD_INPUT says which there are. */
enum status target_wish(const char *word, const struct machine *m, struct error *err);
/* Is a case on this target asked for by --target WORD (NULL, "all", "cpu", "gpu", "gpu0", "pair",
 * "gpu0>gpu1", "node", "team")? */
bool target_asked(const struct target *t, const char *text, const char *word);

/* Where a case runs that names no target: a reading on what it reads, else on the CPU where one of its
 * engines runs there. `engines`: those that the case names, of which the probe's count; none of them: all do.
 * Static. */
const char *target_default(const struct probe *p, char *const *engines, size_t count);

/* Who else uses the GPU, as the facts say: METHODS, "Manners". "" and false where nobody does. */
bool gpu_busy(const struct gpu *g, char *reason, size_t size);
#endif
