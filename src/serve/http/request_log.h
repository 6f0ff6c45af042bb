/* SPDX-License-Identifier: Apache-2.0 */
/* The request log: one JSON object per request with lengths, times and status. Contents only if they were
 * asked for. */
#ifndef SERVE_HTTP_REQUEST_LOG_H
#define SERVE_HTTP_REQUEST_LOG_H
#include <stdbool.h>
#include <stddef.h>
#include "core/error.h"

struct exchange;

struct request_log {
	int fd;	     /* -1: no log */
	bool cut;    /* the file ends within a record, because the disk was full */
	size_t lost; /* records since the last one that was written */
};

enum status request_log_open(struct request_log *log, const char *path, struct error *err);
void request_log_close(struct request_log *log);
/* Does nothing without a log. */
void request_log_write(const struct exchange *x, bool sent);
#endif
