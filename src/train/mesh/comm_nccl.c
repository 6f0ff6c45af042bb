/* SPDX-License-Identifier: Apache-2.0 */
/* Communication of GPU ranks: collectives of NCCL on a stream of their own, ordered against the back end's
 * stream by events. Host numbers travel over the connections of the workers. */
#include <errno.h>
#include <stdlib.h>
#include "core/text/text.h"
#include "model/gpu/backend.h"
#include "model/tensor/dtype.h"
#include "team/libraries/nccl.h"
#include "team/links/flight.h"
#include "train/mesh/collective_table.h"
#include "train/mesh/comm_open.h"
#include "train/mesh/flight_words.h"

/* LIMIT_MS: a rank may write a checkpoint or build plans while the others wait for it. PIECE: numbers that
 * are rounded to BF16 at once. COLLECT_PIECE: bytes of one answer to rank 0. */
enum { LIMIT_MS = 600000, PIECE = 1 << 25, COLLECT_PIECE = 4 << 20 };
/* NCCL's memory on a GPU: a part that does not depend on the number of communicators, and one of each.
 * Measured on two H200 over NVLink (results/2026-11-29-h200-x2/ranks): 0.89 GB with one communicator and 1.09
 * GB with two. Docs: docs/explanation/methods/training.md, "Memory of a training run". */
enum { NCCL_BYTES = 658 << 20, COMMUNICATOR_BYTES = 192 << 20 };

struct comm_nccl {
	struct comm comm;
	struct team *team;
	struct collective_table *table;
	struct backend *back;
	struct team_comm *ranks;
	struct gpu_stream *stream;
	struct gpu_event *ready, *done; /* end of the back end's work; end of the collectives */
	struct gpu_event *from, *to; /* on the back end's stream, before and after a wait for collectives */
	struct flight_words words;
	uint64_t number; /* of the last collective, in the flight record */
	bool marked;	 /* `from` is recorded, after the last work before a collective */
	bool timed;	 /* both were recorded and not read yet */
	gpu_ptr rounded; /* [PIECE] BF16; 0: numbers travel as they are */
	/* A group of ranks: the communication of all, whose stream it uses. So never two communicators of a
	 * GPU are at work at once, and all ranks run their collectives in the same order. If the groups are
	 * alike, it uses events and table of that one too.
	 */
	struct comm_nccl *all;
	struct comm_members members;
};

static struct comm_nccl *nccl_of(struct comm *c)
{
	return (struct comm_nccl *)c;
}

static enum status check(const struct comm_nccl *n, ncclResult_t r, const char *what, struct error *err)
{
	return nccl_check(team_nccl_table(n->team), r, n->ranks->comm, what, err);
}

/* Compares the collective between the ranks. */
static enum status compare(struct comm_nccl *n, enum team_flight_kind kind, uint32_t type, uint64_t bytes,
			   struct error *err)
{
	const struct collective c = {.kind = kind, .type = type, .bytes = bytes};

	return collective_table_enter(n->table, &c, err);
}

/* The count of the flight record that has the collectives. */
static enum team_flight_of record_of(const struct comm_nccl *n)
{
	return !n->all || n->members.alike || n->comm.size == n->team->size ? TEAM_FLIGHT_OF_ALL
									    : TEAM_FLIGHT_OF_COPY;
}

/* A group whose collectives are part of the computation. */
static bool is_apart(const struct comm_nccl *n)
{
	return n->all && !n->members.alike;
}

static ncclDataType_t type_of(const struct mat *x)
{
	return x->dtype == DTYPE_BF16 ? ncclBfloat16 : ncclFloat32;
}

/* The stream of the collectives goes on after the back end's work so far. */
static enum status follow(struct comm_nccl *n, struct error *err)
{
	const enum status st = gpu_event_record(n->ready, gpu_backend_stream(n->back), err);

	return st ? st : gpu_stream_after(n->stream, n->ready, err);
}

/* Those of the GPU's record. */
static const struct flight_words *words_of(const struct comm_nccl *n)
{
	return n->all ? &n->all->words : &n->words;
}

/* `st`: of the calls that enqueue the collective. */
static enum status finish(struct comm_nccl *n, enum status st, struct error *err)
{
	return st ? st : flight_words_leave(words_of(n), record_of(n), n->number, err);
}

