/* SPDX-License-Identifier: Apache-2.0 */
#include "team/links/wait_board.h"
#include <stdbool.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/clock.h"
#include "core/text/text.h"
#include "team/links/flight.h"

#define X(name, text) text,
static const char *const ops[] = {TEAM_OPS(X)};
static const char *const calls[] = {TEAM_CALLS(X)};
#undef X

/* The entries, and behind them the flight record of a training rank. */
enum { BOARD_SIZE = TEAM_BOARD_RANKS * sizeof(struct team_board) + sizeof(struct team_flight) };

/* A wait that ended longer ago is not related to the reported event. */
#define JUST_NS UINT64_C(3000000000)

/* Sealed, because if a child could truncate it, a read would crash the supervisor. */
struct team_board *team_board_create(int *fd)
{
	void *memory = MAP_FAILED;

	*fd = memfd_create("assay board", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (*fd >= 0 && !ftruncate(*fd, BOARD_SIZE) &&
	    !fcntl(*fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		memory = mmap(NULL, BOARD_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
	if (memory != MAP_FAILED)
		return memory;
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	return NULL;
}

struct team_board *team_board_open(int fd)
{
	struct stat info;
	void *memory;

	if (fstat(fd, &info) || info.st_size != BOARD_SIZE)
		return NULL;
	memory = mmap(NULL, BOARD_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return memory == MAP_FAILED ? NULL : memory;
}

void team_board_destroy(struct team_board **b, int *fd)
{
	if (*b)
		munmap(*b, BOARD_SIZE);
	if (*fd > 0)
		close(*fd);
	*b = NULL;
	*fd = -1;
}

void team_board_take(struct team_board *b, unsigned rank)
{
	if (!b)
		return;
	atomic_store(&b->rank, rank);
	atomic_store(&b->used, 1);
	team_at(b, TEAM_OP_IDLE);
}

void team_at(struct team_board *b, enum team_op op)
{
	uint64_t now, took;
	uint32_t was;

	if (!b || (was = atomic_load_explicit(&b->op, memory_order_relaxed)) == (uint32_t)op)
		return;
	now = clock_now_ns(clock_monotonic());
	took = now - atomic_load_explicit(&b->since_ns, memory_order_relaxed);
	if (was != TEAM_OP_IDLE && took >= TEAM_LONG_NS) {
		atomic_store_explicit(&b->long_op, was, memory_order_relaxed);
		atomic_store_explicit(&b->long_ns, took, memory_order_relaxed);
		atomic_store_explicit(&b->long_end_ns, now, memory_order_relaxed);
	}
	atomic_store_explicit(&b->since_ns, now, memory_order_relaxed);
	atomic_store_explicit(&b->op, op, memory_order_release);
	atomic_fetch_add_explicit(&b->sequence, 1, memory_order_relaxed);
}

void team_call(struct team_board *b, enum team_call call)
{
	if (b)
		atomic_store_explicit(&b->call, (uint32_t)call, memory_order_release);
}

const char *team_board_call(const struct team_board *board, unsigned lines)
{
	for (unsigned i = 0; i < lines && i < TEAM_BOARD_RANKS; i++) {
		uint32_t call = atomic_load(&board[i].call);

		if (call > TEAM_CALL_NONE && call < TEAM_CALL_COUNT)
			return calls[call];
	}
	return "";
}

struct standing {
	unsigned rank, op;
	double s;
	bool others; /* it waits for other ranks, so the cause is in another entry */
};

static int by_weight(const void *a, const void *b)
{
	const struct standing *x = a, *y = b;

	if (x->others != y->others)
		return x->others ? 1 : -1;
	if (x->op != y->op)
		return x->op < y->op ? -1 : 1;
	return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* The current wait, or one that ended a moment ago, whichever took longer. */
static void read_wait(struct standing *out, const struct team_board *b, uint64_t now_ns)
{
	uint64_t since = atomic_load(&b->since_ns), took = atomic_load(&b->long_ns);
	uint64_t end = atomic_load(&b->long_end_ns);

	if (since <= now_ns && (out->op = atomic_load(&b->op)) != TEAM_OP_IDLE)
		out->s = (double)(now_ns - since) * 1e-9;
	if (end && end <= now_ns && now_ns - end <= JUST_NS && took <= end && (double)took * 1e-9 > out->s) {
		out->op = atomic_load(&b->long_op);
		out->s = (double)took * 1e-9;
	}
}

static bool read_line(struct standing *out, const struct team_board *b, uint64_t now_ns)
{
	*out = (struct standing){.rank = atomic_load(&b->rank), .op = TEAM_OP_IDLE};
	if (atomic_load(&b->used) != 1 || out->rank >= 65536)
		return false;
	read_wait(out, b, now_ns);
	out->others = out->op == TEAM_OP_AGREE || out->op == TEAM_OP_COMMAND || out->op == TEAM_OP_ANSWER;
	return out->op != TEAM_OP_IDLE && out->op < TEAM_OP_COUNT;
}

/* "rank 3", "ranks 0 to 2", "ranks 0, 2": the ranks of one op; at most eight are named. */
static void name_ranks(struct text *t, const struct standing *s, unsigned count)
{
	text_addf(t, count > 1 ? "ranks %u" : "rank %u", s[0].rank);
	if (count > 1 && s[count - 1].rank - s[0].rank == count - 1)
		text_addf(t, " to %u", s[count - 1].rank);
	else
		for (unsigned i = 1; i < count && i < 8; i++)
			text_addf(t, ", %u", s[i].rank);
	if (count > 8 && s[count - 1].rank - s[0].rank != count - 1)
		text_addf(t, " and %u others", count - 8);
}

void team_board_text(char *out, size_t size, const struct team_board *board, unsigned lines, uint64_t now_ns)
{
	struct standing s[TEAM_BOARD_RANKS];
	struct text t = {0};
	unsigned count = 0;

	*out = '\0';
	for (unsigned i = 0; i < lines && i < TEAM_BOARD_RANKS; i++)
		count += read_line(&s[count], &board[i], now_ns);
	qsort(s, count, sizeof(*s), by_weight);
	for (unsigned i = 0, n; i < count; i += n) {
		double longest = 0;

		for (n = 0; i + n < count && s[i + n].op == s[i].op; n++)
			longest = s[i + n].s > longest ? s[i + n].s : longest;
		if (i)
			text_addf(&t, ", ");
		name_ranks(&t, &s[i], n);
		text_addf(&t, " waited %.1f s in %s", longest, ops[s[i].op]);
	}
	if (!t.failed && t.size)
		text_copy(out, size, text_str(&t));
	text_release(&t);
}
