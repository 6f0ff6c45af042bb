/* SPDX-License-Identifier: Apache-2.0 */
/* Callbacks for launches of kernels and for the lifetime of contexts: the part of CUPTI's callback interface
 * that is used, declared here as in cupti.h. */
#ifndef PROFILE_INJECT_LAUNCH_H
#define PROFILE_INJECT_LAUNCH_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct launch_callback_data { /* CUpti_CallbackData */
	int site;	      /* 0: the call begins; 1: it ends */
	const char *function;
	const void *params;
	void *returned;
	const char *symbol; /* name of the kernel */
	void *context;
	uint32_t context_uid;
	uint64_t *data;
	uint32_t correlation;
};
typedef void launch_callback(void *arg, int domain, uint32_t cbid, const void *data);

struct launch_resource { /* CUpti_ResourceData */
	void *context, *handle, *descriptor;
};

/* First parameters of cuLaunchKernel and cuLaunchCooperativeKernel, up to the stream. */
struct launch_params {
	void *function;
	uint32_t grid[3], block[3], shared;
	void *stream;
};
/* Parameter of cuLaunchKernelEx. */
struct launch_config {
	uint32_t grid[3], block[3], shared;
	void *stream;
};

struct launch {
	bool begins;
	const char *kernel; /* symbol name; NULL: unknown */
	void *context, *stream;
	uint32_t correlation;
};
typedef void launch_visit(const struct launch *l);
/* Called in the thread that creates the context, after its creation, or that destroys it, before its
 * destruction. */
typedef void launch_context_visit(void *context, bool made);
/* Called when a graph is launched. Its contents are unknown. */
typedef void launch_graph_visit(void);

struct launch_calls {
	int (*subscribe)(void **subscriber, launch_callback *visit, void *arg);
	int (*enable)(uint32_t enable, void *subscriber, int domain, uint32_t cbid);
	int (*name_of)(int domain, uint32_t cbid, const char **name);
	int (*device_of)(void *context, uint32_t *device);
	int (*is_capturing)(void *stream,
			    int *status); /* function of the driver; NULL: the driver is not loaded */
	launch_visit *visit;
	launch_context_visit *visit_context;
	launch_graph_visit *visit_graph;
	void *subscriber;
};

/* Reports launches from now on, and contexts if possible. `c` must stay at its address. Returns false if
 * CUPTI refuses. */
bool launch_open(struct launch_calls *c, void *cupti, launch_visit *visit,
		 launch_context_visit *visit_context, launch_graph_visit *visit_graph);
void launch_follow(struct launch_calls *c, bool on);
bool launch_device(const struct launch_calls *c, void *context, uint32_t *device);
/* Whether the launch is captured into a graph, or this is unknown. Then nothing may wait for the device. */
bool launch_is_captured(const struct launch_calls *c, const struct launch *l);
#endif
