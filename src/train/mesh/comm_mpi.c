/* SPDX-License-Identifier: Apache-2.0 */
/* Communication of CPU ranks: a queue, and one thread that owns MPI. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include "core/clock.h"
#include "core/text/text.h"
#include "model/tensor/dtype.h"
#include "team/libraries/mpi.h"
#include "team/links/flight.h"
#include "train/mesh/collective_table.h"
#include "train/mesh/comm_open.h"
#include "train/mesh/tree_sum.h"

/* PIECE: numbers of a sum that travel at once. */
enum { QUEUE = 64, PIECE = 1 << 20, SHARE_AT_ONCE = 1 << 26 };

enum task_kind {
	TASK_JOIN,
	TASK_SUM,
	TASK_SCATTER,
	TASK_COLLECT,
	TASK_BROADCAST,
	TASK_GATHER,
	TASK_SHARE,
	TASK_GROUP, /* make a group, or leave it */
	TASK_LEAVE,
	TASK_CLOSE
};
/* What both kinds of communication begin with. `of` is itself, or that of all ranks. */
struct comm_base {
	struct comm comm;
	struct comm_mpi *of;
};
/* Some of the ranks, with collectives of their own. */
struct comm_group {
	struct comm comm;
	struct comm_mpi *of;
	void *handle; /* of MPI */
	bool alike, equal;
	bool recorded;	    /* in the count of all ranks, which make the same collectives */
	unsigned members[]; /* their numbers among all ranks */
};
struct task {
	enum task_kind kind;
	void *data;
	const void *mine;	  /* GATHER */
	size_t count;		  /* numbers (F32) or bytes */
	bool bf16;		  /* SUM, SCATTER: the type that travels */
	const size_t *border;	  /* SCATTER, COLLECT: [ranks + 1] numbers */
	size_t width;		  /* COLLECT: bytes of a number */
	uint32_t type;		  /* enum dtype + 1; 0: bytes of the host */
	struct comm_group *group; /* NULL: all ranks */
};

struct comm_mpi {
	struct comm comm;
	struct comm_mpi *of;
	struct team *team;
	struct collective_table *table; /* used by the caller's thread only */
	float *send, *receive;		/* room for one piece, padded to whole blocks */
	struct comm_group *group;	/* of the task that runs; used by the thread that owns MPI */
	unsigned rank, size;		/* this rank in that group, or among all ranks */
	pthread_t thread;
	pthread_mutex_t lock; /* guards everything below */
	pthread_cond_t changed;
	struct task queue[QUEUE];
	uint64_t asked, done;
	struct error err; /* error of the first task that failed; later tasks are skipped */
};

/* -- the thread that owns MPI -- */

static enum status call(struct comm_mpi *m, uint32_t what, uint32_t type, const void *send, void *receive,
			uint64_t count, unsigned root, struct error *err)
{
	const struct mpi_plugin_call c = {.what = what,
					  .type = type,
					  .op = MPI_PLUGIN_SUM,
					  .root = root,
					  .in_place = !send,
					  .count = count,
					  .send = send,
					  .receive = receive};

	team_at(m->team->board, TEAM_OP_MPI);
	return m->group ? team_mpi_group_call(m->team, m->group->handle, &c, err)
			: team_mpi_call(m->team, &c, err);
}

/* An all-to-all brings the blocks of all ranks that this rank adds, and an all-gather the sums back. */
static enum status sum_piece(struct comm_mpi *m, float *x, size_t count, struct error *err)
{
	const unsigned size = m->size;
	const size_t block = (count + size - 1) / size;
	enum status st;

	memcpy(m->send, x, count * sizeof(*x));
	memset(m->send + count, 0, (block * size - count) * sizeof(*x));
	st = call(m, MPI_PLUGIN_ALL_TO_ALL, MPI_PLUGIN_F32, m->send, m->receive, block, 0, err);
	if (st)
		return st;
	tree_sum_blocks(m->receive, size, block);
	st = call(m, MPI_PLUGIN_ALL_GATHER, MPI_PLUGIN_F32, m->receive, m->send, block, 0, err);
	if (!st)
		memcpy(x, m->send, count * sizeof(*x));
	return st;
}

