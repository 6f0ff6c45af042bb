/* SPDX-License-Identifier: Apache-2.0 */
#include "data/function_calls/holdout.h"

#include "core/math/random.h"

enum { STREAM_HOLDOUT = 0x68616c66 };

/* The representative row of row i's group. Shortens the paths (union-find). */
static size_t head_of(size_t *head, size_t i)
{
	while (head[i] != i) {
		head[i] = head[head[i]];
		i = head[i];
	}
	return i;
}

static void join(size_t *head, size_t a, size_t b)
{
	a = head_of(head, a);
	b = head_of(head, b);
	if (a < b)
		head[b] = a;
	else
		head[a] = b;
}

static const char *name_of(const json_t *tool)
{
	const json_t *function = json_object_get(tool, "function");

	return json_string_value(json_object_get(function ? function : tool, "name"));
}

/* Rows with a function in common get the same representative. */
static void join_rows(size_t *head, const json_t *rows)
{
	json_t *first = json_object(), *row, *tool;
	size_t i, k;

	json_array_foreach(rows, i, row) json_array_foreach(json_object_get(row, "tools"), k, tool)
	{
		const char *name = name_of(tool);
		const json_t *other = name ? json_object_get(first, name) : NULL;

		if (other)
			join(head, i, (size_t)json_integer_value(other));
		else if (name)
			json_object_set_new(first, name, json_integer((json_int_t)i));
	}
	json_decref(first);
}

struct group {
	uint32_t key;
	size_t head, size;
};

static int by_key(const void *a_, const void *b_)
{
	const struct group *a = a_, *b = b_;

	if (a->key != b->key)
		return a->key < b->key ? -1 : 1;
	return a->head < b->head ? -1 : a->head > b->head;
}

enum status holdout_split(bool *held, const json_t *rows, double share, uint64_t seed, struct error *err)
{
	size_t count = json_array_size(rows), left = (size_t)((double)count * share), i;
	size_t *head = malloc((count + 1) * sizeof(*head));
	struct group *groups = calloc(count + 1, sizeof(*groups));
	bool *taken = calloc(count + 1, sizeof(*taken));
	enum status st = STATUS_OK;

	if (!head || !groups || !taken) {
		st = error_set(err, STATUS_NO_RESOURCE, "%zu rows", count);
		goto out;
	}
	for (i = 0; i < count; i++)
		head[i] = i;
	join_rows(head, rows);
	for (i = 0; i < count; i++) {
		groups[i].head = i;
		groups[i].key = random_u32(seed, STREAM_HOLDOUT, i);
		groups[head_of(head, i)].size++;
	}
	qsort(groups, count, sizeof(*groups), by_key);
	for (i = 0; i < count; i++)
		if (groups[i].size && groups[i].size <= left) {
			taken[groups[i].head] = true;
			left -= groups[i].size;
		}
	for (i = 0; i < count; i++)
		held[i] = taken[head_of(head, i)];
out:
	free(head);
	free(groups);
	free(taken);
	return st;
}
