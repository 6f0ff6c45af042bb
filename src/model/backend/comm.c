/* SPDX-License-Identifier: Apache-2.0 */
#include "model/backend/comm.h"
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { SUM_AT_ONCE = 1024, TEXT = 400 };

enum status comm_part(struct comm *c, const char *name, uint64_t number, uint64_t shape, struct error *err)
{
	return c && c->ops->part ? c->ops->part(c, name, number, shape, err) : STATUS_OK;
}

enum status comm_sum(struct comm *c, double *values, size_t count, struct error *err)
{
	double *all = c ? malloc((size_t)c->size * SUM_AT_ONCE * sizeof(*all)) : NULL;
	enum status st = STATUS_OK;

	if (!c)
		return STATUS_OK;
	if (!all)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory for sums of %u ranks", c->size);
	for (size_t at = 0, n; at < count && !st; at += n) {
		n = count - at < SUM_AT_ONCE ? count - at : SUM_AT_ONCE;
		st = c->ops->gather(c, values + at, n * sizeof(*values), all, err);
		for (size_t i = 0; i < n && !st; i++) {
			values[at + i] = all[i];
			for (unsigned r = 1; r < c->size; r++)
				values[at + i] += all[r * n + i];
		}
	}
	free(all);
	return st;
}

/* Copies what rank 0 got of each rank's bytes [at, at + n) of its range to their place. */
static void spread(const struct comm *c, const char *got, char *all, const size_t *border, size_t at,
		   size_t n)
{
	for (unsigned r = 0; r < c->size; r++) {
		const size_t count = border[r + 1] - border[r], rest = count > at ? count - at : 0;

		memcpy(all + border[r] + (rest ? at : 0), got + r * n, rest < n ? rest : n);
	}
}

/* Through gathers, which give the ranges to all. */
static enum status collect_by_gather(struct comm *c, const void *mine, void *all, const size_t *border,
				     struct error *err)
{
	const size_t own = border[c->rank + 1] - border[c->rank];
	char *piece = calloc(1, COMM_GATHER_MAX), *got = malloc((size_t)c->size * COMM_GATHER_MAX);
	size_t most = 0;
	enum status st = STATUS_OK;

	if (!piece || !got)
		st = error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				     "no memory for a gather of %u ranks", c->size);
	for (unsigned r = 0; r < c->size; r++)
		most = border[r + 1] - border[r] > most ? border[r + 1] - border[r] : most;
	for (size_t at = 0, n; at < most && !st; at += n) {
		const size_t rest = own > at ? own - at : 0;

		n = most - at < COMM_GATHER_MAX ? most - at : COMM_GATHER_MAX;
		if (rest)
			memcpy(piece, (const char *)mine + at, rest < n ? rest : n);
		st = c->ops->gather(c, piece, n, got, err);
		if (!st && all)
			spread(c, got, all, border, at, n);
	}
	free(piece);
	free(got);
	return st;
}

enum status comm_collect(struct comm *c, const void *mine, void *all, const size_t *border, struct error *err)
{
	return c->ops->collect ? c->ops->collect(c, mine, all, border, err)
			       : collect_by_gather(c, mine, all, border, err);
}

/* In one gather. `room`: for the numbers of all ranks, and of this one. */
static enum status sum_each_at_once(struct comm *c, double *values, size_t count, const double *mine,
				    size_t each, double *all, double *room, struct error *err)
{
	const size_t n = count + each;
	double *own = room + c->size * n;
	enum status st;

	memcpy(own, values, count * sizeof(*own));
	memcpy(own + count, mine, each * sizeof(*own));
	st = c->ops->gather(c, own, n * sizeof(*own), room, err);
	for (size_t i = 0; i < count && !st; i++) {
		values[i] = room[i];
		for (unsigned r = 1; r < c->size; r++)
			values[i] += room[r * n + i];
	}
	for (unsigned r = 0; r < c->size && !st; r++)
		memcpy(all + r * each, room + r * n + count, each * sizeof(*all));
	return st;
}

enum status comm_sum_each(struct comm *c, double *values, size_t count, const double *mine, size_t each,
			  double *all, struct error *err)
{
	double *room;
	enum status st;

	if (!c)
		memcpy(all, mine, each * sizeof(*all));
	if (!c)
		return STATUS_OK;
	if ((count + each) * sizeof(double) > COMM_GATHER_MAX) {
		st = comm_sum(c, values, count, err);
		return st ? st : c->ops->gather(c, mine, each * sizeof(*mine), all, err);
	}
	room = calloc((size_t)c->size + 1, (count + each) * sizeof(*room));
	if (!room)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory for figures of %u ranks", c->size);
	st = sum_each_at_once(c, values, count, mine, each, all, room, err);
	free(room);
	return st;
}

struct comm *comm_shards(struct comm *c)
{
	return c->shards ? c->shards : c;
}

struct answer {
	uint32_t status, cause;
	char text[TEXT];
};

enum status comm_agree(struct comm *c, enum status mine, struct error *err)
{
	bool alike = true;
	struct answer own = {.status = mine, .cause = mine && err ? (uint32_t)err->cause : 0}, *all, *worst;
	struct error lost = {0};
	enum status st;

	if (!c)
		return mine;
	all = calloc(c->size, sizeof(*all));
	if (!all)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory for the answers of %u ranks", c->size);
	if (mine && err)
		snprintf(own.text, sizeof(own.text), "%.*s", TEXT - 1, err->text);
	st = c->ops->gather(c, &own, sizeof(own), all, &lost);
	worst = all;
	for (unsigned r = 1; r < c->size && !st; r++) {
		alike = alike && all[r].status == all->status && !strcmp(all[r].text, all->text);
		if (all[r].status > worst->status)
			worst = &all[r];
	}
	if (!st && worst->status) {
		st = (enum status)worst->status;
		worst->text[TEXT - 1] = '\0';
		error_clear(err);
		if (!alike && strncmp(worst->text, "rank ", 5))
			error_set_cause(err, st, (enum cause)worst->cause, "rank %u: %s",
					(unsigned)(worst - all), worst->text);
		else
			error_set_cause(err, st, (enum cause)worst->cause, "%s", worst->text);
	} else if (st && mine) {
		st = mine; /* its own message says more than a lost rank */
	} else if (st) {
		error_set_cause(err, st, lost.cause, "%s", lost.text);
	}
	free(all);
	return st;
}