/* The same with numbers rounded to BF16 on their way. They are added in F32, so a sum has two roundings
 * whatever the number of ranks is. */
static enum status sum_piece_bf16(struct comm_mpi *m, float *x, size_t count, struct error *err)
{
	const unsigned size = m->size;
	const size_t block = (count + size - 1) / size, padded = block * size;
	uint16_t *const send = (uint16_t *)m->send, *const came = send + padded;
	enum status st;

	dtype_pack(DTYPE_BF16, x, send, count);
	memset(send + count, 0, (padded - count) * sizeof(*send));
	st = call(m, MPI_PLUGIN_ALL_TO_ALL, MPI_PLUGIN_U8, send, came, block * sizeof(*send), 0, err);
	if (st)
		return st;
	dtype_unpack(DTYPE_BF16, came, m->receive, padded);
	tree_sum_blocks(m->receive, size, block);
	dtype_pack(DTYPE_BF16, m->receive, send, block);
	st = call(m, MPI_PLUGIN_ALL_GATHER, MPI_PLUGIN_U8, send, came, block * sizeof(*send), 0, err);
	if (!st)
		dtype_unpack(DTYPE_BF16, came, x, count);
	return st;
}

static enum status sum(struct comm_mpi *m, const struct task *t, struct error *err)
{
	float *x = t->data;
	enum status st = STATUS_OK;

	for (size_t at = 0, n; at < t->count && !st; at += n) {
		n = t->count - at < PIECE ? t->count - at : PIECE;
		st = t->bf16 ? sum_piece_bf16(m, x + at, n, err) : sum_piece(m, x + at, n, err);
	}
	return st;
}

static size_t range_of(const size_t *border, unsigned rank)
{
	return border[rank + 1] - border[rank];
}

static size_t longest_of(const struct comm_mpi *m, const size_t *border)
{
	size_t most = 0;

	for (unsigned r = 0; r < m->size; r++)
		most = range_of(border, r) > most ? range_of(border, r) : most;
	return most;
}

/* A block for each rank: numbers [at, at + block) of its range, in the type that travels. */
static void fill_blocks(struct comm_mpi *m, const struct task *t, size_t at, size_t block)
{
	const size_t width = t->bf16 ? sizeof(uint16_t) : sizeof(float);
	const float *x = t->data;

	memset(m->send, 0, block * m->size * width);
	for (unsigned r = 0; r < m->size; r++) {
		const size_t length = range_of(t->border, r), rest = length > at ? length - at : 0,
			     count = rest < block ? rest : block;

		if (!count)
			continue;
		if (t->bf16)
			dtype_pack(DTYPE_BF16, x + t->border[r] + at, (uint16_t *)m->send + r * block, count);
		else
			memcpy(m->send + r * block, x + t->border[r] + at, count * width);
	}
}

/* An all-to-all of the blocks. The sum of those that came is the first one of m->receive; in BF16 it is
 * rounded as in an all-reduce, which sends it on. */
static enum status add_blocks(struct comm_mpi *m, bool bf16, size_t block, struct error *err)
{
	uint16_t *const send = (uint16_t *)m->send, *const came = send + block * m->size;
	enum status st =
		bf16 ? call(m, MPI_PLUGIN_ALL_TO_ALL, MPI_PLUGIN_U8, send, came, block * sizeof(*send), 0,
			    err)
		     : call(m, MPI_PLUGIN_ALL_TO_ALL, MPI_PLUGIN_F32, m->send, m->receive, block, 0, err);

	if (st)
		return st;
	if (bf16)
		dtype_unpack(DTYPE_BF16, came, m->receive, block * m->size);
	tree_sum_blocks(m->receive, m->size, block);
	if (bf16) {
		dtype_pack(DTYPE_BF16, m->receive, send, block);
		dtype_unpack(DTYPE_BF16, send, m->receive, block);
	}
	return STATUS_OK;
}

/* Adds numbers [at, at + block) of every range, for the rank of the range. */
static enum status scatter_piece(struct comm_mpi *m, const struct task *t, size_t at, size_t block,
				 struct error *err)
{
	const size_t length = range_of(t->border, m->rank), rest = length > at ? length - at : 0;
	enum status st;

