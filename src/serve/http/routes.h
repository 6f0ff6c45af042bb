/* SPDX-License-Identifier: Apache-2.0 */
/* The endpoints. */
#ifndef SERVE_HTTP_ROUTES_H
#define SERVE_HTTP_ROUTES_H
#include "serve/http/exchange.h"

struct route {
	const char *method, *path;
	bool open;		/* needs no key */
	bool prefix;		/* the path may go on */
	enum protocol protocol; /* of POST */
	/* GET: fills x->reply, x->type and x->http. */
	void (*get)(struct exchange *x, const char *path);
};
/* NULL: *err is 404 or 405; with 405, *takes is the method that the endpoint takes. */
const struct route *route_find(const char *method, const char *path, const char **takes,
			       struct api_error *err);
/* The path of a request's target, which may have a scheme and a host before it (RFC 9112, 3.2.2). */
const char *route_path(const char *target);
#endif
