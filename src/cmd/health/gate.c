/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/health/gate.h"
#include <string.h>
#include "core/text/text.h"

const char *const gate_state_words[] = {"clear", "suspect", "drained"};

static enum gate_action when_drained(struct gate *g, const struct health_finding *f)
{
	bool counts = f->verdict == HEALTH_PASS && health_finding_looked(f, g->part);

	if (counts && g->passes < GATE_COUNT_MAX)
		g->passes++;
	else if (f->verdict != HEALTH_PASS)
		g->passes = 0;
	return counts && g->passes >= GATE_PASSES ? GATE_RESUME : GATE_NOTHING;
}

enum gate_action gate_step(struct gate *g, const struct health_finding *f)
{
	if (g->state == GATE_DRAINED)
		return when_drained(g, f);
	if (f->verdict == HEALTH_PASS && g->state == GATE_SUSPECT && health_finding_looked(f, g->part))
		*g = (struct gate){0};
	if (f->verdict != HEALTH_FAIL || !f->hardware)
		return GATE_NOTHING;
	if (g->state != GATE_SUSPECT || strcmp(g->part, f->part) != 0 || g->cause != f->cause) {
		*g = (struct gate){.state = GATE_SUSPECT, .cause = f->cause};
		text_copy(g->part, sizeof(g->part), f->part);
	}
	if (g->sightings < GATE_COUNT_MAX)
		g->sightings++;
	return g->sightings >= GATE_SIGHTINGS ? GATE_DRAIN : GATE_NOTHING;
}

void gate_did(struct gate *g, enum gate_action action, const char *reason)
{
	if (action == GATE_RESUME)
		*g = (struct gate){0};
	if (action != GATE_DRAIN)
		return;
	g->state = GATE_DRAINED;
	g->passes = 0;
	text_copy(g->reason, sizeof(g->reason), reason);
}
