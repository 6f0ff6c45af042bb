/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the ring file of one process (ring.h). Any thread may write. The functions never wait long, allocate
 * memory while recording, raise a signal or end the process. Records that cannot be saved are counted. */
#ifndef PROFILE_INJECT_WRITER_H
#define PROFILE_INJECT_WRITER_H
#include <stdbool.h>
#include <stdint.h>
#include "profile/inject/ring.h"

struct writer {
	uint32_t lock;
	bool open;
	uint8_t *base;
	uint64_t size; /* size of the mapping: the largest size of the file */
	struct ring_header *header;
	struct ring_segment *table;
	struct ring_segment *events, *kept; /* segments that are being filled; NULL: none yet */
	uint64_t sequence;
	uint32_t kept_count;
	struct writer_string *strings; /* STRINGS slots */
	uint32_t string_count;
	/* No descriptor stays open: programs close descriptors that they do not know, and reuse their
	 * numbers. */
	char path[4096];
};

/* Creates DIR/PID.ring with at most limit_bytes. If an earlier process had this pid, the name is PID-2.ring,
 * and so on. Returns false if the file cannot be created; *w is then closed, and all other functions do
 * nothing. */
bool writer_open(struct writer *w, const char *dir, uint64_t limit_bytes);
/* Closes the writer in a child of fork, while the parent goes on writing. */
void writer_forget(struct writer *w);
/* Marks the file as complete and releases it. Nothing is written afterwards. */
void writer_close(struct writer *w);

/* Copies one record of head.size bytes. */
void writer_add(struct writer *w, const void *record);
/* The id of this string. The string is written before any record that uses the id. 0 for NULL, for "", and if
 * there is no room. */
uint32_t writer_string(struct writer *w, const char *text);
/* Records why there are no records from CUPTI. */
void writer_note(struct writer *w, const char *text);
uint64_t writer_now_ns(void);
#endif
