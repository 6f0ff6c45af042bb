/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/inject/activity.h"
#include <sched.h>

enum { CALL_UNWANTED = UINT32_MAX, TRIES = 8 };

/* Parts of the names of calls that the analysis needs: calls that launch, copy, wait or allocate. */
static const char *const wanted_parts[] = {
	"Launch", "Memcpy",	 "Memset",     "Synchronize", "Wait",	     "Malloc",	 "Free",
	"Alloc",  "EventRecord", "ModuleLoad", "LibraryLoad", "Instantiate", "Prefetch", "MemMap",
};

static uint32_t name_id(struct activity *a, const char *name)
{
	struct activity_name *known;
	uint64_t begin = 0;
	size_t size;

	if (!name)
		return 0;
	known = &a->names[((uintptr_t)name >> 4) * 2654435761u >> 7 & (ACTIVITY_NAMES - 1)];
	size = strlen(name);
	memcpy(&begin, name, size < sizeof(begin) ? size : sizeof(begin));
	if (known->pointer == name && known->size == size && known->begin == begin)
		return known->id;
	*known = (struct activity_name){.pointer = name,
					.id = writer_string(a->writer, name),
					.size = (uint32_t)size,
					.begin = begin};
	return known->id;
}

static void add_kernel(struct activity *a, const struct cupti_kernel *k)
{
	bool clusters = a->cupti->version_number >= CUPTI_VERSION_CLUSTER;
	struct ring_kernel out = {
		.head = {.type = RING_KERNEL, .size = sizeof(out), .name = name_id(a, k->name)},
		.start = k->start,
		.end = k->end,
		.device = k->device,
		.context = k->context,
		.stream = k->stream,
		.correlation = k->correlation,
		.graph_node = k->graph_node,
		.graph = k->graph,
		.local_bytes = k->local_bytes,
		.grid = {k->grid[0], k->grid[1], k->grid[2]},
		.block = {k->block[0], k->block[1], k->block[2]},
		.registers = k->registers,
		.shared_static = k->shared_static,
		.shared_dynamic = k->shared_dynamic,
	};

	for (unsigned i = 0; clusters && i < 3; i++)
		out.cluster[i] = (uint16_t)k->cluster[i];
	writer_add(a->writer, &out);
}

static void add_copy(struct activity *a, const struct cupti_memcpy *c)
{
	struct ring_copy out = {
		.head = {.type = RING_COPY, .size = sizeof(out)},
		.start = c->start,
		.end = c->end,
		.bytes = c->bytes,
		.device = c->device,
		.context = c->context,
		.stream = c->stream,
		.correlation = c->correlation,
		.graph_node = c->graph_node,
		.graph = c->graph,
		.to_device = c->device,
		.from_device = c->device,
		.kind = c->copy_kind,
		.from = c->from,
		.to = c->to,
		.flags = c->flags,
	};

	writer_add(a->writer, &out);
}

static void add_copy_peer(struct activity *a, const struct cupti_memcpy_peer *c)
{
	struct ring_copy out = {
		.head = {.type = RING_COPY, .size = sizeof(out)},
		.start = c->start,
		.end = c->end,
		.bytes = c->bytes,
		.device = c->device,
		.context = c->context,
		.stream = c->stream,
		.correlation = c->correlation,
		.graph_node = c->graph_node,
		.graph = c->graph,
		.to_device = c->to_device,
		.from_device = c->from_device,
		.kind = c->copy_kind,
		.from = c->from,
		.to = c->to,
		.flags = c->flags,
	};

	writer_add(a->writer, &out);
}

static void add_set(struct activity *a, const struct cupti_memset *s)
{
	struct ring_set out = {
		.head = {.type = RING_SET, .size = sizeof(out)},
		.start = s->start,
		.end = s->end,
		.bytes = s->bytes,
		.device = s->device,
		.context = s->context,
		.stream = s->stream,
		.correlation = s->correlation,
		.graph_node = s->graph_node,
		.graph = s->graph,
		.value = s->value,
	};

	writer_add(a->writer, &out);
}

