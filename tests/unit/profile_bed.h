/* SPDX-License-Identifier: Apache-2.0 */
/* Ring files with records of a test's choosing, by the injected library's own writer, and what is read of
 * them. */
#ifndef TESTS_PROFILE_BED_H
#define TESTS_PROFILE_BED_H
#include "test.h"
#include "core/text/text.h"
#include "profile/inject/writer.h"
#include "profile/timeline/timeline.h"

#define CUPTI_AHEAD 5000000000ull /* of our clock: what clock pairs must take away */

static inline void add_clock(struct writer *w, uint64_t own_ns)
{
	struct ring_clock c = {.head = {.type = RING_CLOCK, .size = sizeof(c)},
			       .before_ns = own_ns - 50,
			       .cupti_ns = own_ns + CUPTI_AHEAD,
			       .after_ns = own_ns + 50};

	writer_add(w, &c);
}

static inline void add_kernel(struct writer *w, const char *name, uint64_t start_ns, uint64_t ns,
			      uint32_t correlation)
{
	struct ring_kernel k = {
		.head = {.type = RING_KERNEL, .size = sizeof(k), .name = writer_string(w, name)},
		.start = start_ns + CUPTI_AHEAD,
		.end = start_ns + ns + CUPTI_AHEAD,
		.stream = 7,
		.context = 1,
		.correlation = correlation,
		.grid = {132, 1, 1},
		.block = {256, 1, 1}};

	writer_add(w, &k);
}

static inline void add_call(struct writer *w, const char *name, uint64_t start_ns, uint64_t ns,
			    uint32_t correlation)
{
	struct ring_api a = {.head = {.type = RING_API, .size = sizeof(a), .name = writer_string(w, name)},
			     .start = start_ns + CUPTI_AHEAD,
			     .end = start_ns + ns + CUPTI_AHEAD,
			     .thread = 42,
			     .correlation = correlation,
			     .domain = 2};

	writer_add(w, &a);
}

static inline void add_range(struct writer *w, enum ring_range_kind kind, const char *name, uint64_t at_ns,
			     uint32_t thread, uint64_t id)
{
	struct ring_range r = {
		.head = {.type = RING_RANGE, .size = sizeof(r), .name = writer_string(w, name)},
		.at_ns = at_ns,
		.id = id,
		.thread = thread,
		.kind = (uint8_t)kind};

	writer_add(w, &r);
}

/* What a test says of a launch: the kernel on a device, and the call that put it there. */
struct bed_kernel {
	const char *name;
	uint64_t call_ns, start_ns, ns; /* the call takes a microsecond; 0: it was not recorded */
	uint32_t device, stream, thread, graph;
};

/* With a correlation of its own. */
static inline void bed_launch(struct writer *w, struct bed_kernel k)
{
	static uint32_t correlation = 1000;
	struct ring_kernel kernel = {
		.head = {.type = RING_KERNEL, .size = sizeof(kernel), .name = writer_string(w, k.name)},
		.start = k.start_ns + CUPTI_AHEAD,
		.end = k.start_ns + k.ns + CUPTI_AHEAD,
		.device = k.device,
		.stream = k.stream,
		.context = 1,
		.correlation = ++correlation,
		.graph = k.graph,
		.grid = {132, 1, 1},
		.block = {256, 1, 1}};
	struct ring_api call = {.head = {.type = RING_API,
					 .size = sizeof(call),
					 .name = writer_string(w, "cuLaunchKernelEx")},
				.start = k.call_ns + CUPTI_AHEAD,
				.end = k.call_ns + 1000 + CUPTI_AHEAD,
				.thread = k.thread,
				.correlation = correlation,
				.domain = 1};

	writer_add(w, &kernel);
	if (k.call_ns)
		writer_add(w, &call);
}

/* NCCL's payloads: a field is eight bytes. */
struct bed_field {
	const char *name;
	uint64_t value;
};
enum { BED_FIELDS = 8 };

