/* SPDX-License-Identifier: Apache-2.0 */
#include "train/data/pack_batch.h"

#include <inttypes.h>

struct pack_batch_size pack_batch_size(const struct tokenised *t, const struct sampler_epoch *e,
				       struct sampler_span packs)
{
	struct pack_batch_size size = {0};

	for (uint64_t p = packs.first; p < packs.last; p++) {
		uint64_t pack = e->order[p];

		for (uint64_t i = e->packs.begin[pack]; i < e->packs.begin[pack + 1]; i++) {
			uint32_t row = e->packs.row[i];

			size.rows++;
			size.tokens += t->begin[row + 1] - t->begin[row];
			for (uint64_t k = t->begin[row] + 1; k < t->begin[row + 1]; k++)
				size.targets += (t->token[k] & TOKENISED_TRAINED) != 0;
		}
	}
	return size;
}

static enum status make_room(struct pack_batch *f, struct pack_batch_size size, struct error *err)
{
	int32_t **const lists[] = {&f->token, &f->position, &f->target, &f->trained};

	if (size.tokens > INT32_MAX)
		return error_set(err, STATUS_NO_RESOURCE, "a micro-batch of %" PRIu64 " tokens", size.tokens);
	if ((int64_t)size.tokens > f->tokens_room) {
		f->tokens_room = (int64_t)size.tokens;
		for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
			free(*lists[i]);
			*lists[i] = malloc(size.tokens * sizeof(int32_t));
			if (!*lists[i])
				f->tokens_room = 0;
		}
	}
	if ((int64_t)size.rows > f->docs_room) {
		free(f->doc_start);
		f->doc_start = malloc((size.rows + 1) * sizeof(*f->doc_start));
		f->docs_room = f->doc_start ? (int64_t)size.rows : 0;
	}
	if (f->tokens_room < (int64_t)size.tokens || f->docs_room < (int64_t)size.rows)
		return error_set(err, STATUS_NO_RESOURCE, "a micro-batch of %" PRIu64 " tokens", size.tokens);
	return STATUS_OK;
}

static void add_document(struct pack_batch *f, const int32_t *row, int64_t count)
{
	struct batch *b = &f->batch;

	for (int64_t i = 0; i < count; i++) {
		int64_t at = b->tokens + i;
		bool trained = i + 1 < count && row[i + 1] & TOKENISED_TRAINED;

		f->token[at] = row[i] & ~TOKENISED_TRAINED;
		f->position[at] = (int32_t)i;
		f->target[at] = trained ? row[i + 1] & ~TOKENISED_TRAINED : BATCH_UNTRAINED;
		if (trained)
			f->trained[b->targets++] = (int32_t)at;
	}
	b->tokens += count;
	b->doc_len_max = count > b->doc_len_max ? count : b->doc_len_max;
	f->doc_start[++b->docs] = (int32_t)b->tokens;
}

enum status pack_batch_make(struct pack_batch *f, const struct tokenised *t, const struct sampler_epoch *e,
			    struct sampler_span packs, uint64_t row_begin, struct error *err)
{
	enum status st = make_room(f, pack_batch_size(t, e, packs), err);

	if (st)
		return st;
	f->batch = (struct batch){.token = f->token,
				  .position = f->position,
				  .target = f->target,
				  .doc_start = f->doc_start,
				  .trained = f->trained,
				  .row_begin = row_begin};
	if (f->doc_start)
		f->doc_start[0] = 0;
	for (uint64_t p = packs.first; p < packs.last; p++) {
		uint64_t pack = e->order[p];

		for (uint64_t i = e->packs.begin[pack]; i < e->packs.begin[pack + 1]; i++) {
			uint32_t row = e->packs.row[i];

			add_document(f, t->token + t->begin[row],
				     (int64_t)(t->begin[row + 1] - t->begin[row]));
		}
	}
	return STATUS_OK;
}

void pack_batch_release(struct pack_batch *f)
{
	free(f->token);
	free(f->position);
	free(f->target);
	free(f->trained);
	free(f->doc_start);
	*f = (struct pack_batch){0};
}
