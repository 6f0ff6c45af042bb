/* SPDX-License-Identifier: Apache-2.0 */
/* A ring file's bytes, read strictly: they may be cut, foreign, or still be written. */
#ifndef PROFILE_TIMELINE_RING_FILE_H
#define PROFILE_TIMELINE_RING_FILE_H
#include <stdbool.h>
#include <stddef.h>
#include "core/error.h"
#include "profile/inject/ring.h"

struct ring_place {
	struct ring_segment segment; /* used: cut to what the file has */
	uint64_t at;		     /* in the file */
};

struct ring_file {
	struct ring_header header; /* its texts end in NUL */
	const uint8_t *data;
	size_t size;
	struct ring_place *place; /* of segments with records, in the order of their writing */
	uint32_t places;
	uint64_t cut_bytes; /* of segments that are not there, or hold what is no record */
	uint64_t unknown;   /* records of a type that is not ours */
};

/* A record as it was checked: as long as its type says, strings with their NUL. */
union ring_any {
	struct ring_record head;
	uint64_t words[(sizeof(struct ring_string) + RING_STRING_MAX + 16) / 8];
#define X(name, type) struct type name;
	RING_TYPES(X)
#undef X
};

/* `data` is lent until ring_file_release. BAD_INPUT: it is no ring file, or of a version that is not ours. */
enum status ring_file_open(struct ring_file *f, const char *name, const void *data, size_t size,
			   struct error *err);
void ring_file_release(struct ring_file *f);
/* Each whole record of the segments of that kind. `visit` returns 0 to go on; what it returned last. A bad
 * record ends its segment; cut_bytes counts once. */
int ring_file_visit(struct ring_file *f, enum ring_segment_kind kind,
		    int (*visit)(void *arg, const union ring_any *r), void *arg);
#endif
