/* SPDX-License-Identifier: Apache-2.0 */
/* Xid events. The set is asked with no time to wait, so a quiet machine costs one call a tick of its period.
 */
#include "telemetry/sample.h"

enum { EVENT_PERIOD_MS = 100, EVENTS_A_TICK = 32 };

void sample_events_init(struct sample_events *e, const struct nvml *nvml, const struct sample_gpu *gpus,
			unsigned count)
{
	unsigned i, registered = 0;

	*e = (struct sample_events){.nvml = nvml};
	if (!nvml->event_set_create || !nvml->event_set_free || !nvml->event_set_wait ||
	    !nvml->event_register || nvml->event_set_create(&e->set)) {
		e->set = NULL;
		return;
	}
	for (i = 0; i < count; i++) {
		unsigned long long types = nvmlEventTypeXidCriticalError;

		if (nvml->event_types && nvml->event_types(gpus[i].device, &types))
			types = nvmlEventTypeXidCriticalError;
		types &= nvmlEventTypeXidCriticalError;
		registered += types && !nvml->event_register(gpus[i].device, types, e->set);
	}
	if (!registered)
		sample_events_release(e);
}

void sample_events_release(struct sample_events *e)
{
	if (e->set)
		e->nvml->event_set_free(e->set);
	e->set = NULL;
}

static const struct sample_gpu *gpu_of(const struct sample_gpu *gpus, unsigned count, nvmlDevice_t device)
{
	unsigned i;

	for (i = 0; i < count; i++)
		if (gpus[i].device == device)
			return &gpus[i];
	return NULL;
}

void sample_events_tick(struct sample_events *e, const struct sample_gpu *gpus, unsigned count,
			struct batch *b, const struct clock *clock)
{
	uint64_t now = clock_now_ns(clock);
	unsigned i;

	if (!e->set || now < e->due_ns)
		return;
	e->due_ns = now + EVENT_PERIOD_MS * 1000000u;
	for (i = 0; i < EVENTS_A_TICK; i++) {
		nvmlEventData_t data = {0};
		const struct sample_gpu *g;

		if (e->nvml->event_set_wait(e->set, &data, 0))
			return; /* none, as a rule */
		g = gpu_of(gpus, count, data.device);
		if (g && data.eventType & nvmlEventTypeXidCriticalError)
			batch_add(b, g->source, TELEMETRY_xid, now, (double)data.eventData);
	}
}
