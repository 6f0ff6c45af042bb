/* SPDX-License-Identifier: Apache-2.0 */
#include "cases.h"
#include "gpu/attention/work_order.h"
#include "gpu/device/internal.h"
#include <inttypes.h>

#define GUARD_BYTES 4096
#define GUARD_WORD 0x5AFEC0DEu

bool kit_wants(const struct kit *k, const char *name, const struct kernel_case *c)
{
	return (!k->filter || strstr(name, k->filter)) && c->count <= k->count_max &&
	       !(k->first && k->failed);
}

void kit_cases(struct kit *k, const struct kernel_group *g, kit_one *one)
{
	for (size_t i = 0; i < g->count; i++) {
		struct error err = {0};

		if (kit_wants(k, g->cases[i].entry, &g->cases[i]))
			kit_result(k, g->name, g->cases[i].entry, &g->cases[i], one(k, &g->cases[i], &err),
				   &err);
	}
}

void kit_result(struct kit *k, const char *group, const char *name, const struct kernel_case *c,
		enum status st, const struct error *err)
{
	bool absent = st == STATUS_UNSUPPORTED || st == STATUS_UNAVAILABLE;
	const char *word = st ? (absent ? "skip" : "FAIL") : "ok  ";

	k->tested++;
	k->skipped += absent;
	k->failed += st && !absent;
	printf("%s %s %s count %" PRIu64 " grid %u x %u: %s%s%s\n", word, group, name, c->count, c->blocks,
	       c->threads, c->why, st ? ": " : "", st ? err->text : "");
}

static enum status fill(struct kit *k, gpu_ptr to, uint32_t word, uint64_t bytes, struct error *err)
{
	return gpu_stream_fill32(k->stream, to, word, bytes / 4, err);
}

enum status kit_alloc(struct kit *k, struct guarded *g, uint64_t size, struct error *err)
{
	uint64_t rounded = (size + 3) / 4 * 4; /* the rest of a last word is not guarded */
	enum status st;

	*g = (struct guarded){.size = size};
	st = gpu_alloc(k->device, &g->base, rounded + 2 * GUARD_BYTES, err);
	if (st)
		return st;
	g->data = g->base + GUARD_BYTES;
	st = fill(k, g->base, GUARD_WORD, GUARD_BYTES, err);
	if (!st)
		st = fill(k, g->data, 0xffffffffu, rounded, err); /* NaN as a float, -1 as an integer */
	if (!st)
		st = fill(k, g->data + rounded, GUARD_WORD, GUARD_BYTES, err);
	return st;
}

enum status kit_put(struct kit *k, struct guarded *g, const void *from, uint64_t size, struct error *err)
{
	enum status st = kit_alloc(k, g, size, err);

	return st ? st : gpu_copy_to(k->device, g->data, from, size, err);
}

enum status kit_order(struct kit *k, struct guarded *g, const struct attention_problem *p, uint32_t *count,
		      struct error *err)
{
	const bool has = p->q_starts && p->q_starts == p->kv_starts;
	const uint64_t units = has ? attention_order_count(p->q_starts, p->batch) : 0;
	uint32_t *list = malloc((units ? units : 1) * sizeof(*list));
	enum status st = list ? STATUS_OK : error_set(err, STATUS_NO_RESOURCE, "no memory for an order");

	*count = (uint32_t)units;
	if (!st && has)
		st = attention_order_fill(list, p->q_starts, p->batch, p->mask != ATTENTION_FULL, err);
	if (!st && units)
		st = kit_put(k, g, list, units * sizeof(*list), err);
	free(list);
	return st;
}

enum status kit_guards(struct kit *k, const struct guarded *g, const char *what, struct error *err)
{
	uint64_t rounded = (g->size + 3) / 4 * 4;
	uint32_t words[GUARD_BYTES / 4];

