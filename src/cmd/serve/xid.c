/* SPDX-License-Identifier: Apache-2.0 */
/* Xid events of the driver, which the run's sampler reads from NVML: in the log, and in the cause of an
 * engine's end. */
#include <stdio.h>
#include <string.h>
#include "cmd/serve/serve.h"
#include "core/clock.h"

enum { RECENT_S = 60 }; /* an engine may end that long after the event that ends it */

static bool is_xid(const struct series *s)
{
	return !strcmp(s->signal, "xid") && !strncmp(s->source, "gpu:", 4);
}

static const char *gpu_of(const struct series *s)
{
	return s->source + strlen("gpu:");
}

/* Logs the events of one GPU after *seen_ns, which then is the time of its last one. */
static void note_new(struct serving *s, const struct series *of, uint64_t *seen_ns)
{
	const uint64_t before = *seen_ns;

	for (size_t k = 0; k < of->count; k++) {
		if (of->t_ns[k] <= before)
			continue;
		serve_clear_live(s);
		log_warn(s->c->log, LOG_TOPIC_RUN, "the driver reported Xid %.0f on GPU %s", of->value[k],
			 gpu_of(of));
		*seen_ns = of->t_ns[k];
	}
}

void serve_note_xids(struct serving *s)
{
	const struct series *series;
	size_t count, gpus = 0;

	if (!s->record.job)
		return;
	series = job_series(s->record.job, &count);
	for (size_t i = 0; i < count && gpus < SERVE_GPUS_MOST; i++)
		if (is_xid(&series[i]))
			note_new(s, &series[i], &s->xid_seen_ns[gpus++]);
}

void serve_add_xid(const struct serving *s, char *how, size_t size)
{
	const uint64_t now = clock_now_ns(clock_monotonic());
	const struct series *series, *of = NULL;
	const size_t length = strlen(how);
	uint64_t last_ns = 0;
	size_t count;

	if (!s->record.job)
		return;
	series = job_series(s->record.job, &count);
	for (size_t i = 0; i < count; i++)
		if (is_xid(&series[i]) && series[i].count && series[i].t_ns[series[i].count - 1] >= last_ns) {
			of = &series[i];
			last_ns = of->t_ns[of->count - 1];
		}
	if (of && now - last_ns < RECENT_S * 1000000000ull)
		snprintf(how + length, size - length,
			 "; the driver reported Xid %.0f on GPU %s %.1f s before", of->value[of->count - 1],
			 gpu_of(of), (double)(now - last_ns) * 1e-9);
}
