/* SPDX-License-Identifier: Apache-2.0 */
/* CUPTI's callbacks around a launch and of a context: one subscriber, data of cuLaunchKernel. */
#include <unistd.h>
#include "cupti_counter.h"
#include "cupti_launch.h"

enum { DRIVER = 1, RESOURCE = 3, CREATED = 1, DESTROY_STARTING = 2 };
static void *subscriber_arg;
static launch_callback *subscriber;
static bool followed, graphs, contexts;

int cuptiSubscribe(void **out, launch_callback *visit, void *arg)
{
	if (fake_staged("cuptiSubscribe"))
		return (int)strtol(fake_staged("cuptiSubscribe"), NULL, 10);
	if (subscriber)
		return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
	subscriber = visit;
	subscriber_arg = arg;
	*out = &subscriber;
	return CUPTI_SUCCESS;
}

int cuptiEnableCallback(uint32_t enable, void *of, int domain, uint32_t cbid)
{
	if (of == &subscriber && domain == RESOURCE && (cbid == CREATED || cbid == DESTROY_STARTING)) {
		contexts = enable;
		return CUPTI_SUCCESS;
	}
	if (of == &subscriber && domain == DRIVER && cbid == FAKE_CUPTI_DRIVER_GRAPH) {
		graphs = enable;
		return CUPTI_SUCCESS;
	}
	if (of != &subscriber || domain != DRIVER || cbid != FAKE_CUPTI_DRIVER_LAUNCH)
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (!enable && fake_staged("linger"))
		usleep(1000 * (useconds_t)strtoul(fake_staged("linger"), NULL, 10));
	followed = enable;
	return CUPTI_SUCCESS;
}

/* A context is its device's number and 1. */
int cuptiGetDeviceId(void *context, uint32_t *device)
{
	*device = (uint32_t)((uintptr_t)context - 1);
	return CUPTI_SUCCESS;
}

void fake_cupti_launch(const char *kernel, uint32_t correlation, double ns)
{
	const struct launch_params params = {.stream = NULL};
	struct launch_callback_data data = {.function = "cuLaunchKernel",
				   .params = &params,
				   .symbol = kernel,
				   .context = (void *)1,
				   .correlation = correlation};

	if (followed)
		subscriber(subscriber_arg, DRIVER, FAKE_CUPTI_DRIVER_LAUNCH, &data);
	fake_count_kernel(ns);
	data.site = 1;
	if (followed)
		subscriber(subscriber_arg, DRIVER, FAKE_CUPTI_DRIVER_LAUNCH, &data);
}

void fake_cupti_graph(void)
{
	struct launch_callback_data data = {.function = "cuGraphLaunch", .context = (void *)1};

	if (graphs)
		subscriber(subscriber_arg, DRIVER, FAKE_CUPTI_DRIVER_GRAPH, &data);
}

void fake_cupti_context(bool made)
{
	const struct launch_resource resource = {.context = (void *)1};

	if (contexts)
		subscriber(subscriber_arg, RESOURCE, made ? CREATED : DESTROY_STARTING, &resource);
	if (!made)
		fake_ends_under_us();
}
