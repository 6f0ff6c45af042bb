/* SPDX-License-Identifier: Apache-2.0 */
/* The endpoints, and the answers of those that generate no text. */
#ifndef TESTS_LOAD_ROUTES_H
#define TESTS_LOAD_ROUTES_H
#include "load/buf.h"
#include "load/metrics.h"
#include "load/request.h"

/* Whether the request asks for a text. Sets r->chat. */
bool route_generates(struct request *r);
/* Adds the answer of any other request. `sum`: what all workers counted. */
void route_respond(const struct request *r, const struct stub_options *o, const struct counters *sum,
		   struct buf *out);
void route_refuse(struct buf *out, int status, const char *message, bool close);
#endif
