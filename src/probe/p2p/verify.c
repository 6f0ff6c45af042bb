/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Verification of probe p2p: on the receiver, a kernel compares every word with a second buffer that the
 * generator filled there. The words depend on sender and receiver, and the destination is poisoned first. So
 * a copy to or from the wrong place shows.
 */
#include <inttypes.h>
#include "core/math/random.h"
#include "probe/p2p/p2p.h"
#include "probe/shared/transfer_data.h"

static enum status poison(struct p2p_state *s, struct error *err)
{
	enum status st = STATUS_OK;

	if (s->opts.direction == P2P_LATENCY) {
		st = p2p_make_current(s, 1, err);
		if (!st)
			st = gpu_copy_to(s->side[1].device, s->at, &(uint64_t){0}, sizeof(uint64_t), err);
	}
	for (unsigned from = 0; !st && from < 2; from++) {
		const struct p2p_side *receiver = &s->side[!from];

		if (!p2p_sends(s, from))
			continue;
		st = p2p_make_current(s, !from, err);
		if (!st)
			st = gpu_stream_fill32(receiver->stream, receiver->in, TRANSFER_DATA_POISON,
					       s->bytes / 4, err);
	}
	return st ? st : p2p_wait(s, err);
}

static void place(struct wrong *w, const struct p2p_side *from, const struct p2p_side *to, uint64_t word)
{
	snprintf(w->place, sizeof(w->place), "gpu%u>gpu%u, byte 0x%" PRIx64, from->index, to->index,
		 4 * word);
}

static enum status check_way(struct p2p_state *s, unsigned from, struct wrong *w, struct error *err)
{
	const struct p2p_side *sender = &s->side[from], *to = &s->side[!from];
	struct transfer_data_found f = {0};
	enum status st = p2p_make_current(s, !from, err);

	if (!st)
		st = transfer_data_compare(to->device, to->stream, to->in, to->expected, to->record, s->bytes,
					   &f, err);
	if (st)
		return st;
	w->checked += s->bytes / 4;
	if (f.count && !w->count) {
		w->first_index = f.first;
		w->expected = random_u32(s->seed, p2p_words(sender, to), f.first);
		w->found = f.word;
		place(w, sender, to, f.first);
	}
	w->count += f.count;
	return STATUS_OK;
}

static enum status check_chain(struct p2p_state *s, struct wrong *w, struct error *err)
{
	uint64_t expected = s->iterations * P2P_HOPS % P2P_PLACES * P2P_STEP % P2P_PLACES, found = 0;
	enum status st = p2p_make_current(s, 1, err);

	if (!st)
		st = gpu_copy_from(s->side[1].device, &found, s->at, sizeof(found), err);
	w->total = w->checked = 1;
	if (st || found == expected)
		return st;
	w->count = 1;
	w->expected = (double)expected;
	w->found = (double)found;
	snprintf(w->place, sizeof(w->place), "gpu%u>gpu%u, the end of the chain", s->side[0].index,
		 s->side[1].index);
	return STATUS_OK;
}

static enum status check(struct p2p_state *s, struct wrong *w, struct error *err)
{
	enum status st = STATUS_OK;

	if (s->opts.direction == P2P_LATENCY)
		st = check_chain(s, w, err);
	else
		w->total = s->bytes / 4 * (s->opts.direction == P2P_BOTH ? 2 : 1);
	for (unsigned from = 0; !st && from < 2; from++)
		if (p2p_sends(s, from))
			st = check_way(s, from, w, err);
	return st ? st : transfer_data_judge("p2p", w, err);
}

static enum status verify(struct p2p_state *s, struct wrong *w, struct error *err)
{
	enum status st = STATUS_OK;

	if (!s->iterations || !s->ready) {
		st = poison(s, err);
		s->iterations = 0;
		if (!st)
			st = p2p_enqueue(s, err);
	}
	if (!st)
		st = p2p_wait(s, err);
	if (!st)
		st = check(s, w, err);
	if (st)
		return st;
	s->ready = true;
	s->iterations = 0;
	return poison(s, err);
}

enum status p2p_verify(void *state, struct wrong *w, struct error *err)
{
	struct p2p_state *s = state;
	enum status st;

	*w = (struct wrong){0};
	if (s->node)
		return p2p_node_verify(s->node, w, err);
	st = verify(s, w, err);
	if (st)
		(void)p2p_make_current(s, s->own, NULL); /* the first failure is the one to report */
	return st;
}
