/* SPDX-License-Identifier: Apache-2.0 */
/* Iterations on a GPU timed one by one: an event, an iteration, an event, .. on one stream, or in one graph.
 */
#ifndef RUN_METER_EVENT_CHAIN_H
#define RUN_METER_EVENT_CHAIN_H
#include "gpu/device/gpu.h"
#include "run/meter/meter.h"

/* Zeroed but for device and stream, which are lent; event_chain_release afterwards. */
struct event_chain {
	struct gpu_device *device;
	struct gpu_stream *stream;
	struct gpu_event *event[METER_SINGLES + 1];
	bool starved[METER_SINGLES];
	bool ready;
	double mark_ns; /* what an event takes on the device by itself */
	struct gpu_graph *graph;
	uint64_t graph_count; /* iterations in it */
};

/* Puts one iteration on the stream. */
typedef enum status event_chain_link(void *arg, struct error *err);

/* At first: makes the events and times one. The device is idle. */
enum status event_chain_ready(struct event_chain *c, struct error *err);
/* `count` iterations with an event before the first and behind each. `captured`: the stream captures, and the
 * graph is to record them when it runs. */
enum status event_chain_put(struct event_chain *c, uint64_t count, bool captured, event_chain_link *put,
			    void *arg, struct error *err);
/* Appends them to the window when all are done; `origin` is its begin. */
enum status event_chain_read(const struct event_chain *c, uint64_t count, const struct gpu_event *origin,
			     struct window *w, struct error *err);
void event_chain_graph_drop(struct event_chain *c);
void event_chain_release(struct event_chain *c);
#endif
