/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/inject/launch.h"
#include <dlfcn.h>
#include <string.h>
#include "profile/inject/glibc_compat.h"

COMPAT(dlopen);
COMPAT(dlsym);

enum { DRIVER = 1, RESOURCE = 3, CALLS = 2048 };
enum { CONTEXT_CREATED = 1, CONTEXT_DESTROY_STARTING = 2 };
#define PER_THREAD_STREAM ((void *)2)

static bool is_named(const char *name, const char *call)
{
	size_t n = strlen(call);

	return !strncmp(name, call, n) && (!name[n] || !strcmp(name + n, "_ptsz"));
}

static bool launches_graph(const char *name)
{
	return is_named(name, "cuGraphLaunch");
}

/* Whether the driver call launches one kernel, or a graph. */
static bool launches(const char *name)
{
	static const char *const names[] = {"cuLaunchKernel", "cuLaunchKernelEx",
					    "cuLaunchCooperativeKernel"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (is_named(name, names[i]))
			return true;
	return launches_graph(name);
}

static void *stream_of(const struct launch_callback_data *data)
{
	const struct launch_params *plain = data->params;
	const struct launch_config *const *extended = data->params;
	void *stream;

	if (!data->params || !data->function)
		return NULL;
	if (strncmp(data->function, "cuLaunchKernelEx", 16))
		stream = plain->stream;
	else
		stream = *extended ? (*extended)->stream : NULL;
	if (!stream && strstr(data->function, "_ptsz"))
		return PER_THREAD_STREAM;
	return stream;
}

static void on_callback(void *arg, int domain, uint32_t cbid, const void *what)
{
	const struct launch_calls *c = arg;
	const struct launch_callback_data *data = what;
	const struct launch_resource *resource = what;
	struct launch l;

	if (domain == RESOURCE && what)
		c->visit_context(resource->context, cbid == CONTEXT_CREATED);
	if (domain != DRIVER || !what)
		return;
	if (data->function && launches_graph(data->function)) {
		c->visit_graph();
		return;
	}
	l = (struct launch){.begins = data->site == 0,
			    .kernel = data->symbol,
			    .context = data->context,
			    .stream = stream_of(data),
			    .correlation = data->correlation};
	c->visit(&l);
}

static void *find(void *library, const char *name)
{
	return library ? dlsym(library, name) : NULL;
}

/* Returns the number of calls that are reported. */
static unsigned enable_all(const struct launch_calls *c, bool on)
{
	unsigned count = 0;
	const char *name;

	for (uint32_t cbid = 1; cbid < CALLS; cbid++) {
		name = NULL;
		if (!c->name_of(DRIVER, cbid, &name) && name && launches(name))
			count += !c->enable(on, c->subscriber, DRIVER, cbid);
	}
	return count;
}

static void follow_contexts(const struct launch_calls *c)
{
	c->enable(true, c->subscriber, RESOURCE, CONTEXT_CREATED);
	c->enable(true, c->subscriber, RESOURCE, CONTEXT_DESTROY_STARTING);
}

bool launch_open(struct launch_calls *c, void *cupti, launch_visit *visit,
		 launch_context_visit *visit_context, launch_graph_visit *visit_graph)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	const struct {
		void *library;
		const char *name;
		void *to;
	} functions[] = {{cupti, "cuptiSubscribe", &c->subscribe},
			 {cupti, "cuptiEnableCallback", &c->enable},
			 {cupti, "cuptiGetCallbackName", &c->name_of},
			 {cupti, "cuptiGetDeviceId", &c->device_of},
			 {driver, "cuStreamIsCapturing", &c->is_capturing}};

	*c = (struct launch_calls){
		.visit = visit, .visit_context = visit_context, .visit_graph = visit_graph};
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		void *found = find(functions[i].library, functions[i].name);

		memcpy(functions[i].to, &found, sizeof(found));
	}
	if (!c->subscribe || !c->enable || !c->name_of || !c->device_of ||
	    c->subscribe(&c->subscriber, on_callback, c) || !enable_all(c, true))
		return false;
	follow_contexts(c);
	return true;
}

void launch_follow(struct launch_calls *c, bool on)
{
	enable_all(c, on);
}

bool launch_device(const struct launch_calls *c, void *context, uint32_t *device)
{
	return !c->device_of(context, device);
}

bool launch_is_captured(const struct launch_calls *c, const struct launch *l)
{
	int status = 0;

	return c->is_capturing && (c->is_capturing(l->stream, &status) || status);
}
