/* SPDX-License-Identifier: Apache-2.0 */
/* What a load test shows on stderr while it runs. */
#include <stdio.h>
#include "cmd/load/load.h"
#include "cmd/shared/show.h"
#include "core/clock.h"
#include "core/text/text.h"

static double number(const json_t *line, const char *name)
{
	return json_number_value(json_object_get(line, name));
}

static void add_times(struct text *out, const json_t *line, const char *name, const char *shown)
{
	static const char *const of[] = {"p50", "p95", "p99"};
	char member[32];

	snprintf(member, sizeof(member), "%s_p50_s", name);
	if (!json_object_get(line, member))
		return;
	text_addf(out, " | %s", shown);
	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		snprintf(member, sizeof(member), "%s_%s_s", name, of[i]);
		text_addf(out, "%s%.3g", i ? "/" : " ", 1e3 * number(line, member));
	}
	text_add(out, " ms");
}

void load_show_live(struct loading *l, const json_t *line)
{
	struct text out = {0};

	if (!l->c->terminal)
		return;
	l->live_ns = clock_now_ns(clock_monotonic());
	text_addf(&out, "%.0f of %.0f requests, %.1f/s, %.0f errors | %.0f tokens/s", number(line, "ended"),
		  number(line, "planned"), number(line, "requests_per_s"), number(line, "errors"),
		  number(line, "tokens_per_s"));
	add_times(&out, line, "ttft", "TTFT P50/95/99");
	add_times(&out, line, "e2e", "E2E");
	text_addf(&out, " | %.0f s left", number(line, "left_s"));
	fprintf(stderr, "\r\033[K%.*s", (int)show_columns() - 1, text_str(&out));
	fflush(stderr);
	text_release(&out);
}

void load_clear_live(struct loading *l)
{
	if (l->live_ns)
		fputs("\r\033[K", stderr);
	l->live_ns = 0;
}
