/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HTTP client of a load test: sends the requests of a plan at their times from several threads, and
 * records what comes back. docs/explanation/design/load.md.
 */
#ifndef LOAD_CLIENT_CLIENT_H
#define LOAD_CLIENT_CLIENT_H
#include <signal.h>
#include "load/answer/answer.h"
#include "load/client/http.h"
#include "load/measure/summary.h"
#include "load/plan/plan.h"

struct load_client_spec {
	const struct http *http;		  /* opened, and met once */
	const char *path;			  /* "/v1/chat/completions" */
	bool stream, usage, completion, dialogue; /* dialogue: a later turn needs the answers before it */
	unsigned threads, connections;		  /* connections: most requests in flight, of all threads */
	uint64_t grace_ns;		   /* after the plan's duration, answers are awaited for this time */
	const volatile sig_atomic_t *stop; /* not 0: ends, and keeps what was measured */
	/* Appends the body of a request to *out, and sets what it asks for in *record. Called by sender
	 * thread number `thread`. */
	enum status (*body)(void *arg, unsigned thread, const struct load_request *r, struct text *out,
			    struct load_record *record, struct error *err);
	/* An answer was read. The record's owner is the callee. Called by one thread, the parser. */
	enum status (*answered)(void *arg, const struct load_request *r, struct load_record *record,
				const struct load_answer_text *text, struct error *err);
	void *arg;
};

struct load_client_result {
	struct load_client_use use;
	uint64_t dropped; /* later turns that were not sent, because an answer failed */
	uint32_t open_most;
};
/*
 * Runs a plan. `epoch_ns`: the run's begin on CLOCK_MONOTONIC, to which all times of records refer;
 * `begin_ns`: the plan's begin after it. Requests in flight at the end of the grace or at a stop get the
 * error CANCELLED. NO_RESOURCE: no memory, descriptors or threads, or an error of a callback.
 */
enum status load_client_run(const struct load_client_spec *spec, const struct load_plan *plan,
			    uint64_t epoch_ns, uint64_t begin_ns, struct load_client_result *result,
			    struct error *err);
#endif
