/* SPDX-License-Identifier: Apache-2.0 */
/* Decides when a node is drained and resumed. Pure. docs/explanation/design/health.md, "Draining". */
#ifndef CMD_HEALTH_GATE_H
#define CMD_HEALTH_GATE_H
#include "cmd/health/finding.h"

enum { GATE_REASON = 201, GATE_SIGHTINGS = 2, GATE_PASSES = 2, GATE_COUNT_MAX = 1000000 };

enum gate_state { GATE_CLEAR, GATE_SUSPECT, GATE_DRAINED, GATE_STATES };
extern const char *const gate_state_words[]; /* by enum gate_state */

struct gate {
	enum gate_state state;
	char part[HEALTH_PART]; /* the suspected part; "" if clear */
	enum cause cause;
	unsigned sightings;	  /* runs that saw this part fail with this cause */
	unsigned passes;	  /* consecutive, since it was drained */
	char reason[GATE_REASON]; /* why it was drained; "": it was not */
};

enum gate_action { GATE_NOTHING, GATE_DRAIN, GATE_RESUME };

/* Takes one finding into the state, and returns the action that is due. The caller does the action if it has
 * a command for it, and calls gate_did if that succeeded. Otherwise the same action is due next time. */
enum gate_action gate_step(struct gate *g, const struct health_finding *f);
/* The action was done. `reason`: with which the node was drained; printable ASCII. */
void gate_did(struct gate *g, enum gate_action action, const char *reason);
#endif
