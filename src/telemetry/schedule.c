/* SPDX-License-Identifier: Apache-2.0 */
#include "telemetry/sample.h"

enum { STAGGER_MS = 37 };

/* Spreads the slow signals of different sources over their period, so that no tick reads them all. */
void schedule_init(struct schedule *s, uint64_t now_ns, unsigned source)
{
	int i;

	for (i = 0; i < TELEMETRY_SIGNAL_COUNT; i++) {
		unsigned period_ms = telemetry_signal_at((enum telemetry_signal_id)i)->period_ms;
		unsigned shift_ms = period_ms > 50 ? source * STAGGER_MS % period_ms : 0;

		s->due_ns[i] = now_ns + (uint64_t)shift_ms * 1000000u;
	}
}

bool schedule_due(struct schedule *s, enum telemetry_signal_id id, uint64_t now_ns)
{
	uint64_t period_ns = (uint64_t)telemetry_signal_at(id)->period_ms * 1000000u;

	if (now_ns < s->due_ns[id])
		return false;
	s->due_ns[id] += period_ns;
	if (s->due_ns[id] <= now_ns)
		s->due_ns[id] = now_ns + period_ns;
	return true;
}

void schedule_never(struct schedule *s, enum telemetry_signal_id id)
{
	s->due_ns[id] = UINT64_MAX;
}
