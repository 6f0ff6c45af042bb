/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/http/server.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/math/fnv1a.h"
#include "core/net/listen.h"
#include "serve/http/excess.h"
#include "serve/http/routes.h"
#include "serve/http/tls_files.h"

enum {
	BLOCK_BYTES = 8192,
	DISCARD_TIMES = 4,
	DRAIN_READ_S = 2, /* for the rest of a request, once the server drains; the response is 503 anyway */
};
#define SECOND_NS 1000000000ull

/* Headers that every response has. */
static void add_headers(struct MHD_Response *response, const struct exchange *x)
{
	const char *origin = x->fe->o.cors_origin;
	char seconds[16];

	if (origin) {
		x->fe->mhd.add_response_header(response, "Access-Control-Allow-Origin", origin);
		x->fe->mhd.add_response_header(response, "Access-Control-Expose-Headers",
					       "x-request-id, retry-after");
		if (strcmp(origin, "*") != 0)
			x->fe->mhd.add_response_header(response, "Vary", "Origin");
	}
	if (x->retry_s) {
		snprintf(seconds, sizeof(seconds), "%u", x->retry_s);
		x->fe->mhd.add_response_header(response, "Retry-After", seconds);
	}
	if (x->last)
		x->fe->mhd.add_response_header(response, "Connection", "close");
	if (x->http == 401)
		x->fe->mhd.add_response_header(response, "WWW-Authenticate", "Bearer");
	if (x->takes)
		x->fe->mhd.add_response_header(response, "Allow", x->takes);
	if (x->answer)
		x->fe->mhd.add_response_header(response, "x-request-id", x->answer->id);
	x->fe->mhd.add_response_header(response, "X-Content-Type-Options", "nosniff");
}

static void add_page_headers(struct MHD_Response *response, const struct exchange *x)
{
	x->fe->mhd.add_response_header(
		response, "Content-Security-Policy",
		"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
		"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
	x->fe->mhd.add_response_header(response, "Referrer-Policy", "no-referrer");
}

static void add_cors_answer(struct MHD_Response *response, const struct exchange *x)
{
	x->fe->mhd.add_response_header(response, "Access-Control-Allow-Methods", "GET, POST, OPTIONS");
	x->fe->mhd.add_response_header(response, "Access-Control-Allow-Headers",
				       "*, authorization, content-type, x-api-key");
	x->fe->mhd.add_response_header(response, "Access-Control-Max-Age", "86400");
}

static void forget_sent(struct exchange *x)
{
	struct text *out = &x->answer->out;

	if (x->sent < out->size && x->sent < out->size / 2)
		return;
	memmove(out->data, out->data + x->sent, out->size - x->sent);
	out->size -= x->sent;
	x->sent = 0;
}

static ssize_t read_stream(void *cls, uint64_t pos, char *buffer, size_t most)
{
	struct exchange *x = cls;
	const struct text *out = &x->answer->out;
	size_t left = out->size - x->sent;

	(void)pos;
	if (x->left || out->failed)
		return MHD_CONTENT_READER_END_WITH_ERROR;
	if (left) {
		left = left < most ? left : most;
		memcpy(buffer, out->data + x->sent, left);
		x->sent += left;
		forget_sent(x);
		return (ssize_t)left;
	}
	if (x->answer->complete)
		return MHD_CONTENT_READER_END_OF_STREAM;
	exchange_suspend(x);
	return 0;
}

/* Sends a body; takes it from `body`. */
static struct MHD_Response *body_response(const struct microhttpd *mhd, struct text *body)
{
	struct MHD_Response *response;

	if (body->failed)
		return NULL;
	response = mhd->create_response_from_buffer(
		body->size, body->data, body->data ? MHD_RESPMEM_MUST_FREE : MHD_RESPMEM_PERSISTENT);
	if (response)
		*body = (struct text){0};
	return response;
}

static enum MHD_Result send_response(struct exchange *x)
{
	struct answer *a = x->answer;
	struct MHD_Response *response;
	enum MHD_Result queued;

	if (x->left)
		return MHD_NO;
	if (a && a->streaming) {
		x->http = 200;
		x->type = "text/event-stream";
		response = x->fe->mhd.create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK_BYTES,
								    read_stream, x, NULL);
	} else {
		if (a) {
			x->http = a->http;
			x->retry_s = a->retry_s;
		}
		response = body_response(&x->fe->mhd, a ? &a->out : &x->reply);
	}
	if (!response)
		return MHD_NO;
	if (*x->type)
		x->fe->mhd.add_response_header(response, "Content-Type", x->type);
	if (a && a->streaming)
		x->fe->mhd.add_response_header(response, "Cache-Control", "no-cache");
	if (!strncmp(x->type, "text/html", 9))
		add_page_headers(response, x);
	if (x->http == 204)
		add_cors_answer(response, x);
	add_headers(response, x);
	x->state = EXCHANGE_SENDING;
	queued = x->fe->mhd.queue_response(x->connection, (unsigned)x->http, response);
	x->fe->mhd.destroy_response(response);
	return queued;
}

