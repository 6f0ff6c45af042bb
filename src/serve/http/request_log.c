/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/http/request_log.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/clock.h"
#include "serve/http/exchange.h"
#include "serve/http/routes.h"
#include "serve/protocol/json_out.h"

/* An earlier server may have left a record incomplete at the end of the file. */
static void look_at_end(struct request_log *log, const char *path)
{
	struct stat file;
	char last;
	int fd;

	if (fstat(log->fd, &file) || !S_ISREG(file.st_mode) || !file.st_size)
		return;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	log->cut = pread(fd, &last, 1, file.st_size - 1) == 1 && last != '\n';
	close(fd);
}

enum status request_log_open(struct request_log *log, const char *path, struct error *err)
{
	log->fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (log->fd < 0)
		return error_errno(err, errno, "cannot write the request log %s", path);
	look_at_end(log, path);
	return STATUS_OK;
}

void request_log_close(struct request_log *log)
{
	if (log->fd >= 0)
		close(log->fd);
	log->fd = -1;
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

static void add_record(struct text *out, const struct exchange *x, bool sent)
{
	const struct answer *a = x->answer;
	char wall[32];

	clock_wall_text(wall, sizeof(wall));
	text_addf(out, "{\"time\":\"%s\",\"endpoint\":\"%s\",\"status\":%d,\"end\":\"%s\",\"body_bytes\":%zu",
		  wall, x->route->path,
		  a && a->http ? a->http
		  : a	       ? 200
			       : x->http,
		  x->left || !sent ? "left"
		  : a && a->failed ? "failed"
				   : "sent",
		  x->received);
	if (a)
		add_answer(out, a, serve_now_ns());
	if (x->fe->o.log_requests) {
		text_add(out, ",\"request\":");
		json_out_bytes(out, text_str(&x->body), x->body.size);
	}
	text_add(out, "}\n");
}

/* False: errno says why, and a part may have been written. */
static bool write_all(struct request_log *log, const char *bytes, size_t size)
{
	while (size) {
		ssize_t written = write(log->fd, bytes, size);

		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return false;
		log->cut = bytes[written - 1] != '\n';
		bytes += written;
		size -= (size_t)written;
	}
	return true;
}

static void note_lost(struct request_log *log, const struct log *to, int why)
{
	if (!log->lost++ && to)
		log_warn(to, LOG_TOPIC_RUN, "cannot write the request log: %s", strerror(why));
}

static void note_written(struct request_log *log, const struct log *to)
{
	if (log->lost && to)
		log_warn(to, LOG_TOPIC_RUN, "the request log can be written again; %zu %s lost", log->lost,
			 log->lost == 1 ? "record is" : "records are");
	log->lost = 0;
}

void request_log_write(const struct exchange *x, bool sent)
{
	struct request_log *log = &x->fe->request_log;
	struct text record = {0};

	if (log->fd < 0 || !x->route || x->route->get)
		return;
	if (log->cut)
		text_add(&record, "\n");
	add_record(&record, x, sent);
	if (record.failed)
		note_lost(log, x->fe->o.log, ENOMEM);
	else if (write_all(log, record.data, record.size))
		note_written(log, x->fe->o.log);
	else
		note_lost(log, x->fe->o.log, errno);
	text_release(&record);
}
