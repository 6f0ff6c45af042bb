/* SPDX-License-Identifier: Apache-2.0 */
/* The nodes that are shown: feeds of this machine or of hosts, or a recording. */
#include <stdlib.h>
#include <string.h>
#include "cmd/top/top.h"
#include "core/clock.h"

/* More nodes than this: a history of every value would take too much memory. */
enum { NODES_WITH_ALL = 4, FEW_ROWS = 5 };
#define AGAIN_NS 10000000000ull /* a reader that has ended is started again after this */

static const enum catalogue few_rows[FEW_ROWS] = {CATALOGUE_GPU_UTILIZATION, CATALOGUE_GPU_MEMORY_USED,
						  CATALOGUE_GPU_POWER, CATALOGUE_CPU_BUSY,
						  CATALOGUE_RUN_LOSS};

/* Whether a row has a graph without being asked for: processes and single errors are too many. */
static bool has_history(enum catalogue row)
{
	enum metric_scope scope = catalogue_row(row)->scope;

	return scope != METRIC_SCOPE_PROCESS && scope != METRIC_SCOPE_PORT_ERROR &&
	       scope != METRIC_SCOPE_XID && scope != METRIC_SCOPE_CHECK &&
	       strcmp(catalogue_row(row)->unit, "bool") != 0;
}

void top_nodes_keep(struct top_nodes *n, enum catalogue row)
{
	if (row >= CATALOGUE_COUNT)
		return;
	if (n->replay)
		watch_replay_keep(n->replay, row);
	for (size_t i = 0; n->feed && i < n->count; i++) {
		watch_feed_keep(n->feed[i], row);
		if (n->next[i])
			watch_feed_keep(n->next[i], row);
	}
}

static bool keeps(const struct top_nodes *n, enum catalogue row)
{
	for (size_t i = 0; i < FEW_ROWS; i++)
		if (few_rows[i] == row)
			return true;
	return n->count <= NODES_WITH_ALL && has_history(row);
}

static void keep_histories(struct top_nodes *n)
{
	for (enum catalogue c = 0; c < CATALOGUE_COUNT; c++)
		if (keeps(n, c))
			top_nodes_keep(n, c);
}

static enum status allocate(struct top_nodes *n, struct error *err)
{
	n->shown = calloc(n->count, sizeof(*n->shown));
	n->fds = calloc(n->count + 2, sizeof(*n->fds));
	if (n->shown && n->fds)
		return STATUS_OK;
	return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "no memory for %zu nodes", n->count);
}

/* What to poll for a node; -1: nothing. */
static int fd_of(const struct top_nodes *n, size_t i)
{
	if (!n->feed)
		return -1;
	return n->next[i] ? watch_feed_fd(n->next[i]) : watch_feed_fd(n->feed[i]);
}

/* Brings what is shown up to date. */
static void refresh(struct top_nodes *n)
{
	uint64_t now = clock_now_ns(clock_monotonic());

	for (size_t i = 0; i < n->count; i++) {
		struct screen_node *s = &n->shown[i];

		s->name = n->hosts.count ? hosts_address(n->hosts.name[i]) : "";
		s->state =
			n->replay ? watch_replay_state(n->replay, (unsigned)i) : watch_feed_state(n->feed[i]);
		s->why = n->feed ? watch_feed_why(n->feed[i]) : NULL;
		s->local = n->feed && !n->hosts.count;
		s->local_ns = now;
		n->fds[i] = (struct pollfd){.fd = fd_of(n, i), .events = POLLIN};
	}
}

static enum status open_replay(struct top_nodes *n, const char *path, struct error *err)
{
	enum status st = watch_replay_open(&n->replay, path, err);

	if (st)
		return st;
	n->count = watch_replay_nodes(n->replay);
	n->length = watch_replay_length(n->replay);
	st = allocate(n, err);
	if (st)
		return st;
	keep_histories(n);
	return top_nodes_seek(n, n->o->once && n->o->at < 0 ? n->length : n->o->at, err);
}

static enum status start_feed(struct watch_feed **out, const struct top_nodes *n, size_t i, struct error *err)
{
	const char *sys = getenv("ASSAY_SYS");
	bool remote = n->hosts.count > 0;
	const struct watch_feed_spec spec = {.host = remote ? n->hosts.name[i] : NULL,
					     .ssh_config = n->o->ssh_config,
					     .interval = n->o->interval,
					     .gpus_only = n->o->gpus_only,
					     .slow = n->o->once ? n->o->interval
								: 0, /* two readings of each row */
					     .program = remote ? n->o->program : NULL,
					     .sys = remote || !sys || !*sys ? NULL : sys};

	return watch_feed_start(out, &spec, err);
}

static enum status start_feeds(struct top_nodes *n, struct error *err)
{
	enum status st = STATUS_OK;

