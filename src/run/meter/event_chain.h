/* SPDX-License-Identifier: Apache-2.0 */
/* Times iterations on a GPU one by one: event, iteration, event, .. on one stream or in one graph. */
#ifndef RUN_METER_EVENT_CHAIN_H
#define RUN_METER_EVENT_CHAIN_H
#include "gpu/device/gpu.h"
#include "run/meter/meter.h"

/* Zero it, then set device and stream, which are lent. Free it with event_chain_release(). */
struct event_chain {
	struct gpu_device *device;
	struct gpu_stream *stream;
	struct gpu_event *event[METER_SINGLES + 1];
	bool starved[METER_SINGLES];
	bool ready;
	double mark_ns; /* time of one event on the device */
	struct gpu_graph *graph;
	uint64_t graph_count; /* iterations in the graph */
};

/* Enqueues one iteration on the stream. */
typedef enum status event_chain_link(void *arg, struct error *err);

/* Creates the events and measures the time of one, at the first call. The device must be idle. */
enum status event_chain_ready(struct event_chain *c, struct error *err);
/* Enqueues `count` iterations, with an event before the first and after each. `captured`: the stream is being
 * captured, so the graph records the events when it runs. */
enum status event_chain_put(struct event_chain *c, uint64_t count, bool captured, event_chain_link *put,
			    void *arg, struct error *err);
/* Appends the iterations to the window when all are done. `origin` is the begin of the window. */
enum status event_chain_read(const struct event_chain *c, uint64_t count, const struct gpu_event *origin,
			     struct window *w, struct error *err);
void event_chain_graph_drop(struct event_chain *c);
void event_chain_release(struct event_chain *c);
#endif