static const char *header(const struct exchange *x, const char *name)
{
	return x->fe->mhd.lookup_connection_value(x->connection, MHD_HEADER_KIND, name);
}

static uint64_t hash_address(const struct sockaddr *a)
{
	if (a && a->sa_family == AF_INET)
		return fnv1a_add(FNV1A_BEGIN, &((const struct sockaddr_in *)(const void *)a)->sin_addr, 4);
	if (a && a->sa_family == AF_INET6)
		return fnv1a_add(FNV1A_BEGIN, &((const struct sockaddr_in6 *)(const void *)a)->sin6_addr, 16);
	return 0;
}

/* Checks the key, and tells clients apart: by key, or else by address. */
static bool allow(struct exchange *x, struct api_error *e)
{
	const char *given = header(x, "Authorization"), *key = NULL;
	const union MHD_ConnectionInfo *info;

	if (given && !strncasecmp(given, "Bearer ", 7))
		key = given + 7 + strspn(given + 7, " ");
	if (!key)
		key = header(x, "x-api-key");
	info = x->fe->mhd.get_connection_info(x->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	x->client = hash_address(info ? info->client_addr : NULL);
	if (!x->fe->keys.count)
		return true;
	if (key)
		x->client = fnv1a_add(FNV1A_BEGIN, key, strlen(key));
	if (x->route->open || (key && keys_match(&x->fe->keys, key)))
		return true;
	return api_fail(e, 401, "invalid_api_key",
			key ? "the API key is wrong"
			    : "an API key is missing: send it as \"Authorization: Bearer KEY\"");
}

static enum MHD_Result count_length(void *count, enum MHD_ValueKind kind, const char *name, const char *value)
{
	(void)kind, (void)value;
	*(int *)count += !strcasecmp(name, "Content-Length") || !strcasecmp(name, "Transfer-Encoding");
	return MHD_YES;
}

/* A request whose end can be read in two ways may hide another one from a proxy (RFC 9112, 6.3). */
static bool check_framing(struct exchange *x, struct api_error *e)
{
	int count = 0;

	x->fe->mhd.get_connection_values(x->connection, MHD_HEADER_KIND, count_length, &count);
	if (count <= 1)
		return true;
	x->last = x->discard = true;
	return api_wrong(
		e, "",
		"the header states the length of the body more than once: send one Content-Length or "
		"Transfer-Encoding");
}

/* A body that is too large is read and dropped up to a limit: most clients read the error only after they
 * have sent everything. */
static bool check_length(struct exchange *x, struct api_error *e)
{
	const char *length = header(x, "Content-Length");
	unsigned long long bytes = length ? strtoull(length, NULL, 10) : 0;
	size_t most = x->fe->o.limits.body_bytes;

	if (bytes <= most)
		return true;
	x->discard = true;
	if (bytes <= most * DISCARD_TIMES && !header(x, "Expect"))
		return true;
	return api_fail(e, 413, "body_too_large", "the body has %llu bytes; %zu is the most", bytes, most);
}

static struct peer *peer_of(const struct exchange *x)
{
	const union MHD_ConnectionInfo *info =
		x->fe->mhd.get_connection_info(x->connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info ? info->socket_context : NULL;
}

static enum MHD_Result begin(struct front_end *fe, struct MHD_Connection *connection, const char *url,
			     const char *method, void **con_cls)
{
	struct api_error e = {0};
	bool preflight = !strcmp(method, "OPTIONS") && fe->o.cors_origin;
	const char *path = route_path(url), *takes = NULL;
	const struct route *route = preflight ? NULL : route_find(method, path, &takes, &e);
	struct exchange *x = exchange_create(fe, connection, route);

	if (!x)
		return MHD_NO;
	*con_cls = x;
	x->takes = takes;
	x->peer = peer_of(x);
	if (x->peer)
		x->peer->exchange = x;
	x->last = x->peer && excess_is(x->peer);
	if (x->last && !(route && route->open)) {
		excess_fail(fe, &e);
		exchange_error(x, &e);
	} else if (!check_framing(x, &e)) {
		exchange_error(x, &e);
		return send_response(x);
	} else if (preflight) {
		x->http = 204;
		x->type = "";
		x->state = EXCHANGE_READY;
	} else if (!route || !allow(x, &e)) {
		exchange_error(x, &e);
	} else if (!check_length(x, &e)) {
		exchange_error(x, &e);
		return send_response(x); /* the body is not read, so MHD closes the connection */
	} else if (route->get) {
		x->http = 200;
		x->state = EXCHANGE_READY;
		route->get(x, path);
	}
	/* The next call sends what is ready. A response to this one would end the connection. */
	x->discard |= x->state == EXCHANGE_READY;
	return MHD_YES;
}

static void take_body(struct exchange *x, const char *data, size_t size)
{
	struct front_end *fe = x->fe;
	size_t before = x->body.room;

	x->received += size;
	if (x->received > fe->o.limits.body_bytes || fe->body_bytes > fe->o.limits.bodies_bytes)
		x->discard = true;
	if (x->discard) {
		fe->body_bytes -= x->body.room;
		text_release(&x->body);
		return;
	}
	text_add_bytes(&x->body, data, size);
	fe->body_bytes += x->body.room - before;
}

static enum MHD_Result body_complete(struct exchange *x)
{
	struct api_error e = {0};

	if (x->received > x->fe->o.limits.body_bytes)
		api_fail(&e, 413, "body_too_large", "the body has %zu bytes; %zu is the most", x->received,
			 x->fe->o.limits.body_bytes);
	else if (x->discard || x->body.failed)
		api_fail(&e, 503, "out_of_memory", "the server is receiving too many large requests");
	if (e.http)
		exchange_error(x, &e);
	else
		exchange_prepare(x);
	return x->state == EXCHANGE_READY ? send_response(x) : MHD_YES;
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *connection, const char *url,
				  const char *method, const char *version, const char *data, size_t *size,
				  void **con_cls)
{
	struct exchange *x = *con_cls;

	(void)version;
	if (!x)
		return begin(cls, connection, url, method, con_cls);
	if (*size) {
		take_body(x, data, *size);
		*size = 0;
		/* no more of it than it takes to answer politely */
		return x->received > x->fe->o.limits.body_bytes * DISCARD_TIMES ? MHD_NO : MHD_YES;
	}
	switch (x->state) {
	case EXCHANGE_READING:
		return body_complete(x);
	case EXCHANGE_READY:
		return send_response(x);
	case EXCHANGE_SENDING:
		return MHD_YES;
	default:
		if (x->left)
			return MHD_NO;
		exchange_suspend(x);
		return MHD_YES;
	}
}

static void on_completed(void *cls, struct MHD_Connection *connection, void **con_cls,
			 enum MHD_RequestTerminationCode code)
{
	struct exchange *x = *con_cls;

	(void)cls, (void)connection;
	if (!x)
		return;
	*con_cls = NULL;
	if (x->peer) {
		x->peer->exchange = NULL;
		x->fe->closing |= x->peer->closed; /* MHD may have missed it */
		x->peer->since_ns = serve_now_ns();
	}
	exchange_end(x, code == MHD_REQUEST_TERMINATED_COMPLETED_OK);
}

/* The client's leaving shows only here while MHD does not look at the connection. */
static void watch(struct peer *p)
{
	struct epoll_event event = {.events = EPOLLRDHUP | EPOLLET, .data.ptr = p};

	epoll_ctl(p->fe->epoll, EPOLL_CTL_ADD, p->fd, &event);
}

static void on_connection(void *cls, struct MHD_Connection *connection, void **context,
			  enum MHD_ConnectionNotificationCode code)
{
	struct front_end *fe = cls;
	struct peer *p = *context;
	const union MHD_ConnectionInfo *info;

	if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
		if (!p)
			return;
		/* closing alone does not suffice while a forked child still has the descriptor */
		epoll_ctl(fe->epoll, EPOLL_CTL_DEL, p->fd, NULL);
		excess_remove(p);
		*p->link = p->next;
		if (p->next)
			p->next->link = p->link;
		fe->peer_count--;
		free(p);
		*context = NULL;
		return;
	}
	p = calloc(1, sizeof(*p));
	info = fe->mhd.get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	if (!p || !info) {
		free(p);
		return;
	}
	*p = (struct peer){.fe = fe, .fd = info->connect_fd, .since_ns = serve_now_ns(), .next = fe->peers};
	p->link = &fe->peers;
	if (p->next)
		p->next->link = &p->next;
	fe->peers = p;
	fe->peer_count++;
	*context = p;
	excess_add(p);
	watch(p);
}

static void on_log(void *cls, const char *format, va_list args)
{
	struct front_end *fe = cls;
	struct text line = {0};

	if (!fe->o.log)
		return;
	text_addv(&line, format, args);
	if (line.size && line.data[line.size - 1] == '\n')
		line.data[--line.size] = '\0';
	log_debug(fe->o.log, LOG_TOPIC_RUN, "http: %s", text_str(&line));
	text_release(&line);
}

/* The limit of open files must also allow the connections beyond the limit. */
static size_t connections_most(const struct front_end *fe)
{
	size_t wanted = fe->o.limits.connections, most = listen_allow_files(wanted + EXCESS_ROOM);

	if (most >= wanted + EXCESS_ROOM)
		return wanted;
	most = most > 2 * EXCESS_ROOM ? most - EXCESS_ROOM : EXCESS_ROOM;
	most = most < wanted ? most : wanted;
	if (most < wanted && fe->o.log)
		log_warn(fe->o.log, LOG_TOPIC_RUN,
			 "the limit of open files allows %zu connections; raise it with ulimit -n", most);
	return most;
}

static enum status check_tls(const struct front_end *fe, struct error *err)
{
	const struct tls_file certificate = {fe->o.tls_certificate, fe->tls_certificate},
			      key = {fe->o.tls_key, fe->tls_key};

	if (!fe->tls_key)
		return STATUS_OK;
	if (fe->mhd.is_feature_supported(MHD_FEATURE_TLS) != MHD_YES)
		return error_set(err, STATUS_UNSUPPORTED, "this libmicrohttpd was built without TLS");
	return tls_files_check(&certificate, &key, err);
}

enum status server_start(struct front_end *fe, struct error *err)
{
	enum status st = microhttpd_open(&fe->mhd, err);
	unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG;
	size_t most = connections_most(fe);
	struct MHD_OptionItem tls[] = {
		{MHD_OPTION_HTTPS_MEM_CERT, 0, fe->tls_certificate},
		{MHD_OPTION_HTTPS_MEM_KEY, 0, fe->tls_key},
		{MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)(uintptr_t) "NORMAL:-VERS-TLS1.0:-VERS-TLS1.1"},
		{MHD_OPTION_END, 0, NULL},
	};
	struct MHD_OptionItem none[] = {{MHD_OPTION_END, 0, NULL}};

	if (!st)
		st = check_tls(fe, err);
	if (st)
		return st;
	fe->connections_most = most;
	if (fe->tls_key)
		flags |= MHD_USE_TLS;
	fe->daemon = fe->mhd.start_daemon(
		flags, 0, NULL, NULL, on_request, fe, MHD_OPTION_EXTERNAL_LOGGER, on_log, fe,
		MHD_OPTION_LISTEN_SOCKET, fe->listen_fd, MHD_OPTION_CONNECTION_LIMIT,
		(unsigned)(most + EXCESS_ROOM), MHD_OPTION_CONNECTION_MEMORY_LIMIT, fe->o.limits.header_bytes,
		MHD_OPTION_NOTIFY_COMPLETED, on_completed, NULL, MHD_OPTION_NOTIFY_CONNECTION, on_connection,
		fe, MHD_OPTION_ARRAY, fe->tls_key ? tls : none, MHD_OPTION_END);
	if (!fe->daemon)
		return error_set(err, STATUS_UNAVAILABLE, "the HTTP server did not start%s",
				 fe->tls_key ? ": check the TLS certificate and key" : "");
	fe->listen_fd = -1;
	return STATUS_OK;
}

