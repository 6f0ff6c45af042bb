/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plan of a load test: every request with its time, before the run. A pure function of the options and
 * the seed.
 */
#ifndef LOAD_PLAN_PLAN_H
#define LOAD_PLAN_PLAN_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/error.h"

#define LOAD_AFTER UINT64_MAX /* no time of its own: due think_ns after the answer before */

struct load_request {
	uint64_t at_ns;			       /* after the begin of the run, or LOAD_AFTER */
	uint64_t think_ns;		       /* with LOAD_AFTER */
	uint32_t session;		       /* requests of a session come one after the other */
	uint32_t turn;			       /* from 0 */
	uint32_t prompt_tokens, output_tokens; /* asked; prompt_tokens: of this turn's new message */
	uint64_t source;		       /* row of the dataset, or seed of the text */
	uint32_t prefix;		       /* group of the shared prefix, from 1; 0: none */
	const uint32_t *blocks; /* of a trace: ids of its blocks of 512 tokens; equal ids have equal text */
	uint32_t block_count;
};

enum load_arrival { LOAD_CONSTANT, LOAD_POISSON, LOAD_GAMMA, LOAD_RAMP, LOAD_STEPS, LOAD_TRACE, LOAD_CLOSED };
enum load_length { LOAD_FIXED, LOAD_UNIFORM, LOAD_NORMAL, LOAD_LOGNORMAL };

/* A distribution of lengths in tokens; values are rounded and clamped to min .. max. */
struct load_length_spec {
	enum load_length kind;
	double mean, spread; /* spread: standard deviation of the length; of UNIFORM: half of the width */
	uint32_t min, max;
};
/* Reads "1000", "normal:1000,200", "lognormal:1000,300", "uniform:500,1500". BAD_INPUT names the text. */
enum status load_length_read(struct load_length_spec *out, const char *text, struct error *err);

struct load_plan_spec {
	enum load_arrival arrival;
	double rate, rate_end; /* requests/s; rate_end: of a ramp */
	double burstiness;     /* shape of the gamma distribution of gaps; 1: Poisson */
	const char *steps;     /* "10,20,40": rates of equal parts of the duration */
	const char *trace;     /* file */
	double trace_speed;    /* 2: twice as fast as recorded */
	double duration_s;
	uint64_t requests_most; /* the plan ends there */
	uint32_t users;		/* closed loop */
	uint32_t turns;		/* of a session; 1: single requests */
	double think_s; /* mean pause before a later turn, exponentially distributed; exactly 0 if 0 */
	uint32_t prefix_tokens, prefix_groups; /* shared prefix; 0: none */
	struct load_length_spec input, output;
	uint64_t dataset_rows; /* > 0: source is a row, and lengths come from the dataset */
	uint64_t seed;
};

struct load_plan {
	struct load_request *request; /* sessions are contiguous, ordered by the time of their first turn and
				       numbered in this order from 0 */
	size_t count;
	uint32_t sessions;
	double duration_s, offered; /* requests/s over the duration; 0: closed loop */
	uint32_t *blocks;	    /* storage of the requests' blocks */
};
/* BAD_INPUT: a rate of zero, a trace with times that go backwards (file:line), more requests than
 * requests_most in a trace, .. Owner: caller, load_plan_release. */
enum status load_plan_make(struct load_plan *p, const struct load_plan_spec *spec, struct error *err);
void load_plan_release(struct load_plan *p);
#endif
