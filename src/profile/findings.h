/* SPDX-License-Identifier: Apache-2.0 */
/* All that is found in a timeline. A function of it alone, so that kept rings give the same again. */
#ifndef PROFILE_FINDINGS_H
#define PROFILE_FINDINGS_H
#include <jansson.h>
#include "core/text.h"
#include "profile/breakdown.h"
#include "profile/copies.h"
#include "profile/counted.h"
#include "profile/nccl.h"
#include "profile/summary.h"

enum { FINDINGS_SCHEMA_VERSION = 1 };

/* What the machine can do at most, as far as it is known; 0: not. */
struct findings_bounds {
	double link_rate; /* of the GPU with the fastest way to the host, one way, B/s */
	struct {
		const char *name; /* static: "BF16"; NULL ends */
		double rate;	  /* FLOP/s of one GPU */
	} compute[4];
};

struct findings {
	const struct timeline *t; /* lent */
	struct findings_bounds bounds;
	struct summary summary;
	struct nccl nccl;
	struct breakdown breakdown;
	struct copies copies;
	struct counted counted;
};

/* bounds: NULL: none is known. NO_RESOURCE: memory; nothing is to be released then. */
enum status findings_of(struct findings *f, const struct timeline *t, const struct findings_bounds *bounds,
			struct error *err);
void findings_release(struct findings *f);
/* From first to last event, all devices, s. */
double findings_device_s(const struct findings *f);

/* summary.json (docs/schema/profile.schema.json). NULL: memory. Caller decrefs. */
json_t *findings_json(const struct findings *f);
/* nccl.csv, breakdown.csv, copies.csv and counters.csv; sizes in bytes, times in ns, rates in B/s. */
void findings_nccl_csv(struct text *out, const struct findings *f);
void findings_breakdown_csv(struct text *out, const struct findings *f);
void findings_copies_csv(struct text *out, const struct findings *f);
void findings_counters_csv(struct text *out, const struct findings *f);
/* counters_launches.csv: a row a launch that was counted, in their order; at_ns: CLOCK_MONOTONIC, when it was
 * through. */
void findings_launches_csv(struct text *out, const struct findings *f);
#endif