	fill_blocks(m, t, at, block);
	st = add_blocks(m, t->bf16, block, err);
	if (!st && rest)
		memcpy((float *)t->data + t->border[m->rank] + at, m->receive,
		       (rest < block ? rest : block) * sizeof(float));
	return st;
}

/* Blocks of an all-to-all are equal. If the ranges are so unequal that padding costs more than a sum for all
 * ranks, that one runs. Its bits are the same. */
static enum status scatter(struct comm_mpi *m, const struct task *t, struct error *err)
{
	const size_t longest = longest_of(m, t->border), piece = PIECE / m->size;
	enum status st = STATUS_OK;

	if (longest * m->size > 2 * t->count)
		return sum(m, t, err);
	for (size_t at = 0, n; at < longest && !st; at += n) {
		n = longest - at < piece ? longest - at : piece;
		st = scatter_piece(m, t, at, n, err);
	}
	return st;
}

static enum status share(struct comm_mpi *m, char *bytes, size_t count, unsigned root, struct error *err)
{
	enum status st = STATUS_OK;

	for (size_t at = 0, n; at < count && !st; at += n) {
		n = count - at < SHARE_AT_ONCE ? count - at : SHARE_AT_ONCE;
		st = call(m, MPI_PLUGIN_BROADCAST, MPI_PLUGIN_U8, NULL, bytes + at, n, root, err);
	}
	return st;
}

static bool is_equal(const struct comm_mpi *m, const size_t *border)
{
	for (unsigned r = 1; r < m->size; r++)
		if (range_of(border, r) != range_of(border, 0))
			return false;
	return true;
}

static enum status collect(struct comm_mpi *m, const struct task *t, struct error *err)
{
	enum status st = STATUS_OK;

	if (m->group && is_equal(m, t->border))
		return call(m, MPI_PLUGIN_ALL_GATHER, MPI_PLUGIN_U8, NULL, t->data,
			    range_of(t->border, 0) * t->width, 0, err);

	for (unsigned r = 0; r < m->size && !st; r++)
		st = share(m, (char *)t->data + t->border[r] * t->width, range_of(t->border, r) * t->width, r,
			   err);
	return st;
}

static enum status join(struct comm_mpi *m, struct error *err)
{
	enum status st = team_mpi_join(m->team, err);

	if (!st)
		text_copy(m->comm.library, sizeof(m->comm.library), m->team->mpi->version);
	return st;
}

static enum status run(struct comm_mpi *m, const struct task *t, struct error *err)
{
	m->group = t->group;
	m->rank = t->group ? t->group->comm.rank : m->comm.rank;
	m->size = t->group ? t->group->comm.size : m->comm.size;
	switch (t->kind) {
	case TASK_JOIN:
		return join(m, err);
	case TASK_SUM:
		return sum(m, t, err);
	case TASK_SCATTER:
		return scatter(m, t, err);
	case TASK_COLLECT:
		return collect(m, t, err);
	case TASK_BROADCAST:
		return share(m, t->data, t->count * sizeof(float), 0, err);
	case TASK_GATHER:
		return call(m, MPI_PLUGIN_ALL_GATHER, MPI_PLUGIN_U8, t->mine, t->data, t->count, 0, err);
	case TASK_SHARE:
		return share(m, t->data, t->count, 0, err);
	case TASK_GROUP:
		return team_mpi_group(m->team, t->group->members, m->size, &t->group->handle, err);
	case TASK_LEAVE:
		team_mpi_group_leave(m->team, t->group->handle);
		break;
	case TASK_CLOSE:
		break;
	}
	return STATUS_OK;
}

/* Whether the flight record has the task, and in which count. */
static bool is_recorded(const struct task *t)
{
	return !t->group || t->kind < TASK_GROUP;
}

static enum team_flight_of record_of(const struct task *t)
{
	return !t->group || t->group->recorded ? TEAM_FLIGHT_OF_ALL : TEAM_FLIGHT_OF_COPY;
}

