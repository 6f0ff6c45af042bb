/* SPDX-License-Identifier: Apache-2.0 */
#include "run/plan/duplicates.h"
#include <stdlib.h>
#include <string.h>
#include "core/math/fnv1a.h"

static uint64_t hash_of(const struct bench_case *c)
{
	uint64_t hash = fnv1a_add(FNV1A_BEGIN, c->key, strlen(c->key));

	hash = fnv1a_add(hash, &c->round, sizeof(c->round));
	return fnv1a_add(hash, &c->phases, sizeof(c->phases));
}

/* Only these cases can have duplicates: runnable, in order, on GPUs. */
static bool counts(const struct bench_case *c)
{
	return !c->order && !c->skip && c->target.gpu_count &&
	       (c->target.kind == TARGET_GPU || c->target.kind == TARGET_NODE ||
		c->target.kind == TARGET_TEAM);
}

static void put(struct plan_duplicates *seen, size_t i)
{
	size_t *bucket = &seen->bucket[seen->row[i].hash & (seen->room - 1)];

	seen->row[i].next = *bucket;
	*bucket = i + 1;
}

/* There are as many buckets as rows, so both double. */
static bool grow(struct plan_duplicates *seen)
{
	size_t room = seen->room ? 2 * seen->room : 64;
	void *rows = realloc(seen->row, room * sizeof(*seen->row));
	size_t *buckets = rows ? calloc(room, sizeof(*buckets)) : NULL;

	if (rows)
		seen->row = rows;
	if (!buckets)
		return false;
	free(seen->bucket);
	seen->bucket = buckets;
	seen->room = room;
	for (size_t i = 0; i < seen->count; i++)
		put(seen, i);
	return true;
}

bool plan_duplicates_add(struct plan_duplicates *seen, const struct bench_case *c, size_t step, size_t place)
{
	if (!counts(c))
		return true;
	if (seen->count == seen->room && !grow(seen))
		return false;
	seen->row[seen->count] =
		(struct plan_duplicates_row){.hash = hash_of(c), .step = step, .place = place};
	put(seen, seen->count++);
	return true;
}

const struct bench_case *plan_duplicates_find(const struct plan_duplicates *seen, const struct plan *p,
					      const struct bench_case *c,
					      bool (*same)(void *arg, const struct bench_case *have),
					      void *arg)
{
	const struct bench_case *first = NULL;
	uint64_t hash = hash_of(c);

	for (size_t i = seen->room && counts(c) ? seen->bucket[hash & (seen->room - 1)] : 0; i;) {
		const struct plan_duplicates_row *row = &seen->row[i - 1];
		const struct bench_case *have = &p->steps[row->step].cases[row->place];

		if (row->hash == hash && have->round == c->round && have->phases == c->phases &&
		    !strcmp(have->key, c->key) && same(arg, have))
			first = first && first->id < have->id ? first : have;
		i = row->next;
	}
	return first;
}

void plan_duplicates_release(struct plan_duplicates *seen)
{
	free(seen->row);
	free(seen->bucket);
	*seen = (struct plan_duplicates){0};
}
