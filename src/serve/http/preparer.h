/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that read requests: JSON, template and tokenizer take milliseconds, in which no stream may wait. */
#ifndef SERVE_HTTP_PREPARER_H
#define SERVE_HTTP_PREPARER_H
#include "serve/protocol/request.h"

struct prepare_job {
	enum protocol protocol;
	const char *body; /* lent until the job is done */
	size_t size;
	void *owner;
	struct request *request; /* the result; NULL: `error` is set */
	struct api_error error;
	struct prepare_job *next;
};

struct preparer;
/* `wake`: an eventfd that is written when jobs are done. Rules are lent. Owner: caller. */
enum status preparer_create(struct preparer **out, const struct request_rules *rules, unsigned threads,
			    int wake, struct error *err);
/* Waits for the jobs that are being worked on; others are dropped. NULL-safe. */
void preparer_destroy(struct preparer **p);
/* The job is lent until preparer_done returns it. */
void preparer_submit(struct preparer *p, struct prepare_job *job);
/* A list of jobs that are done; NULL: none. */
struct prepare_job *preparer_done(struct preparer *p);
#endif