/* Lets the collective begin after the back end's work so far. `travels`: the type that the ranks exchange. */
static enum status begin(struct comm_nccl *n, const struct mat *x, enum dtype travels,
			 enum team_flight_kind kind, struct error *err)
{
	const uint64_t bytes = dtype_bytes(travels, (uint64_t)x->cols);
	/* 0: ranks of one group may have other ranges than those of the next */
	const uint64_t compared = n->all && !n->members.equal && kind == TEAM_FLIGHT_ALL_REDUCE ? 0 : bytes;
	struct comm_nccl *all = n->all ? n->all : n;
	enum status st = STATUS_OK;

	if ((x->dtype != DTYPE_F32 && x->dtype != DTYPE_BF16) || x->rows != 1)
		return error_set(err, STATUS_BUG, "collectives take one row of F32 or BF16");
	n->number = team_flight_ask(n->team->board, record_of(n),
				    &(struct team_flight_named){kind, TEAM_FLIGHT_STREAM_COMMUNICATION,
								compared, (int32_t)n->comm.layer});
	if (!is_apart(n)) {
		/* The host may wait for another rank in the comparison, while the device has nothing to do.
		 */
		st = gpu_event_record(all->from, gpu_backend_stream(n->back), err);
		all->marked = !st;
		if (!st)
			st = compare(n, kind, (uint32_t)travels + 1, compared, err);
	}
	if (st)
		return st;
	n->comm.count.calls++;
	n->comm.count.bytes += (double)bytes;
	if (!all->words.at)
		team_flight_begin_all(n->team->board, record_of(n));
	st = follow(n, err);
	return st ? st : flight_words_reach(words_of(n), record_of(n), n->number, err);
}

static enum status sum(struct comm_nccl *n, void *x, int64_t count, ncclDataType_t type, struct error *err)
{
	return check(n,
		     team_nccl_table(n->team)->all_reduce(x, x, (size_t)count, type, ncclSum, n->ranks->comm,
							  gpu_stream_raw(n->stream)),
		     "ncclAllReduce", err);
}

/* Adds F32 numbers rounded to BF16, piece by piece, all on the collectives' stream. */
static enum status sum_rounded(struct comm_nccl *n, struct mat x, struct error *err)
{
	float *const all = x.data;
	enum status st = STATUS_OK;

	for (int64_t at = 0, count; at < x.cols && !st; at += count) {
		count = x.cols - at < PIECE ? x.cols - at : PIECE;
		const struct mat piece = {
			.data = all + at, .rows = 1, .cols = count, .ld = count, .dtype = DTYPE_F32};
		struct mat rounded = piece;

		rounded.data = (void *)(uintptr_t)n->rounded;
		rounded.dtype = DTYPE_BF16;
		st = gpu_backend_convert(n->back, piece, rounded, n->stream, err);
		if (!st)
			st = sum(n, rounded.data, count, ncclBfloat16, err);
		if (!st)
			st = gpu_backend_convert(n->back, rounded, piece, n->stream, err);
	}
	return st;
}

static enum status nccl_all_reduce(struct comm *c, struct mat x, struct error *err)
{
	struct comm_nccl *n = nccl_of(c);
	const bool rounds = x.dtype == DTYPE_F32 && n->rounded;
	enum status st = begin(n, &x, rounds ? DTYPE_BF16 : x.dtype, TEAM_FLIGHT_ALL_REDUCE, err);

	if (st)
		return st;
	return finish(n, rounds ? sum_rounded(n, x, err) : sum(n, x.data, x.cols, type_of(&x), err), err);
}

static enum status nccl_broadcast(struct comm *c, struct mat x, struct error *err)
{
	struct comm_nccl *n = nccl_of(c);
	const struct nccl *call = team_nccl_table(n->team);
	enum status st = begin(n, &x, x.dtype, TEAM_FLIGHT_BROADCAST, err);

	if (!st)
		st = check(n,
			   call->broadcast(x.data, x.data, (size_t)x.cols, type_of(&x), 0, n->ranks->comm,
					   gpu_stream_raw(n->stream)),
			   "ncclBroadcast", err);
	return finish(n, st, err);
}

/* Whether all ranks have ranges of this length. */
static bool is_equal(const struct comm *c, const size_t *border, size_t length)
{
	for (unsigned r = 0; r < c->size; r++)
		if (border[r + 1] - border[r] != length)
			return false;
	return true;
}

