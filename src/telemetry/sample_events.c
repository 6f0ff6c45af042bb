/* SPDX-License-Identifier: Apache-2.0 */
/* Xid events. The event set is polled without waiting, so a quiet machine costs one call per period. */
#include "telemetry/sample.h"

enum { EVENT_PERIOD_MS = 100, EVENTS_A_TICK = 32 };

static nvmlReturn_t register_gpu(const struct sample_events *e, nvmlDevice_t device)
{
	unsigned long long types = nvmlEventTypeXidCriticalError;

	if (e->nvml->event_types && e->nvml->event_types(device, &types))
		types = nvmlEventTypeXidCriticalError;
	types &= nvmlEventTypeXidCriticalError;
	return types ? e->nvml->event_register(device, types, e->set) : NVML_ERROR_NOT_SUPPORTED;
}

void sample_events_init(struct sample_events *e, const struct nvml *nvml, const struct sample_gpu *gpus,
			unsigned count, struct batch *b, const struct clock *clock)
{
	nvmlReturn_t none = NVML_ERROR_FUNCTION_NOT_FOUND, ret;
	unsigned registered = 0;

	*e = (struct sample_events){.nvml = nvml};
	if (nvml->event_set_create && nvml->event_set_free && nvml->event_set_wait && nvml->event_register)
		none = nvml->event_set_create(&e->set);
	if (none)
		e->set = NULL;
	for (unsigned i = 0; i < count; i++) {
		ret = none ? none : register_gpu(e, gpus[i].device);
		registered += !ret;
		if (!ret)
			continue;
		batch_add(b, gpus[i].source, TELEMETRY_xid_unwatched, clock_now_ns(clock), (double)ret);
		if (gpus[i].log)
			log_warn(
				gpus[i].log, LOG_TOPIC_RUN,
				"%s: NVML provides no Xid events (%s): Xid errors in this run are not detected",
				b->name[gpus[i].source], nvml_code_text((int)ret));
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
			return; /* the usual case: no event */
		g = gpu_of(gpus, count, data.device);
		if (g && data.eventType & nvmlEventTypeXidCriticalError)
			batch_add(b, g->source, TELEMETRY_xid, now, (double)data.eventData);
	}
}
