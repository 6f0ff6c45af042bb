/* SPDX-License-Identifier: Apache-2.0 */
#include "train/mesh/collective_table.h"
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include "core/clock.h"
#include "core/text/text.h"
#include "model/backend/comm.h"
#include "model/tensor/dtype.h"

/* LIMIT_MS: the silence of a hanging rank ends the others, so this limit is never the first. GRACE_NS: the
 * supervisor of a lost rank knows more about its end than the ranks that miss it. */
enum { TABLES = 32, NAME = 16, LIMIT_MS = 1000000000 };
static const uint64_t grace_ns = 3000000000u;

struct table { /* of one kind of part */
	char name[NAME];
	uint64_t shape, hash, used; /* used: number of the last part with it; 0: never */
	struct collective *list;
	size_t count, room;
};

/* What the ranks compare when a part begins, and before a collective that is not in a table yet. */
struct announced {
	char name[NAME];
	uint64_t number, shape, hash, index, kind, type, bytes;
	uint32_t known, entering;
};

struct collective_table {
	struct team team; /* for the connections; without a wait board, which belongs to another thread */
	struct table tables[TABLES];
	struct table *now; /* of this part; NULL: nothing is kept */
	char name[NAME];   /* of this part */
	uint64_t number, parts, index, gathers;
	bool known; /* the table of this part is agreed on */
	struct announced mine, *all;
	pthread_t thread;
	bool running; /* the thread compares the beginning of this part */
	struct error err;
};

static uint64_t hash_more(uint64_t h, uint64_t value)
{
	for (int i = 0; i < 8; i++)
		h = (h ^ (value >> (8 * i) & 0xff)) * UINT64_C(1099511628211); /* FNV-1a */
	return h;
}

static uint64_t hash_of(const struct table *t)
{
	uint64_t h = UINT64_C(14695981039346656037);

	for (size_t i = 0; i < t->count; i++) {
		h = hash_more(h, t->list[i].kind);
		h = hash_more(h, t->list[i].type);
		h = hash_more(h, t->list[i].bytes);
	}
	return h;
}

/* -- words -- */

static void name_one(char *out, size_t size, const struct announced *a)
{
	const char *text =
		a->kind < TEAM_FLIGHT_COUNT ? team_flight_text((enum team_flight_kind)a->kind) : "unknown";
	const char *type = a->type && a->type <= DTYPE_COUNT ? dtype_name((enum dtype)(a->type - 1)) : "";

	if (a->entering)
		snprintf(out, size, "%s, %" PRIu64 " bytes%s%s", text, a->bytes, *type ? " of " : "", type);
	else
		snprintf(out, size, "%.15s %" PRIu64 " with shape %" PRIu64 " and %s %016" PRIx64, a->name,
			 a->number, a->shape, a->known ? "table" : "no table", a->hash);
}

static bool alike(const struct announced *a, const struct announced *b)
{
	return !memcmp(a, b, sizeof(*a));
}

/* The announcement that most ranks made; with equal numbers, that of the lowest rank. */
static unsigned common(const struct announced *all, unsigned size)
{
	unsigned best = 0, most = 0;

	for (unsigned r = 0; r < size && most <= size / 2; r++) {
		unsigned same = 0;

		for (unsigned other = 0; other < size; other++)
			same += alike(&all[r], &all[other]);
		if (same > most) {
			most = same;
			best = r;
		}
	}
	return best;
}

/* Names the first rank that differs from the others. */
static enum status compare(const struct collective_table *t, struct error *err)
{
	const unsigned size = t->team.size, usual = common(t->all, size);
	char here[120], there[120], others[48];
	unsigned odd = size, same = 0;

	for (unsigned r = 0; r < size; r++) {
		const bool is = alike(&t->all[r], &t->all[usual]);

		same += is;
		if (!is && odd == size)
			odd = r;
	}
	if (odd == size)
		return STATUS_OK;
	name_one(here, sizeof(here), &t->all[odd]);
	name_one(there, sizeof(there), &t->all[usual]);
	if (same == 1)
		snprintf(others, sizeof(others), "rank %u", usual);
	else
		snprintf(others, sizeof(others), "%u other ranks", same);
	if (!t->all[odd].entering || !t->all[usual].entering)
		return error_set(err, STATUS_BUG,
				 "rank %u begins another part of the run: %s; %s: %s; training stops before "
				 "its collectives",
				 odd, here, others, there);
	return error_set(err, STATUS_BUG,
			 "rank %u asks for another collective: number %" PRIu64 " of %.15s %" PRIu64
			 " is (%s), and (%s) on %s; training stops before it is entered",
			 odd, t->index + 1, t->name, t->number, here, there, others);
}

/* This rank leaves the agreed table. */
static enum status departs(const struct collective_table *t, const struct collective *c, struct error *err)
{
	const struct announced own = {
		.kind = c ? c->kind : 0, .type = c ? c->type : 0, .bytes = c ? c->bytes : 0, .entering = 1};
	const struct collective *agreed = t->index < t->now->count ? &t->now->list[t->index] : NULL;
	char here[120] = "missing", there[120] = "none";

	if (c)
		name_one(here, sizeof(here), &own);
	if (agreed)
		name_one(there, sizeof(there),
			 &(struct announced){.kind = agreed->kind,
					     .type = agreed->type,
					     .bytes = agreed->bytes,
					     .entering = 1});
	return error_set(
		err, STATUS_BUG,
		"%s asks for another collective: number %" PRIu64 " of %.15s %" PRIu64
		" is (%s), and (%s) in the table that all ranks agreed on; training stops before it is "
		"entered",
		t->team.name, t->index + 1, t->name, t->number, here, there);
}

