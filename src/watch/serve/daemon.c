/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/serve/daemon.h"

#include <fcntl.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/net/listen.h"
#include "watch/serve/forms.h"
#include "watch/serve/negotiate.h"
#include "watch/serve/passwords.h"

enum {
	HEADER_BYTES = 16 << 10, /* of a request, with what libmicrohttpd keeps of it */
	BODY_BYTES_MOST = 64 << 10,
	READ_S = 10,   /* for a request, and for reading the answer */
	IDLE_S = 150,  /* between requests: Prometheus keeps its connection */
	PRESSED_S = 1, /* for reading the answer, while there is no room for others */
	RUNS_MOST = 16
};

enum path { PATH_METRICS, PATH_HEALTHY, PATH_READY, PATH_INDEX, PATH_NONE };

/* A connection. */
struct peer {
	struct daemon *d;
	int fd;
	uint64_t since_ns; /* accepted, or the last response ended */
	bool used;	   /* it had a complete request */
	struct exchange *exchange;
	struct peer *next, **link;
};

/* A request and its response. */
struct exchange {
	struct peer *peer;
	struct MHD_Connection *connection;
	enum path path;
	unsigned code; /* 0: the path decides */
	bool suspended;
	size_t body;
	uint64_t begun_ns;
};

struct daemon {
	const struct daemon_spec *spec;
	struct microhttpd mhd;
	struct MHD_Daemon *daemon;
	struct passwords *passwords; /* NULL: everybody may ask */
	struct forms forms;
	struct peer *peers;
	size_t most;
	uint16_t port;
	struct daemon_counts counts;
	bool freed;	/* a connection ended in this run */
	char said[200]; /* the last message of libmicrohttpd */
};

static uint64_t now_ns(void)
{
	return clock_now_ns(clock_monotonic());
}

static uint64_t seconds_ns(unsigned seconds)
{
	return (uint64_t)seconds * 1000000000u;
}

/* ---- responses ---- */

static const char *header(const struct exchange *x, const char *name)
{
	return x->peer->d->mhd.lookup_connection_value(x->connection, MHD_HEADER_KIND, name);
}

static const char *text_of_code(unsigned code)
{
	switch (code) {
	case 401:
		return "a user and a password are needed\n";
	case 404:
		return "there is /metrics, /-/healthy, /-/ready and /\n";
	case 405:
		return "only GET and HEAD are answered\n";
	default:
		return "too many passwords are being checked; ask again\n";
	}
}

static void add_ready(const struct daemon *d, struct text *out, unsigned *code)
{
	char why[300] = "";

	if (d->spec->ready(d->spec->arg, why, sizeof(why))) {
		text_add(out, "ready\n");
		return;
	}
	*code = 503;
	text_addf(out, "not ready: %s\n", why);
}

/* The body of every path but /metrics. */
static void add_body(const struct exchange *x, struct text *out, unsigned *code, const char **type)
{
	const struct daemon *d = x->peer->d;

	*type = "text/plain; charset=utf-8";
	if (*code) {
		text_add(out, text_of_code(*code));
		return;
	}
	*code = 200;
	if (x->path == PATH_HEALTHY) {
		text_add(out, "healthy\n");
	} else if (x->path == PATH_READY) {
		add_ready(d, out, code);
	} else {
		*type = "text/html; charset=utf-8";
		d->spec->index(d->spec->arg, out);
	}
}

static enum MHD_Result send_body(const struct exchange *x)
{
	const struct daemon *d = x->peer->d;
	struct text body = {0};
	unsigned code = x->code;
	const char *type;
	struct MHD_Response *response;
	enum MHD_Result queued;

	add_body(x, &body, &code, &type);
	response = forms_response(&d->mhd, &body);
	if (!response)
		return MHD_NO;
	d->mhd.add_response_header(response, "Content-Type", type);
	if (code == 401)
		d->mhd.add_response_header(response, "WWW-Authenticate", "Basic realm=\"assay\"");
	if (code == 405)
		d->mhd.add_response_header(response, "Allow", "GET, HEAD");
	if (x->code == 503)
		d->mhd.add_response_header(response, "Retry-After", "1");
	forms_add_headers(&d->mhd, d->spec->web, response);
	queued = d->mhd.queue_response(x->connection, code, response);
	d->mhd.destroy_response(response);
	return queued;
}

static enum MHD_Result respond(const struct exchange *x)
{
	struct daemon *d = x->peer->d;
	struct MHD_Response *page;