	for (int side = 0; side < 2; side++) {
		enum status st =
			gpu_copy_from(k->device, words, side ? g->data + rounded : g->base, GUARD_BYTES, err);

		for (unsigned i = 0; i < GUARD_BYTES / 4 && !st; i++)
			if (words[i] != GUARD_WORD)
				return error_set(err, STATUS_MISMATCH,
						 "%s: wrote %s its output (guard word %u is %08x)", what,
						 side ? "behind" : "before", i, words[i]);
		if (st)
			return st;
	}
	return STATUS_OK;
}

static enum status open_peer(struct kit *k, struct error *err)
{
	char own[16], pci[16];
	int count = 0;

	if (k->device->cu.device_count(&count) || count < 2)
		return error_set(err, STATUS_UNSUPPORTED, "one GPU");
	if (k->device->cu.device_pci(own, sizeof(own), k->device->id) ||
	    k->device->cu.device_pci(pci, sizeof(pci), 0))
		return error_set(err, STATUS_VENDOR, "a GPU tells no PCI address");
	if (!strcmp(own, pci) && k->device->cu.device_pci(pci, sizeof(pci), 1))
		return error_set(err, STATUS_VENDOR, "a GPU tells no PCI address");
	return gpu_open(&k->peer, pci, err);
}

enum status kit_peer(struct kit *k, struct error *err)
{
	bool there = false, back = false;
	enum status st = k->peer ? STATUS_OK : open_peer(k, err);

	if (!st)
		st = gpu_peer_enable(k->peer, k->device, &back, err);
	if (!st)
		st = gpu_peer_enable(k->device, k->peer, &there, err);
	if (!st && !(there && back))
		st = error_set(err, STATUS_UNSUPPORTED, "the two GPUs have no access to each other");
	if (k->peer)
		(void)gpu_current(k->device, NULL);
	return st;
}

void kit_free(struct kit *k, struct guarded *g)
{
	gpu_free(k->device, &g->base);
	*g = (struct guarded){0};
}

enum status kit_compare(const char *what, const void *found, const void *expected, uint64_t size,
			struct error *err)
{
	const uint32_t *f = found, *e = expected;

	for (uint64_t i = 0; i < size / 4; i++)
		if (f[i] != e[i])
			return error_set(err, STATUS_MISMATCH,
					 "%s: word %" PRIu64 " is %08x, the reference has %08x", what, i,
					 f[i], e[i]);
	return STATUS_OK;
}

static enum status span(struct kit *k, enum status (*call)(void *arg, struct error *err), void *arg,
			unsigned calls, struct gpu_event *const event[2], double *ns, struct error *err)
{
	enum status st = gpu_event_record(event[0], k->stream, err);

	for (unsigned i = 0; i < calls && !st; i++)
		st = call(arg, err);
	if (!st)
		st = gpu_event_record(event[1], k->stream, err);
	if (!st)
		st = gpu_event_wait(event[1], err);
	if (!st)
		st = gpu_event_elapsed_ns(event[0], event[1], ns, err);
	*ns /= calls;
	return st;
}

static double middle(double a, double b, double c)
{
	if (a > b) {
		double t = a;

		a = b;
		b = t;
	}
	return c < a ? a : (c > b ? b : c);
}

enum status kit_time(struct kit *k, enum status (*call)(void *arg, struct error *err), void *arg,
		     unsigned calls, double *ns, struct error *err)
{
	struct gpu_event *event[2] = {NULL, NULL};
	double t[3] = {0};
	enum status st = gpu_event_create(k->device, &event[0], err);

	if (!st)
		st = gpu_event_create(k->device, &event[1], err);
	for (int i = 0; i < 2 && !st; i++)
		st = call(arg, err);
	for (int i = 0; i < 3 && !st; i++)
		st = span(k, call, arg, calls, event, &t[i], err);
	*ns = middle(t[0], t[1], t[2]);
	gpu_event_destroy(&event[0]);
	gpu_event_destroy(&event[1]);
	return st;
}
