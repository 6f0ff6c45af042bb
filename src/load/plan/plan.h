/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plan of a load test: every request with its time, before the run. A pure function of the options and
 * the seed (and of the trace file).
 */
#ifndef LOAD_PLAN_PLAN_H
#define LOAD_PLAN_PLAN_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/error.h"
#include "load/plan/length.h"

#define LOAD_AFTER UINT64_MAX /* no time of its own: due think_ns after the answer before */
enum { LOAD_BLOCK_TOKENS = 512, LOAD_DURATION_MOST_S = 86400 };

struct load_request {
	uint64_t at_ns;	   /* after the begin of the run, or LOAD_AFTER */
	uint64_t think_ns; /* with LOAD_AFTER */
	uint32_t session;  /* requests of a session come one after the other */
	uint32_t turn;	   /* from 0, which begins a conversation without earlier messages */
	/* prompt_tokens: what this turn adds to the prompt, with its share of the chat template and without
	 * the shared prefix. 0 if the dataset decides (load/content/content.h). */
	uint32_t prompt_tokens, output_tokens;
	uint64_t source;	/* row of the dataset, or seed of the text */
	uint32_t prefix;	/* group of the shared prefix, from 1; 0: none */
	uint32_t prefix_tokens; /* come before prompt_tokens; only in turn 0 */
	const uint32_t *blocks; /* of a trace: ids of its blocks of 512 tokens; equal ids have equal text */
	uint32_t block_count;
};

enum load_arrival { LOAD_CONSTANT, LOAD_POISSON, LOAD_GAMMA, LOAD_RAMP, LOAD_STEPS, LOAD_TRACE, LOAD_CLOSED };

struct load_plan_spec {
	enum load_arrival arrival;
	double rate, rate_end;	/* conversations/s, which are requests/s if turns is 1. rate_end: of a ramp */
	double burstiness;	/* GAMMA: shape of the distribution of gaps; 1: Poisson, less: bursts */
	const char *steps;	/* "10,20,40": rates of equal parts of the duration; each is Poisson */
	const char *trace;	/* file */
	double trace_speed;	/* 2: twice as fast as recorded */
	double duration_s;	/* at most a day; TRACE: 0 takes the whole file */
	uint64_t requests_most; /* the plan ends there */
	uint32_t users;		/* closed loop */
	uint32_t turns;		/* of a conversation; 1: single requests */
	/* Mean pause before a later turn, and of users of a closed loop; exponentially distributed. */
	double think_s;
	uint32_t prefix_tokens, prefix_groups; /* shared prefix; 0: none */
	struct load_length_spec input, output;
	uint64_t dataset_rows; /* > 0: source is a row, and lengths come from the dataset */
	uint64_t seed;
};

struct load_plan {
	/* Sessions are contiguous and ordered by the time of their first request. In a closed loop each user
	 * is a session that has its part of requests_most, usually more than a run reaches; `turns` of them
	 * make a conversation. */
	struct load_request *request;
	size_t count;
	uint32_t sessions;
	double duration_s; /* of the schedule; shorter than asked if `cut` */
	double offered;	   /* requests with a time of their own, per second of duration; 0: closed loop */
	bool cut;	   /* requests_most ended the plan */
	bool trace;	   /* lengths come from a trace */
	uint64_t skipped;  /* rows of the trace without a prompt or an answer, such as failed requests */
	uint32_t *blocks;  /* storage of the requests' blocks */
};
/* BAD_INPUT: a rate of zero, a trace with times that go backwards (file:line), more requests than
 * requests_most in a trace, a schedule without requests, .. Owner: caller, load_plan_release. */
enum status load_plan_make(struct load_plan *p, const struct load_plan_spec *spec, struct error *err);
void load_plan_release(struct load_plan *p);
/* The tokens of all prompts and of all answers. */
struct load_plan_tokens {
	double prompt, output;
};
struct load_plan_tokens load_plan_tokens(const struct load_plan *p);
#endif
