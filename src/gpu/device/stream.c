/* SPDX-License-Identifier: Apache-2.0 */
/* Streams, events, graphs. */
#include "gpu/device/gpu.h"
#include "gpu/device/internal.h"

enum status gpu_stream_create(struct gpu_device *d, struct gpu_stream **out, struct error *err)
{
	struct gpu_stream *s = calloc(1, sizeof(*s));
	enum status st;

	*out = NULL;
	if (!s)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "no memory for a stream");
	s->device = d;
	st = CUDA_CALL(&d->cu, err, stream_create, &s->raw, CU_STREAM_NON_BLOCKING);
	if (st)
		free(s);
	else
		*out = s;
	return st;
}

void gpu_stream_destroy(struct gpu_stream **s)
{
	if (!*s)
		return;
	(*s)->device->cu.stream_destroy((*s)->raw);
	free(*s);
	*s = NULL;
}

void *gpu_stream_raw(const struct gpu_stream *s)
{
	return s->raw;
}

enum status gpu_stream_wait(struct gpu_stream *s, struct error *err)
{
	return CUDA_CALL(&s->device->cu, err, stream_synchronize, s->raw);
}

enum status gpu_stream_after(struct gpu_stream *s, const struct gpu_event *e, struct error *err)
{
	return CUDA_CALL(&s->device->cu, err, stream_wait_event, s->raw, e->raw, 0);
}

enum status gpu_stream_copy(struct gpu_stream *s, gpu_ptr to, gpu_ptr from, uint64_t size, struct error *err)
{
	return CUDA_CALL(&s->device->cu, err, copy_async, to, from, size, s->raw);
}

enum status gpu_stream_copy_to(struct gpu_stream *s, gpu_ptr to, const void *from, uint64_t size,
			       struct error *err)
{
	return CUDA_CALL(&s->device->cu, err, copy_to_async, to, from, size, s->raw);
}

enum status gpu_stream_copy_from(struct gpu_stream *s, void *to, gpu_ptr from, uint64_t size,
				 struct error *err)
{
	return CUDA_CALL(&s->device->cu, err, copy_from_async, to, from, size, s->raw);
}

enum status gpu_stream_fill32(struct gpu_stream *s, gpu_ptr to, uint32_t value, uint64_t words,
			      struct error *err)
{
	return CUDA_CALL(&s->device->cu, err, set32_async, to, value, words, s->raw);
}

enum status gpu_stream_write32(struct gpu_stream *s, gpu_ptr to, uint32_t value, struct error *err)
{
	if (!s->device->cu.stream_write)
		return error_set_cause(err, STATUS_UNSUPPORTED, CAUSE_DRIVER_OLD,
				       "this driver has no cuStreamWriteValue32_v2");
	return CUDA_CALL(&s->device->cu, err, stream_write, s->raw, to, value, 0);
}

static enum status create_event(struct gpu_device *d, struct gpu_event **out, unsigned flags,
				struct error *err)
{
	struct gpu_event *e = calloc(1, sizeof(*e));
	enum status st;

	*out = NULL;
	if (!e)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "no memory for an event");
	e->device = d;
	st = CUDA_CALL(&d->cu, err, event_create, &e->raw, flags);
	if (st)
		free(e);
	else
		*out = e;
	return st;
}

enum status gpu_event_create(struct gpu_device *d, struct gpu_event **out, struct error *err)
{
	return create_event(d, out, 0, err);
}

enum status gpu_event_create_sleeping(struct gpu_device *d, struct gpu_event **out, struct error *err)
{
	return create_event(d, out, CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING, err);
}

void gpu_event_destroy(struct gpu_event **e)
{
	if (!*e)
		return;
	(*e)->device->cu.event_destroy((*e)->raw);
	free(*e);
	*e = NULL;
}

enum status gpu_event_record(struct gpu_event *e, struct gpu_stream *s, struct error *err)
{
	return CUDA_CALL(&e->device->cu, err, event_record, e->raw, s->raw);
}

enum status gpu_event_record_captured(struct gpu_event *e, struct gpu_stream *s, struct error *err)
{
	return CUDA_CALL(&e->device->cu, err, event_record_flags, e->raw, s->raw, CU_EVENT_RECORD_EXTERNAL);
}

enum status gpu_event_elapsed_ns(const struct gpu_event *from, const struct gpu_event *to, double *ns,
				 struct error *err)
{
	float ms = 0;
	enum status st = CUDA_CALL(&to->device->cu, err, event_elapsed, &ms, from->raw, to->raw);

	*ns = (double)ms * 1e6;
	return st;
}

/* An error counts as done. The wait that follows reports it. */
bool gpu_event_done(const struct gpu_event *e)
{
	return e->device->cu.event_query(e->raw) != CUDA_ERROR_NOT_READY;
}

enum status gpu_event_wait(const struct gpu_event *e, struct error *err)
{
	return CUDA_CALL(&e->device->cu, err, event_synchronize, e->raw);
}

enum status gpu_capture_begin(struct gpu_stream *s, struct error *err)
{
	return CUDA_CALL(&s->device->cu, err, capture_begin, s->raw, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
}

enum status gpu_capture_end(struct gpu_stream *s, struct gpu_graph **out, struct error *err)
{
	struct cuda *cu = &s->device->cu;
	struct gpu_graph *g = calloc(1, sizeof(*g));
	CUgraph graph = NULL;
	enum status st;

	*out = NULL;
	st = CUDA_CALL(cu, err, capture_end, s->raw,
		       &graph); /* needed even if calloc failed: the stream must leave capture */
	if (!st && !g)
		st = error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "no memory for a graph");
	if (st)
		goto out;
	g->device = s->device;
	st = CUDA_CALL(cu, err, graph_instantiate, &g->raw, graph, 0);
out:
	if (graph)
		cu->graph_destroy(graph);
	if (st)
		free(g);
	else
		*out = g;
	return st;
}

enum status gpu_graph_launch(struct gpu_graph *g, struct gpu_stream *s, struct error *err)
{
	return CUDA_CALL(&g->device->cu, err, graph_launch, g->raw, s->raw);
}

void gpu_graph_destroy(struct gpu_graph **g)
{
	if (!*g)
		return;
	(*g)->device->cu.graph_exec_destroy((*g)->raw);
	free(*g);
	*g = NULL;
}
