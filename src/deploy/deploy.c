/* SPDX-License-Identifier: Apache-2.0 */
/* All hosts at once. One thread waits for all connections. */
#include "deploy/deploy.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

enum { BUSY_MOST = 32, LOOK_MS = 100, QUIET_S = 5, SAVE_S = 1, TELL_S = 5 };
#define SECOND 1000000000ull

static uint64_t now_ns(void)
{
	return clock_now_ns(clock_monotonic());
}

enum status deploy_prepare(struct deploy *d, struct error *err)
{
	struct deploy_job *j = &d->job;
	enum status st = bundle_read(&d->bundle, j->bundle, err);
	char id[65];

	if (st)
		return st;
	bundle_id(id, &d->bundle);
	if (*j->id && strcmp(j->id, id) != 0)
		return error_set(
			err, STATUS_MISMATCH,
			"the bundle %s has changed since this deployment began; its hosts would run different programs. "
			"Restore it, or deploy again",
			j->bundle);
	text_copy(j->id, sizeof(j->id), id);
	for (size_t i = 0; i < j->send.count && !st; i++)
		st = bundle_add_file(&d->bundle, j->send.word[i], err);
	if (!st)
		st = bundle_add_command(&d->bundle, &j->env, &j->words, err);
	for (size_t i = 0; i < d->count && !st; i++) {
		struct deploy_host *h = &d->host[i];

		h->deploy = d;
		free(h->have);
		h->have = calloc(d->bundle.count, sizeof(*h->have));
		if (!h->have)
			st = error_errno(err, ENOMEM, "no memory for %zu hosts", d->count);
		if (h->state == HOST_CLEANED || h->state == HOST_FETCHED)
			continue;
		h->state = HOST_WAITING; /* the node says how far it is */
		*h->reason = '\0';
	}
	return st;
}

/* A follower waits most of the time, and so does a host that hangs. All others move bytes. */
static bool is_busy(const struct deploy_host *h, uint64_t now)
{
	return h->talk.active && h->step != STEP_FOLLOW && now < h->talk.heard_ns + QUIET_S * SECOND;
}

static size_t busy_count(const struct deploy *d, uint64_t now)
{
	size_t n = 0;

	for (size_t i = 0; i < d->count; i++)
		n += is_busy(&d->host[i], now);
	return n;
}

static void start_some(struct deploy *d, uint64_t now)
{
	size_t busy = busy_count(d, now);

	for (size_t i = 0; i < d->count; i++) {
		struct deploy_host *h = &d->host[i];
		struct error err = {0};

		if (h->talk.active || host_is_done(h) || now < h->next_ns)
			continue;
		h->step = host_next_step(h);
		if (h->step != STEP_FOLLOW && busy >= BUSY_MOST)
			continue;
		/* the time in which it waited for its turn is not its own */
		h->contact_ns = h->next_ns ? h->contact_ns + (now - h->next_ns) : now;
		if (host_begin(h, &err)) {
			if (err.status == STATUS_NO_RESOURCE && err.cause == CAUSE_LIMIT_LOW && busy) {
				h->next_ns = now + SECOND; /* too many open files: others will close theirs */
				continue;
			}
			text_copy(h->reason, sizeof(h->reason), err.text);
			h->state = HOST_FAILED;
			d->changed = true;
			log_warn(d->log, LOG_TOPIC_RUN, "%s: failed: %s", h->name, h->reason);
			continue;
		}
		busy += is_busy(h, now);
	}
}

/* Waits until a connection has something to read, at most LOOK_MS. */
static void wait_some(const struct deploy *d, struct pollfd *set)
{
	nfds_t n = 0;

	for (size_t i = 0; i < d->count; i++)
		if (d->host[i].talk.active)
			n += talk_poll(&d->host[i].talk, set + n);
	if (poll(set, n, LOOK_MS) < 0)
		clock_sleep_ns(clock_monotonic(), LOOK_MS * 1000000ull);
}