int server_fd(const struct front_end *fe)
{
	const union MHD_DaemonInfo *info = fe->mhd.get_daemon_info(fe->daemon, MHD_DAEMON_INFO_EPOLL_FD);

	return info ? info->epoll_fd : -1;
}

int server_timeout_ms(const struct front_end *fe)
{
	MHD_UNSIGNED_LONG_LONG ms;

	if (fe->mhd.get_timeout(fe->daemon, &ms) != MHD_YES)
		return -1;
	return ms > 1000 ? 1000 : (int)ms;
}

void server_run(struct front_end *fe)
{
	fe->mhd.run(fe->daemon);
}

void server_quiesce(struct front_end *fe)
{
	int fd = fe->mhd.quiesce_daemon(fe->daemon);

	if (fd >= 0)
		close(fd);
}

void server_stop(struct front_end *fe)
{
	if (!fe->daemon)
		return;
	for (struct exchange *x = fe->exchanges; x; x = x->next)
		exchange_stop(x);
	fe->mhd.run(fe->daemon);
	fe->mhd.stop_daemon(fe->daemon);
	fe->daemon = NULL;
}

void server_peer_left(struct peer *p)
{
	struct exchange *x = p->exchange;

	p->closed = p->fe->closing = true;
	if (!x || x->state == EXCHANGE_READING || (x->answer && x->answer->complete))
		return;
	/* A client may close as soon as it has an error reply. Whether MHD sent all of it is known to MHD
	 * alone. */
	if (x->answer || x->state != EXCHANGE_SENDING)
		exchange_abandon(x);
}