static bool is_wanted(const struct activity *a, const char *name)
{
	for (size_t i = 0; i < sizeof(wanted_parts) / sizeof(wanted_parts[0]); i++)
		if (strstr(name, wanted_parts[i]))
			return true;
	return a->all_calls;
}

typedef int enable_call(uint32_t cbid, uint8_t enable);

/* Returns the number of calls that could be enabled. */
static unsigned enable_wanted(const struct activity *a, int domain, enable_call *enable)
{
	unsigned count = 0;
	const char *name;

	for (uint32_t cbid = 1; enable && cbid < ACTIVITY_CALLS; cbid++) {
		name = NULL;
		if (!a->cupti->callback_name(domain, cbid, &name) && name && is_wanted(a, name))
			count += !enable(cbid, 1);
	}
	return count;
}

void activity_enable_calls(const struct activity *a, bool late)
{
	const struct cupti *c = a->cupti;
	bool some = !a->all_calls && !late && c->callback_name;

	if (!some || !enable_wanted(a, CUPTI_DOMAIN_RUNTIME, c->enable_runtime_call))
		c->enable(CUPTI_KIND_RUNTIME);
	if (!some || !enable_wanted(a, CUPTI_DOMAIN_DRIVER, c->enable_driver_call))
		c->enable(CUPTI_KIND_DRIVER);
}

/* Whether a call is recorded, and the string of its name. The name ends before "_v", so
 * "cudaLaunchKernel_v7000" becomes "cudaLaunchKernel". */
static uint32_t look_up_call(const struct activity *a, int domain, uint32_t cbid)
{
	char plain[128];
	const char *name = NULL, *suffix;

	if (!a->cupti->callback_name || a->cupti->callback_name(domain, cbid, &name) || !name)
		return 1; /* recorded without a name */
	if (!is_wanted(a, name))
		return CALL_UNWANTED;
	suffix = strstr(name, "_v");
	if (suffix && domain == CUPTI_DOMAIN_RUNTIME)
		snprintf(plain, sizeof(plain), "%.*s", (int)(suffix - name), name);
	else
		snprintf(plain, sizeof(plain), "%s", name);
	return 1 + writer_string(a->writer, plain);
}

static void add_call(struct activity *a, const struct cupti_api *c)
{
	int domain = c->kind == CUPTI_KIND_DRIVER ? CUPTI_DOMAIN_DRIVER : CUPTI_DOMAIN_RUNTIME;
	uint32_t *known = c->cbid < ACTIVITY_CALLS ? &a->calls[domain - 1][c->cbid] : NULL;
	uint32_t call = known && *known ? *known : look_up_call(a, domain, c->cbid);
	struct ring_api out = {
		.head = {.type = RING_API, .size = sizeof(out), .name = call - 1},
		.start = c->start,
		.end = c->end,
		.thread = c->thread,
		.correlation = c->correlation,
		.result = c->result,
		.domain = (uint16_t)domain,
		.cbid = (uint16_t)c->cbid,
	};

	if (known)
		*known = call;
	if (call != CALL_UNWANTED)
		writer_add(a->writer, &out);
}

static void add_sync(struct activity *a, const struct cupti_sync *s)
{
	struct ring_sync out = {
		.head = {.type = RING_SYNC, .size = sizeof(out)},
		.start = s->start,
		.end = s->end,
		.type = s->type,
		.context = s->context,
		.stream = s->stream,
		.event = s->event,
		.correlation = s->correlation,
	};

	writer_add(a->writer, &out);
}

static void add_graph(struct activity *a, const struct cupti_graph_trace *g)
{
	struct ring_graph out = {
		.head = {.type = RING_GRAPH, .size = sizeof(out)},
		.start = g->start,
		.end = g->end,
		.device = g->device,
		.context = g->context,
		.stream = g->stream,
		.correlation = g->correlation,
		.graph = g->graph,
	};

	writer_add(a->writer, &out);
}

static void add_overhead(struct activity *a, const struct cupti_overhead *o)
{
	struct ring_overhead out = {.head = {.type = RING_OVERHEAD, .size = sizeof(out)},
				    .start = o->start,
				    .end = o->end,
				    .kind = o->overhead,
				    .thread = o->thread};

	writer_add(a->writer, &out);
}

