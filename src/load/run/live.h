/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of a load test while it runs. One thread adds, another reads. */
#ifndef LOAD_RUN_LIVE_H
#define LOAD_RUN_LIVE_H
#include <jansson.h>
#include <pthread.h>
#include "load/client/times.h"
#include "load/record/record.h"

struct live {
	pthread_mutex_t lock;
	uint64_t planned, ended, errors, output_tokens;
	double end_s; /* of the schedule, on the clock of clock_now_s; both set while nothing runs */
	struct load_times ttft, e2e; /* of completed requests, from the schedule */
};
#define LIVE_NEW                                                                                             \
	{                                                                                                    \
		.lock = PTHREAD_MUTEX_INITIALIZER                                                            \
	}
/* Begins a stage. */
void live_begin(struct live *l, uint64_t planned, double end_s);
void live_add(struct live *l, const struct load_record *r);
/* Members for a line "alive": counts, tokens, and P50, P95, P99 from the schedule in seconds. Owner: caller.
 */
json_t *live_line(struct live *l);
#endif