	n->feed = calloc(n->count, sizeof(struct watch_feed *));
	n->next = calloc(n->count, sizeof(struct watch_feed *));
	n->again_ns = calloc(n->count, sizeof(*n->again_ns));
	if (!n->feed || !n->next || !n->again_ns)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "no memory for %zu nodes",
				       n->count);
	for (size_t i = 0; i < n->count && !st; i++) {
		st = start_feed(&n->feed[i], n, i, err);
		if (!st && n->recorder)
			watch_feed_record(n->feed[i], n->recorder, (unsigned)i);
	}
	return st;
}

/* The new reader has answered: it takes the place of the one that has ended. */
static void replace(struct top_nodes *n, size_t i)
{
	watch_feed_close(n->feed[i]);
	n->feed[i] = n->next[i];
	n->next[i] = NULL;
	n->again_ns[i] = 0;
	if (n->recorder)
		watch_feed_record(n->feed[i], n->recorder, (unsigned)i);
}

/* Starts a reader that has ended again. The screen keeps its last state until the new one answers. */
static bool try_again(struct top_nodes *n, size_t i, uint64_t now)
{
	struct error err = {0};

	if (!watch_feed_why(n->feed[i]))
		return false;
	if (!n->again_ns[i])
		n->again_ns[i] = now + AGAIN_NS;
	if (!n->next[i] && now >= n->again_ns[i]) {
		n->again_ns[i] = now + AGAIN_NS;
		if (start_feed(&n->next[i], n, i, &err))
			return false;
		for (enum catalogue c = 0; c < CATALOGUE_COUNT; c++)
			if (keeps(n, c))
				watch_feed_keep(n->next[i], c);
	}
	if (!n->next[i])
		return false;
	watch_feed_poll(n->next[i]);
	if (*watch_feed_state(n->next[i])->node) {
		replace(n, i);
		return true;
	}
	if (watch_feed_why(n->next[i])) {
		watch_feed_close(n->next[i]);
		n->next[i] = NULL;
		n->again_ns[i] = now + AGAIN_NS;
	}
	return false;
}

enum status top_nodes_open(struct top_nodes *n, const struct top_opts *o, struct error *err)
{
	enum status st = STATUS_OK;

	n->o = o;
	if (o->replay)
		return open_replay(n, o->replay, err);
	if (o->hosts)
		st = hosts_parse(&n->hosts, o->hosts, "--hosts", err);
	else if (o->hosts_file)
		st = hosts_read(&n->hosts, o->hosts_file, err);
	if (!st && n->hosts.count > WATCH_NODES_MAX)
		st = error_set(err, STATUS_BAD_INPUT, "%zu hosts are more than %d, which top shows at once",
			       n->hosts.count, WATCH_NODES_MAX);
	n->count = n->hosts.count ? n->hosts.count : 1;
	if (!st)
		st = allocate(n, err);
	if (!st && o->record)
		st = watch_recorder_open(&n->recorder, o->record, (unsigned)n->count, err);
	if (!st)
		st = start_feeds(n, err);
	if (st)
		return st;
	keep_histories(n);
	refresh(n);
	return STATUS_OK;
}

bool top_nodes_poll(struct top_nodes *n)
{
	uint64_t now = clock_now_ns(clock_monotonic());
	bool news = false;

	for (size_t i = 0; n->feed && i < n->count; i++) {
		bool ended = watch_feed_why(n->feed[i]) != NULL;

		news = watch_feed_poll(n->feed[i]) || news;
		news = news || (!ended && watch_feed_why(n->feed[i]));
		news = try_again(n, i, now) || news;
	}
	refresh(n);
	return news;
}

enum status top_nodes_seek(struct top_nodes *n, double seconds, struct error *err)
{
	enum status st;

	n->at = seconds < 0 ? 0 : seconds > n->length ? n->length : seconds;
	st = watch_replay_seek(n->replay, n->at, err);
	refresh(n);
	return st;
}

bool top_nodes_ended(const struct top_nodes *n)
{
	for (size_t i = 0; n->feed && i < n->count; i++)
		if (!n->shown[i].why)
			return false;
	return n->feed || n->at >= n->length;
}

enum status top_nodes_close(struct top_nodes *n, struct error *err)
{
	enum status st;

	for (size_t i = 0; n->feed && i < n->count; i++) {
		watch_feed_close(n->feed[i]);
		if (n->next)
			watch_feed_close(n->next[i]);
	}
	st = watch_recorder_close(n->recorder, err);
	watch_replay_close(n->replay);
	hosts_release(&n->hosts);
	free(n->feed);
	free(n->next);
	free(n->again_ns);
	free(n->shown);
	free(n->fds);
	*n = (struct top_nodes){0};
	return st;
}

const char *top_nodes_problem(const struct top_nodes *n)
{
	const char *why = n->recorder ? watch_recorder_why(n->recorder) : NULL;

	return why ? why : n->replay ? watch_replay_why(n->replay) : NULL;
}
