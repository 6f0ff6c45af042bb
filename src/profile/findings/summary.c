/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/findings/summary.h"
#include <errno.h>
#include "core/math/stats.h"

struct item {
	uint64_t ns;
	uint32_t event, name;
	uint16_t kind;
};

static int by_name(const void *a_, const void *b_)
{
	const struct item *a = a_, *b = b_;

	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	if (a->name != b->name)
		return a->name < b->name ? -1 : 1;
	return (a->ns > b->ns) - (a->ns < b->ns);
}

static int by_total(const void *a_, const void *b_)
{
	const struct summary_row *a = a_, *b = b_;

	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	if (a->total != b->total)
		return a->total > b->total ? -1 : 1;
	return (a->name > b->name) - (a->name < b->name);
}

/* Fills a row from the items of one kind and name, which are sorted ascending. `ns` has room for `count`
 * numbers. */
static void fill_row(struct summary_row *row, const struct timeline *t, const struct item *item, size_t count,
		     double *ns)
{
	*row = (struct summary_row){.kind = item->kind, .name = item->name, .count = count};
	for (size_t i = 0; i < count; i++) {
		const struct timeline_event *e = &t->event[item[i].event];

		ns[i] = (double)item[i].ns;
		row->total += ns[i];
		if (e->kind == TIMELINE_COPY || e->kind == TIMELINE_SET)
			row->bytes += t->copy[e->detail].bytes;
	}
	row->mean = row->total / (double)count;
	row->min = ns[0];
	row->p50 = stats_percentile(ns, count, 0.5);
	row->p90 = stats_percentile(ns, count, 0.9);
	row->p99 = stats_percentile(ns, count, 0.99);
	row->max = ns[count - 1];
}

static size_t same_until(const struct item *item, size_t from, size_t count)
{
	size_t end = from + 1;

	while (end < count && item[end].kind == item[from].kind && item[end].name == item[from].name)
		end++;
	return end;
}

static void share(struct summary *s)
{
	double device_ns = s->total_ns[TIMELINE_KERNEL] + s->total_ns[TIMELINE_COPY] +
			   s->total_ns[TIMELINE_SET] + s->total_ns[TIMELINE_GRAPH];

	for (size_t i = 0; i < s->rows; i++) {
		double all = timeline_on_device(s->row[i].kind) ? device_ns : s->total_ns[s->row[i].kind];

		s->row[i].share = all > 0 ? s->row[i].total / all : 0;
	}
}

static bool make_rows(struct summary *s, const struct timeline *t, const struct windows *windows)
{
	struct item *item = malloc((t->events + 1) * sizeof(*item));
	double *ns = malloc((t->events + 1) * sizeof(*ns));
	size_t rows = 0, items = 0;

	if (item && ns) {
		for (size_t i = 0; i < t->events; i++) {
			const struct timeline_event *e = &t->event[i];

			if (!windows_contain(windows, e->process, e->start_ns))
				continue;
			item[items++] = (struct item){.ns = e->end_ns - e->start_ns,
						      .event = (uint32_t)i,
						      .name = e->name,
						      .kind = e->kind};
			s->count[e->kind]++;
			s->in_graphs += e->kind == TIMELINE_KERNEL && t->kernel[e->detail].graph;
			s->total_ns[e->kind] += (double)(e->end_ns - e->start_ns);
		}
		qsort(item, items, sizeof(*item), by_name);
		for (size_t i = 0; i < items; i = same_until(item, i, items))
			rows++;
		s->row = calloc(rows + 1, sizeof(*s->row));
	}
	for (size_t i = 0, end; s->row && i < items; i = end) {
		end = same_until(item, i, items);
		fill_row(&s->row[s->rows++], t, item + i, end - i, ns);
	}
	free(item);
	free(ns);
	if (!s->row)
		return false;
	qsort(s->row, s->rows, sizeof(*s->row), by_total);
	share(s);
	return true;
}

static struct summary_device *device_of(struct summary *s, uint16_t process, uint32_t device)
{
	struct summary_device *grown;

	for (size_t i = 0; i < s->devices; i++)
		if (s->device[i].process == process && s->device[i].device == device)
			return &s->device[i];
	grown = realloc(s->device, (s->devices + 1) * sizeof(*grown));
	if (!grown)
		return NULL;
	s->device = grown;
	s->device[s->devices] = (struct summary_device){.process = process, .device = device};
	return &s->device[s->devices++];
}

/* Time that the event adds to busy time: its part after *until. Moves *until to the end of the event. Events
 * come in the order of their starts. */
static uint64_t added(uint64_t *until, const struct timeline_event *e)
{
	uint64_t from = e->start_ns > *until ? e->start_ns : *until;

	if (e->end_ns <= from)
		return 0;
	*until = e->end_ns;
	return e->end_ns - from;
}

static bool make_devices(struct summary *s, const struct timeline *t, const struct windows *windows)
{
	uint64_t *until = calloc(2 * TIMELINE_DEVICES_MAX, sizeof(*until));
	bool made = until;

	for (size_t i = 0; until && i < t->events; i++) {
		const struct timeline_event *e = &t->event[i];
		struct summary_device *d;
		size_t index;

		if (!timeline_on_device(e->kind) || e->track == TIMELINE_NONE ||
		    !windows_contain(windows, e->process, e->start_ns))
			continue;
		d = device_of(s, e->process, t->track[e->track].device_id);
		index = d ? (size_t)(d - s->device) : TIMELINE_DEVICES_MAX;
		if (index >= TIMELINE_DEVICES_MAX)
			break;
		d->first_ns = d->first_ns ? d->first_ns : e->start_ns;
		d->last_ns = e->end_ns > d->last_ns ? e->end_ns : d->last_ns;
		d->busy_ns += added(&until[2 * index], e);
		if (e->kind == TIMELINE_KERNEL || e->kind == TIMELINE_GRAPH)
			d->kernel_ns += added(&until[2 * index + 1], e);
	}
	free(until);
	return made;
}

enum status summary_of(struct summary *s, const struct timeline *t, const struct windows *windows,
		       struct error *err)
{
	*s = (struct summary){0};
	if (make_rows(s, t, windows) && make_devices(s, t, windows))
		return STATUS_OK;
	summary_release(s);
	return error_errno(err, ENOMEM, "cannot summarize %zu events", t->events);
}

void summary_release(struct summary *s)
{
	free(s->row);
	free(s->device);
	*s = (struct summary){0};
}
