/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Verification of probe link compares every word that crossed the link with the generator's word. On the
 * device, a kernel compares the received words with a second buffer that the generator filled there. On the
 * host, the generator recomputes each word.
 */
#include <inttypes.h>
#include "core/math/random.h"
#include "probe/shared/cpu.h"
#include "probe/link/link.h"
#include "probe/shared/transfer_data.h"

static bool to_device(const struct link_state *s)
{
	return s->opts.direction == LINK_H2D || s->opts.direction == LINK_BOTH;
}

static bool to_host(const struct link_state *s)
{
	return s->opts.direction == LINK_D2H || s->opts.direction == LINK_BOTH;
}

static void poison_work(void *arg, unsigned thread)
{
	const struct link_state *s = arg;
	uint64_t first, last;

	cpu_share(s->bytes / 16, LINK_GRAIN, thread, cpu_pool_count(s->pool), &first, &last);
	memset(s->host[1] + 4 * first, 0xff, 16 * (last - first));
}

static enum status poison(struct link_state *s, struct error *err)
{
	uint64_t zero = 0;
	enum status st = STATUS_OK;

	if (s->opts.direction == LINK_LATENCY)
		return gpu_copy_to(s->device, s->at, &zero, sizeof(zero), err);
	if (to_device(s))
		st = gpu_stream_fill32(s->stream[0], s->data[0], TRANSFER_DATA_POISON, s->bytes / 4, err);
	if (to_host(s))
		cpu_pool_run(s->pool, poison_work, s);
	return st ? st : gpu_stream_wait(s->stream[0], err);
}

static void note(struct wrong *w, const char *side, uint64_t index, double expected, double found)
{
	if (w->count++)
		return;
	w->first_index = index;
	w->expected = expected;
	w->found = found;
	snprintf(w->place, sizeof(w->place), "word %" PRIu64 " that the %s received", index, side);
}

static enum status check_device(struct link_state *s, struct wrong *w, struct error *err)
{
	struct transfer_data_found f;
	enum status st = transfer_data_compare(s->device, s->stream[0], s->data[0], s->expected, s->record,
					       s->bytes, &f, err);

	if (st)
		return st;
	w->checked += s->bytes / 4;
	if (!f.count)
		return STATUS_OK;
	note(w, "device", f.first, random_u32(s->seed, LINK_STREAM, f.first), f.word);
	w->count += f.count - 1;
	return STATUS_OK;
}

struct parts {
	const struct link_state *s;
	struct wrong *part; /* (threads) */
};

static void check_work(void *arg, unsigned thread)
{
	const struct parts *p = arg;
	const struct link_state *s = p->s;
	const uint32_t key[2] = {(uint32_t)s->seed, (uint32_t)(s->seed >> 32)};
	uint64_t block, last;

	cpu_share(s->bytes / 16, LINK_GRAIN, thread, cpu_pool_count(s->pool), &block, &last);
	for (; block < last; block++) {
		const uint32_t counter[4] = {(uint32_t)block, (uint32_t)(block >> 32), LINK_STREAM + 1, 0};
		uint32_t expected[4];

		philox4x32(expected, counter, key);
		if (!memcmp(expected, s->host[1] + 4 * block, sizeof(expected)))
			continue;
		for (unsigned i = 0; i < 4; i++)
			if (s->host[1][4 * block + i] != expected[i])
				note(&p->part[thread], "host", 4 * block + i, expected[i],
				     s->host[1][4 * block + i]);
	}
}

/* Each thread checks one range, in order. So the first wrong word is that of the first thread that found
 * one. */
static enum status check_host(struct link_state *s, struct wrong *w, struct error *err)
{
	unsigned threads = cpu_pool_count(s->pool);
	struct parts p = {.s = s, .part = calloc(threads, sizeof(*p.part))};

	if (!p.part)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "link: not enough memory to verify");
	cpu_pool_run(s->pool, check_work, &p);
	for (unsigned i = 0; i < threads; i++) {
		const struct wrong *found = &p.part[i];

		if (!found->count)
			continue;
		note(w, "host", found->first_index, found->expected, found->found);
		w->count += found->count - 1;
	}
	w->checked += s->bytes / 4;
	free(p.part);
	return STATUS_OK;
}

static enum status check_chain(struct link_state *s, struct wrong *w, struct error *err)
{
	uint64_t expected = s->iterations * LINK_HOPS % LINK_PLACES * LINK_STEP % LINK_PLACES, found = 0;
	enum status st = gpu_copy_from(s->device, &found, s->at, sizeof(found), err);

	if (st)
		return st;
	w->total = w->checked = 1;
	if (found != expected) {
		note(w, "device", 0, (double)expected, (double)found);
		snprintf(w->place, sizeof(w->place), "the end of the chain");
	}
	return STATUS_OK;
}

static enum status check(struct link_state *s, struct wrong *w, struct error *err)
{
	enum status st = STATUS_OK;

	if (s->opts.direction == LINK_LATENCY) {
		st = check_chain(s, w, err);
	} else {
		w->total = s->bytes / 4 * (s->opts.direction == LINK_BOTH ? 2 : 1);
		if (to_device(s))
			st = check_device(s, w, err);
		if (!st && to_host(s))
			st = check_host(s, w, err);
	}
	return st ? st : transfer_data_judge("link", w, err);
}

enum status link_verify(void *state, struct wrong *w, struct error *err)
{
	struct link_state *s = state;
	enum status st = STATUS_OK;

	*w = (struct wrong){0};
	if (!s->iterations || !s->ready) {
		st = poison(s, err);
		s->iterations = 0;
		if (!st)
			st = link_enqueue(s, err);
	}
	if (!st)
		st = gpu_synchronize(s->device, err);
	if (!st)
		st = check(s, w, err);
	if (st)
		return st;
	s->ready = true;
	s->iterations = 0;
	return poison(s, err);
}
