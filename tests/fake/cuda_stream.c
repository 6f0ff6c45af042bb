/* SPDX-License-Identifier: Apache-2.0 */
/* The fake driver's streams, events and graphs. */
#include "cuda_fake.h"

#define CAPTURE_UNSUPPORTED ((CUresult)900)
enum { CAPTURE_INVALIDATED = 901 };

static _Atomic int made; /* streams that are there */
static _Atomic uint64_t serial; /* streams that were ever made */
static _Thread_local CUstream capture; /* the stream of this thread that captures */
static _Thread_local bool spoiled;     /* it was waited for meanwhile */

CUstream fake_capture_of(CUstream s)
{
	if (s && s->leader && s->leader == capture)
		s = s->leader;
	return s && s->capturing ? s : NULL;
}

int fake_device_of_stream(CUstream s)
{
	return s ? s->device : fake_current();
}

/* A stream that is late is so as long as it can be: who does not wait for it does not see what it did. */
void fake_catch_up(CUstream s, size_t place)
{
	for (; s && s->done < place && s->done < s->queued; s->done++)
		fake_run(&s->queue[s->done]);
}

CUresult fake_put_off(CUstream s, const struct operation *o)
{
	if (s->queued == s->room) {
		size_t room = s->room ? 2 * s->room : 16;
		struct operation *more = realloc(s->queue, room * sizeof(*more));

		if (!more)
			return CUDA_ERROR_OUT_OF_MEMORY;
		s->queue = more;
		s->room = room;
	}
	s->queue[s->queued++] = *o;
	return CUDA_SUCCESS;
}

static void await(CUevent e)
{
	fake_catch_up(e->late, e->place);
}

/* Whether the stream that is being made is late alone. */
static bool is_chosen(void)
{
	static _Atomic uint64_t last, count;
	const uint64_t which = stage_number("late_only", 0);

	if (which != last) {
		last = which;
		count = 0;
	}
	return which && ++count == which;
}