/* A response that is complete and that the client does not take. */
static bool is_stuck(struct exchange *x, uint64_t limit_ns)
{
	if (x->state != EXCHANGE_SENDING || (x->answer && x->answer->streaming && !x->answer->complete))
		return false;
	if (!x->done_ns)
		x->done_ns = x->fe->now_ns;
	return x->fe->now_ns > x->done_ns + limit_ns;
}

/* MHD misses the end of a connection that comes together with a part of a request. Its epoll set is
 * edge-triggered, and it stops at a short read. */
void server_close_cut(struct front_end *fe)
{
	if (!fe->closing)
		return;
	fe->closing = false;
	for (struct peer *p = fe->peers; p; p = p->next) {
		const struct exchange *x = p->exchange;
		int unread = 0;

		if (!p->closed || (x && x->state != EXCHANGE_READING && x->state != EXCHANGE_READY))
			continue;
		if (!ioctl(p->fd, FIONREAD, &unread) && unread)
			fe->closing = true; /* MHD goes on with it */
		else
			shutdown(p->fd, SHUT_RDWR);
	}
}

/* A request that does not come to its end in time. A server that drains must not wait long for it. */
static bool is_slow(const struct exchange *x, uint64_t limit_ns)
{
	const struct front_end *fe = x->fe;
	uint64_t begun_ns = x->begun_ns > fe->drain_ns ? x->begun_ns : fe->drain_ns;

	/* READY without a whole request: its body still comes, to be dropped */
	if ((x->state != EXCHANGE_READING && x->state != EXCHANGE_READY) || x->complete_ns)
		return false;
	return fe->now_ns > x->begun_ns + limit_ns ||
	       (fe->draining && fe->now_ns > begun_ns + DRAIN_READ_S * SECOND_NS);
}

void server_tick(struct front_end *fe)
{
	uint64_t read_ns = fe->o.limits.read_s * SECOND_NS, idle_ns = fe->o.limits.idle_s * SECOND_NS;

	excess_tick(fe);
	for (struct peer *p = fe->peers; p; p = p->next) {
		struct exchange *x = p->exchange;

		if (x && is_stuck(x, read_ns))
			exchange_abandon(x);
		else if ((x && is_slow(x, read_ns)) || (!x && fe->now_ns > p->since_ns + idle_ns))
			shutdown(p->fd, SHUT_RDWR); /* MHD sees the end and closes */
	}
}
