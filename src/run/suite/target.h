/* SPDX-License-Identifier: Apache-2.0 */
/* Resolves a suite's target words ("cpu", "gpu", "pair", "gpu0>gpu1") to targets of this machine. A target
 * that the machine does not have gets a reason. */
#ifndef RUN_SUITE_TARGET_H
#define RUN_SUITE_TARGET_H
#include "machine/machine.h"
#include "run/plan/case.h"

struct probe;

struct target_found {
	struct target target;
	char text[TARGET_TEXT];
	enum status skip; /* STATUS_OK: the target can be used */
	enum cause cause;
	char reason[256];
};

enum { TARGETS_MAX = 256 }; /* every ordered pair of the GPUs that a target holds */

/* Fills `out` (room for TARGETS_MAX) with the targets of the word on this machine. There is at least one; if
 * the machine has none, it has a reason. `team` NULL: no team. An unknown word is BAD_INPUT, and the message
 * begins with `place`. Pure. */
enum status target_expand(struct target_found *out, unsigned *count, const char *word,
			  const struct machine *m, const struct team_shape *team, const char *place,
			  struct error *err);
/* Reads a case's own target text ("cpu:node1", "gpu0", "gpu0>gpu1", "node:0,2", "team:0-3") and the PCI
 * addresses of its GPUs. */
enum status target_parse(struct target *t, const char *text, const json_t *gpus, const struct machine *m,
			 struct error *err);
/* Checks that a word of --target is a target on some machine; otherwise BAD_INPUT. */
enum status target_word(const char *word, struct error *err);
/* Checks that a word of --target is a target of this machine; otherwise BAD_INPUT, and the message lists the
 * targets. */
enum status target_wish(const char *word, const struct machine *m, struct error *err);
/* Whether --target WORD selects a case on this target (NULL, "all", "cpu", "gpu", "gpu0", "pair",
 * "gpu0>gpu1", "node", "team"). */
bool target_asked(const struct target *t, const char *text, const char *word);

/* Target of a case that names none. A reading runs on the target that it reads. A timed case runs on the CPU
 * if one of its engines does. `engines`: those that the case names; if the probe has none of them, all its
 * engines count. Static. */
const char *target_default(const struct probe *p, char *const *engines, size_t count);

/* Whether others use the GPU, by its facts: docs/explanation/methods/measuring.md, "Sharing the machine with
 * other users". `reason` is "" if nobody does. */
bool gpu_busy(const struct gpu *g, char *reason, size_t size);
#endif
