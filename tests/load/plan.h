/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What will be done with a request: a pure function of the options and of the request's key (its number, or
 * a hash of its body). So two runs with the same options treat request number N alike.
 */
#ifndef TESTS_LOAD_PLAN_H
#define TESTS_LOAD_PLAN_H
#include "load/options.h"

struct stub_plan {
	enum stub_fault fault;
	double value;
	uint32_t tokens; /* of the answer, as usage should say */
	uint32_t at;	 /* the fault comes before this token, or hits it: 1 .. tokens - 1; 0 if tokens < 2 */
};

uint64_t stub_hash(const void *bytes, size_t size);
/* `usage`: the answer reports usage. A fault that cannot show in this request is not chosen. */
struct stub_plan stub_plan_make(const struct stub_options *o, uint64_t key, uint32_t tokens, bool stream,
				bool usage);
/* Planned time before token i: since the request for i = 0, otherwise since token i - 1. */
uint64_t stub_plan_gap_ns(const struct stub_options *o, const struct stub_plan *p, uint64_t key, uint32_t i);
/* Whether this connection (counted from 0) is closed at accept. */
bool stub_plan_refuses(const struct stub_options *o, uint64_t connection);
#endif