static void *work(void *arg)
{
	struct comm_mpi *m = arg;
	bool open = true;

	pthread_mutex_lock(&m->lock);
	while (open) {
		struct task t;
		struct error err = {0};

		while (m->asked == m->done)
			pthread_cond_wait(&m->changed, &m->lock);
		t = m->queue[m->done % QUEUE];
		open = t.kind != TASK_CLOSE;
		if (open && !m->err.status) {
			pthread_mutex_unlock(&m->lock);
			if (is_recorded(&t))
				team_flight_begin(m->team->board, record_of(&t));
			if (run(m, &t, &err) && !err.status)
				error_set(&err, STATUS_BUG, "a collective failed without a message");
			team_at(m->team->board, TEAM_OP_IDLE);
			if (!err.status && is_recorded(&t))
				team_flight_end(m->team->board, record_of(&t));
			pthread_mutex_lock(&m->lock);
			m->err = err;
		}
		m->done++;
		pthread_cond_broadcast(&m->changed);
	}
	open = !m->err.status; /* after a failure the others may never come to MPI_Finalize */
	pthread_mutex_unlock(&m->lock);
	if (open && m->team->close)
		m->team->close(m->team);
	return NULL;
}

/* -- the caller's thread -- */

static struct comm_mpi *mpi_of(struct comm *c)
{
	return ((struct comm_base *)c)->of;
}

static struct comm_group *group_of(struct comm *c)
{
	return &mpi_of(c)->comm == c ? NULL : (struct comm_group *)c;
}

/* Waits until the queue has room, or with `all` until it is empty. Called with the lock held. */
static enum status await(struct comm_mpi *m, bool all, struct error *err)
{
	const uint64_t began = clock_now_ns(clock_monotonic());

	while (m->asked - m->done >= (all ? 1 : QUEUE))
		pthread_cond_wait(&m->changed, &m->lock);
	m->comm.count.wait_s += (double)(clock_now_ns(clock_monotonic()) - began) * 1e-9;
	return m->err.status ? error_set_cause(err, m->err.status, m->err.cause, "%s", m->err.text)
			     : STATUS_OK;
}

static const enum team_flight_kind record_kinds[] = {
	[TASK_JOIN] = TEAM_FLIGHT_JOIN,
	[TASK_SUM] = TEAM_FLIGHT_ALL_REDUCE,
	[TASK_SCATTER] = TEAM_FLIGHT_REDUCE_SCATTER,
	[TASK_COLLECT] = TEAM_FLIGHT_ALL_GATHER,
	[TASK_BROADCAST] = TEAM_FLIGHT_BROADCAST,
	[TASK_GATHER] = TEAM_FLIGHT_GATHER,
	[TASK_SHARE] = TEAM_FLIGHT_SHARE,
	[TASK_GROUP] = TEAM_FLIGHT_JOIN,
	[TASK_LEAVE] = TEAM_FLIGHT_NONE,
};

/* Within a layer, by kind of task. */
static const enum team_flight_kind record_kinds_of_groups[] = {
	[TASK_SUM] = TEAM_FLIGHT_ALL_REDUCE,	  [TASK_SCATTER] = TEAM_FLIGHT_ACTIVATIONS_SUM,
	[TASK_COLLECT] = TEAM_FLIGHT_ACTIVATIONS, [TASK_BROADCAST] = TEAM_FLIGHT_BROADCAST,
	[TASK_GATHER] = TEAM_FLIGHT_GATHER,	  [TASK_SHARE] = TEAM_FLIGHT_SHARE,
};

static uint64_t bytes_of(const struct task *t)
{
	switch (t->kind) {
	case TASK_SUM:
	case TASK_SCATTER:
		return t->count * (t->bf16 ? sizeof(uint16_t) : sizeof(float));
	case TASK_BROADCAST:
		return t->count * sizeof(float);
	case TASK_COLLECT:
		return t->count * t->width;
	default:
		return t->count;
	}
}

/* 0: ranks of one group may have other ranges than those of the next. */
static uint64_t compared_bytes(const struct task *t)
{
	return t->group && !t->group->equal && t->kind == TASK_SUM ? 0 : bytes_of(t);
}

/* Compares the collective between the ranks, which may wait for a rank that has not begun the part. The first
 * one makes MPI itself, so it is entered unseen. */
static enum status compare(struct comm_mpi *m, const struct task *t, struct error *err)
{
	const struct collective c = {
		.kind = record_kinds[t->kind], .type = t->type, .bytes = compared_bytes(t)};
	const uint64_t began = clock_now_ns(clock_monotonic());
	enum status st;

