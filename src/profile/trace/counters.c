/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/trace/internal.h"

enum { REGISTER_UNIT = 256, SHARED_UNIT = 128, SHARED_RESERVED = 1024 };

static double least(double a, double b)
{
	return a < b ? a : b;
}

double trace_blocks_per_sm(const struct timeline_kernel *k, const struct timeline_device *d)
{
	uint64_t threads = (uint64_t)k->block[0] * k->block[1] * k->block[2];
	uint64_t warps = (threads + d->warp - 1) / d->warp;
	uint64_t shared = k->shared_static + (uint64_t)k->shared_dynamic;
	uint64_t registers = ((uint64_t)k->registers * d->warp + REGISTER_UNIT - 1) / REGISTER_UNIT *
			     REGISTER_UNIT * warps;
	double fit = d->blocks_per_sm ? d->blocks_per_sm : 1e9;

	if (!warps)
		return 0;
	shared += d->major >= 8 ? SHARED_RESERVED : 0;
	shared = (shared + SHARED_UNIT - 1) / SHARED_UNIT * SHARED_UNIT;
	fit = least(fit, (double)(d->warps_per_sm / warps));
	if (registers && d->registers_per_sm)
		fit = least(fit, (double)(d->registers_per_sm / registers));
	if (shared && d->shared_per_sm)
		fit = least(fit, (double)(d->shared_per_sm / shared));
	return fit;
}

static void add_series(struct trace *w, const struct series *s, uint32_t pid)
{
	uint64_t slack_ns = 1000000000;

	for (size_t i = 0; i < s->count; i++) {
		if (s->t_ns[i] + slack_ns < w->t->start_ns || s->t_ns[i] > w->t->end_ns + slack_ns ||
		    s->value[i] - s->value[i] != 0)
			continue;
		trace_begin(w);
		text_addf(
			&w->out,
			"{\"ph\":\"C\",\"pid\":%u,\"tid\":0,\"ts\":%.3f,\"cat\":\"telemetry\",\"name\":\"%s\",",
			pid, trace_us(w, s->t_ns[i]), s->signal);
		text_addf(&w->out, "\"args\":{\"%s\":%.9g}}", s->signal, s->value[i]);
	}
}

void trace_counters(struct trace *w, const struct series *series, size_t count, uint32_t pid)
{
	for (size_t i = 0; i < count; i++) {
		size_t first = 0;

		while (strcmp(series[first].source, series[i].source))
			first++;
		if (first == i)
			trace_name(w, "process_name", pid + (uint32_t)i, 0, "name", series[i].source);
		if (series[i].kind == SIGNAL_GAUGE)
			add_series(w, &series[i], pid + (uint32_t)first);
	}
}