/* The part of rank r's range that lies in elements [at, at + count), counted from `at`. */
struct piece {
	size_t first, count;
};
static struct piece piece_of(const size_t *border, unsigned r, size_t at, size_t count)
{
	const size_t from = border[r] > at ? border[r] - at : 0,
		     to = border[r + 1] > at ? border[r + 1] - at : 0;
	const size_t first = from < count ? from : count, last = to < count ? to : count;

	return (struct piece){first, last - first};
}

/* One reduction for each range that has elements in x, as one group. x is elements [at, ..) of the vector. */
static enum status reduce_each(const struct comm_nccl *n, const struct mat *x, const size_t *border,
			       size_t at, struct error *err)
{
	const struct nccl *call = team_nccl_table(n->team);
	enum status st = check(n, call->group_start(), "ncclGroupStart", err), last;

	if (st)
		return st;
	for (unsigned r = 0; r < n->comm.size && !st; r++) {
		const struct piece p = piece_of(border, r, at, (size_t)x->cols);
		char *data = (char *)x->data + dtype_bytes(x->dtype, p.first);

		if (p.count)
			st = check(n,
				   call->reduce(data, data, p.count, type_of(x), ncclSum, (int)r,
						n->ranks->comm, gpu_stream_raw(n->stream)),
				   "ncclReduce", err);
	}
	last = check(n, call->group_end(), "ncclGroupEnd", st ? NULL : err);
	return st ? st : last;
}

/* Elements [first, first + count) of one row. */
static struct mat cut(const struct mat *x, size_t first, size_t count)
{
	struct mat part = *x;

	part.data = (char *)x->data + dtype_bytes(x->dtype, first);
	part.cols = part.ld = (int64_t)count;
	return part;
}

/* Adds F32 numbers rounded to BF16, piece by piece, each range for its rank. */
static enum status scatter_rounded(struct comm_nccl *n, const struct mat *x, const size_t *border,
				   struct error *err)
{
	enum status st = STATUS_OK;

	for (size_t at = 0, count; at < (size_t)x->cols && !st; at += count) {
		struct mat piece, rounded;
		struct piece own;

		count = (size_t)x->cols - at < PIECE ? (size_t)x->cols - at : PIECE;
		piece = rounded = cut(x, at, count);
		rounded.data = (void *)(uintptr_t)n->rounded;
		rounded.dtype = DTYPE_BF16;
		own = piece_of(border, n->comm.rank, at, count);
		st = gpu_backend_convert(n->back, piece, rounded, n->stream, err);
		if (!st)
			st = reduce_each(n, &rounded, border, at, err);
		if (!st && own.count)
			st = gpu_backend_convert(n->back, cut(&rounded, own.first, own.count),
						 cut(&piece, own.first, own.count), n->stream, err);
	}
	return st;
}

static enum status nccl_reduce_scatter(struct comm *c, struct mat x, const size_t *border, struct error *err)
{
	struct comm_nccl *n = nccl_of(c);
	const bool rounds = x.dtype == DTYPE_F32 && n->rounded;
	const size_t own = border[c->rank + 1] - border[c->rank];
	enum status st = begin(n, &x, rounds ? DTYPE_BF16 : x.dtype,
			       is_apart(n) ? TEAM_FLIGHT_ACTIVATIONS_SUM : TEAM_FLIGHT_REDUCE_SCATTER, err);

	if (st)
		return st;
	if (rounds)
		st = scatter_rounded(n, &x, border, err);
	else if (!is_equal(c, border, own))
		st = reduce_each(n, &x, border, 0, err);
	else
		st = check(n,
			   team_nccl_table(n->team)->reduce_scatter(
				   x.data, cut(&x, border[c->rank], own).data, own, type_of(&x), ncclSum,
				   n->ranks->comm, gpu_stream_raw(n->stream)),
			   "ncclReduceScatter", err);
	return finish(n, st, err);
}

static enum status broadcast_each(const struct comm_nccl *n, uint8_t *x, size_t width, const size_t *border,
				  struct error *err)
{
	const struct nccl *call = team_nccl_table(n->team);
	enum status st = check(n, call->group_start(), "ncclGroupStart", err), last;

