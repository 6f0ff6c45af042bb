/* SPDX-License-Identifier: Apache-2.0 */
/* The live line of a server on a terminal: requests, tokens/s, use of the cache, power. */
#include <stdio.h>
#include "cmd/serve/serve.h"
#include "cmd/shared/show.h"
#include "core/clock.h"
#include "core/text/text.h"
#include "run/supervisor/supervisor.h"

#define EVERY_NS 1000000000u
#define POWER_NS 2000000000u /* the sampler's readings arrive late */

static double number(const json_t *line, const char *name)
{
	return json_number_value(json_object_get(line, name));
}

/* Power of all GPUs that the sampler reads; 0: none. */
static double power_w(const struct serving *s, uint64_t now)
{
	size_t count;
	const struct series *series = job_series(s->record.job, &count);
	double sum = 0;

	for (size_t i = 0; i < count; i++)
		if (!strncmp(series[i].source, "gpu:", 4) && !strcmp(series[i].signal, "power_w") &&
		    series[i].count && now - series[i].t_ns[series[i].count - 1] < POWER_NS)
			sum += series[i].value[series[i].count - 1];
	return sum;
}

/* watts: power of the GPUs; 0: none. */
static void live_text(struct text *out, const json_t *line, double watts)
{
	const double pages = number(line, "pages");

	text_addf(out, "running %.0f waiting %.0f | %.0f tokens/s | cache %.0f %%", number(line, "running"),
		  number(line, "waiting"), number(line, "tokens_per_s"),
		  pages > 0 ? 100 * number(line, "pages_used") / pages : 0.0);
	if (watts > 0)
		text_addf(out, " | %.0f W", watts);
}

void serve_show_live(struct serving *s, const json_t *line)
{
	const uint64_t now = clock_now_ns(clock_monotonic());
	struct text out = {0};

	if (!s->c->terminal || !s->shown || (s->live_ns && now - s->live_ns < EVERY_NS))
		return;
	s->live_ns = now;
	live_text(&out, line, s->record.job ? power_w(s, now) : 0);
	fprintf(stderr, "\r\033[K%.*s", (int)show_columns() - 1, text_str(&out));
	fflush(stderr);
	text_release(&out);
}

void serve_clear_live(struct serving *s)
{
	if (s->live_ns)
		fputs("\r\033[K", stderr);
	s->live_ns = 0;
}