static void add_device(struct activity *a, const struct cupti_device *d)
{
	struct ring_device out = {
		.head = {.type = RING_DEVICE, .size = sizeof(out), .name = name_id(a, d->name)},
		.memory_bytes = d->memory_bytes,
		.bandwidth_bytes = d->bandwidth_kbytes * 1000,
		.id = d->id,
		.sms = d->sms,
		.clock_khz = d->clock_khz,
		.major = d->major,
		.minor = d->minor,
		.l2_bytes = d->l2_bytes,
		.warps_per_sm = d->warps_per_sm,
		.registers_per_sm = d->registers_per_sm,
		.shared_per_sm = d->shared_per_sm,
		.shared_per_block = d->shared_per_block,
		.threads_per_block = d->threads_per_block,
		.blocks_per_sm = d->blocks_per_sm,
		.registers_per_block = d->registers_per_block,
		.warp = d->warp,
	};

	memcpy(out.uuid, d->uuid, sizeof(out.uuid));
	writer_add(a->writer, &out);
}

static void add_context(struct activity *a, const struct cupti_context *c)
{
	struct ring_context out = {.head = {.type = RING_CONTEXT, .size = sizeof(out)},
				   .id = c->id,
				   .device = c->device,
				   .null_stream = c->null_stream};

	writer_add(a->writer, &out);
}

static void add(struct activity *a, const void *record)
{
	uint32_t kind;

	memcpy(&kind, record, sizeof(kind));
	switch (kind) {
	case CUPTI_KIND_KERNEL:
	case CUPTI_KIND_CONCURRENT_KERNEL:
		add_kernel(a, record);
		break;
	case CUPTI_KIND_MEMCPY:
		add_copy(a, record);
		break;
	case CUPTI_KIND_MEMCPY2:
		add_copy_peer(a, record);
		break;
	case CUPTI_KIND_MEMSET:
		add_set(a, record);
		break;
	case CUPTI_KIND_RUNTIME:
	case CUPTI_KIND_DRIVER:
		add_call(a, record);
		break;
	case CUPTI_KIND_SYNCHRONIZATION:
		add_sync(a, record);
		break;
	case CUPTI_KIND_GRAPH_TRACE:
		add_graph(a, record);
		break;
	case CUPTI_KIND_OVERHEAD:
		add_overhead(a, record);
		break;
	case CUPTI_KIND_DEVICE:
		add_device(a, record);
		break;
	case CUPTI_KIND_CONTEXT:
		add_context(a, record);
		break;
	default:
		break;
	}
}

void activity_convert(struct activity *a, uint8_t *buffer, size_t valid)
{
	size_t dropped = 0, count = 0;
	void *record = NULL;
	uint64_t begin_ns;

	while (__atomic_exchange_n(&a->converting, 1, __ATOMIC_ACQUIRE))
		sched_yield();
	begin_ns = writer_now_ns();
	while (valid && !a->cupti->next_record(buffer, valid, &record) && record) {
		add(a, record);
		count++;
	}
	if (a->writer->open) {
		a->writer->header->convert_ns += writer_now_ns() - begin_ns;
		a->writer->header->converted += count;
		if (!a->cupti->dropped(NULL, 0, &dropped))
			a->writer->header->dropped_cupti += dropped;
	}
	__atomic_store_n(&a->converting, 0, __ATOMIC_RELEASE);
}

/* Records the narrowest of several readings, because an interrupted one is inaccurate. */
void activity_clock(struct activity *a)
{
	struct ring_clock best = {.head = {.type = RING_CLOCK, .size = sizeof(best)}, .after_ns = UINT64_MAX};

	for (unsigned i = 0; i < TRIES; i++) {
		struct ring_clock pair = best;

		pair.before_ns = writer_now_ns();
		if (a->cupti->timestamp(&pair.cupti_ns))
			return;
		pair.after_ns = writer_now_ns();
		if (pair.after_ns - pair.before_ns < best.after_ns - best.before_ns)
			best = pair;
	}
	writer_add(a->writer, &best);
}
