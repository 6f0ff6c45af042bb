/* SPDX-License-Identifier: Apache-2.0 */
/* The exporter's loop: readings, requests, and the feed that is started again if it ends. */
#include <math.h>
#include <poll.h>
#include "cmd/exporter/exporter.h"
#include "core/clock.h"

enum { TICK_MS = 1000, WAIT_MOST_S = 60 };

static uint64_t now_ns(void)
{
	return clock_now_ns(clock_monotonic());
}

static enum status open_feed(struct exporter *x, struct error *err)
{
	const char *sys = getenv("ASSAY_SYS"); /* a container may have the host's elsewhere */
	const struct watch_feed_spec spec = {
		.interval = x->o->interval, .runs = x->o->runs, .sys = sys && *sys ? sys : NULL};

	x->begun_ns = now_ns();
	return watch_feed_start(&x->feed, &spec, err);
}

static enum status open_replay(struct exporter *x, struct error *err)
{
	enum status st = watch_replay_open(&x->replay, x->o->replay, err);

	x->begun_ns = now_ns();
	if (!st && watch_replay_nodes(x->replay) > 1)
		log_warn(x->c->log, LOG_TOPIC_RUN, "%s has %u nodes; the exporter serves the first one",
			 x->o->replay, watch_replay_nodes(x->replay));
	return st ? st : watch_replay_seek(x->replay, 0, err);
}

struct daemon_spec *exporter_spec(struct exporter *x, const struct web_config *web)
{
	struct daemon_spec *spec = calloc(1, sizeof(*spec));

	if (spec)
		*spec = (struct daemon_spec){.address = x->o->host,
					     .port = (uint16_t)x->o->port,
					     .connections = x->o->connections,
					     .web = web,
					     .log = x->c->log,
					     .arg = x,
					     .page = exporter_page,
					     .index = exporter_index,
					     .ready = exporter_ready};
	return spec;
}

void exporter_warn(const struct exporter *x, const struct web_config *web)
{
	if (web->http2_line)
		log_warn(
			x->c->log, LOG_TOPIC_RUN,
			"exporter: %s:%d: http2: true has no effect, because assay exporter supports only HTTP/1.1, "
			"which HTTP/2 clients can use too",
			x->o->web_config, web->http2_line);
}

enum status exporter_start(struct exporter *x, struct error *err)
{
	enum status st = STATUS_OK;

	x->web = calloc(1, sizeof(*x->web));
	x->spec = x->web ? exporter_spec(x, x->web) : NULL;
	if (!x->spec)
		return error_set(err, STATUS_NO_RESOURCE, "no memory for the exporter");
	if (x->o->web_config)
		st = web_config_read(x->web, x->o->web_config, err);
	if (!st)
		exporter_warn(x, x->web);
	if (!st)
		st = daemon_start(&x->daemon, x->spec, err);
	if (st)
		return st;
	return x->o->replay ? open_replay(x, err) : open_feed(x, err);
}

void exporter_release(struct exporter *x)
{
	daemon_stop(x->daemon);
	watch_feed_close(x->feed);
	watch_replay_close(x->replay);
	if (x->web)
		web_config_release(x->web);
	free(x->web);
	free(x->spec);
}

/* A feed that ended starts again after 1, 2, 4 .. 60 s. */
static void feed_ended(struct exporter *x, const char *why)
{
	unsigned wait_s = x->failures < 6 ? 1u << x->failures : WAIT_MOST_S;

	text_copy(x->why, sizeof(x->why), why);
	log_warn(x->c->log, LOG_TOPIC_RUN, "exporter: no readings: %s; starting again in %u s", x->why,
		 wait_s);
	watch_feed_close(x->feed);
	x->feed = NULL;
	x->failures++;
	x->start_ns = now_ns() + wait_s * 1000000000ull;
	daemon_renew(x->daemon);
}

/* The recording runs at its own speed. After its end it begins again. */
static void seek(struct exporter *x)
{
	double length = watch_replay_length(x->replay), at = 1e-9 * (double)(now_ns() - x->begun_ns);
	struct error err = {0};

	if (watch_replay_seek(x->replay, length > 0 ? fmod(at, length) : 0, &err))
		log_warn(x->c->log, LOG_TOPIC_RUN, "%s", err.text);
}

static void take_readings(struct exporter *x)
{
	const char *why;

	if (!x->feed)
		return;
	if (watch_feed_poll(x->feed)) {
		x->failures = 0;
		daemon_renew(x->daemon);
	}
	why = watch_feed_why(x->feed);
	if (why)
		feed_ended(x, why);
}

static void start_again(struct exporter *x)
{
	struct error err = {0};

	if (open_feed(x, &err)) {
		x->feed = NULL;
		feed_ended(x, err.text);
	}
}

/* Ages grow without readings, so the pages are new each second. */
static void tick(struct exporter *x)
{
	if (x->replay)
		seek(x);
	else if (!x->feed && now_ns() >= x->start_ns)
		start_again(x);
	exporter_reread(x);
	daemon_tick(x->daemon);
	daemon_renew(x->daemon);
	x->tick_ns = now_ns() + TICK_MS * 1000000ull;
}

static void wait_for_events(const struct exporter *x)
{
	struct pollfd p[3] = {{.events = POLLIN}, {.events = POLLIN}, {.events = POLLIN}};
	uint64_t now = now_ns();
	int fds[2], most = x->tick_ns > now ? (int)((x->tick_ns - now) / 1000000u) + 1 : 0;

	daemon_fds(x->daemon, fds);
	p[0].fd = fds[0];
	p[1].fd = fds[1];
	p[2].fd = x->feed ? watch_feed_fd(x->feed) : -1;
	poll(p, 3, daemon_timeout_ms(x->daemon, most));
}

void exporter_loop(struct exporter *x)
{
	while (!*x->c->stop) {
		if (now_ns() >= x->tick_ns)
			tick(x);
		take_readings(x);
		daemon_run(x->daemon);
		wait_for_events(x);
	}
}
