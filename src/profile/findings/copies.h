/* SPDX-License-Identifier: Apache-2.0 */
/* What copies and sets cost: by direction and by the kind of the host's memory. docs/explanation/methods,
 * "Copies of a profile". */
#ifndef PROFILE_FINDINGS_COPIES_H
#define PROFILE_FINDINGS_COPIES_H
#include "profile/timeline/timeline.h"
#include "profile/timeline/windows.h"

struct copies_row {
	uint8_t kind, memory; /* CUPTI's: 1 host to device ..; 11 a set; of the host's side, 0: none is the
				 host's */
	uint64_t count, bytes;
	double total;	/* ns */
	double rate;	/* bytes over that, B/s */
	double fastest; /* of one that is large, B/s; 0: none was */
	double bound;	/* of the link, one way, B/s; 0: not known */
};

struct copies {
	struct copies_row *row; /* by total time, longest first */
	size_t rows;
};

enum { COPIES_LARGE = 1 << 20 }; /* bytes, from which on time is bandwidth */

/* Of those that begin in `windows`; NULL: of all. link_rate: of the fastest GPU's way to the host, B/s; 0:
 * not known. NO_RESOURCE: memory. */
enum status copies_of(struct copies *c, const struct timeline *t, const struct windows *windows,
		      double link_rate, struct error *err);
void copies_release(struct copies *c);
/* "host to device, pageable" */
void copies_name(char *out, size_t size, const struct copies_row *r);
bool copies_from_host(const struct copies_row *r);
#endif
