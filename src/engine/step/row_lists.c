/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/step/row_lists.h"
#include <stdlib.h>
#include <string.h>

struct row_lists {
	struct paged_limits most;
	int64_t rows, sequences, outputs, page_ld, keys_most;
	int32_t *token, *position, *slot, *begin, *keys, *output, *adapter;
	bool adapted;
	int32_t *page;		/* [sequences, page_ld], filled at the end */
	const uint32_t **table; /* [sequences] each sequence's pages */
};

enum status row_lists_create(struct row_lists **out, const struct paged_limits *most, struct error *err)
{
	struct row_lists *l = calloc(1, sizeof(*l));
	const size_t rows = (size_t)most->rows, sequences = (size_t)most->sequences;

	*out = l;
	if (l) {
		l->most = *most;
		l->token = calloc(rows, sizeof(*l->token));
		l->position = calloc(rows, sizeof(*l->position));
		l->slot = calloc(rows, sizeof(*l->slot));
		l->adapter = calloc(rows, sizeof(*l->adapter));
		l->begin = calloc(sequences + 1, sizeof(*l->begin));
		l->keys = calloc(sequences, sizeof(*l->keys));
		l->output = calloc((size_t)most->outputs, sizeof(*l->output));
		l->page = calloc(sequences * (size_t)most->pages, sizeof(*l->page));
		l->table = calloc(sequences, sizeof(*l->table));
		if (l->token && l->position && l->slot && l->begin && l->keys && l->output && l->page &&
		    l->table && l->adapter)
			return STATUS_OK;
	}
	row_lists_destroy(out);
	return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
			       "cannot allocate the lists of a step of %zu rows and %zu sequences", rows,
			       sequences);
}

void row_lists_destroy(struct row_lists **out)
{
	struct row_lists *l = *out;

	if (!l)
		return;
	free(l->token);
	free(l->position);
	free(l->slot);
	free(l->adapter);
	free(l->begin);
	free(l->keys);
	free(l->output);
	free(l->page);
	free(l->table);
	free(l);
	*out = NULL;
}

void row_lists_clear(struct row_lists *l)
{
	l->rows = l->sequences = l->outputs = l->page_ld = l->keys_most = 0;
	l->adapted = false;
}

void row_lists_add(struct row_lists *l, const struct row_sequence *s)
{
	const int64_t keys = s->first + s->rows, page = l->most.page_tokens;
	const int64_t pages = (keys + page - 1) / page;

	l->begin[l->sequences] = (int32_t)l->rows;
	l->keys[l->sequences] = (int32_t)keys;
	l->table[l->sequences] = s->page;
	for (int64_t i = 0; i < s->rows; i++) {
		const int64_t at = s->first + i, row = l->rows + i;

		l->token[row] = at < s->known ? s->token[at] : -1 - s->place;
		l->position[row] = (int32_t)at;
		l->adapter[row] = s->adapter;
		l->slot[row] = (int32_t)s->page[at / page] * (int32_t)page + (int32_t)(at % page);
		if (i >= s->rows - s->outputs)
			l->output[l->outputs++] = (int32_t)row;
	}
	l->adapted |= s->adapter >= 0;
	l->rows += s->rows;
	l->sequences++;
	l->begin[l->sequences] = (int32_t)l->rows;
	l->page_ld = pages > l->page_ld ? pages : l->page_ld;
	l->keys_most = keys > l->keys_most ? keys : l->keys_most;
}

int64_t row_lists_rows(const struct row_lists *l)
{
	return l->rows;
}

int64_t row_lists_outputs(const struct row_lists *l)
{
	return l->outputs;
}

static void copy_tables(struct row_lists *l)
{
	for (int64_t i = 0; i < l->sequences; i++) {
		const int64_t pages = (l->keys[i] + l->most.page_tokens - 1) / l->most.page_tokens;
		int32_t *to = l->page + i * l->page_ld;

		memcpy(to, l->table[i], (size_t)pages * sizeof(*to));
		memset(to + pages, 0, (size_t)(l->page_ld - pages) * sizeof(*to));
	}
}

struct paged_rows row_lists_end(struct row_lists *l, int64_t rows, int64_t outputs)
{
	for (int64_t i = l->rows; i < rows; i++) {
		l->token[i] = l->position[i] = l->slot[i] = 0;
		l->adapter[i] = -1;
	}
	for (int64_t i = l->outputs; i < outputs; i++)
		l->output[i] = 0;
	copy_tables(l);
	return (struct paged_rows){
		.token = l->token,
		.position = l->position,
		.slot = l->slot,
		.begin = l->begin,
		.keys = l->keys,
		.page = l->page,
		.output = l->output,
		.adapter = l->adapter,
		.adapted = l->adapted,
		.rows = rows > l->rows ? rows : l->rows,
		.sequences = l->sequences,
		.outputs = outputs > l->outputs ? outputs : l->outputs,
		.page_ld = l->page_ld,
		.keys_most = l->keys_most,
		.page_tokens = l->most.page_tokens,
	};
}

int64_t row_lists_ladder(int64_t count, int64_t most)
{
	static const int32_t steps[] = {1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 160, 192, 224, 256};
	int64_t up = (count + 127) / 128 * 128;

	if (!count)
		return 0;
	for (size_t i = sizeof(steps) / sizeof(steps[0]); i-- > 0;)
		up = count <= steps[i] ? steps[i] : up;
	return up < most ? up : most;
}
