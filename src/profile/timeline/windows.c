/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/timeline/windows.h"
#include <stdlib.h>

bool windows_make(struct windows *w, const struct timeline *t, size_t spans)
{
	*w = (struct windows){.span = calloc(spans + 1, sizeof(*w->span)),
			      .first = calloc(t->processes + 1, sizeof(*w->first))};
	if (w->span && w->first)
		return true;
	windows_release(w);
	return false;
}

void windows_release(struct windows *w)
{
	free(w->span);
	free(w->first);
	*w = (struct windows){0};
}

void windows_add(struct windows *w, const struct timeline *t, uint16_t process, uint64_t from_ns,
		 uint64_t to_ns)
{
	size_t at = w->first[t->processes];

	if (from_ns >= to_ns)
		return;
	w->span[at] = (struct windows_span){from_ns, to_ns};
	for (size_t p = (size_t)process + 1; p <= t->processes; p++)
		w->first[p] = at + 1;
}

bool windows_in(const struct windows_span *span, size_t spans, uint64_t at_ns)
{
	size_t low = 0, high = spans;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (span[middle].to_ns <= at_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low < spans && span[low].from_ns <= at_ns;
}

bool windows_contain(const struct windows *w, uint16_t process, uint64_t at_ns)
{
	size_t first;

	if (!w)
		return true;
	first = w->first[process];
	return windows_in(w->span + first, w->first[process + 1] - first, at_ns);
}
