/* SPDX-License-Identifier: Apache-2.0 */
#include "train/data/sampler.h"

#include "core/math/random.h"
#include "train/data/deal.h"

/* Separate random streams of the seed. */
enum { STREAM_ROWS = 0x726f7773, STREAM_PACKS = 0x7061636b };

static uint64_t key_of(const struct sampler *s, uint32_t stream, uint64_t epoch, uint64_t index)
{
	uint64_t at = (epoch << 32 | index) * 2;

	if (!s->shuffle)
		return index;
	return (uint64_t)random_u32(s->seed, stream, at) << 32 | random_u32(s->seed, stream, at + 1);
}

struct place {
	uint64_t key;
	uint32_t pack;
};

static int by_key(const void *a_, const void *b_)
{
	const struct place *a = a_, *b = b_;

	if (a->key != b->key)
		return a->key < b->key ? -1 : 1;
	return a->pack < b->pack ? -1 : a->pack > b->pack;
}

/* Without shuffling, packs are ordered by their first row. */
static uint32_t first_row(const struct packs *p, uint64_t pack)
{
	uint32_t first = UINT32_MAX;

	for (uint64_t i = p->begin[pack]; i < p->begin[pack + 1]; i++)
		first = p->row[i] < first ? p->row[i] : first;
	return first;
}

static enum status put_in_order(struct sampler_epoch *e, const struct sampler *s, uint64_t epoch,
				struct error *err)
{
	struct place *places = malloc((e->packs.count + 1) * sizeof(*places));

	e->order = malloc((e->packs.count + 1) * sizeof(*e->order));
	if (!places || !e->order) {
		free(places);
		return error_set(err, STATUS_NO_RESOURCE, "the order of an epoch");
	}
	for (uint64_t i = 0; i < e->packs.count; i++)
		places[i] = (struct place){
			.key = key_of(s, STREAM_PACKS, epoch, s->shuffle ? i : first_row(&e->packs, i)),
			.pack = (uint32_t)i};
	qsort(places, e->packs.count, sizeof(*places), by_key);
	for (uint64_t i = 0; i < e->packs.count; i++)
		e->order[i] = places[i].pack;
	free(places);
	return STATUS_OK;
}

static uint64_t packs_per_step(const struct sampler *s)
{
	return s->packs_per_micro * s->micros * s->world;
}

/* Deals the packs of each step by tokens. */
static enum status deal(struct sampler_epoch *e, const struct sampler *s, const uint64_t *begin,
			struct error *err)
{
	uint64_t *tokens = calloc(e->packs.count + 1, sizeof(*tokens));
	enum status st = STATUS_OK;

	if (!tokens)
		return error_set(err, STATUS_NO_RESOURCE, "the order of an epoch");
	for (uint64_t i = 0; i < e->packs.count; i++)
		for (uint64_t k = e->packs.begin[e->order[i]]; k < e->packs.begin[e->order[i] + 1]; k++)
			tokens[i] += begin[e->packs.row[k] + 1] - begin[e->packs.row[k]];
	for (uint64_t step = 0; step < sampler_steps(s, e) && !st; step++) {
		const struct sampler_span span = sampler_step(s, e, step);

		st = deal_order(e->order + span.first, tokens + span.first, span.last - span.first, err);
	}
	free(tokens);
	return st;
}

enum status sampler_epoch_make(struct sampler_epoch *e, const struct sampler *s, uint64_t epoch,
			       const uint64_t *begin, uint64_t rows, struct error *err)
{
	uint64_t *key = malloc((rows + 1) * sizeof(*key));
	enum status st;

	*e = (struct sampler_epoch){0};
	if (!key)
		return error_set(err, STATUS_NO_RESOURCE, "the order of an epoch");
	for (uint64_t i = 0; i < rows; i++)
		key[i] = key_of(s, STREAM_ROWS, epoch, i);
	st = packs_make(&e->packs, begin, rows, s->room, key, err);
	free(key);
	if (!st)
		st = put_in_order(e, s, epoch, err);
	if (!st && s->deal)
		st = deal(e, s, begin, err);
	if (st)
		sampler_epoch_release(e);
	return st;
}

void sampler_epoch_release(struct sampler_epoch *e)
{
	packs_release(&e->packs);
	free(e->order);
	*e = (struct sampler_epoch){0};
}

uint64_t sampler_steps(const struct sampler *s, const struct sampler_epoch *e)
{
	return (e->packs.count + packs_per_step(s) - 1) / packs_per_step(s);
}

struct sampler_span sampler_step(const struct sampler *s, const struct sampler_epoch *e, uint64_t step)
{
	uint64_t first = step * packs_per_step(s), last = first + packs_per_step(s);

	return (struct sampler_span){first, last < e->packs.count ? last : e->packs.count};
}

struct sampler_span sampler_rank(const struct sampler *s, struct sampler_span step)
{
	const struct deal_range own = deal_range_of(step.last - step.first, s->world, s->rank);

	return (struct sampler_span){step.first + own.first, step.first + own.last};
}

uint64_t sampler_micros(const struct sampler *s, struct sampler_span step)
{
	const struct sampler_span own = sampler_rank(s, step);

	return (own.last - own.first + s->packs_per_micro - 1) / s->packs_per_micro;
}

uint64_t sampler_micros_most(const struct sampler *s, struct sampler_span step)
{
	struct sampler one = *s;
	uint64_t most = 0;

	for (one.rank = 0; one.rank < s->world; one.rank++) {
		const uint64_t micros = sampler_micros(&one, step);

		most = micros > most ? micros : most;
	}
	return most;
}

struct sampler_span sampler_micro(const struct sampler *s, struct sampler_span step, uint64_t micro)
{
	const struct sampler_span own = sampler_rank(s, step);
	uint64_t first = own.first + micro * s->packs_per_micro, last;

	first = first < own.last ? first : own.last;
	last = first + s->packs_per_micro;
	return (struct sampler_span){first, last < own.last ? last : own.last};
}
