/* SPDX-License-Identifier: Apache-2.0 */
/* Converts CUPTI's activity records to records of the ring file. */
#ifndef PROFILE_INJECT_ACTIVITY_H
#define PROFILE_INJECT_ACTIVITY_H
#include <stdbool.h>
#include "profile/inject/cupti.h"
#include "profile/inject/writer.h"

enum { ACTIVITY_NAMES = 1 << 12, ACTIVITY_CALLS = 2048 };

/* A cached name, by its address. CUPTI passes the same pointer for the same kernel. */
struct activity_name {
	const char *pointer;
	uint32_t id, size;
	uint64_t begin; /* first bytes of the name; they show whether the memory now holds another name */
};

struct activity {
	const struct cupti *cupti;
	struct writer *writer;
	bool all_calls; /* records every function of both interfaces; otherwise only calls that launch, copy,
			   wait or allocate */
	struct activity_name names[ACTIVITY_NAMES];
	/* By domain and cbid. 0: not looked up yet; CALL_UNWANTED: not recorded; else 1 + id of the name's
	 * string. */
	uint32_t calls[2][ACTIVITY_CALLS];
	uint32_t converting; /* set while a buffer is converted: the tables are shared */
};

/* Switches the recording of calls on. CUPTI 12.8 and newer can record selected calls only, which is used
 * because each recorded call costs the program time. Older versions record all calls, and activity_convert
 * drops the unwanted ones. If `late` (after cuInit), all calls are recorded too: CUPTI 13.0 on H200s accepts
 * a selection then, but records nothing. */
void activity_enable_calls(const struct activity *a, bool late);
/* Converts all records of a buffer that CUPTI has filled, and adds the number of records that CUPTI dropped.
 * Calls from several threads run one after another. */
void activity_convert(struct activity *a, uint8_t *buffer, size_t valid);
/* Records one pair of readings of CUPTI's clock and CLOCK_MONOTONIC. */
void activity_clock(struct activity *a);
#endif