CUresult cuStreamCreate(CUstream *s, unsigned flags)
{
	(void)flags;
	STAGED(cuStreamCreate);
	*s = calloc(1, sizeof(**s));
	if (*s) {
		(*s)->device = fake_current();
		(*s)->serial = ++serial;
		(*s)->late = (made++ && stage_number("late", 0)) || is_chosen();
	}
	return *s ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuStreamDestroy_v2(CUstream s)
{
	fake_catch_up(s, s->queued);
	free(s->queue);
	made--;
	free(s);
	STAGED(cuStreamDestroy_v2);
	return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream s)
{
	STAGED(cuStreamSynchronize);
	if (fake_capture_of(s)) {
		spoiled = true;
		return CAPTURE_UNSUPPORTED;
	}
	fake_catch_up(s, s ? s->queued : 0);
	fake_await(fake_device_of_stream(s));
	return CUDA_SUCCESS;
}

/* A program that forgets one wait between streams of which one is new. */
static bool is_forgotten(CUstream s, CUevent e)
{
	static _Atomic uint64_t last, count, first;
	const uint64_t which = stage_number("deaf", 0);

	if (which != last) {
		last = which;
		count = 0;
		first = serial + 1;
	}
	if (!which || ((!s || s->serial < first) && e->recorded < first))
		return false;
	return ++count == which;
}

CUresult cuStreamWaitEvent(CUstream s, CUevent e, unsigned flags)
{
	(void)flags;
	STAGED(cuStreamWaitEvent);
	if (s != e->captured)
		s->leader = e->captured;
	if (is_forgotten(s, e))
		return CUDA_SUCCESS;
	if (s && s->late && e->late && !e->captured && !fake_capture_of(s))
		return fake_put_off(s, &(struct operation){.of = e->late, .place = e->place, .device = s->device});
	await(e);
	if (!e->captured)
		fake_wait_until(fake_device_of_stream(s), e->at_ns);
	return CUDA_SUCCESS;
}

CUresult cuStreamBeginCapture_v2(CUstream s, CUstreamCaptureMode mode)
{
	(void)mode;
	STAGED(cuStreamBeginCapture_v2);
	s->graph = calloc(1, sizeof(*s->graph));
	s->capturing = s->graph;
	capture = s->graph ? s : NULL;
	spoiled = false;
	return s->graph ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuGraphDestroy(CUgraph g)
{
	if (g)
		free(g->operation);
	free(g);
	STAGED(cuGraphDestroy);
	return CUDA_SUCCESS;
}

CUresult cuStreamEndCapture(CUstream s, CUgraph *g)
{
	CUgraph captured = s->graph;
	int code = stage_code("cuStreamEndCapture");

	s->capturing = false;
	capture = NULL;
	s->graph = NULL;
	if (spoiled && !code)
		code = CAPTURE_INVALIDATED;
	if (code) {
		if (captured)
			free(captured->operation);
		free(captured);
		return (CUresult)code;
	}
	*g = captured;
	return captured ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *x, CUgraph g, unsigned long long flags)
{
	(void)flags;
	STAGED(cuGraphInstantiateWithFlags);
	*x = calloc(1, sizeof(**x));
	if (!*x)
		return CUDA_ERROR_OUT_OF_MEMORY;
	(*x)->graph.operation = calloc(g->count ? g->count : 1, sizeof(struct operation));
	if (!(*x)->graph.operation) {
		free(*x);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	(*x)->graph.count = g->count;
	if (g->count)
		memcpy((*x)->graph.operation, g->operation, g->count * sizeof(struct operation));
	return CUDA_SUCCESS;
}

/* All its devices begin with it, and it ends with the last. */
CUresult cuGraphLaunch(CUgraphExec x, CUstream s)
{
	double begin = fake_now(fake_device_of_stream(s));

	STAGED(cuGraphLaunch);
	fake_catch_up(s, s ? s->queued : 0);
	for (size_t i = 0; i < x->graph.count; i++)
		fake_wait_until(x->graph.operation[i].device, begin);
	for (size_t i = 0; i < x->graph.count; i++)
		fake_run(&x->graph.operation[i]);
	for (size_t i = 0; i < x->graph.count; i++)
		fake_wait_until(fake_device_of_stream(s), fake_now(x->graph.operation[i].device));
	return CUDA_SUCCESS;
}

CUresult cuGraphExecDestroy(CUgraphExec x)
{
	free(x->graph.operation);
	free(x);
	STAGED(cuGraphExecDestroy);
	return CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent *e, unsigned flags)
{
	(void)flags;
	STAGED(cuEventCreate);
	*e = calloc(1, sizeof(**e));
	if (*e)
		(*e)->device = fake_current();
	return *e ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuEventDestroy_v2(CUevent e)
{
	free(e);
	STAGED(cuEventDestroy_v2);
	return CUDA_SUCCESS;
}

/* The device comes to it: it takes `event` ns. */
void fake_record(CUevent e)
{
	fake_pass(e->device, (double)stage_number("event", 0));
	e->at_ns = fake_now(e->device);
	e->asked = false;
}

CUresult cuEventRecord(CUevent e, CUstream s)
{
	STAGED(cuEventRecord);
	if (s && s->device != e->device)
		return CUDA_ERROR_INVALID_VALUE;
	e->captured = s && s->capturing ? s : NULL;
	e->recorded = s ? s->serial : 0;
	e->late = s && s->late ? s : NULL;
	if (e->late) {
		CUresult r = fake_put_off(s, &(struct operation){.event = e, .device = s->device});

		e->place = s->queued;
		return r;
	}
	if (!e->captured)
		fake_record(e);
	return CUDA_SUCCESS;
}

/* While the stream captures, the graph records it. */
CUresult cuEventRecordWithFlags(CUevent e, CUstream s, unsigned flags)
{
	STAGED(cuEventRecordWithFlags);
	if (!s || s->device != e->device || flags != CU_EVENT_RECORD_EXTERNAL || !fake_capture_of(s))
		return CUDA_ERROR_INVALID_VALUE;
	return fake_enqueue(s, &(struct operation){.event = e});
}

CUresult cuEventQuery(CUevent e)
{
	STAGED(cuEventQuery);
	await(e);
	if (!e->captured && !e->asked && stage_number("ahead", 0)) {
		e->asked = true;
		return CUDA_ERROR_NOT_READY;
	}
	return fake_stuck(e->device) ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

CUresult cuEventSynchronize(CUevent e)
{
	STAGED(cuEventSynchronize);
	if (e->captured && e->captured == capture) {
		spoiled = true;
		return CAPTURE_UNSUPPORTED;
	}
	await(e);
	fake_await(e->device);
	return CUDA_SUCCESS;
}

CUresult cuEventElapsedTime(float *ms, CUevent from, CUevent to)
{
	STAGED(cuEventElapsedTime);
	await(from);
	await(to);
	*ms = (float)((to->at_ns - from->at_ns) / 1e6);
	return CUDA_SUCCESS;
}