	/* the sizes of other groups' collectives change from step to step */
	if (t->kind == TASK_JOIN || t->kind >= TASK_GROUP || (t->group && !t->group->alike))
		return STATUS_OK;
	st = collective_table_enter(m->table, &c, err);
	m->comm.count.wait_s += (double)(clock_now_ns(clock_monotonic()) - began) * 1e-9;
	return st;
}

/* Only of what is recorded: groups have no kind of their own for the rest. */
static void note_asked(const struct comm_mpi *m, const struct task *t)
{
	const bool own = t->group && !t->group->alike;

	if (is_recorded(t))
		team_flight_ask(m->team->board, record_of(t),
				&(struct team_flight_named){
					.kind = own ? record_kinds_of_groups[t->kind] : record_kinds[t->kind],
					.bytes = compared_bytes(t),
					.layer = (int32_t)(t->group ? t->group->comm.layer : m->comm.layer)});
}

static enum status ask(struct comm_mpi *m, const struct task *t, bool done, struct error *err)
{
	enum status st;

	note_asked(m, t);
	st = compare(m, t, err);
	if (st)
		return st;
	pthread_mutex_lock(&m->lock);
	st = await(m, false, err);
	if (!st) {
		m->queue[m->asked++ % QUEUE] = *t;
		pthread_cond_broadcast(&m->changed);
		if (done)
			st = await(m, true, err);
	}
	pthread_mutex_unlock(&m->lock);
	return st;
}

static enum status begin(struct comm *c, enum task_kind kind, const struct mat *x, const size_t *border,
			 struct error *err)
{
	const struct task t = {.kind = kind,
			       .data = x->data,
			       .count = (size_t)(x->rows * x->cols),
			       .bf16 = (kind == TASK_SUM || kind == TASK_SCATTER) && c->travels == DTYPE_BF16,
			       .border = border,
			       .width = dtype_bytes(x->dtype, 1),
			       .type = (uint32_t)x->dtype + 1,
			       .group = group_of(c)};

	if ((x->dtype != DTYPE_F32 && kind != TASK_COLLECT) || x->rows != 1)
		return error_set(err, STATUS_BUG, "collectives take one row of F32");
	c->count.calls++;
	c->count.bytes += (double)bytes_of(&t);
	return ask(mpi_of(c), &t, false, err);
}

static enum status mpi_reduce_scatter(struct comm *c, struct mat x, const size_t *border, struct error *err)
{
	return begin(c, TASK_SCATTER, &x, border, err);
}

static enum status mpi_all_gather(struct comm *c, struct mat x, const size_t *border, struct error *err)
{
	return begin(c, TASK_COLLECT, &x, border, err);
}

static enum status mpi_all_reduce(struct comm *c, struct mat x, struct error *err)
{
	return begin(c, TASK_SUM, &x, NULL, err);
}

static enum status mpi_broadcast(struct comm *c, struct mat x, struct error *err)
{
	return begin(c, TASK_BROADCAST, &x, NULL, err);
}

static enum status mpi_wait(struct comm *c, struct error *err)
{
	struct comm_mpi *m = mpi_of(c);
	enum status st;

	pthread_mutex_lock(&m->lock);
	st = await(m, true, err);
	pthread_mutex_unlock(&m->lock);
	return st;
}

static enum status mpi_gather(struct comm *c, const void *mine, size_t size, void *all, struct error *err)
{
	const struct task t = {
		.kind = TASK_GATHER, .mine = mine, .data = all, .count = size, .group = group_of(c)};

	if (size > COMM_GATHER_MAX)
		return error_set(err, STATUS_BUG, "a gather of %zu bytes per rank", size);
	return ask(mpi_of(c), &t, true, err);
}

static enum status mpi_share(struct comm *c, void *bytes, size_t size, struct error *err)
{
	const struct task t = {.kind = TASK_SHARE, .data = bytes, .count = size, .group = group_of(c)};

	return ask(mpi_of(c), &t, true, err);
}

static enum status mpi_part(struct comm *c, const char *name, uint64_t number, uint64_t shape,
			    struct error *err)
{
	return collective_table_part(mpi_of(c)->table, name, number, shape, err);
}

