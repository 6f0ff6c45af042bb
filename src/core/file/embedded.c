/* SPDX-License-Identifier: Apache-2.0 */
#include "core/file/embedded.h"

/* Both symbols come from the assembler file that tools/embed.sh writes. The table is sorted by name. */
extern const struct embedded embed_table[] __attribute__((visibility("hidden")));
extern const size_t embed_count __attribute__((visibility("hidden")));

const struct embedded *embedded_at(size_t index)
{
	return index < embed_count ? &embed_table[index] : NULL;
}

const struct embedded *embedded_find(const char *name)
{
	size_t low = 0, high = embed_count;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		int order = strcmp(name, embed_table[mid].name);

		if (!order)
			return &embed_table[mid];
		if (order < 0)
			high = mid;
		else
			low = mid + 1;
	}
	return NULL;
}
