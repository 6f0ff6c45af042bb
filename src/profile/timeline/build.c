/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/timeline/build.h"

enum { SHORT_NS = 1000000 };
#define LONGEST_NS (UINT64_C(1) << 62)

void *build_more(struct build *b, void **array, size_t *count, size_t *room, size_t size)
{
	size_t wanted = *room ? *room * 2 : 64;
	void *grown;

	if (b->out_of_memory)
		return NULL;
	if (*count == *room) {
		grown = wanted < SIZE_MAX / size && *count < TIMELINE_NONE ? realloc(*array, wanted * size)
									   : NULL;
		if (!grown) {
			b->out_of_memory = true;
			return NULL;
		}
		*array = grown;
		*room = wanted;
	}
	return memset((uint8_t *)*array + (*count)++ * size, 0, size);
}

struct named {
	const struct timeline *t;
	const char *text;
};

static bool is_named(const void *arg, uint32_t index)
{
	const struct named *n = arg;

	return !strcmp(n->t->name[index], n->text);
}

uint32_t build_name(struct build *b, const char *text)
{
	struct named sought = {b->t, text};
	uint64_t hash = hash_bytes(text, strlen(text));
	uint32_t index = hash_find(&b->names, hash, is_named, &sought);
	char **name;

	if (index != TIMELINE_NONE)
		return index;
	name = BUILD_MORE(b, b->t->name, b->t->names, b->name_room);
	if (!name)
		return 0;
	*name = strdup(text);
	if (!*name) {
		b->t->names--;
		b->out_of_memory = true;
		return 0;
	}
	index = (uint32_t)(b->t->names - 1);
	if (!hash_add(&b->names, hash, index))
		b->out_of_memory = true;
	return index;
}

uint32_t build_string(const struct build *b, uint32_t id)
{
	return id < b->strings ? b->string[id] : 0;
}

struct tracked {
	const struct timeline *t;
	const struct timeline_track *like;
};

static bool is_track(const void *arg, uint32_t index)
{
	const struct tracked *s = arg;
	const struct timeline_track *a = &s->t->track[index], *b = s->like;

	return a->process == b->process && a->device == b->device && a->device_id == b->device_id &&
	       a->context == b->context && a->stream == b->stream && a->thread == b->thread;
}

uint32_t build_track(struct build *b, const struct timeline_track *like)
{
	struct tracked sought = {b->t, like};
	uint32_t words[6] = {like->process, like->device, like->device_id,
			     like->context, like->stream, like->thread};
	uint64_t hash = hash_bytes(words, sizeof(words));
	uint32_t index = hash_find(&b->tracks, hash, is_track, &sought);
	struct timeline_track *track;

	if (index != TIMELINE_NONE)
		return index;
	track = BUILD_MORE(b, b->t->track, b->t->tracks, b->track_room);
	if (!track)
		return TIMELINE_NONE;
	*track = *like;
	index = (uint32_t)(b->t->tracks - 1);
	if (!hash_add(&b->tracks, hash, index))
		b->out_of_memory = true;
	return index;
}

struct timeline_event *build_event(struct build *b, enum timeline_kind kind, uint64_t start_ns,
				   uint64_t end_ns)
{
	struct timeline_event *e;

	if (b->t->events >= b->events_max) {
		b->t->process[b->process].left_out++;
		return NULL;
	}
	e = BUILD_MORE(b, b->t->event, b->t->events, b->event_room);
	if (!e)
		return NULL;
	b->t->process[b->process].events++;
	*e = (struct timeline_event){.start_ns = start_ns,
				     .end_ns = end_ns,
				     .kind = (uint16_t)kind,
				     .process = b->process,
				     .track = TIMELINE_NONE,
				     .detail = TIMELINE_NONE};
	return e;
}

/* Adds an event whose times are on CUPTI's clock. Events that CUPTI could not time have zeroes; they, and
 * events that end before they begin, are skipped. */
static struct timeline_event *timed(struct build *b, enum timeline_kind kind, uint64_t start, uint64_t end)
{
	uint64_t from_ns, to_ns;

	if (!start || end < start || end - start > LONGEST_NS || !clock_map_own(&b->clock, start, &from_ns) ||
	    !clock_map_own(&b->clock, end, &to_ns)) {
		b->t->process[b->process].odd++;
		return NULL;
	}
	/* Short events keep their length to the nanosecond: the clock cannot drift that much within them. */
	if (end - start < SHORT_NS || to_ns < from_ns)
		to_ns = from_ns + (end - start);
	return build_event(b, kind, from_ns, to_ns);
}