static void mpi_release(struct comm_mpi *m)
{
	collective_table_free(&m->table);
	pthread_cond_destroy(&m->changed);
	pthread_mutex_destroy(&m->lock);
	free(m->send);
	free(m->receive);
	free(m);
}

static void mpi_close(struct comm *c)
{
	struct comm_mpi *m = mpi_of(c);

	pthread_mutex_lock(&m->lock);
	while (m->asked - m->done == QUEUE)
		pthread_cond_wait(&m->changed, &m->lock);
	m->queue[m->asked++ % QUEUE] = (struct task){.kind = TASK_CLOSE};
	pthread_cond_broadcast(&m->changed);
	pthread_mutex_unlock(&m->lock);
	pthread_join(m->thread, NULL);
	mpi_release(m);
}

static const struct comm_ops mpi_ops = {
	.name = "MPI",
	.all_reduce = mpi_all_reduce,
	.reduce_scatter = mpi_reduce_scatter,
	.all_gather = mpi_all_gather,
	.broadcast = mpi_broadcast,
	.wait = mpi_wait,
	.gather = mpi_gather,
	.share = mpi_share,
	.part = mpi_part,
	.close = mpi_close,
};

enum status comm_mpi_open(struct comm **out, struct team *team, struct error *err)
{
	const size_t room = (PIECE + team->size) * sizeof(float);
	const struct task first = {.kind = TASK_JOIN};
	struct comm_mpi *m = calloc(1, sizeof(*m));
	enum status st;
	int failed;

	*out = NULL;
	if (!m)
		return error_errno(err, ENOMEM, "the communication of ranks");
	m->comm = (struct comm){.ops = &mpi_ops, .rank = team->rank, .size = team->size};
	m->of = m;
	m->team = team;
	m->send = malloc(room);
	m->receive = malloc(room);
	pthread_mutex_init(&m->lock, NULL);
	pthread_cond_init(&m->changed, NULL);
	collective_table_create(&m->table, team, NULL);
	failed = m->send && m->receive && m->table ? pthread_create(&m->thread, NULL, work, m) : ENOMEM;
	if (failed) {
		mpi_release(m);
		return error_errno(err, failed, "the communication of ranks");
	}
	st = ask(m, &first, true, err);
	if (st) {
		mpi_close(&m->comm);
		return st;
	}
	team->stop = NULL; /* from now on, requests to stop travel with the sums of a step */
	*out = &m->comm;
	return STATUS_OK;
}

/* -- groups -- */

static void group_close(struct comm *c)
{
	struct comm_group *g = group_of(c);
	const struct task t = {.kind = TASK_LEAVE, .group = g};
	struct error ignored = {0};

	if (g->handle)
		ask(g->of, &t, true, &ignored);
	free(g);
}

static const struct comm_ops group_ops = {
	.name = "MPI",
	.all_reduce = mpi_all_reduce,
	.reduce_scatter = mpi_reduce_scatter,
	.all_gather = mpi_all_gather,
	.broadcast = mpi_broadcast,
	.wait = mpi_wait,
	.gather = mpi_gather,
	.share = mpi_share,
	.close = group_close,
};

enum status comm_mpi_group(struct comm **out, struct comm *all, const struct comm_members *members,
			   struct error *err)
{
	struct comm_mpi *m = mpi_of(all);
	struct comm_group *g = calloc(1, sizeof(*g) + members->count * sizeof(g->members[0]));
	struct task t = {.kind = TASK_GROUP, .group = g};
	enum status st;

	*out = NULL;
	if (!g)
		return error_errno(err, ENOMEM, "the communication of %u ranks", members->count);
	g->comm = (struct comm){.ops = &group_ops, .size = members->count, .layer = -1};
	g->of = m;
	g->alike = members->alike;
	g->equal = members->equal;
	g->recorded = g->alike || members->count == all->size;
	for (unsigned i = 0; i < members->count; i++) {
		g->members[i] = members->first + i * members->stride;
		if (g->members[i] == all->rank)
			g->comm.rank = i;
	}
	st = ask(m, &t, true, err);
	if (st)
		free(g);
	else
		*out = &g->comm;
	return st;
}
