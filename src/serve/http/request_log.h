/* SPDX-License-Identifier: Apache-2.0 */
/* The request log: one JSON object per request with lengths, times and status. Contents only if they were
 * asked for. */
#ifndef SERVE_HTTP_REQUEST_LOG_H
#define SERVE_HTTP_REQUEST_LOG_H
#include "serve/http/exchange.h"

enum status request_log_open(int *fd, const char *path, struct error *err);
/* Does nothing without a log. */
void request_log_write(const struct exchange *x, bool sent);
#endif
