/* SPDX-License-Identifier: Apache-2.0 */
/* State while a timeline is built. Private to timeline.c and the files next to it. */
#ifndef PROFILE_TIMELINE_BUILD_H
#define PROFILE_TIMELINE_BUILD_H
#include "profile/timeline/clock_map.h"
#include "profile/timeline/ring_file.h"
#include "profile/timeline/timeline.h"

/* Maps hashes to indices. The caller distinguishes entries with equal hashes. */
struct hash_slot {
	uint64_t hash;
	uint32_t index; /* TIMELINE_NONE: free slot */
};
struct hash {
	struct hash_slot *slot;
	size_t count, room; /* room: a power of two */
};
/* The index of the entry with this hash for which `same` returns true; TIMELINE_NONE: none. */
uint32_t hash_find(const struct hash *h, uint64_t hash, bool (*same)(const void *arg, uint32_t index),
		   const void *arg);
bool hash_add(struct hash *h, uint64_t hash, uint32_t index); /* false: out of memory */
void hash_release(struct hash *h);
uint64_t hash_bytes(const void *data, size_t size);

struct build {
	struct timeline *t;
	size_t events_max, event_room, kernel_room, copy_room, range_room, value_room, name_room, track_room,
		device_room, process_room, comm_room, counted_room;
	struct hash names, tracks;
	/* State of the file that is read now. */
	uint16_t process;
	uint32_t *string; /* by string id of the file: index into `name` */
	size_t strings;
	struct clock_map clock;
	struct ring_schema_known *schema;
	size_t schemas, schema_room;
	struct ring_context *context;
	size_t contexts, context_room;
	struct hash open_index; /* index into `open` */
	struct build_open *open;
	size_t opens, open_room;
	uint32_t *below; /* by range of the timeline: the event of the enclosing range */
	size_t belows, below_room;
	bool out_of_memory;
};

/* The open ranges of one thread and domain, or with one id. */
struct build_open {
	uint32_t thread, domain; /* 0 for ranges with an id */
	uint64_t id;		 /* 0: push/pop ranges */
	uint32_t event;		 /* the innermost open range; TIMELINE_NONE: none */
};

struct ring_schema_known {
	uint64_t id;
	uint32_t domain; /* index into `name`; 0: any domain, as old files did not record it */
	uint32_t fields;
	struct ring_field field[RING_SCHEMA_FIELDS]; /* name: index into `name` */
};

/* Appends a zeroed element to an array. NULL: out of memory, and b->out_of_memory is set. */
void *build_more(struct build *b, void **array, size_t *count, size_t *room, size_t size);
#define BUILD_MORE(b, array, count, room)                                                                    \
	build_more((b), (void **)&(array), &(count), &(room), sizeof(*(array)))
/* Index of a name; 0: "" or out of memory. */
uint32_t build_name(struct build *b, const char *text);
uint32_t build_string(const struct build *b, uint32_t id); /* index of the name of the file's string */
uint32_t build_track(struct build *b, const struct timeline_track *like);
uint32_t build_thread(struct build *b, uint32_t thread); /* track of the thread */
/* Appends an event. NULL: the limit is reached (and counted), or out of memory. */
struct timeline_event *build_event(struct build *b, enum timeline_kind kind, uint64_t start_ns,
				   uint64_t end_ns);
/* Handles an NVTX record. At the end of the file, ranges that are still open end at end_ns. */
void build_range(struct build *b, const union ring_any *r);
void build_ranges_end(struct build *b, uint64_t end_ns);
/* The layout of a payload with this schema; NULL: unknown. */
const struct ring_schema_known *build_schema(const struct build *b, uint64_t id, uint32_t domain);
/* Reads one field of a payload. false: it is not a number, or lies outside the payload. */
bool build_field(struct timeline_value *v, const struct ring_field *f, const uint8_t *data, size_t size);
void build_comm(struct build *b, const struct ring_comm *r);
/* Handles the begin of a range. Some of NCCL's calls on communicators report the communicator there. */
void build_comm_range(struct build *b, const struct ring_range *r);
/* Takes the description of the process from the file's header; handles a long-lived record. */
void build_describe(struct build *b, const struct ring_header *h);
int build_keep(void *arg, const union ring_any *r);
/* Adds all records of the file to the timeline. */
void build_file(struct build *b, struct ring_file *f);
/* Sorts events, joins calls and work, and builds the indices. NO_RESOURCE: out of memory. */
enum status build_finish(struct build *b, struct error *err);
#endif