/* -- comparing -- */

static enum status gather(struct collective_table *t, struct error *err)
{
	enum status st;

	t->gathers++;
	st = team_gather(&t->team, &t->mine, sizeof(t->mine), t->all, err);
	if (st) /* the supervisors know how the missing rank ended, and end this process */
		clock_sleep_ns(clock_monotonic(), grace_ns);
	return st ? st : compare(t, err);
}

static void *compare_part(void *arg)
{
	struct collective_table *t = arg;

	gather(t, &t->err);
	return NULL;
}

enum status collective_table_quiet(struct collective_table *t, struct error *err)
{
	if (t->running)
		pthread_join(t->thread, NULL);
	t->running = false;
	return t->err.status ? error_set_cause(err, t->err.status, t->err.cause, "%s", t->err.text)
			     : STATUS_OK;
}

/* The table of this kind of part, or the one that was not used for the longest time. */
static struct table *table_of(struct collective_table *t, const char *name, uint64_t shape)
{
	struct table *oldest = t->tables;

	for (size_t i = 0; i < TABLES; i++) {
		struct table *one = &t->tables[i];

		if (one->used && !strcmp(one->name, name) && one->shape == shape)
			return one;
		if (one->used < oldest->used)
			oldest = one;
	}
	oldest->used = 0;
	oldest->count = 0;
	text_copy(oldest->name, sizeof(oldest->name), name);
	oldest->shape = shape;
	return oldest;
}

/* Keeps what was compared one by one, or checks that the part was complete. */
static enum status end_part(struct collective_table *t, struct error *err)
{
	if (!t->now)
		return STATUS_OK;
	if (t->known && t->index != t->now->count)
		return departs(t, NULL, err);
	t->now->hash = hash_of(t->now);
	return STATUS_OK;
}

enum status collective_table_part(struct collective_table *t, const char *name, uint64_t number,
				  uint64_t shape, struct error *err)
{
	enum status st = collective_table_quiet(t, err);
	int failed;

	if (!st)
		st = end_part(t, err);
	if (st)
		return st;
	text_copy(t->name, sizeof(t->name), name);
	t->number = number;
	t->index = 0;
	t->now = NULL;
	t->known = false;
	if (shape == COMM_PART_ONCE)
		return STATUS_OK;
	t->now = table_of(t, name, shape);
	t->known = t->now->used != 0;
	t->now->used = ++t->parts;
	t->mine = (struct announced){
		.number = number, .shape = shape, .hash = t->known ? t->now->hash : 0, .known = t->known};
	text_copy(t->mine.name, sizeof(t->mine.name), name);
	failed = pthread_create(&t->thread, NULL, compare_part, t);
	if (failed)
		return error_errno(err, failed, "a thread that compares the ranks' collectives");
	t->running = true;
	return STATUS_OK;
}

static enum status keep(struct table *t, const struct collective *c, struct error *err)
{
	if (t->count == t->room) {
		const size_t room = t->room ? 2 * t->room : 32;
		struct collective *more = realloc(t->list, room * sizeof(*more));

		if (!more)
			return error_errno(err, ENOMEM, "the table of collectives");
		t->list = more;
		t->room = room;
	}
	t->list[t->count++] = *c;
	return STATUS_OK;
}

enum status collective_table_enter(struct collective_table *t, const struct collective *c, struct error *err)
{
	enum status st = collective_table_quiet(t, err);

	if (st)
		return st;
	if (t->known) {
		const struct collective *agreed = t->index < t->now->count ? &t->now->list[t->index] : NULL;

		if (!agreed || agreed->kind != c->kind || agreed->type != c->type ||
		    agreed->bytes != c->bytes)
			return departs(t, c, err);
		t->index++;
		return STATUS_OK;
	}
	t->mine = (struct announced){.number = t->number,
				     .index = t->index,
				     .kind = c->kind,
				     .type = c->type,
				     .bytes = c->bytes,
				     .entering = 1};
	text_copy(t->mine.name, sizeof(t->mine.name), t->name);
	st = gather(t, err);
	if (!st && t->now)
		st = keep(t->now, c, err);
	t->index++;
	return st;
}

enum status collective_table_create(struct collective_table **out, const struct team *team, struct error *err)
{
	struct collective_table *t = calloc(1, sizeof(*t));

	*out = NULL;
	if (t)
		t->all = calloc(team->size, sizeof(*t->all));
	if (!t || !t->all) {
		free(t);
		return error_errno(err, ENOMEM, "the table of collectives");
	}
	t->team = *team;
	t->team.board = NULL;
	t->team.stop = NULL;
	t->team.limit_ms = LIMIT_MS;
	text_copy(t->name, sizeof(t->name), "start");
	*out = t;
	return STATUS_OK;
}

void collective_table_free(struct collective_table **out)
{
	struct collective_table *t = *out;

	*out = NULL;
	if (!t)
		return;
	if (t->running)
		pthread_join(t->thread, NULL);
	for (size_t i = 0; i < TABLES; i++)
		free(t->tables[i].list);
	free(t->all);
	free(t);
}

uint64_t collective_table_gathers(const struct collective_table *t)
{
	return t->gathers;
}