	if (x->code || x->path != PATH_METRICS)
		return send_body(x);
	page = forms_get(&d->forms, &d->mhd, d->spec, negotiate_format(header(x, "Accept")),
			 negotiate_gzip(header(x, "Accept-Encoding")));
	if (!page)
		return MHD_NO;
	d->counts.scrapes++;
	return d->mhd.queue_response(x->connection, 200, page);
}

/* ---- requests ---- */

static enum path path_of(const char *url)
{
	static const char *const paths[] = {"/metrics", "/-/healthy", "/-/ready", "/"}; /* enum path */
	unsigned i = 0;

	if (!strncasecmp(url, "http://", 7)) { /* the absolute form, which a proxy may send */
		url += 7;
		url += strcspn(url, "/");
		url = *url ? url : "/";
	}
	while (i < PATH_NONE && strcmp(url, paths[i]))
		i++;
	return (enum path)i;
}

/* Decides what can be decided from the head of a request. */
static void decide(struct exchange *x, const char *method)
{
	struct daemon *d = x->peer->d;

	if (d->passwords) {
		switch (passwords_ask(d->passwords, header(x, "Authorization"), x)) {
		case PASSWORD_RIGHT:
			break;
		case PASSWORD_WRONG:
			x->code = 401;
			break;
		case PASSWORD_BUSY:
			x->code = 503;
			break;
		case PASSWORD_LATER:
			x->suspended = true;
			break;
		}
	}
	if (x->code)
		d->counts.refused++;
	else if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
		x->code = 405;
	else if (x->path == PATH_NONE)
		x->code = 404;
}

static struct peer *peer_of(const struct daemon *d, struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
		d->mhd.get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info ? info->socket_context : NULL;
}

static enum MHD_Result begin(struct daemon *d, struct MHD_Connection *connection, const char *url,
			     const char *method, void **con_cls)
{
	struct peer *peer = peer_of(d, connection);
	struct exchange *x = peer ? calloc(1, sizeof(*x)) : NULL;

	if (!x)
		return MHD_NO;
	*x = (struct exchange){
		.peer = peer, .connection = connection, .path = path_of(url), .begun_ns = now_ns()};
	peer->exchange = x;
	peer->used = true;
	*con_cls = x;
	decide(x, method);
	if (x->suspended)
		d->mhd.suspend_connection(connection);
	return MHD_YES;
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *connection, const char *url,
				  const char *method, const char *version, const char *data, size_t *size,
				  void **con_cls)
{
	struct exchange *x = *con_cls;

	(void)version, (void)data;
	if (!x)
		return begin(cls, connection, url, method, con_cls);
	if (!*size)
		return respond(x);
	x->body += *size; /* nobody needs a body; a short one is dropped */
	*size = 0;
	return x->body > BODY_BYTES_MOST ? MHD_NO : MHD_YES;
}

static void on_completed(void *cls, struct MHD_Connection *connection, void **con_cls,
			 enum MHD_RequestTerminationCode code)
{
	struct daemon *d = cls;
	struct exchange *x = *con_cls;

	(void)connection, (void)code;
	if (!x)
		return;
	*con_cls = NULL;
	if (d->passwords && x->suspended)
		passwords_forget(d->passwords, x);
	x->peer->exchange = NULL;
	x->peer->since_ns = now_ns();
	free(x);
}

static void resume_checked(struct daemon *d)
{
	struct exchange *x;
	bool right;

	while (d->passwords && (x = passwords_next(d->passwords, &right))) {
		if (!right) {
			x->code = 401;
			d->counts.refused++;
		}
		x->suspended = false;
		d->mhd.resume_connection(x->connection);
	}
}

/* ---- connections ---- */

static void close_peer(struct peer *p)
{
	shutdown(p->fd, SHUT_RDWR); /* libmicrohttpd sees the end and closes */
	p->d->counts.closed++;
}

/* A connection that may be closed to make room. It is the one that is idle for the longest time. If none is
 * idle, it is the slowest reader. */
static struct peer *find_victim(const struct daemon *d)
{
	uint64_t now = now_ns();
	struct peer *idle = NULL, *slow = NULL;

	for (struct peer *p = d->peers; p; p = p->next) {
		const struct exchange *x = p->exchange;

		if (!x && (!idle || p->since_ns < idle->since_ns))
			idle = p;
		if (x && !x->suspended && now > x->begun_ns + seconds_ns(PRESSED_S) &&
		    (!slow || x->begun_ns < slow->exchange->begun_ns))
			slow = p;
	}
	return idle ? idle : slow;
}

