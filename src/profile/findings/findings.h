/* SPDX-License-Identifier: Apache-2.0 */
/* All that is found in a timeline. A function of it alone, so that kept rings give the same again. */
#ifndef PROFILE_FINDINGS_FINDINGS_H
#define PROFILE_FINDINGS_FINDINGS_H
#include <jansson.h>
#include "core/text/text.h"
#include "profile/breakdown/breakdown.h"
#include "profile/findings/copies.h"
#include "profile/findings/kernel_counters.h"
#include "profile/findings/straggler.h"
#include "profile/nccl/nccl.h"
#include "profile/steps/steps.h"
#include "profile/findings/summary.h"

enum { FINDINGS_SCHEMA_VERSION = 1 };

/* What the machine can do at most, as far as it is known; 0: not. */
struct findings_bounds {
	double link_rate; /* of the GPU with the fastest way to the host, one way, B/s */
	struct {
		const char *name; /* static: "BF16"; NULL ends */
		double rate;	  /* FLOP/s of one GPU */
	} compute[4];
};

/* Of a part of the time. */
struct findings_part {
	struct summary summary;
	struct breakdown breakdown;
	struct copies copies;
};

struct findings {
	const struct timeline *t; /* lent */
	struct findings_bounds bounds;
	struct nccl nccl;
	struct kernel_counters counted;
	struct steps steps;
	struct findings_part whole, steady; /* steady: the steps; empty where none were found */
	struct breakdown start_up;	    /* what lies before the first step; without steps empty */
	struct straggler late;
};

/* bounds: NULL: none is known. NO_RESOURCE: memory; nothing is to be released then. */
enum status findings_of(struct findings *f, const struct timeline *t, const struct findings_bounds *bounds,
			struct error *err);
void findings_release(struct findings *f);
/* What shares and advice are of: the steady state, or everything where no steps were found. */
const struct findings_part *findings_main(const struct findings *f);
/* The time of all devices in that part, s. */
double findings_device_s(const struct findings_part *part);

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
