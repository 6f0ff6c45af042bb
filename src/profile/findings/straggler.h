/* SPDX-License-Identifier: Apache-2.0 */
/* The rank that the others wait for, and what it did meanwhile. docs/explanation/methods, "Late ranks of a
 * profile".
 */
#ifndef PROFILE_FINDINGS_STRAGGLER_H
#define PROFILE_FINDINGS_STRAGGLER_H
#include "profile/breakdown/breakdown.h"
#include "profile/steps/steps.h"

struct straggler_name {
	uint32_t name;	  /* index to the timeline's names; 0: none */
	double ns;	  /* more than the others spent in it, a late step */
	double own, mean; /* launches a late step: its own; the others' mean */
};

struct straggler {
	bool found;
	uint16_t process;
	uint32_t device, ranks, also;	     /* also: so many more ranks are as late, within a fifth */
	size_t steps, late_steps;	     /* that were looked at; in which it was late */
	double median_ns;		     /* that the others waited for it in a late step */
	double per_step_ns;		     /* the same spread over all steps */
	double share;			     /* of the steps' time */
	enum breakdown_state state;	     /* in which it spent more of a late step than the others */
	double state_ns;		     /* so much more, a late step */
	struct straggler_name kernel, range; /* that grew most: of COMPUTE; of the host */
};

/* `n` and `s` are of the same timeline, `steady` is the breakdown of the steps. Without a late rank `found`
 * is false. NO_RESOURCE: memory. */
enum status straggler_of(struct straggler *l, const struct timeline *t, const struct nccl *n,
			 const struct steps *s, const struct breakdown *steady, struct error *err);
#endif