static void remove_peer(struct daemon *d, struct peer *p)
{
	*p->link = p->next;
	if (p->next)
		p->next->link = p->link;
	d->counts.connections--;
	d->freed = true;
	free(p);
}

static void add_peer(struct daemon *d, struct MHD_Connection *connection, void **context)
{
	const union MHD_ConnectionInfo *info =
		d->mhd.get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct peer *p = info ? calloc(1, sizeof(*p)) : NULL, *victim;

	if (!p)
		return; /* its first request ends it */
	victim = d->counts.connections + 1 > d->most - d->most / 8 ? find_victim(d) : NULL;
	if (victim)
		close_peer(victim);
	*p = (struct peer){.d = d, .fd = info->connect_fd, .since_ns = now_ns(), .next = d->peers};
	p->link = &d->peers;
	if (p->next)
		p->next->link = &p->next;
	d->peers = p;
	d->counts.connections++;
	*context = p;
}

static void on_connection(void *cls, struct MHD_Connection *connection, void **context,
			  enum MHD_ConnectionNotificationCode code)
{
	if (code == MHD_CONNECTION_NOTIFY_STARTED)
		add_peer(cls, connection, context);
	else if (*context)
		remove_peer(cls, *context);
}

void daemon_tick(struct daemon *d)
{
	uint64_t now = now_ns();

	for (struct peer *p = d->peers; p; p = p->next) {
		const struct exchange *x = p->exchange;
		uint64_t limit = seconds_ns(x || !p->used ? READ_S : IDLE_S);

		if (!(x && x->suspended) && now > (x ? x->begun_ns : p->since_ns) + limit)
			close_peer(p);
	}
}

/* ---- the daemon ---- */

static void on_log(void *cls, const char *format, va_list args)
{
	struct daemon *d = cls;
	struct text line = {0};

	text_addv(&line, format, args);
	if (line.size && line.data[line.size - 1] == '\n')
		line.data[--line.size] = '\0';
	text_copy(d->said, sizeof(d->said), text_str(&line));
	if (d->spec->log)
		log_debug(d->spec->log, LOG_TOPIC_RUN, "http: %s", text_str(&line));
	text_release(&line);
}

static const char *tls_priorities(const struct web_config *web)
{
	if (web->tls_least == 13)
		return "NORMAL:-VERS-ALL:+VERS-TLS1.3";
	return web->tls_most == 12 ? "NORMAL:-VERS-ALL:+VERS-TLS1.2"
				   : "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2";
}

static enum status start_http(struct daemon *d, int fd, struct error *err)
{
	const struct web_config *web = d->spec->web;
	unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG;
	struct MHD_OptionItem tls[] = {
		{MHD_OPTION_HTTPS_MEM_CERT, 0, web->certificate},
		{MHD_OPTION_HTTPS_MEM_KEY, 0, web->key},
		{MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)(uintptr_t)tls_priorities(web)},
		{MHD_OPTION_END, 0, NULL},
	};
	struct MHD_OptionItem none[] = {{MHD_OPTION_END, 0, NULL}};

	if (web->key && d->mhd.is_feature_supported(MHD_FEATURE_TLS) != MHD_YES)
		return error_set(err, STATUS_UNSUPPORTED, "this libmicrohttpd was built without TLS");
	if (web->key)
		flags |= MHD_USE_TLS;
	d->daemon = d->mhd.start_daemon(flags, 0, NULL, NULL, on_request, d, MHD_OPTION_EXTERNAL_LOGGER,
					on_log, d, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
					(unsigned)d->most, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
					(size_t)HEADER_BYTES, MHD_OPTION_NOTIFY_COMPLETED, on_completed, d,
					MHD_OPTION_NOTIFY_CONNECTION, on_connection, d, MHD_OPTION_ARRAY,
					web->key ? tls : none, MHD_OPTION_END);
	if (d->daemon)
		return STATUS_OK;
	return error_set(
		err, web->key ? STATUS_BAD_INPUT : STATUS_UNAVAILABLE, "the HTTP server did not start%s%s%s",
		web->key ? "; check the TLS certificate and key" : "", *d->said ? ": " : "", d->said);
}

static enum status start(struct daemon *d, struct error *err)
{
	const struct daemon_spec *spec = d->spec;
	enum status st = microhttpd_open(&d->mhd, err);
	int fd = -1;