	if (st)
		return st;
	for (unsigned r = 0; r < n->comm.size && !st; r++)
		if (border[r + 1] > border[r])
			st = check(n,
				   call->broadcast(x + border[r] * width, x + border[r] * width,
						   (border[r + 1] - border[r]) * width, ncclInt8, (int)r,
						   n->ranks->comm, gpu_stream_raw(n->stream)),
				   "ncclBroadcast", err);
	last = check(n, call->group_end(), "ncclGroupEnd", st ? NULL : err);
	return st ? st : last;
}

static enum status nccl_all_gather(struct comm *c, struct mat x, const size_t *border, struct error *err)
{
	struct comm_nccl *n = nccl_of(c);
	const struct nccl *call = team_nccl_table(n->team);
	const size_t own = border[c->rank + 1] - border[c->rank], width = dtype_bytes(x.dtype, 1);
	uint8_t *data = x.data;
	enum status st =
		begin(n, &x, x.dtype, is_apart(n) ? TEAM_FLIGHT_ACTIVATIONS : TEAM_FLIGHT_ALL_GATHER, err);

	if (st)
		return st;
	if (!is_equal(c, border, own))
		st = broadcast_each(n, data, width, border, err);
	else
		st = check(n,
			   call->all_gather(data + border[c->rank] * width, data, own * width, ncclInt8,
					    n->ranks->comm, gpu_stream_raw(n->stream)),
			   "ncclAllGather", err);
	return finish(n, st, err);
}

/* The pass goes on after the collectives. This wait is timed with the phases of a step. */
static enum status wait_within(struct comm_nccl *n, struct error *err)
{
	enum status st = gpu_backend_wait_begin(n->back, err);

	if (!st)
		st = gpu_stream_after(gpu_backend_stream(n->back), n->done, err);
	return st ? st : gpu_backend_wait_end(n->back, err);
}

/* A collective of all ranks may have begun long before this wait, with work of the pass in between. So the
 * wait itself is timed with the phases. Before the last collective of a step the host may have waited for
 * another rank while the device had nothing to do: that time, from its begin to this wait, is timed apart. */
static enum status nccl_wait(struct comm *c, struct error *err)
{
	struct comm_nccl *n = nccl_of(c)->members.alike ? nccl_of(c)->all : nccl_of(c);
	struct gpu_stream *work = gpu_backend_stream(n->back);
	enum status st = gpu_event_record(n->done, n->stream, err);

	if (st || n->all)
		return st ? st : wait_within(n, err);
	if (!n->marked)
		st = gpu_event_record(n->from, work, err);
	n->marked = false;
	if (!st)
		st = gpu_event_record(n->to, work, err);
	n->timed = !st;
	return st ? st : wait_within(n, err);
}

/* Counts the last wait, if the device has passed it. */
static void count_wait(struct comm_nccl *n)
{
	double ns;

	if (!n->timed || !gpu_event_done(n->to))
		return;
	n->timed = false;
	if (!gpu_event_elapsed_ns(n->from, n->to, &ns, NULL))
		n->comm.count.wait_s += ns * 1e-9;
}

/* A gather of host numbers. */
static enum status begin_on_host(struct comm_nccl *n, uint64_t bytes, struct error *err)
{
	enum status st;

	team_flight_ask(n->team->board, TEAM_FLIGHT_OF_ALL,
			&(struct team_flight_named){
				.kind = TEAM_FLIGHT_GATHER, .bytes = bytes, .layer = TEAM_FLIGHT_NO_LAYER});
	st = compare(n, TEAM_FLIGHT_GATHER, 0, bytes, err);
	if (!st)
		team_flight_begin_all(n->team->board, TEAM_FLIGHT_OF_ALL);
	return st;
}

static enum status nccl_gather(struct comm *c, const void *mine, size_t size, void *all, struct error *err)
{
	struct comm_nccl *n = nccl_of(c);
	enum status st;

	count_wait(n);
	/* the caller has waited for the device */
	for (int of = 0; of < TEAM_FLIGHT_OFS && !n->words.at; of++)
		team_flight_end_all(n->team->board, (enum team_flight_of)of);
	st = begin_on_host(n, size, err);
	if (!st)
		st = team_gather(n->team, mine, size, all, err);
	if (!st)
		team_flight_end_all(n->team->board, TEAM_FLIGHT_OF_ALL);
	return st;
}