static void read_all(struct deploy *d)
{
	for (size_t i = 0; i < d->count && !*d->stop; i++) {
		struct deploy_host *h = &d->host[i];
		bool over;

		if (!h->talk.active)
			continue;
		over = talk_read(&h->talk);
		if (h->step == STEP_RECEIVE)
			h->sent = (uint64_t)h->talk.read_to;
		/* ssh notices a dead connection, but not a node that hangs. */
		if (over || (double)(now_ns() - h->talk.heard_ns) * 1e-9 > d->patience_s)
			host_finish(h, now_ns());
	}
}

static void tell(const struct deploy *d, double elapsed_s)
{
	size_t count[HOST_STATE_COUNT] = {0};
	uint64_t sent = 0, all = 0;
	struct text t = {0};

	for (size_t i = 0; i < d->count; i++) {
		const struct deploy_host *h = &d->host[i];

		count[h->state]++;
		if (h->state == HOST_COPYING && h->step == STEP_RECEIVE) {
			sent += h->sent;
			all += h->upload.size;
		}
	}
	for (unsigned s = 0; s < HOST_STATE_COUNT; s++)
		if (count[s])
			text_addf(&t, "%s%zu %s", t.size ? ", " : "", count[s],
				  host_state_name((enum host_state)s));
	if (sent && sent < all)
		text_addf(&t, "; copied %.0f of %.0f MB, %.1f MB/s, about %.0f s left", (double)sent * 1e-6,
			  (double)all * 1e-6, (double)sent * 1e-6 / elapsed_s,
			  elapsed_s * (double)(all - sent) / (double)sent);
	log_info(d->log, LOG_TOPIC_RUN, "%s", text_str(&t));
	text_release(&t);
}

static bool all_done(const struct deploy *d)
{
	for (size_t i = 0; i < d->count; i++)
		if (!host_is_done(&d->host[i]))
			return false;
	return true;
}

static enum status work(struct deploy *d, struct pollfd *set, struct error *err)
{
	uint64_t begun = now_ns(), saved = 0, told = begun;
	enum status st = STATUS_OK;

	while (!st && !all_done(d)) {
		start_some(d, now_ns());
		wait_some(d, set);
		read_all(d);
		if (d->changed && now_ns() - saved > SAVE_S * SECOND) {
			st = deploy_save(d, err);
			saved = now_ns();
		}
		if (d->progress && now_ns() - told > TELL_S * SECOND) {
			told = now_ns();
			tell(d, (double)(told - begun) * 1e-9);
		}
		if (!st && *d->stop)
			st = error_set_cause(
				err, STATUS_CANCELLED, CAUSE_INTERRUPTED,
				"stopped on request. The runs on the hosts continue. Continue with assay deploy --resume %s, "
				"or end them by adding --stop",
				d->folder);
	}
	return st;
}

/* Many hosts need many descriptors, and a soft limit of 1024 is common. */
static void raise_files(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files))
		return;
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
}

/* Removes the copies on this machine, also those of a process that was killed. Another connection can make
 * them again. */
static void remove_uploads(const struct deploy *d)
{
	DIR *dir = opendir(d->folder);
	struct dirent *e;

	while (dir && (e = readdir(dir)))
		if (!strncmp(e->d_name, "upload-", strlen("upload-")))
			unlinkat(dirfd(dir), e->d_name, 0);
	if (dir)
		closedir(dir);
}

enum status deploy_run(struct deploy *d, struct error *err)
{
	struct pollfd *set = calloc(2 * d->count + 1, sizeof(*set));
	struct error later = {0};
	enum status st, saved;

	if (!set)
		return error_errno(err, ENOMEM, "no memory for %zu hosts", d->count);
	raise_files();
	st = deploy_save(d, err); /* the names of the runs are safe before a host is touched */
	if (!st)
		st = work(d, set, err);
	for (size_t i = 0; i < d->count; i++) {
		talk_end(&d->host[i].talk);
		received_abandon(&d->host[i].received);
	}
	saved = deploy_save(d, st ? &later : err);
	remove_uploads(d);
	free(set);
	return st ? st : saved;
}