	d->port = spec->port;
	d->most = listen_allow_files(spec->connections);
	if (!st && d->most < spec->connections && spec->log)
		log_warn(spec->log, LOG_TOPIC_RUN,
			 "the limit of open files allows %zu connections; raise it with ulimit -n", d->most);
	if (!st && spec->web->user_count)
		st = passwords_start(&d->passwords, spec->web, err);
	if (!st)
		st = listen_open(&fd, spec->address, &d->port, err);
	if (!st)
		st = start_http(d, fd, err);
	if (fd >= 0 && !d->daemon)
		close(fd);
	return st;
}

enum status daemon_start(struct daemon **out, const struct daemon_spec *spec, struct error *err)
{
	struct daemon *d = calloc(1, sizeof(*d));
	enum status st;

	if (!d)
		return error_set(err, STATUS_NO_RESOURCE, "no memory for the HTTP server");
	d->spec = spec;
	st = start(d, err);
	if (st)
		daemon_stop(d);
	else
		*out = d;
	return st;
}

/* The old one listens no more; the new one has a descriptor of its own. */
static void retire(struct daemon *old)
{
	int fd = old->mhd.quiesce_daemon(old->daemon);

	if (fd >= 0)
		close(fd);
	daemon_stop(old);
}

enum status daemon_replace(struct daemon **d, const struct daemon_spec *spec, struct error *err)
{
	const union MHD_DaemonInfo *info = (*d)->mhd.get_daemon_info((*d)->daemon, MHD_DAEMON_INFO_LISTEN_FD);
	int fd = info ? fcntl(info->listen_fd, F_DUPFD_CLOEXEC, 0) : -1;
	struct daemon *fresh = calloc(1, sizeof(*fresh));
	enum status st = STATUS_OK;

	if (!fresh || fd < 0) {
		free(fresh);
		if (fd >= 0)
			close(fd);
		return error_set(err, STATUS_NO_RESOURCE, "no memory or descriptor for the HTTP server");
	}
	*fresh = (struct daemon){.spec = spec,
				 .mhd = (*d)->mhd,
				 .most = (*d)->most,
				 .port = (*d)->port,
				 .counts = (*d)->counts};
	fresh->counts.connections = 0;
	if (spec->web->user_count)
		st = passwords_start(&fresh->passwords, spec->web, err);
	if (!st)
		st = start_http(fresh, fd, err);
	if (st) {
		close(fd);
		daemon_stop(fresh);
		return st;
	}
	retire(*d);
	*d = fresh;
	return STATUS_OK;
}

void daemon_stop(struct daemon *d)
{
	if (!d)
		return;
	for (struct peer *p = d->daemon ? d->peers : NULL; p; p = p->next)
		if (p->exchange && p->exchange->suspended) {
			passwords_forget(d->passwords, p->exchange);
			p->exchange->suspended = false;
			p->exchange->code = 503;
			d->mhd.resume_connection(p->exchange->connection);
		}
	if (d->daemon) {
		d->mhd.run(d->daemon);
		d->mhd.stop_daemon(d->daemon);
		forms_drop(&d->forms, &d->mhd);
	}
	passwords_stop(d->passwords);
	free(d);
}

uint16_t daemon_port(const struct daemon *d)
{
	return d->port;
}

void daemon_fds(const struct daemon *d, int fds[2])
{
	const union MHD_DaemonInfo *info = d->mhd.get_daemon_info(d->daemon, MHD_DAEMON_INFO_EPOLL_FD);

	fds[0] = info ? info->epoll_fd : -1;
	fds[1] = d->passwords ? passwords_fd(d->passwords) : -1;
}

int daemon_timeout_ms(const struct daemon *d, int most)
{
	MHD_UNSIGNED_LONG_LONG ms;

	if (d->mhd.get_timeout(d->daemon, &ms) != MHD_YES || ms > (unsigned)most)
		return most;
	return (int)ms;
}

/* At its limit, libmicrohttpd looks for new connections only in the run after the one that ended some. */
void daemon_run(struct daemon *d)
{
	unsigned more = RUNS_MOST;

	resume_checked(d);
	do {
		d->freed = false;
		d->mhd.run(d->daemon);
	} while (d->freed && more--);
}

void daemon_renew(struct daemon *d)
{
	forms_drop(&d->forms, &d->mhd);
}

struct daemon_counts daemon_counts(const struct daemon *d)
{
	return d->counts;
}
