/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A world around the scheduler: clients that send requests, and a device that remembers in each position of
 * each page which tokens it was computed from. The world checks every plan, result and event.
 *
 * A text is a function of its prompt, so the world knows every token in advance. A position of a page holds a
 * hash of all tokens up to it, with salt and adapter. A sequence that reads a page with another hash has been
 * given a wrong page.
 */
#ifndef TESTS_UNIT_SCHEDULE_WORLD_H
#define TESTS_UNIT_SCHEDULE_WORLD_H
#include "engine/schedule/schedule.h"

/* Defects that a test plants. Each must break the check that is named. */
enum world_fault {
	WORLD_SOUND,
	WORLD_PAGE_LOST,	/* the pool's counts add up */
	WORLD_REFERENCE_LOST,	/* references are those of page tables */
	WORLD_TWO_WRITERS,	/* nobody writes into a page that another request holds */
	WORLD_EARLY_REUSE,	/* a page is not given out while a step in flight may write to it */
	WORLD_SHARED_OVERWRITE, /* cached pages keep their contents */
	WORLD_TWO_ENDS,		/* each request ends once */
	WORLD_END_LOST,		/* each request ends */
	WORLD_FORGOTTEN,	/* no request waits for ever */
	WORLD_OVER_BUDGET,	/* a step with decode rows keeps its time */
	WORLD_THRASH,		/* recomputation is bounded */
	WORLD_HELD,		/* a plan has the row of each request that can decode */
	WORLD_FAULTS
};

struct world_options {
	struct schedule_options schedule;
	int32_t depth;	   /* plans in flight after each plan, 0 .. plans_most - 1 */
	int64_t requests;  /* to submit */
	int32_t live_most; /* requests at once */
	int32_t prompt_most, text_most;
	int32_t check_every; /* steps between two full checks; 0: only at the end */
	/* Recomputed tokens are at most this times all other computed tokens, plus one longest request. */
	double recompute_most;
	enum world_fault fault;
	/* Source of random numbers: `seed`, or `bytes` [size]; the world ends when they are used up. */
	uint64_t seed;
	const uint8_t *bytes;
	size_t size;
};

struct world_report {
	struct schedule_facts facts;
	int64_t requests, ends[8]; /* by enum engine_end */
	int64_t in_flight_most;
	double now_s, plan_us_mean, plan_us_most; /* simulated time; real time of schedule_plan if asked for */
	int32_t running_most;
};

/* Runs until all requests have ended. MISMATCH with the first check that fails. */
enum status world_run(const struct world_options *options, struct world_report *report, struct error *err);
/* Options of a small engine: 16 tokens a page. `pages` without page 0. */
struct world_options world_small(int32_t pages, int32_t places, int32_t depth);
#endif
