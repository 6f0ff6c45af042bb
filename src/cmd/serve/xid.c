/* SPDX-License-Identifier: Apache-2.0 */
/* Xid events of the driver, which the run's sampler reads from NVML: in the log, and in the cause of an
 * engine's end. */
#include <stdio.h>
#include <string.h>
#include "cmd/serve/serve.h"
#include "core/clock.h"
#include "core/text/text.h"

enum { RECENT_S = 60 }; /* an engine may end that long after the event that ends it */

static uint64_t now_ns(void)
{
	return clock_now_ns(clock_monotonic());
}

static void note(struct serving *s, const struct series *of, size_t i)
{
	const char *gpu = of->source + strlen("gpu:");
	const unsigned number = (unsigned)of->value[i];

	serve_clear_live(s);
	log_warn(s->c->log, LOG_TOPIC_RUN, "the driver reported Xid %u on GPU %s", number, gpu);
	if (of->t_ns[i] < s->xid.t_ns)
		return;
	s->xid.number = number;
	s->xid.t_ns = of->t_ns[i];
	text_copy(s->xid.gpu, sizeof(s->xid.gpu), gpu);
}

/* The events of one GPU that came since the last call. */
static void note_new(struct serving *s, const struct series *of, uint64_t *seen_ns)
{
	const uint64_t before = *seen_ns;

	for (size_t k = 0; k < of->count; k++)
		if (of->t_ns[k] > before) {
			note(s, of, k);
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
		if (!strcmp(series[i].signal, "xid") && !strncmp(series[i].source, "gpu:", 4))
			note_new(s, &series[i], &s->xid.seen_ns[gpus++]);
}

void serve_add_xid(const struct serving *s, char *how, size_t size)
{
	const double ago_s = (double)(now_ns() - s->xid.t_ns) * 1e-9;
	const size_t length = strlen(how);

	if (s->xid.t_ns && ago_s < RECENT_S)
		snprintf(how + length, size - length, "; the driver reported Xid %u on GPU %s %.1f s before",
			 s->xid.number, s->xid.gpu, ago_s);
}
