/* SPDX-License-Identifier: Apache-2.0 */
#include "load/run/live.h"
#include <math.h>
#include <stdio.h>
#include "core/clock.h"

static void add_time(struct load_times *t, uint64_t from_ns, uint64_t to_ns)
{
	load_times_add(t, to_ns > from_ns ? to_ns - from_ns : 0);
}

void live_begin(struct live *l, uint64_t planned, double end_s)
{
	pthread_mutex_lock(&l->lock);
	l->ended = l->errors = l->output_tokens = 0;
	l->ttft = l->e2e = (struct load_times){0};
	l->planned = planned;
	l->end_s = end_s;
	pthread_mutex_unlock(&l->lock);
}

void live_add(struct live *l, const struct load_record *r)
{
	pthread_mutex_lock(&l->lock);
	l->ended++;
	l->errors += r->error != LOAD_ERROR_NONE;
	l->output_tokens += r->output_usage > 0 ? (uint64_t)r->output_usage : r->chunks;
	if (r->error == LOAD_ERROR_NONE && r->first_token_ns != LOAD_NEVER)
		add_time(&l->ttft, r->scheduled_ns, r->first_token_ns);
	if (r->error == LOAD_ERROR_NONE)
		add_time(&l->e2e, r->scheduled_ns, r->end_ns);
	pthread_mutex_unlock(&l->lock);
}

static void put_quantiles(json_t *line, const char *name, const struct load_times *t)
{
	static const struct {
		const char *name;
		double share;
	} of[] = {{"p50", 0.5}, {"p95", 0.95}, {"p99", 0.99}};
	char member[32];

	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]) && t->count; i++) {
		snprintf(member, sizeof(member), "%s_%s_s", name, of[i].name);
		json_object_set_new(line, member, json_real(load_times_quantile(t, of[i].share)));
	}
}

json_t *live_line(struct live *l)
{
	json_t *line;

	pthread_mutex_lock(&l->lock);
	line = json_pack("{s:I, s:I, s:I, s:I, s:f}", "planned", (json_int_t)l->planned, "ended",
			 (json_int_t)l->ended, "errors", (json_int_t)l->errors, "output_tokens",
			 (json_int_t)l->output_tokens, "left_s", fmax(0, l->end_s - clock_now_s()));
	if (line) {
		put_quantiles(line, "ttft", &l->ttft);
		put_quantiles(line, "e2e", &l->e2e);
	}
	pthread_mutex_unlock(&l->lock);
	return line;
}
