/* SPDX-License-Identifier: Apache-2.0 */
/* The fake NCCL's calls: what they choose, what runs on the stream's turn, the functions. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "nccl_comm.h"
#include "nccl_room.h"

static _Thread_local unsigned depth; /* of ncclGroupStart */
static _Thread_local struct {
	ncclComm_t comm;
	cudaStream_t stream;
	struct fake_call *call;
} grouped;

static uint64_t word_at(const void *p, size_t bytes, bool last)
{
	uint64_t w = 0;
	size_t size = bytes < sizeof(w) ? bytes : sizeof(w);

	memcpy(&w, (const char *)p + (last ? bytes - size : 0), size);
	return w;
}

static struct fake_trace trace_of(const struct fake_call *c)
{
	struct fake_trace t = {c->send, c->receive, c->count, (int)c->kind, (int)c->type, (int)c->op, {0}};
	size_t bytes = (size_t)(fake_call_bytes(c, 1));

	if (c->kind == FAKE_POINT || !bytes)
		return t;
	for (int i = 0; i < 4; i++)
		t.ends[i] = word_at(i < 2 ? c->send : c->receive, bytes, i % 2);
	return t;
}

/* The call before again, and what it left is still there. */
static bool repeats(const struct ncclComm *c, const struct fake_call *call)
{
	struct fake_trace t = trace_of(call);

	return call->kind != FAKE_POINT && t.send != t.receive && !memcmp(&t, &c->trace, sizeof(t));
}

/* The turn's work: data first, then all devices stand where the slowest one began, and so much later. */
static void work(struct fake_group *g)
{
	struct fake_meeting *m = g->meeting;
	struct fake_call call[FAKE_RANKS];
	const struct fake_call *each[FAKE_RANKS];
	double begin = 0, ns = 0, share = 1;

	m->moved = false;
	for (unsigned r = 0; r < m->ranks; r++) {
		const struct fake_slot *s = &m->slot[r];
		uint64_t times = 1;

		call[r] = fake_room_call(g, r);
		each[r] = &call[r];
		m->moved |= !s->repeats;
		begin = s->now_ns > begin ? s->now_ns : begin;
		ns = call[r].ns > ns ? call[r].ns : ns;
		if (fake_nccl_rank("slow", (unsigned)s->device, &times, NULL))
			share = (double)times;
	}
	if (m->moved)
		fake_nccl_move(each, m->ranks);
	m->end_ns = begin + ns * share;
}

struct launch {
	ncclComm_t comm;
	const struct fake_call *call;
};

/* On the stream's turn: in the thread that enqueued or replays it. */
static void run(int device, const void *args)
{
	const struct launch *l = args;
	struct ncclComm *c = l->comm;
	struct fake_meeting *m = c->group->meeting;
	struct fake_slot *own = &m->slot[c->rank];
	uint64_t from = 1;

	if (fake_nccl_rank("hang", c->rank, &(uint64_t){0}, &from) && c->count++ + 1 >= from)
		for (;;)
			pause();
	if (fake_nccl_staged("stall") && ++c->stalls >= fake_nccl_number("stall", 1))
		DRIVER(fake_stick)(device, true);
	if (DRIVER(fake_stuck)(device)) /* behind a call that never ends */
		return;
	fake_room_bring(c->group, c->rank, l->call);
	own->repeats = repeats(c, l->call);
	own->now_ns = DRIVER(fake_now)(device);
	if (!fake_meeting_turn(c->group, work)) {
		DRIVER(fake_stick)(device, true);
		return;
	}
	if (m->moved) {
		fake_room_take(c->group, c->rank, l->call);
		c->trace = trace_of(l->call);
	}
	DRIVER(fake_wait_until)(device, m->end_ns);
}

static void tell(const struct ncclComm *c, const struct fake_call *call, const struct fake_choice *choice)
{
	struct nccl_profile_v5 d = {.type = NCCL_PROFILE_COLL, .rank = (int)c->rank};
	void *event = NULL;

	if (!c->profiler || !(fake_profiler_mask & NCCL_PROFILE_COLL) || !choice->algorithm ||
	    call->kind == FAKE_POINT)
		return;
	d.coll.function = "AllReduce";
	d.coll.count = call->count;
	d.coll.algorithm = choice->algorithm;
	d.coll.protocol = choice->protocol;
	d.coll.channels = (uint8_t)choice->channels;
	d.coll.warps = (uint8_t)choice->warps;
	c->profiler->start(c->context, &event, &d);
	if (event)
		c->profiler->stop(event);
}

