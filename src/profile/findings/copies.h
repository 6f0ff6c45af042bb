/* SPDX-License-Identifier: Apache-2.0 */
/* Time and rate of copies and memory sets, grouped by direction and by the kind of host memory.
 * docs/explanation/methods/profile.md, "Copies of a profile". */
#ifndef PROFILE_FINDINGS_COPIES_H
#define PROFILE_FINDINGS_COPIES_H
#include "profile/timeline/timeline.h"
#include "profile/timeline/windows.h"

struct copies_row {
	uint8_t kind, memory; /* kind: CUPTI's number, 1 host to device ..; 11: a memory set. memory: CUPTI's
				 kind of the host memory; 0: no host memory is involved */
	uint64_t count, bytes;
	double total;	/* sum of the durations, ns */
	double rate;	/* bytes / total, B/s */
	double fastest; /* rate of the fastest large copy, B/s; 0: there was none */
	double bound;	/* upper limit: link rate in one direction, or half the memory bandwidth for copies on
			   the device, B/s; 0: unknown */
};

struct copies {
	struct copies_row *row; /* by total time, longest first */
	size_t rows;
};

enum { COPIES_LARGE = 1 << 20 }; /* bytes; from this size on, bandwidth and not latency decides the time */

/* Groups the copies that begin in `windows`; NULL: all copies. link_rate: rate of the link between the host
 * and the GPU that has the fastest one, B/s; 0: unknown. Release with copies_release. NO_RESOURCE: out of
 * memory. */
enum status copies_of(struct copies *c, const struct timeline *t, const struct windows *windows,
		      double link_rate, struct error *err);
void copies_release(struct copies *c);
/* Writes a name such as "host to device, pageable". */
void copies_name(char *out, size_t size, const struct copies_row *r);
#endif
