/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/findings/copies.h"
#include <errno.h>
#include <stdio.h>

/* CUPTI numbers the kinds of copies from 0 to 10. Memory sets follow as kind 11. */
enum { SET = 11, KINDS };
static const char *const kind_names[KINDS] = {"unknown",	 "host to device",   "device to host",
					      "host to array",	 "array to host",    "array to array",
					      "array to device", "device to array",  "on the device",
					      "host to host",	 "device to device", "set"};
static const char *const memory_names[] = {"unknown", "pageable", "pinned", "device", "array", "managed"};
enum { MEMORIES = sizeof(memory_names) / sizeof(memory_names[0]) };

static bool from_host(unsigned kind)
{
	return kind == TIMELINE_HOST_TO_DEVICE || kind == TIMELINE_HOST_TO_ARRAY;
}

static bool to_host(unsigned kind)
{
	return kind == TIMELINE_DEVICE_TO_HOST || kind == TIMELINE_ARRAY_TO_HOST;
}

void copies_name(char *out, size_t size, const struct copies_row *r)
{
	snprintf(out, size, "%s%s%s", kind_names[r->kind], r->memory ? ", " : "",
		 r->memory ? memory_names[r->memory] : "");
}

/* The kind of host memory on one side of the copy; 0: neither side is host memory. */
static unsigned memory_of(const struct timeline_copy *c)
{
	unsigned memory = from_host(c->kind) ? c->from : to_host(c->kind) ? c->to : 0;

	return memory < MEMORIES ? memory : 0;
}

static unsigned kind_of(const struct timeline_event *e, const struct timeline_copy *c)
{
	if (e->kind == TIMELINE_SET)
		return SET;
	return c->kind < SET ? c->kind : 0;
}

static void add(struct copies_row *r, const struct timeline_copy *c, double ns)
{
	r->count++;
	r->bytes += c->bytes;
	r->total += ns;
	if (c->bytes >= COPIES_LARGE && ns > 0 && (double)c->bytes / ns * 1e9 > r->fastest)
		r->fastest = (double)c->bytes / ns * 1e9;
}

static int by_total(const void *a_, const void *b_)
{
	const struct copies_row *a = a_, *b = b_;

	if (a->total != b->total)
		return a->total > b->total ? -1 : 1;
	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	return (a->memory > b->memory) - (a->memory < b->memory);
}

/* Half of the memory bandwidth, since a copy on the device reads and writes each byte. */
static double device_rate(const struct timeline *t)
{
	double most = 0;

	for (size_t i = 0; i < t->devices; i++)
		if ((double)t->device[i].bandwidth_bytes > most)
			most = (double)t->device[i].bandwidth_bytes;
	return most / 2;
}

enum status copies_of(struct copies *c, const struct timeline *t, const struct windows *windows,
		      double link_rate, struct error *err)
{
	struct copies_row table[KINDS][MEMORIES] = {{{0}}};

	*c = (struct copies){.row = calloc((size_t)KINDS * MEMORIES, sizeof(*c->row))};
	if (!c->row)
		return error_errno(err, ENOMEM, "cannot build the table of copies");
	for (size_t i = 0; i < t->events; i++) {
		const struct timeline_event *e = &t->event[i];
		const struct timeline_copy *copy;

		if ((e->kind != TIMELINE_COPY && e->kind != TIMELINE_SET) ||
		    !windows_contain(windows, e->process, e->start_ns))
			continue;
		copy = &t->copy[e->detail];
		add(&table[kind_of(e, copy)][e->kind == TIMELINE_COPY ? memory_of(copy) : 0], copy,
		    (double)(e->end_ns - e->start_ns));
	}
	for (unsigned k = 0; k < KINDS; k++)
		for (unsigned m = 0; m < MEMORIES; m++) {
			struct copies_row *r = &table[k][m];

			if (!r->count)
				continue;
			r->kind = (uint8_t)k;
			r->memory = (uint8_t)m;
			r->rate = r->total > 0 ? (double)r->bytes / r->total * 1e9 : 0;
			r->bound = k == TIMELINE_ON_DEVICE	? device_rate(t)
				   : from_host(k) || to_host(k) ? link_rate
								: 0;
			c->row[c->rows++] = *r;
		}
	qsort(c->row, c->rows, sizeof(*c->row), by_total);
	return STATUS_OK;
}

void copies_release(struct copies *c)
{
	free(c->row);
	*c = (struct copies){0};
}
