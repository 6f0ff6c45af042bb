/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/step/sampling_lists.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct sampling_lists {
	int64_t rows_most, rows, mask_words;
	struct sample_row *row;
	struct sample_bias *bias;
	int64_t biases, biases_room;
	uint32_t *mask;
	int64_t masks, masks_room;
};

static enum status no_memory(struct error *err)
{
	return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
			       "cannot allocate the lists of sampling");
}

enum status sampling_lists_create(struct sampling_lists **out, int64_t rows, int64_t vocab, struct error *err)
{
	struct sampling_lists *l = calloc(1, sizeof(*l));

	*out = l;
	if (l) {
		l->rows_most = rows;
		l->mask_words = (vocab + 31) / 32;
		l->row = calloc((size_t)rows, sizeof(*l->row));
	}
	if (l && l->row)
		return STATUS_OK;
	sampling_lists_destroy(out);
	return no_memory(err);
}

void sampling_lists_destroy(struct sampling_lists **out)
{
	struct sampling_lists *l = *out;

	if (!l)
		return;
	free(l->row);
	free(l->bias);
	free(l->mask);
	free(l);
	*out = NULL;
}

void sampling_lists_clear(struct sampling_lists *l)
{
	l->rows = l->biases = l->masks = 0;
}

static struct sample_row *next(struct sampling_lists *l)
{
	struct sample_row *row = &l->row[l->rows++];

	*row = (struct sample_row){
		.top_p = 1, .repetition = 1, .given = -1, .place = -1, .mask = -1, .logprobs = -1};
	return row;
}

static enum status room_for(struct sampling_lists *l, int64_t more, struct error *err)
{
	const int64_t wanted = l->biases + more;
	struct sample_bias *wider;

	if (wanted <= l->biases_room)
		return STATUS_OK;
	wider = realloc(l->bias, (size_t)(2 * wanted) * sizeof(*wider));
	if (!wider)
		return no_memory(err);
	l->bias = wider;
	l->biases_room = 2 * wanted;
	return STATUS_OK;
}

/* The request's bias. Before min_tokens its stop ids are impossible; a grammar's mask excludes them. */
static enum status add_bias(struct sampling_lists *l, struct sample_row *row, const struct running *r,
			    int64_t index, struct error *err)
{
	const size_t stops = index < r->min_tokens && !r->grammar ? r->stops : 0;
	enum status st = room_for(l, (int64_t)(r->biases + stops), err);

	if (st)
		return st;
	row->bias_begin = (int32_t)l->biases;
	row->biases = (int32_t)(r->biases + stops);
	for (size_t i = 0; i < r->biases; i++)
		l->bias[l->biases++] = (struct sample_bias){.id = r->bias[i].id, .add = r->bias[i].add};
	for (size_t i = 0; i < stops; i++)
		l->bias[l->biases++] = (struct sample_bias){.id = r->stop[i], .add = -INFINITY};
	return STATUS_OK;
}

enum status sampling_lists_add(struct sampling_lists *l, const struct running *r, int32_t place,
			       int64_t index, struct error *err)
{
	const struct engine_sampling *s = &r->sampling;
	struct sample_row *row = next(l);

	row->temperature = s->temperature;
	row->top_p = s->top_p;
	row->min_p = s->min_p;
	row->repetition = s->repetition;
	row->presence = s->presence;
	row->frequency = s->frequency;
	row->top_k = s->top_k;
	row->place = place;
	row->counted = running_counts(r);
	row->logprobs = r->logprobs;
	row->index = (uint32_t)index;
	row->seed = s->seed;
	return add_bias(l, row, r, index, err);
}

void sampling_lists_score(struct sampling_lists *l, const struct running *r, int32_t given)
{
	struct sample_row *row = next(l);

	row->given = given;
	row->logprobs = r->prompt_logprobs;
}

void sampling_lists_probe(struct sampling_lists *l)
{
	next(l);
}

uint32_t *sampling_lists_mask(struct sampling_lists *l, int64_t row)
{
	const size_t words = (size_t)l->mask_words;
	uint32_t *mask;

	if (l->masks == l->masks_room) {
		const int64_t room = l->masks_room ? 2 * l->masks_room : 8;
		uint32_t *wider = realloc(l->mask, (size_t)room * words * sizeof(*wider));

		if (!wider)
			return NULL;
		l->mask = wider;
		l->masks_room = room;
	}
	mask = l->mask + (size_t)l->masks * words;
	memset(mask, 0, words * sizeof(*mask));
	l->row[row].mask = (int32_t)l->masks++;
	return mask;
}

static bool is_plain(const struct sample_row *r)
{
	return r->given < 0 && r->place >= 0 && !r->counted && r->mask < 0 && !r->biases && r->logprobs < 0 &&
	       !r->top_k && !(r->min_p > 0);
}

struct sample_lists sampling_lists_end(struct sampling_lists *l, int64_t rows)
{
	struct sample_lists out = {.row = l->row, .plain = true, .greedy = true};

	for (int64_t i = 0; i < l->rows; i++) {
		out.plain &= is_plain(&l->row[i]) || l->row[i].place < 0;
		out.greedy &= !(l->row[i].temperature > 0);
	}
	while (l->rows < rows)
		next(l);
	out.bias = l->bias;
	out.mask = l->mask;
	out.rows = l->rows;
	out.biases = l->biases;
	out.masks = l->masks;
	out.mask_words = l->mask_words;
	return out;
}