/* Takes a rank's range, which it sends in pieces. */
static enum status take_range(struct comm_nccl *n, unsigned rank, char *out, size_t size, struct error *err)
{
	enum status st = STATUS_OK;
	size_t got = 0;

	for (size_t at = 0, piece; at < size && !st; at += piece) {
		piece = size - at < COLLECT_PIECE ? size - at : COLLECT_PIECE;
		st = team_collect(n->team, rank, out + at, piece, &got, err);
		if (!st && got != piece)
			st = error_set(err, STATUS_BUG, "rank %u sent %zu bytes of its states, not %zu", rank,
				       got, piece);
	}
	return st;
}

/* In one direction. A gather would send all ranges back to all ranks. */
static enum status nccl_collect(struct comm *c, const void *mine, void *all, const size_t *border,
				struct error *err)
{
	struct comm_nccl *n = nccl_of(c);
	const size_t own = border[c->rank + 1] - border[c->rank];
	enum status st = begin_on_host(n, border[c->size], err);

	if (st)
		return st;
	for (size_t at = 0, piece; c->rank && at < own && !st; at += piece) {
		piece = own - at < COLLECT_PIECE ? own - at : COLLECT_PIECE;
		st = team_answer(n->team, (const char *)mine + at, piece, err);
	}
	if (!c->rank)
		memcpy(all, mine, own);
	for (unsigned r = 1; !c->rank && r < c->size && !st; r++)
		st = take_range(n, r, (char *)all + border[r], border[r + 1] - border[r], err);
	if (!st)
		team_flight_end_all(n->team->board, TEAM_FLIGHT_OF_ALL);
	return st;
}

static enum status nccl_share(struct comm *c, void *bytes, size_t size, struct error *err)
{
	enum status st = compare(nccl_of(c), TEAM_FLIGHT_SHARE, 0, size, err);

	for (size_t at = 0, n; at < size && !st; at += n) {
		n = size - at < TEAM_BYTES_MAX ? size - at : TEAM_BYTES_MAX;
		st = team_share(nccl_of(c)->team, (char *)bytes + at, n, err);
	}
	return st;
}

static enum status nccl_part(struct comm *c, const char *name, uint64_t number, uint64_t shape,
			     struct error *err)
{
	return collective_table_part(nccl_of(c)->table, name, number, shape, err);
}

static void nccl_close_comm(struct comm *c)
{
	struct comm_nccl *n = nccl_of(c);

	collective_table_free(&n->table);

	if (n->stream)
		gpu_stream_wait(n->stream, NULL);
	if (n->team->close)
		n->team->close(n->team);
	gpu_event_destroy(&n->ready);
	gpu_event_destroy(&n->done);
	gpu_event_destroy(&n->from);
	gpu_event_destroy(&n->to);
	gpu_stream_destroy(&n->stream);
	flight_words_stop(&n->words);
	if (n->rounded)
		gpu_free(gpu_backend_device(n->back), &n->rounded);
	free(n);
}

static const struct comm_ops nccl_ops = {
	.name = "NCCL",
	.all_reduce = nccl_all_reduce,
	.reduce_scatter = nccl_reduce_scatter,
	.all_gather = nccl_all_gather,
	.broadcast = nccl_broadcast,
	.wait = nccl_wait,
	.gather = nccl_gather,
	.collect = nccl_collect,
	.share = nccl_share,
	.part = nccl_part,
	.close = nccl_close_comm,
};

uint64_t comm_nccl_bytes(uint64_t communicators, enum dtype travels)
{
	return NCCL_BYTES + communicators * COMMUNICATOR_BYTES +
	       (travels == DTYPE_BF16 ? dtype_bytes(DTYPE_BF16, PIECE) : 0);
}

enum status comm_nccl_open(struct comm **out, struct team *team, struct error *err)
{
	struct comm_nccl *n = calloc(1, sizeof(*n));
	char version[24];
	enum status st;

