/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/http/request_log.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "core/clock.h"
#include "serve/http/routes.h"
#include "serve/protocol/json_out.h"

enum status request_log_open(int *fd, const char *path, struct error *err)
{
	*fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	return *fd < 0 ? error_errno(err, errno, "cannot write the request log %s", path) : STATUS_OK;
}

static void add_answer(struct text *out, const struct answer *a, uint64_t now_ns)
{
	struct answer_usage u = answer_usage(a);

	text_addf(
		out,
		",\"id\":\"%s\",\"stream\":%s,\"choices\":%zu,\"prompt_tokens\":%lld,\"cached_tokens\":%lld,"
		"\"tokens\":%lld,\"retries\":%u",
		a->id, a->request->stream ? "true" : "false", a->count, (long long)u.prompt,
		(long long)u.cached, (long long)u.tokens, a->crashes);
	if (a->first_ns)
		text_addf(out, ",\"first_token_s\":%.6f", (double)(a->first_ns - a->began_ns) * 1e-9);
	text_addf(out, ",\"total_s\":%.6f", (double)(now_ns - a->began_ns) * 1e-9);
}

void request_log_write(const struct exchange *x, bool sent)
{
	struct text line = {0};
	const struct answer *a = x->answer;
	char wall[32];
	ssize_t written;

	if (x->fe->request_log < 0 || !x->route || x->route->get)
		return;
	clock_wall_text(wall, sizeof(wall));
	text_addf(&line,
		  "{\"time\":\"%s\",\"endpoint\":\"%s\",\"status\":%d,\"end\":\"%s\",\"body_bytes\":%zu",
		  wall, x->route->path,
		  a && a->http ? a->http
		  : a	       ? 200
			       : x->http,
		  x->left || !sent ? "left"
		  : a && a->failed ? "failed"
				   : "sent",
		  x->received);
	if (a)
		add_answer(&line, a, serve_now_ns());
	if (x->fe->o.log_requests) {
		text_add(&line, ",\"request\":");
		json_out_bytes(&line, text_str(&x->body), x->body.size);
	}
	text_add(&line, "}\n");
	if (!line.failed) {
		written = write(x->fe->request_log, line.data, line.size);
		if (written < 0 && x->fe->o.log)
			log_warn(x->fe->o.log, LOG_TOPIC_RUN, "cannot write the request log: %s",
				 strerror(errno));
	}
	text_release(&line);
}
