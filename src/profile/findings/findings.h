/* SPDX-License-Identifier: Apache-2.0 */
/* Everything that assay finds in a timeline. The result depends on the timeline and the bounds only, so saved
 * ring files give the same findings again. */
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

/* Upper limits of the machine. 0 or an empty name: unknown. */
struct findings_bounds {
	double link_rate; /* link between the host and the GPU with the fastest one, one direction, B/s */
	struct {
		const char *name; /* static, such as "BF16"; NULL ends the list */
		double rate;	  /* FLOP/s of one GPU */
	} compute[4];
};

/* Findings about a part of the time. */
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
	struct findings_part whole, steady; /* steady: the steps; empty if none were found */
	struct breakdown start_up;	    /* time before the first step; empty if no steps were found */
	struct straggler late;
};

/* Fills `f`. bounds: NULL if unknown. `t` is lent until findings_release. NO_RESOURCE: out of memory; then
 * nothing has to be released. */
enum status findings_of(struct findings *f, const struct timeline *t, const struct findings_bounds *bounds,
			struct error *err);
void findings_release(struct findings *f);
/* The part that shares and advice describe: the steady state, or the whole program if no steps were found. */
const struct findings_part *findings_main(const struct findings *f);
/* Sum of the time of all devices in that part, s. */
double findings_device_s(const struct findings_part *part);

/* summary.json (docs/schema/profile.schema.json). NULL: out of memory. The caller decrefs it. */
json_t *findings_json(const struct findings *f);
/* Write nccl.csv, breakdown.csv, copies.csv and counters.csv. Sizes are in bytes, times in ns, rates in B/s.
 */
void findings_nccl_csv(struct text *out, const struct findings *f);
void findings_breakdown_csv(struct text *out, const struct findings *f);
void findings_copies_csv(struct text *out, const struct findings *f);
void findings_counters_csv(struct text *out, const struct findings *f);
/* counters_launches.csv: one row per counted launch, in launch order. at_ns: CLOCK_MONOTONIC at the end of
 * the kernel. */
void findings_launches_csv(struct text *out, const struct findings *f);
#endif
