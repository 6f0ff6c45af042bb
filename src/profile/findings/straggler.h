/* SPDX-License-Identifier: Apache-2.0 */
/* The straggler: the rank that the other ranks wait for, and what it did during that time.
 * docs/explanation/methods/profile.md, "Late ranks of a profile". */
#ifndef PROFILE_FINDINGS_STRAGGLER_H
#define PROFILE_FINDINGS_STRAGGLER_H
#include "profile/breakdown/breakdown.h"
#include "profile/steps/steps.h"

struct straggler_name {
	uint32_t name;	  /* index into the timeline's names; 0: none */
	double ns;	  /* extra time compared with the other ranks, per late step */
	double own, mean; /* launches per late step: of the straggler; mean of the other ranks */
};

struct straggler {
	bool found;
	uint16_t process;
	/* also: number of other ranks whose lateness is at least 80 % of the straggler's */
	uint32_t device, ranks, also;
	size_t steps, late_steps;   /* steps compared; steps in which the rank was late */
	double median_ns;	    /* median over the late steps of the time that the others waited */
	double per_step_ns;	    /* sum of that time divided by all steps */
	double share;		    /* share of the time of all steps */
	enum breakdown_state state; /* state in which the straggler spent the most extra time */
	double state_ns;	    /* that extra time per late step */
	struct straggler_name kernel, range; /* the kernel (for COMPUTE) or NVTX range whose time grew */
};

/* Looks for a straggler. `n` and `s` belong to the same timeline; `steady` is the breakdown of the steps.
 * `found` is false if no rank is late. NO_RESOURCE: out of memory. */
enum status straggler_of(struct straggler *l, const struct timeline *t, const struct nccl *n,
			 const struct steps *s, const struct breakdown *steady, struct error *err);
#endif
