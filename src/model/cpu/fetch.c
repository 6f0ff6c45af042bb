/* SPDX-License-Identifier: Apache-2.0 */
/* Input and output of a step of text generation. The host and the device are the same here, so nothing waits.
 */
#include <stdlib.h>
#include "model/cpu/internal.h"
#include "model/tensor/dtype.h"

enum status cpu_paged_put(struct backend *back, const struct paged_rows *host, const struct paged_room *room,
			  struct paged_rows *out, struct error *err)
{
	(void)back, (void)err;
	*out = *host;
	out->room = room;
	return STATUS_OK;
}

enum status cpu_fetch_begin(struct backend *back, struct mat from, int turn, struct error *err)
{
	const size_t size = dtype_bytes(from.dtype, (uint64_t)(from.rows * from.cols));
	struct cpu_fetch *fetch;

	if (turn < 0 || turn >= FETCHES)
		return error_set(err, STATUS_BUG, "there is no turn %d of results", turn);
	fetch = &cpu_of(back)->fetch[turn];
	if (fetch->room < size) {
		free(fetch->data);
		*fetch = (struct cpu_fetch){.data = malloc(size), .room = size};
		if (!fetch->data) {
			fetch->room = 0;
			return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
					       "no memory for %zu bytes of results", size);
		}
	}
	fetch->begun = true;
	return cpu_get(back, from, fetch->data, err);
}

enum status cpu_fetch_wait(struct backend *back, int turn, const void **out, struct error *err)
{
	*out = NULL;
	if (turn < 0 || turn >= FETCHES || !cpu_of(back)->fetch[turn].begun)
		return error_set(err, STATUS_BUG, "turn %d of results was not started", turn);
	*out = cpu_of(back)->fetch[turn].data;
	return STATUS_OK;
}

enum status cpu_replay(struct backend *back, const struct replay *work, struct error *err)
{
	(void)back;
	return work->run(work->arg, err);
}

enum status cpu_sample_count(struct backend *back, struct mat counts, const struct sample_history *history,
			     struct error *err)
{
	uint16_t *row = (uint16_t *)counts.data + history->place * counts.ld;

	(void)back;
	if (history->place < 0 || history->place >= counts.rows)
		return error_set(err, STATUS_BUG, "there are no counts for place %d", (int)history->place);
	memset(row, 0, (size_t)counts.cols * sizeof(*row));
	for (int64_t i = 0; i < history->count; i++) {
		const int32_t id = history->id[i];

		if (id < 0 || id >= counts.cols)
			return error_set(err, STATUS_BUG, "token %d of a history is not in the vocabulary",
					 (int)id);
		if (i < history->prompt)
			row[id] |= SAMPLE_IN_PROMPT;
		else if ((row[id] & SAMPLE_COUNT_MOST) < SAMPLE_COUNT_MOST)
			row[id]++;
	}
	return STATUS_OK;
}
