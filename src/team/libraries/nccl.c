/* SPDX-License-Identifier: Apache-2.0 */
#include "team/libraries/nccl.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "team/libraries/nccl_hooks.h"

enum { LOOK_NS = 20000, DRAIN_NS = 2000000000 };

struct team_nccl {
	struct nccl table;
	struct team_comm *comms;
};

const struct nccl *team_nccl_table(const struct team *t)
{
	return &t->nccl->table;
}

/* A process has one environment. If ranks are threads, only rank 0 sets it while the others wait. */
static bool sets_environment(const struct team *t)
{
	return !t->in_process || !t->rank;
}

/* Runs on this rank's thread at its end. */
static void close_all(struct team *t)
{
	struct team_nccl *n = t->nccl;

	while (n && n->comms) {
		struct team_comm *c = n->comms;

		n->comms = c->next;
		if (c->comm)
			n->table.destroy(c->comm);
		free(c);
	}
	free(n);
	t->nccl = NULL;
}

static enum status load(struct team *t, struct error *err)
{
	enum status st;

	t->nccl = calloc(1, sizeof(*t->nccl));
	if (!t->nccl)
		return error_errno(err, ENOMEM, "no memory for NCCL's communicators");
	t->close = close_all;
	st = nccl_open(&t->nccl->table, NULL, err);
	if (st) {
		free(t->nccl);
		t->nccl = NULL;
	}
	return st;
}

/* Ranks with different minor versions cannot communicate. */
static enum status same_version(struct team *t, struct error *err)
{
	int own = 0, first;
	char mine[24];
	enum status st;

	(void)t->nccl->table.version(&own);
	nccl_version_text(&t->nccl->table, mine, sizeof(mine));
	first = own;
	st = team_share(t, &first, sizeof(first), err);
	if (!st && own / 100 != first / 100)
		st = error_set_cause(
			err, STATUS_UNAVAILABLE, CAUSE_VERSION_MISMATCH,
			"NCCL %s here does not work with %d.%d.%d on rank 0: install the same version", mine,
			first / 10000, first / 100 % 100, first % 100);
	return team_agree(t, st, err);
}

enum status team_nccl_open(struct team *t, struct error *err)
{
	bool first = !t->nccl;
	enum status st = first ? load(t, err) : STATUS_OK;

	st = team_agree(t, st, err);
	if (st || !first)
		return st;
	if (sets_environment(t))
		(void)nccl_hooks_offer();
	return same_version(t, err);
}

static struct team_comm *find(const struct team_nccl *n, const struct team_comm_spec *spec)
{
	for (struct team_comm *c = n->comms; c; c = c->next)
		if (c->comm && !c->is_group && c->spec.ctas == spec->ctas &&
		    !strcmp(c->spec.algorithm, spec->algorithm) && !strcmp(c->spec.protocol, spec->protocol))
			return c;
	return NULL;
}

/* The two variables before they were set for the creation of a communicator. */
struct forced {
	char *was[2];
};
static const char *const variables[] = {"NCCL_ALGO", "NCCL_PROTO"};

static void force(struct forced *f, const struct team_comm_spec *spec)
{
	const char *const wish[] = {spec->algorithm, spec->protocol};

	for (int i = 0; i < 2; i++) {
		const char *was = getenv(variables[i]);

		f->was[i] = was ? strdup(was) : NULL;
		if (*wish[i])
			setenv(variables[i], wish[i], 1);
	}
}

static void unforce(struct forced *f)
{
	for (int i = 0; i < 2; i++) {
		if (f->was[i])
			setenv(variables[i], f->was[i], 1);
		else
			unsetenv(variables[i]);
		free(f->was[i]);
	}
}

static enum status init(struct team *t, struct team_comm *c, const ncclUniqueId *id, unsigned size,
			unsigned rank, struct error *err)
{
	const struct nccl *n = &t->nccl->table;
	ncclConfig_t config = nccl_config(n);
	uint64_t t0 = clock_now_ns(clock_monotonic());
	ncclResult_t r;

	config.blocking = 1;
	if (c->spec.ctas)
		config.minCTAs = config.maxCTAs = (int)c->spec.ctas;
	team_at(t->board, TEAM_OP_INIT);
	r = n->init(&c->comm, (int)size, *id, (int)rank, &config);
	c->init_ms = (double)(clock_now_ns(clock_monotonic()) - t0) / 1e6;
	if (r != ncclSuccess)
		return nccl_check(n, r, NULL, "ncclCommInitRankConfig", err);
	return STATUS_OK;
}

/* This rank alone: aborts the communicator and its work on the device. */
static void team_nccl_abort(struct team *t, struct team_comm *c)
{
	if (c->comm)
		t->nccl->table.abort(c->comm);
	c->comm = NULL;
}