/* A schema of these fields, and a push or pop of NCCL's with what they hold; comm: told of a communicator. */
static inline void bed_nccl(struct writer *w, enum ring_range_kind kind, const char *name, uint64_t at_ns,
			    uint32_t thread, const struct bed_field *field, bool comm)
{
	static uint64_t schemas = 100;
	struct {
		struct ring_schema head;
		struct ring_field field[BED_FIELDS];
	} schema = {.head = {.head = {.type = RING_SCHEMA}, .id = ++schemas}};
	struct {
		struct ring_range head;
		uint64_t payload[1 + BED_FIELDS];
	} range = {.head = {.head = {.type = RING_RANGE, .name = writer_string(w, name)},
			    .at_ns = at_ns,
			    .thread = thread,
			    .domain = writer_string(w, "NCCL"),
			    .kind = (uint8_t)kind},
		   .payload = {schemas}};
	struct {
		struct ring_comm head;
		uint64_t payload[BED_FIELDS];
	} made = {.head = {.head = {.type = RING_COMM}, .schema = schemas, .domain = range.head.domain}};
	uint32_t n = 0;

	for (; field && field[n].name; n++) {
		schema.field[n] = (struct ring_field){
			.type = 18, .offset = 8 * n, .name = writer_string(w, field[n].name)};
		range.payload[1 + n] = made.payload[n] = field[n].value;
	}
	schema.head.fields = n;
	schema.head.domain = range.head.domain;
	schema.head.head.size = (uint16_t)(sizeof(schema.head) + n * sizeof(schema.field[0]));
	if (n) {
		writer_add(w, &schema);
		range.head.payload_kind = RING_PAYLOAD_SCHEMA;
		range.head.payload_size = (uint16_t)(8 + 8 * n);
	}
	range.head.head.size = (uint16_t)(sizeof(range.head) + (n ? 8 + 8 * n : 0));
	writer_add(w, &range);
	made.head.size = 8 * n;
	made.head.head.size = (uint16_t)(sizeof(made.head) + 8 * n);
	if (comm)
		writer_add(w, &made);
}

/* A communicator that this process is one rank of. */
static inline void bed_comm(struct writer *w, uint64_t comm, uint32_t ranks, uint32_t rank)
{
	const struct bed_field told[] = {
		{"NCCL communicator ID", comm}, {"No. of ranks", ranks}, {"Rank", rank}, {0}};

	bed_nccl(w, RING_PUSH, "ncclCommInitRankConfig", 100, 1, NULL, false);
	bed_nccl(w, RING_POP, NULL, 200, 1, told, true);
}

/* A call of NCCL's that takes two microseconds. */
static inline void bed_call(struct writer *w, const char *name, uint64_t at_ns, uint64_t comm, uint64_t bytes,
			    uint32_t peer)
{
	const struct bed_field told[] = {
		{"NCCL communicator ID", comm}, {"Message size [bytes]", bytes}, {"Peer rank", peer}, {0}};

	bed_nccl(w, RING_PUSH, name, at_ns, 1, told, false);
	bed_nccl(w, RING_POP, NULL, at_ns + 2000, 1, NULL, false);
}

static inline void bed_open(struct writer *w, const char *dir)
{
	assert_true(writer_open(w, dir, 8 << 20));
	add_clock(w, 1000);
}

static inline void bed_close(struct writer *w)
{
	writer_close(w);
	writer_forget(w);
}

static inline void read_back(struct timeline *t, const char *dir)
{
	struct text note = {0};
	struct error err = {0};

	assert_int_equal(timeline_read(t, dir, 0, &note, &err), STATUS_OK);
	assert_string_equal(text_str(&note), "");
	text_release(&note);
}

static inline const struct timeline_event *named(const struct timeline *t, const char *name)
{
	for (size_t i = 0; i < t->events; i++)
		if (!strcmp(timeline_name(t, t->event[i].name), name))
			return &t->event[i];
	fail_msg("no event %s", name);
	return NULL;
}
#endif