static ncclResult_t submit(ncclComm_t c, struct fake_call *call, cudaStream_t stream)
{
	struct fake_ask ask = {
		.kind = call->kind,
		.ranks = c->group->meeting->ranks,
		.channels_max = c->config.magic && c->config.maxCTAs != NCCL_CONFIG_UNDEF_INT
					? (unsigned)c->config.maxCTAs
					: 0,
		.bytes = fake_call_bytes(call, c->group->meeting->ranks),
		.windows = fake_in_window(c, call->send) && fake_in_window(c, call->receive),
		.captured = DRIVER(fake_capture_of)((CUstream)stream),
		.algorithm = *c->algorithm ? c->algorithm : NULL,
		.protocol = *c->protocol ? c->protocol : NULL,
	};
	struct fake_choice choice;
	struct operation o = {.call = run};

	if (!fake_nccl_choose(&ask, &choice) || !fake_room_holds(c->group, call)) {
		free(call);
		return ncclInvalidUsage;
	}
	call->ns = choice.ns;
	call->rank = c->rank;
	call->next = c->calls;
	c->calls = call;
	tell(c, call, &choice);
	memcpy(o.args, &(struct launch){c, call}, sizeof(struct launch));
	return DRIVER(fake_enqueue)((CUstream)stream, &o) ? ncclUnhandledCudaError : ncclSuccess;
}

static ncclResult_t collective(enum fake_kind kind, const void *s, void *r, size_t n, ncclDataType_t t,
			       ncclRedOp_t op, int root, ncclComm_t c, cudaStream_t stream)
{
	struct fake_call *call = calloc(1, sizeof(*call));

	if (!call)
		return ncclSystemError;
	if ((t == ncclFloat8e4m3 || t == ncclFloat8e5m2) && fake_nccl_number("fp8", 1) == 0) {
		free(call);
		return ncclInvalidArgument;
	}
	call->kind = kind;
	call->send = s;
	call->receive = r;
	call->count = n;
	call->type = t;
	call->op = op;
	call->root = root;
	return submit(c, call, stream);
}

ncclResult_t ncclAllReduce(const void *s, void *r, size_t n, ncclDataType_t t, ncclRedOp_t op, ncclComm_t c,
			   cudaStream_t st)
{
	REFUSED(ncclAllReduce);
	return collective(FAKE_ALL_REDUCE, s, r, n, t, op, 0, c, st);
}

ncclResult_t ncclReduce(const void *s, void *r, size_t n, ncclDataType_t t, ncclRedOp_t op, int root,
			ncclComm_t c, cudaStream_t st)
{
	REFUSED(ncclReduce);
	return collective(FAKE_REDUCE, s, r, n, t, op, root, c, st);
}

ncclResult_t ncclBroadcast(const void *s, void *r, size_t n, ncclDataType_t t, int root, ncclComm_t c,
			   cudaStream_t st)
{
	REFUSED(ncclBroadcast);
	return collective(FAKE_BROADCAST, s, r, n, t, ncclSum, root, c, st);
}

ncclResult_t ncclReduceScatter(const void *s, void *r, size_t n, ncclDataType_t t, ncclRedOp_t op,
			       ncclComm_t c, cudaStream_t st)
{
	REFUSED(ncclReduceScatter);
	return collective(FAKE_REDUCE_SCATTER, s, r, n, t, op, 0, c, st);
}

ncclResult_t ncclAllGather(const void *s, void *r, size_t n, ncclDataType_t t, ncclComm_t c, cudaStream_t st)
{
	REFUSED(ncclAllGather);
	return collective(FAKE_ALL_GATHER, s, r, n, t, ncclSum, 0, c, st);
}

#ifndef FAKE_NCCL_OLD
ncclResult_t ncclAlltoAll(const void *s, void *r, size_t n, ncclDataType_t t, ncclComm_t c, cudaStream_t st)
{
	REFUSED(ncclAlltoAll);
	return collective(FAKE_ALL_TO_ALL, s, r, n, t, ncclSum, 0, c, st);
}
#endif

ncclResult_t ncclGroupStart(void)
{
	REFUSED(ncclGroupStart);
	depth++;
	return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void)
{
	ncclResult_t r = ncclSuccess;

	if (depth && --depth)
		return ncclSuccess;
	if (grouped.call)
		r = submit(grouped.comm, grouped.call, grouped.stream);
	grouped.call = NULL;
	REFUSED(ncclGroupEnd);
	return r;
}

/* Sends and receives of a group become one call. */
static ncclResult_t point(const void *s, void *r, size_t n, ncclDataType_t t, int peer, ncclComm_t c,
			  cudaStream_t st)
{
	struct fake_point *p;

	if (!depth || peer < 0 || peer >= (int)c->group->meeting->ranks)
		return ncclInvalidArgument;
	if (!grouped.call) {
		grouped.call = calloc(1, sizeof(*grouped.call));
		grouped.comm = c;
		grouped.stream = st;
	}
	if (!grouped.call)
		return ncclSystemError;
	grouped.call->kind = FAKE_POINT;
	grouped.call->type = t;
	grouped.call->count = n;
	p = s ? &grouped.call->to[peer] : &grouped.call->from[peer];
	*p = (struct fake_point){s, r, n};
	return ncclSuccess;
}

ncclResult_t ncclSend(const void *s, size_t n, ncclDataType_t t, int peer, ncclComm_t c, cudaStream_t st)
{
	REFUSED(ncclSend);
	return point(s, NULL, n, t, peer, c, st);
}

ncclResult_t ncclRecv(void *r, size_t n, ncclDataType_t t, int peer, ncclComm_t c, cudaStream_t st)
{
	REFUSED(ncclRecv);
	return point(NULL, r, n, t, peer, c, st);
}
