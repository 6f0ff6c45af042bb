/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches of kernels and the life of contexts, as CUPTI calls back: as much of its callback interface as is
 * used, declared here as cupti.h is.
 */
#ifndef PROFILE_INJECT_LAUNCH_H
#define PROFILE_INJECT_LAUNCH_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct launch_told { /* CUpti_CallbackData */
	int site;    /* 0: the call begins; 1: it ends */
	const char *function;
	const void *params;
	void *returned;
	const char *symbol; /* the kernel's name */
	void *context;
	uint32_t context_uid;
	uint64_t *data;
	uint32_t correlation;
};
typedef void launch_told_visit(void *arg, int domain, uint32_t cbid, const void *told);

struct launch_resource { /* CUpti_ResourceData */
	void *context, *handle, *descriptor;
};

/* What the driver's launching calls are given, up to the stream: cuLaunchKernel, cuLaunchCooperativeKernel.
 */
struct launch_params {
	void *function;
	uint32_t grid[3], block[3], shared;
	void *stream;
};
/* cuLaunchKernelEx: through its configuration. */
struct launch_config {
	uint32_t grid[3], block[3], shared;
	void *stream;
};

struct launch {
	bool begins;
	const char *kernel; /* as the linker has it; NULL: not told */
	void *context, *stream;
	uint32_t correlation;
};
typedef void launch_visit(const struct launch *l);
/* In the thread that makes it, once it is made, or that ends it, before. */
typedef void launch_context_visit(void *context, bool made);
/* A graph is launched; what is in it is not told. */
typedef void launch_graph_visit(void);

struct launch_calls {
	int (*subscribe)(void **subscriber, launch_told_visit *visit, void *arg);
	int (*enable)(uint32_t enable, void *subscriber, int domain, uint32_t cbid);
	int (*name_of)(int domain, uint32_t cbid, const char **name);
	int (*device_of)(void *context, uint32_t *device);
	int (*is_capturing)(void *stream, int *status); /* the driver's; NULL: it is not loaded */
	launch_visit *visit;
	launch_context_visit *visit_context;
	launch_graph_visit *visit_graph;
	void *subscriber;
};

/* Follows launches, and contexts where that can be, from here on; `c` stays where it is. */
bool launch_open(struct launch_calls *c, void *cupti, launch_visit *visit,
		 launch_context_visit *visit_context, launch_graph_visit *visit_graph);
void launch_follow(struct launch_calls *c, bool on);
bool launch_device(const struct launch_calls *c, void *context, uint32_t *device);
/* Into a graph, or it cannot be told: nothing may wait for the device then. */
bool launch_is_captured(const struct launch_calls *c, const struct launch *l);
#endif