static uint32_t stream_track(struct build *b, uint32_t device, uint32_t context, uint32_t stream)
{
	struct timeline_track like = {.process = b->process,
				      .device = true,
				      .device_id = device,
				      .context = context,
				      .stream = stream};

	return build_track(b, &like);
}

uint32_t build_thread(struct build *b, uint32_t thread)
{
	struct timeline_track like = {.process = b->process, .thread = thread};

	return build_track(b, &like);
}

static void take_kernel(struct build *b, const struct ring_kernel *r)
{
	struct timeline_event *e = timed(b, TIMELINE_KERNEL, r->start, r->end);
	struct timeline_kernel *k = e ? BUILD_MORE(b, b->t->kernel, b->t->kernels, b->kernel_room) : NULL;

	if (!k)
		return;
	e->name = build_string(b, r->head.name);
	e->track = stream_track(b, r->device, r->context, r->stream);
	e->correlation = r->correlation;
	e->detail = (uint32_t)(b->t->kernels - 1);
	memcpy(k->grid, r->grid, sizeof(k->grid));
	memcpy(k->block, r->block, sizeof(k->block));
	memcpy(k->cluster, r->cluster, sizeof(k->cluster));
	k->shared_static = r->shared_static;
	k->shared_dynamic = r->shared_dynamic;
	k->local_bytes = r->local_bytes;
	k->graph = r->graph;
	k->graph_node = r->graph_node;
	k->registers = r->registers;
}

static const char *copy_name(unsigned kind)
{
	static const char *const names[] = {"Memcpy",	   "Memcpy HtoD", "Memcpy DtoH", "Memcpy HtoA",
					    "Memcpy AtoH", "Memcpy AtoA", "Memcpy AtoD", "Memcpy DtoA",
					    "Memcpy DtoD", "Memcpy HtoH", "Memcpy PtoP"};

	return kind < sizeof(names) / sizeof(names[0]) ? names[kind] : names[0];
}

static void take_copy(struct build *b, const struct ring_copy *r)
{
	struct timeline_event *e = timed(b, TIMELINE_COPY, r->start, r->end);
	struct timeline_copy *c = e ? BUILD_MORE(b, b->t->copy, b->t->copies, b->copy_room) : NULL;

	if (!c)
		return;
	e->name = build_name(b, copy_name(r->kind));
	e->track = stream_track(b, r->device, r->context, r->stream);
	e->correlation = r->correlation;
	e->detail = (uint32_t)(b->t->copies - 1);
	*c = (struct timeline_copy){.bytes = r->bytes,
				    .graph_node = r->graph_node,
				    .from_device = r->from_device,
				    .to_device = r->to_device,
				    .graph = r->graph,
				    .kind = r->kind,
				    .from = r->from,
				    .to = r->to,
				    .asynchronous = r->flags & 1};
}

static void take_set(struct build *b, const struct ring_set *r)
{
	struct timeline_event *e = timed(b, TIMELINE_SET, r->start, r->end);
	struct timeline_copy *c = e ? BUILD_MORE(b, b->t->copy, b->t->copies, b->copy_room) : NULL;

	if (!c)
		return;
	e->name = build_name(b, "Memset");
	e->track = stream_track(b, r->device, r->context, r->stream);
	e->correlation = r->correlation;
	e->detail = (uint32_t)(b->t->copies - 1);
	*c = (struct timeline_copy){.bytes = r->bytes,
				    .graph_node = r->graph_node,
				    .from_device = r->device,
				    .to_device = r->device,
				    .graph = r->graph};
}

static void take_graph(struct build *b, const struct ring_graph *r)
{
	struct timeline_event *e = timed(b, TIMELINE_GRAPH, r->start, r->end);

	if (!e)
		return;
	e->name = build_name(b, "CUDA graph");
	e->track = stream_track(b, r->device, r->context, r->stream);
	e->correlation = r->correlation;
	e->detail = r->graph;
}

static void take_call(struct build *b, const struct ring_api *r)
{
	struct timeline_event *e =
		timed(b, r->domain == 1 ? TIMELINE_DRIVER : TIMELINE_RUNTIME, r->start, r->end);

	if (!e)
		return;
	e->name = build_string(b, r->head.name);
	e->track = build_thread(b, r->thread);
	e->correlation = r->correlation;
	e->detail = r->result;
}

static uint32_t device_of_context(const struct build *b, uint32_t context)
{
	for (size_t i = 0; i < b->contexts; i++)
		if (b->context[i].id == context)
			return b->context[i].device;
	return TIMELINE_NONE;
}

