/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that tells once a second how far the load is, and what the server's metrics say. */
#ifndef LOAD_RUN_REPORTER_H
#define LOAD_RUN_REPORTER_H
#include "load/run/stage.h"

struct reporter {
	struct load_stages *stages;
	const char *metrics; /* path on the server; "": none */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t ended;
	bool running, end;
	unsigned missed;			/* readings one after the other */
	bool lost;				/* the server has no metrics */
	double told_s, told_ended, told_tokens; /* at the last line */
};
enum status reporter_start(struct reporter *r, struct load_stages *stages, const char *metrics,
			   struct error *err);
void reporter_stop(struct reporter *r); /* does nothing if it does not run */
#endif