	*out = NULL;
	if (!n)
		return error_errno(err, ENOMEM, "the communication of ranks");
	n->comm = (struct comm){.ops = &nccl_ops, .rank = team->rank, .size = team->size};
	n->team = team;
	st = team_nccl_open(team, err);
	if (!st)
		st = collective_table_create(&n->table, team, err);
	if (st) {
		free(n);
		return st;
	}
	nccl_version_text(team_nccl_table(team), version, sizeof(version));
	snprintf(n->comm.library, sizeof(n->comm.library), "NCCL %s", version);
	team->stop = NULL; /* from now on, requests to stop travel with the sums of a step */
	team->limit_ms = LIMIT_MS;
	*out = &n->comm;
	return STATUS_OK;
}

enum status comm_nccl_device(struct comm *c, struct backend *back, struct error *err)
{
	static const struct team_comm_spec spec = {0};
	struct comm_nccl *n = nccl_of(c);
	struct gpu_device *d = gpu_backend_device(back);
	enum status st = gpu_stream_create(d, &n->stream, err);

	n->back = back;
	if (!st)
		st = gpu_event_create(d, &n->ready, err);
	if (!st)
		st = gpu_event_create(d, &n->done, err);
	if (!st)
		st = gpu_event_create(d, &n->from, err);
	if (!st)
		st = gpu_event_create(d, &n->to, err);
	if (!st && c->travels == DTYPE_BF16)
		st = gpu_alloc(d, &n->rounded, dtype_bytes(DTYPE_BF16, PIECE), err);
	n->words = (struct flight_words){.team = n->team, .device = d, .stream = n->stream};
	st = flight_words_start(&n->words, st, err);
	return st ? st : team_nccl_comm(n->team, &spec, &n->ranks, err);
}

/* -- groups -- */

/* Host numbers pass the connections of all ranks, which call this together. */
static enum status group_gather(struct comm *c, const void *mine, size_t size, void *all, struct error *err)
{
	struct comm_nccl *n = nccl_of(c);
	uint8_t *everyone = malloc(size * n->team->size);
	enum status st =
		everyone ? STATUS_OK : error_errno(err, ENOMEM, "figures of %u ranks", n->team->size);

	if (!st)
		st = n->all->comm.ops->gather(&n->all->comm, mine, size, everyone, err);
	for (unsigned i = 0; !st && i < c->size; i++)
		memcpy((uint8_t *)all + i * size,
		       everyone + (n->members.first + i * n->members.stride) * size, size);
	free(everyone);
	return st;
}

/* The communicator lives as long as the team. */
static void group_close(struct comm *c)
{
	struct comm_nccl *n = nccl_of(c);

	gpu_stream_wait(n->stream, NULL);
	if (is_apart(n)) {
		gpu_event_destroy(&n->ready);
		gpu_event_destroy(&n->done);
	}
	free(n);
}

static enum status group_device(struct comm_nccl *n, struct error *err)
{
	struct gpu_device *d = gpu_backend_device(n->back);
	enum status st = gpu_event_create(d, &n->ready, err);

	if (!st)
		st = gpu_event_create(d, &n->done, err);
	return team_agree(n->team, st, err);
}

static const struct comm_ops group_ops = {
	.name = "NCCL",
	.all_reduce = nccl_all_reduce,
	.reduce_scatter = nccl_reduce_scatter,
	.all_gather = nccl_all_gather,
	.broadcast = nccl_broadcast,
	.wait = nccl_wait,
	.gather = group_gather,
	.close = group_close,
};

enum status comm_nccl_group(struct comm **out, struct comm *all, const struct comm_members *members,
			    struct error *err)
{
	struct comm_nccl *a = nccl_of(all), *n = calloc(1, sizeof(*n));
	enum status st =
		n ? STATUS_OK : error_errno(err, ENOMEM, "the communication of %u ranks", members->count);

	*out = NULL;
	st = team_agree(a->team, st, err);
	if (st) {
		free(n);
		return st;
	}
	*n = (struct comm_nccl){
		.comm = {.ops = &group_ops,
			 .rank = (all->rank - members->first) / members->stride,
			 .size = members->count,
			 .layer = -1},
		.team = a->team,
		.back = a->back,
		.stream = a->stream,
		.all = a,
		.members = *members,
	};
	if (members->alike) {
		n->table = a->table;
		n->ready = a->ready;
		n->rounded = a->rounded;
	} else {
		st = group_device(n, err);
	}
	if (!st)
		st = team_nccl_group(a->team, members->first, members->stride, members->count, &n->ranks,
				     err);
	if (st)
		group_close(&n->comm);
	else
		*out = &n->comm;
	return st;
}
