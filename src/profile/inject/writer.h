/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes one process's ring file (ring.h). Any thread may write; nothing here waits for long, allocates on
 * the way, raises a signal or ends the process: what cannot be kept is counted.
 */
#ifndef PROFILE_INJECT_WRITER_H
#define PROFILE_INJECT_WRITER_H
#include <stdbool.h>
#include <stdint.h>
#include "profile/inject/ring.h"

struct writer {
	uint32_t lock;
	bool open;
	uint8_t *base;
	uint64_t size; /* of the mapping: as large as the file may become */
	struct ring_header *header;
	struct ring_segment *table;
	struct ring_segment *events, *kept; /* being filled; NULL: none yet */
	uint64_t sequence;
	uint32_t kept_count;
	struct writer_string *strings; /* STRINGS slots */
	uint32_t string_count;
	/* No descriptor is held: programs close those that they do not know, and take their numbers. */
	char path[4096];
};

/*
 * Makes DIR/PID.ring, or PID-2.ring .. where a process of this number was there before, of at most
 * limit_bytes. False: it cannot be made; *w is closed, and all that follows does nothing.
 */
bool writer_open(struct writer *w, const char *dir, uint64_t limit_bytes);
/* Closed for this process: a child of fork, whose parent goes on writing. */
void writer_forget(struct writer *w);
/* Marks the file as complete and gives it back; nothing is written afterwards. */
void writer_close(struct writer *w);

/* Copies one record, head.size bytes of it. */
void writer_add(struct writer *w, const void *record);
/* The id of these bytes, written before any record that uses it; 0 for NULL, "" and where there is no room.
 */
uint32_t writer_string(struct writer *w, const char *text);
/* The reason why there is nothing from CUPTI. */
void writer_note(struct writer *w, const char *text);
uint64_t writer_now_ns(void);
#endif