static enum status make(struct team *t, struct team_comm *c, struct error *err)
{
	const struct nccl *n = &t->nccl->table;
	struct forced forced = {{NULL, NULL}};
	ncclUniqueId id = {{0}};
	enum status st = STATUS_OK;

	if (!t->rank)
		st = nccl_check(n, n->unique_id(&id), NULL, "ncclGetUniqueId", err);
	if (sets_environment(t))
		force(&forced, &c->spec);
	st = team_agree(t, st, err);
	if (!st)
		st = team_share(t, &id, sizeof(id), err);
	if (!st)
		st = init(t, c, &id, t->size, t->rank, err);
	st = team_agree(t, st, err); /* all ranks have read the environment */
	if (sets_environment(t))
		unforce(&forced);
	if (st)
		team_nccl_abort(t, c);
	return st;
}

/* If one rank aborted its communicator in an earlier case, all ranks make a new one. */
static enum status found_everywhere(struct team *t, const struct team_comm *c, bool *everywhere,
				    struct error *err)
{
	uint8_t mine = c != NULL, *all = calloc(t->size, 1);
	enum status st = all ? STATUS_OK : error_errno(err, ENOMEM, "a communicator");

	st = team_agree(t, st, err);
	if (!st)
		st = team_gather(t, &mine, sizeof(mine), all, err);
	*everywhere = true;
	for (unsigned r = 0; all && r < t->size; r++)
		*everywhere &= all[r] != 0;
	free(all);
	return st;
}

enum status team_nccl_comm(struct team *t, const struct team_comm_spec *spec, struct team_comm **out,
			   struct error *err)
{
	struct team_comm *c = find(t->nccl, spec);
	bool everywhere;
	enum status st = found_everywhere(t, c, &everywhere, err);

	*out = c;
	if (st || everywhere)
		return st;
	if (c)
		team_nccl_abort(t, c);
	c = calloc(1, sizeof(*c));
	if (!c)
		st = error_errno(err, ENOMEM, "a communicator");
	st = team_agree(t, st, err);
	if (st) {
		free(c);
		return st;
	}
	c->spec = *spec;
	c->next = t->nccl->comms;
	t->nccl->comms = c; /* a failed one stays in the list, and find() skips it */
	st = make(t, c, err);
	*out = st ? NULL : c;
	return st;
}

static enum status make_group(struct team *t, struct team_comm *c, unsigned first, unsigned stride,
			      unsigned count, struct error *err)
{
	const struct nccl *n = &t->nccl->table;
	ncclUniqueId mine = {{0}}, *all = calloc(t->size, sizeof(*all));
	enum status st = all ? STATUS_OK : error_errno(err, ENOMEM, "a communicator");

	if (!st && t->rank == first)
		st = nccl_check(n, n->unique_id(&mine), NULL, "ncclGetUniqueId", err);
	st = team_agree(t, st, err);
	if (!st)
		st = team_gather(t, &mine, sizeof(mine), all, err);
	if (!st)
		st = init(t, c, &all[first], count, (t->rank - first) / stride, err);
	free(all);
	st = team_agree(t, st, err);
	if (st)
		team_nccl_abort(t, c);
	return st;
}

enum status team_nccl_group(struct team *t, unsigned first, unsigned stride, unsigned count,
			    struct team_comm **out, struct error *err)
{
	struct team_comm *c = calloc(1, sizeof(*c));
	enum status st = team_agree(t, c ? STATUS_OK : error_errno(err, ENOMEM, "a communicator"), err);

	*out = NULL;
	if (st) {
		free(c);
		return st;
	}
	c->is_group = true;
	c->next = t->nccl->comms;
	t->nccl->comms = c; /* a failed one stays in the list */
	st = make_group(t, c, first, stride, count, err);
	*out = st ? NULL : c;
	return st;
}

enum status team_nccl_wait(struct team *t, struct team_comm *c, struct gpu_stream *s, struct gpu_event *mark,
			   const struct clock *clock, struct error *err)
{
	struct error why = {0};
	enum status st = gpu_event_record(mark, s, err);

	team_at(t->board, TEAM_OP_WAIT);
	while (!st && !gpu_event_done(mark)) {
		if (team_left(t, &why)) {
			team_nccl_abort(t, c);
			return error_set_cause(err, why.status, why.cause, "%s", why.text);
		}
		clock_sleep_ns(clock, LOOK_NS);
	}
	return st ? st : gpu_stream_wait(s, err);
}

void team_nccl_drain(struct team *t, struct team_comm *c, struct gpu_stream *s, struct gpu_event *mark,
		     const struct clock *clock)
{
	uint64_t t0 = clock_now_ns(clock);

	if (!mark || !c || !c->comm || gpu_event_record(mark, s, NULL))
		return;
	while (!gpu_event_done(mark)) {
		clock_sleep_ns(clock, LOOK_NS);
		if (clock_now_ns(clock) - t0 < DRAIN_NS)
			continue;
		team_nccl_abort(t, c);
		return;
	}
}
