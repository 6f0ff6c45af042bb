/* SPDX-License-Identifier: Apache-2.0 */
/* A request to stop that also comes when a time has passed. */
#ifndef CMD_HEALTH_DEADLINE_H
#define CMD_HEALTH_DEADLINE_H
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "core/error.h"

struct deadline {			    /* do not move it while it runs */
	const volatile sig_atomic_t *asked; /* the user's request */
	volatile sig_atomic_t stop;	    /* the user's request, or 2 after the time */
	atomic_bool late, over;
	uint64_t end_ns;
	pthread_t thread;
};

/* Starts the time. End it with deadline_end. */
enum status deadline_begin(struct deadline *d, const volatile sig_atomic_t *asked, unsigned ms,
			   struct error *err);
/* True if the time had passed before this call. */
bool deadline_end(struct deadline *d);
#endif
