/* SPDX-License-Identifier: Apache-2.0 */
/* A timeline while it is put together; timeline_read's own. */
#ifndef PROFILE_TIMELINE_BUILD_H
#define PROFILE_TIMELINE_BUILD_H
#include "profile/timeline/clock_map.h"
#include "profile/timeline/ring_file.h"
#include "profile/timeline/timeline.h"

/* From hashes to indices of something; equal hashes are told apart by the caller. */
struct hash_slot {
	uint64_t hash;
	uint32_t index; /* TIMELINE_NONE: free */
};
struct hash {
	struct hash_slot *slot;
	size_t count, room; /* room: a power of two */
};
/* The index whose thing `same` as arg; TIMELINE_NONE: none. */
uint32_t hash_find(const struct hash *h, uint64_t hash, bool (*same)(const void *arg, uint32_t index),
		   const void *arg);
bool hash_add(struct hash *h, uint64_t hash, uint32_t index); /* false: no memory */
void hash_release(struct hash *h);
uint64_t hash_bytes(const void *data, size_t size);

struct build {
	struct timeline *t;
	size_t events_max, event_room, kernel_room, copy_room, range_room, value_room, name_room, track_room,
		device_room, process_room, comm_room, counted_room;
	struct hash names, tracks;
	/* Of the file that is read now. */
	uint16_t process;
	uint32_t *string; /* its ids to `name` */
	size_t strings;
	struct clock_map clock;
	struct ring_schema_known *schema;
	size_t schemas, schema_room;
	struct ring_context *context;
	size_t contexts, context_room;
	struct hash open_index; /* to `open` */
	struct build_open *open;
	size_t opens, open_room;
	uint32_t *below; /* by range of the timeline: the event of the one that it lies in */
	size_t belows, below_room;
	bool out_of_memory;
};

/* Where ranges of one thread and domain, or with one id, are open. */
struct build_open {
	uint32_t thread, domain; /* 0 where they have an id */
	uint64_t id;		 /* 0: pushed */
	uint32_t event;		 /* the innermost; TIMELINE_NONE: none is open */
};

struct ring_schema_known {
	uint64_t id;
	uint32_t domain; /* index to `name`; 0: any, files of old had none */
	uint32_t fields;
	struct ring_field field[RING_SCHEMA_FIELDS]; /* name: index to `name` */
};

/* One more of an array, zeroed; NULL: no memory, said in b->out_of_memory. */
void *build_more(struct build *b, void **array, size_t *count, size_t *room, size_t size);
#define BUILD_MORE(b, array, count, room)                                                                    \
	build_more((b), (void **)&(array), &(count), &(room), sizeof(*(array)))
/* Index of a name; 0: "" or no memory. */
uint32_t build_name(struct build *b, const char *text);
uint32_t build_string(const struct build *b, uint32_t id); /* of the file's string */
uint32_t build_track(struct build *b, const struct timeline_track *like);
uint32_t build_thread(struct build *b, uint32_t thread); /* its track */
/* One more event; NULL: over the limit (counted) or no memory. */
struct timeline_event *build_event(struct build *b, enum timeline_kind kind, uint64_t start_ns,
				   uint64_t end_ns);
/* A record of NVTX; then, at the file's end, ranges that are still open end at end_ns. */
void build_range(struct build *b, const union ring_any *r);
void build_ranges_end(struct build *b, uint64_t end_ns);
/* What a payload of that schema holds; NULL: not told. */
const struct ring_schema_known *build_schema(const struct build *b, uint64_t id, uint32_t domain);
/* The field's number of a payload; false: it is none, or lies outside. */
bool build_field(struct timeline_value *v, const struct ring_field *f, const uint8_t *data, size_t size);
void build_comm(struct build *b, const struct ring_comm *r);
/* A range that begins: of NCCL's calls on communicators some tell theirs. */
void build_comm_range(struct build *b, const struct ring_range *r);
/* What the head says of the process; a kept record. */
void build_describe(struct build *b, const struct ring_header *h);
int build_keep(void *arg, const union ring_any *r);
/* All records of the file into the timeline. */
void build_file(struct build *b, struct ring_file *f);
/* Sorts, joins, indexes. NO_RESOURCE: memory. */
enum status build_finish(struct build *b, struct error *err);
#endif
