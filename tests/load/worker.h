/* SPDX-License-Identifier: Apache-2.0 */
/* One thread of the stub server: its listening socket, its connections, and the timers of their answers. */
#ifndef TESTS_LOAD_WORKER_H
#define TESTS_LOAD_WORKER_H
#include "load/metrics.h"
#include "load/options.h"

struct worker;

/* What workers share: numbers of requests and connections, and each other's counters. */
struct workers {
	const struct stub_options *options;
	_Atomic uint64_t next_request, next_connection;
	_Atomic uint64_t next_turn_ns; /* when the next request may begin, if there is a most of them in a second */
	int truth_fd; /* -1: none */
	struct worker **worker;
	unsigned count;
};

enum { LATE_BUCKETS = 20001 }; /* microseconds; the last bucket is everything above */
struct late {
	uint64_t count, max_ns, bucket[LATE_BUCKETS];
};

/* Owns listen_fd from now on. */
struct worker *worker_create(struct workers *all, int listen_fd);
void *worker_run(void *worker);		  /* a thread; returns after worker_stop */
void worker_stop(const struct worker *w); /* from another thread */
const struct counters *worker_counters(const struct worker *w);
/* How much later than planned tokens were sent. After worker_run has returned. */
const struct late *worker_late(const struct worker *w);
bool worker_failed(const struct worker *w); /* the truth file is not complete */
void worker_destroy(struct worker *w);
#endif