static void take_sync(struct build *b, const struct ring_sync *r)
{
	static const char *const names[] = {"Synchronize", "Event Sync", "Stream Wait Event", "Stream Sync",
					    "Context Sync"};
	struct timeline_event *e = timed(b, TIMELINE_SYNC, r->start, r->end);

	if (!e)
		return;
	e->name = build_name(b, names[r->type < sizeof(names) / sizeof(names[0]) ? r->type : 0]);
	e->track = stream_track(b, device_of_context(b, r->context), r->context, r->stream);
	e->correlation = r->correlation;
	e->detail = r->type;
}

static void take_overhead(struct build *b, const struct ring_overhead *r)
{
	static const char *const names[] = {
		"Buffer Flush",		  "Instrumentation",	   "Resource",
		"Lazy Function Loading",  "Lazy Function Loading", "Command Buffer Full",
		"Activity Buffer Request"};
	struct timeline_event *e = timed(b, TIMELINE_OVERHEAD, r->start, r->end);
	uint32_t row = r->kind >> 16;

	if (!e)
		return;
	e->name = build_name(b, row && row <= sizeof(names) / sizeof(names[0]) ? names[row - 1]
				: r->kind == 1				       ? "Driver Compiler"
									       : "Overhead");
	e->track = build_thread(b, r->thread);
	e->detail = r->kind;
}

static void take_counted(struct build *b, const struct ring_counted *r)
{
	struct timeline_counted *c;

	_Static_assert((int)TIMELINE_COUNTERS == (int)RING_COUNTERS, "both have the same counters");
	if (b->t->counteds >= b->events_max) {
		b->t->process[b->process].left_out++;
		return;
	}
	c = BUILD_MORE(b, b->t->counted, b->t->counteds, b->counted_room);
	if (!c)
		return;
	b->t->process[b->process].events++;
	*c = (struct timeline_counted){.at_ns = r->at_ns,
				       .process = b->process,
				       .device = r->device,
				       .name = build_string(b, r->head.name),
				       .has = r->has};
	for (unsigned i = 0; i < RING_COUNTERS; i++) /* a value that is not a number was not counted */
		if (r->value[i] - r->value[i] == 0)
			c->value[i] = r->value[i];
		else
			c->has &= ~(1u << i);
}

static int take_event(void *arg, const union ring_any *r)
{
	struct build *b = arg;

	switch ((enum ring_type)r->head.type) {
	case RING_KERNEL:
		take_kernel(b, &r->KERNEL);
		break;
	case RING_COPY:
		take_copy(b, &r->COPY);
		break;
	case RING_SET:
		take_set(b, &r->SET);
		break;
	case RING_API:
		take_call(b, &r->API);
		break;
	case RING_SYNC:
		take_sync(b, &r->SYNC);
		break;
	case RING_GRAPH:
		take_graph(b, &r->GRAPH);
		break;
	case RING_OVERHEAD:
		take_overhead(b, &r->OVERHEAD);
		break;
	case RING_RANGE:
		build_range(b, r);
		break;
	case RING_COUNTED:
		take_counted(b, &r->COUNTED);
		break;
	default: /* long-lived records are handled elsewhere */
		break;
	}
	return b->out_of_memory;
}

static uint64_t last_end(const struct build *b, size_t from)
{
	uint64_t end_ns = 0;

	for (size_t i = from; i < b->t->events; i++)
		if (b->t->event[i].end_ns > end_ns)
			end_ns = b->t->event[i].end_ns;
	return end_ns;
}

static void clear_file(struct build *b)
{
	free(b->string);
	free(b->schema);
	free(b->context);
	free(b->open);
	hash_release(&b->open_index);
	clock_map_release(&b->clock);
	b->string = NULL;
	b->schema = NULL;
	b->context = NULL;
	b->open = NULL;
	b->strings = b->schemas = b->schema_room = b->contexts = b->context_room = b->opens = b->open_room =
		0;
}

void build_file(struct build *b, struct ring_file *f)
{
	struct timeline_process *p;
	size_t first = b->t->events;
	uint64_t end_ns;

	build_describe(b, &f->header);
	ring_file_visit(f, RING_KEPT, build_keep, b);
	clock_map_fit(&b->clock);
	ring_file_visit(f, RING_EVENTS, take_event, b);
	p = &b->t->process[b->process];
	end_ns = last_end(b, first);
	if (!p->closed || p->ended_ns < p->started_ns)
		p->ended_ns = end_ns > p->started_ns ? end_ns : p->started_ns;
	build_ranges_end(b, end_ns > p->ended_ns ? end_ns : p->ended_ns);
	p->cut_bytes = f->cut_bytes;
	p->odd += f->unknown;
	p->clock_pairs = (uint32_t)b->clock.count;
	p->clock_error_ns = (double)b->clock.error_ns;
	p->clock_drift = b->clock.drift;
	clear_file(b);
}
