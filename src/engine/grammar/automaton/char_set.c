/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/grammar/automaton/char_set.h"
#include "core/text/utf8.h"

void char_set_add(struct char_set *set, uint32_t low, uint32_t high)
{
	if (set->count == CHAR_RANGES_MOST) {
		char_set_sort(set);
		if (set->count == CHAR_RANGES_MOST) {
			set->overflow = true;
			return;
		}
	}
	set->range[set->count++] = (struct char_range){low, high};
}

static int compare_ranges(const void *a, const void *b)
{
	const struct char_range *x = a, *y = b;

	return x->low < y->low ? -1 : x->low > y->low;
}

void char_set_sort(struct char_set *set)
{
	unsigned used = 0;

	qsort(set->range, set->count, sizeof(set->range[0]), compare_ranges);
	for (unsigned i = 0; i < set->count; i++) {
		struct char_range r = set->range[i];

		if (used && r.low <= set->range[used - 1].high + 1) {
			if (r.high > set->range[used - 1].high)
				set->range[used - 1].high = r.high;
		} else {
			set->range[used++] = r;
		}
	}
	set->count = used;
}

void char_set_invert(struct char_set *set)
{
	struct char_set out = {.overflow = set->overflow};
	uint32_t low = 0;

	char_set_sort(set);
	for (unsigned i = 0; i < set->count; i++) {
		if (set->range[i].low > low)
			char_set_add(&out, low, set->range[i].low - 1);
		low = set->range[i].high + 1;
	}
	if (low <= CHAR_LAST)
		char_set_add(&out, low, CHAR_LAST);
	*set = out;
}

bool char_read(const char **text, const char *end, uint32_t *code)
{
	char padded[5] = {0};
	size_t taken, left = (size_t)(end - *text);

	if (!left)
		return false;
	memcpy(padded, *text, left < 4 ? left : 4);
	*code = utf8_decode(padded, &taken);
	if (!taken) { /* U+0000 */
		taken = 1;
	} else if (taken > left || (*code == UTF8_REPLACEMENT && taken == 1)) {
		return false;
	}
	*text += taken;
	return true;
}
