/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the bytes of a ring file with strict checks: the file may be cut, foreign, or still being written. */
#ifndef PROFILE_TIMELINE_RING_FILE_H
#define PROFILE_TIMELINE_RING_FILE_H
#include <stdbool.h>
#include <stddef.h>
#include "core/error.h"
#include "profile/inject/ring.h"

struct ring_place {
	struct ring_segment segment; /* `used` is limited to the bytes that the file has */
	uint64_t at;		     /* offset in the file */
};

struct ring_file {
	struct ring_header header; /* its texts end in NUL */
	const uint8_t *data;
	size_t size;
	struct ring_place *place; /* segments that hold records, in the order of writing */
	uint32_t places;
	uint64_t cut_bytes; /* bytes of segments that are missing or hold invalid records */
	uint64_t unknown;   /* records of an unknown type */
};

/* A checked record: it has the size of its type, and its strings end in NUL. */
union ring_any {
	struct ring_record head;
	uint64_t words[(sizeof(struct ring_string) + RING_STRING_MAX + 16) / 8];
#define X(name, type) struct type name;
	RING_TYPES(X)
#undef X
};

/* `data` is lent until ring_file_release. BAD_INPUT: not a ring file, or an unsupported version. */
enum status ring_file_open(struct ring_file *f, const char *name, const void *data, size_t size,
			   struct error *err);
void ring_file_release(struct ring_file *f);
/* Calls `visit` for each complete record in the segments of that kind. `visit` returns 0 to continue. Returns
 * its last result. An invalid record ends its segment, and its rest is counted in cut_bytes once. */
int ring_file_visit(struct ring_file *f, enum ring_segment_kind kind,
		    int (*visit)(void *arg, const union ring_any *r), void *arg);
#endif
