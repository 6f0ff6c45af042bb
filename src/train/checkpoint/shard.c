/* SPDX-License-Identifier: Apache-2.0 */
#include "train/checkpoint/shard.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include "core/file/file.h"
#include "model/tensor/dtype.h"

#define SHARD_NAME "optimizer-%05u-of-%05u.bin"

/* As arena allocations are aligned. */
static uint64_t room(uint64_t bytes)
{
	return (bytes + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
}

static uint64_t state_bytes(const struct mat *state)
{
	return state->rows ? dtype_bytes(state->dtype, (uint64_t)state->cols) : 0;
}

void shard_range(size_t *begin, size_t *end, size_t length, unsigned rank, unsigned ranks)
{
	const size_t each = length / ranks, rest = length % ranks;

	*begin = rank * each + rank * rest / ranks;
	*end = (rank + 1) * each + (rank + 1) * rest / ranks;
}

static struct mat part_of(const struct params *p, size_t begin, size_t end, enum params_state which,
			  size_t *first)
{
	const struct params_range part = params_part(p, begin, end, which);
	struct params copy = *p;
	struct mat m = *params_state(&copy, which);

	*first = part.first;
	m.rows = part.count > 0;
	m.cols = m.ld = (int64_t)part.count;
	return m;
}

void shard_view(struct shard *s, const struct params *p, size_t begin, size_t end)
{
	size_t first;

	*s = (struct shard){.begin = begin, .end = end};
	for (int i = 0; i < PARAMS_STATE_COUNT; i++) {
		struct mat *m = &s->state[i];

		*m = part_of(p, begin, end, (enum params_state)i, &first);
		if (m->rows && m->data)
			m->data = (uint8_t *)m->data +
				  dtype_bytes(m->dtype, first - params_first(p, (enum params_state)i));
	}
}

void shard_place(struct shard *s, const struct params *p, size_t begin, size_t end, void *memory)
{
	uint8_t *at = memory;

	shard_view(s, p, begin, end);
	for (int i = 0; i < PARAMS_STATE_COUNT; i++) {
		if (params_state_offloaded(p, (enum params_state)i))
			continue;
		s->state[i].data = s->state[i].rows ? at : NULL;
		if (memory)
			at += room(state_bytes(&s->state[i]));
	}
}

uint64_t shard_bytes(const struct params *p, size_t begin, size_t end)
{
	uint64_t sum = 0;
	size_t first;

	for (int i = 0; i < PARAMS_STATE_COUNT; i++) {
		const struct mat m = part_of(p, begin, end, (enum params_state)i, &first);

		if (!params_state_offloaded(p, (enum params_state)i))
			sum += room(state_bytes(&m));
	}
	return sum;
}

/* [{"name","count","offset"}]: a state's elements, and its place in the file. */
static json_t *states_json(const struct shard *s, uint64_t *bytes)
{
	json_t *list = json_array();

	*bytes = 0;
	for (int i = 0; i < PARAMS_STATE_COUNT; i++) {
		const struct mat *m = &s->state[i];

		if (!m->rows)
			continue;
		json_array_append_new(list, json_pack("{s:s, s:I, s:I}", "name",
						      params_state_name((enum params_state)i), "count",
						      (json_int_t)m->cols, "offset", (json_int_t)*bytes));
		*bytes += state_bytes(m);
	}
	return list;
}

static enum status write_states(const char *path, const struct shard *s, struct error *err)
{
	struct file_new f;
	enum status st = file_new_begin(&f, path, err);

	for (int i = 0; i < PARAMS_STATE_COUNT && !st; i++)
		if (s->state[i].rows)
			st = file_new_write(&f, s->state[i].data, state_bytes(&s->state[i]), err);
	return file_new_end(&f, st, err);
}

enum status shard_write(json_t **report, const char *dir, const struct shard *s, unsigned rank,
			unsigned ranks, struct error *err)
{
	char path[PATH_MAX + 96], name[64], sum[65];
	uint64_t bytes;
	json_t *states;
	enum status st;

	*report = NULL;
	snprintf(name, sizeof(name), SHARD_NAME, rank + 1, ranks);
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	st = write_states(path, s, err);
	if (!st)
		st = file_sha256_of(sum, path, err);
	if (st)
		return st;
	states = states_json(s, &bytes);
	*report = json_pack("{s:i, s:s, s:I, s:I, s:I, s:s, s:o}", "rank", (int)rank, "file", name, "begin",
			    (json_int_t)s->begin, "count", (json_int_t)(s->end - s->begin), "bytes",
			    (json_int_t)bytes, "sha256", sum, "states", states);
	return *report ? STATUS_OK : error_errno(err, ENOMEM, "%s", path);
}
