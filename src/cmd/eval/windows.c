/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/eval/windows.h"
#include <stdlib.h>

bool eval_window_scores(const struct eval_window *w, const struct eval_document *doc, size_t i)
{
	return i >= w->from && i < w->begin + w->count && (!doc->target || doc->target[i]);
}

static uint64_t targets_of(const struct eval_window *w, const struct eval_document *doc)
{
	uint64_t targets = 0;

	for (size_t i = w->from; i < w->begin + w->count; i++)
		targets += eval_window_scores(w, doc, i);
	return targets;
}

/* Windows of a document of `count` tokens. */
static size_t windows_of(size_t count, size_t context, size_t stride)
{
	return count <= context ? 1 : 1 + (count - context + stride - 1) / stride;
}

static void cut(struct eval_windows *w, const struct eval_data *d, size_t document, size_t context,
		size_t stride)
{
	const struct eval_document *doc = &d->documents[document];
	const size_t all = doc->ids.count, count = windows_of(all, context, stride);

	for (size_t i = 0, scored = 0; i < count; i++) {
		struct eval_window *next = &w->window[w->count];
		const size_t begin = i * stride, end = all - begin < context ? all : begin + context;
		uint64_t targets;

		*next = (struct eval_window){.document = document,
					     .begin = begin,
					     .count = end - begin,
					     .from = scored > begin ? scored : begin + 1};
		scored = end;
		targets = targets_of(next, doc);
		if (!targets)
			continue;
		w->targets += targets;
		w->longest = next->count > w->longest ? next->count : w->longest;
		w->count++;
	}
}

enum status eval_windows_cut(struct eval_windows *w, const struct eval_data *d, size_t context, size_t stride,
			     struct error *err)
{
	size_t count = 1;

	*w = (struct eval_windows){0};
	for (size_t i = 0; i < d->document_count; i++)
		count += windows_of(d->documents[i].ids.count, context, stride);
	w->window = calloc(count, sizeof(*w->window));
	if (!w->window)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "out of memory for %zu windows", count);
	for (size_t i = 0; i < d->document_count; i++)
		cut(w, d, i, context, stride);
	return STATUS_OK;
}

void eval_windows_release(struct eval_windows *w)
{
	free(w->window);
	*w = (struct eval_windows){0};
}
