/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include "load/event.h"
#include "load/routes.h"

bool route_generates(struct request *r)
{
	r->chat = !strcmp(r->path, "/v1/chat/completions");
	return !strcmp(r->method, "POST") && (r->chat || !strcmp(r->path, "/v1/completions"));
}

void route_refuse(struct buf *out, int status, const char *message, bool close)
{
	char body[256];

	snprintf(body, sizeof(body),
		 "{\"error\":{\"message\":\"%s\",\"type\":\"invalid_request_error\",\"code\":%d}}", message,
		 status);
	event_add_response(out, status, "", "application/json", body, close);
}

static void show_metrics(const struct request *r, const struct stub_options *o, const struct counters *sum,
			 struct buf *out)
{
	struct buf text = {0};

	metrics_write(&text, sum, o->names, o->model);
	buf_add(&text, "", 1);
	event_add_response(out, 200, "", "text/plain; version=0.0.4", text.data, r->close);
	buf_release(&text);
}

static void show_models(const struct request *r, const struct stub_options *o, struct buf *out)
{
	char body[256];

	snprintf(
		body, sizeof(body),
		"{\"object\":\"list\",\"data\":[{\"id\":\"%s\",\"object\":\"model\",\"owned_by\":\"stub\"}]}",
		o->model);
	event_add_response(out, 200, "", "application/json", body, r->close);
}

void route_respond(const struct request *r, const struct stub_options *o, const struct counters *sum,
		   struct buf *out)
{
	bool get = !strcmp(r->method, "GET");

	if (get && !strcmp(r->path, "/metrics"))
		show_metrics(r, o, sum, out);
	else if (get && !strcmp(r->path, "/v1/models"))
		show_models(r, o, out);
	else if (get && !strcmp(r->path, "/health"))
		event_add_response(out, 200, "", "text/plain", "", r->close);
	else
		route_refuse(out, 404, "there is no such endpoint", r->close);
}
