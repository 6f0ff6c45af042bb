/* SPDX-License-Identifier: Apache-2.0 */
/* CUPTI's activity records, turned into the ring file's. */
#ifndef PROFILE_INJECT_ACTIVITY_H
#define PROFILE_INJECT_ACTIVITY_H
#include <stdbool.h>
#include "profile/inject/cupti.h"
#include "profile/inject/writer.h"

enum { ACTIVITY_NAMES = 1 << 12, ACTIVITY_CALLS = 2048 };

/* What is known of a name at an address; CUPTI gives the same pointer for the same kernel. */
struct activity_name {
	const char *pointer;
	uint32_t id, size;
	uint64_t begin; /* its first bytes: the memory may hold another name by now */
};

struct activity {
	const struct cupti *cupti;
	struct writer *writer;
	bool all_calls; /* every function of both interfaces; else those that launch, copy, wait, allocate */
	struct activity_name names[ACTIVITY_NAMES];
	/* By domain and cbid: 0 not looked at yet, else 1 + string's id, or CALL_UNWANTED. */
	uint32_t calls[2][ACTIVITY_CALLS];
	uint32_t converting; /* one buffer at a time: the tables are shared */
};

/* Switches the recording of calls on: those alone that are kept where CUPTI (from 12.8 on) can do so, since
 * each call that it looks at costs the program; else all of them, of which activity_convert keeps some. All
 * of them too where it is late, after cuInit: single ones are taken then, and nothing is recorded (CUPTI 13.0
 * on H200s). */
void activity_enable_calls(const struct activity *a, bool late);
/* All records of a buffer that CUPTI has filled, and what it dropped before it. Calls from several threads
 * take turns. */
void activity_convert(struct activity *a, uint8_t *buffer, size_t valid);
/* Where CUPTI's clock stands beside CLOCK_MONOTONIC, once. */
void activity_clock(struct activity *a);
#endif
