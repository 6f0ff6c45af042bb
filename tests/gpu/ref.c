/* SPDX-License-Identifier: Apache-2.0 */
#include "ref.h"
#include <stddef.h>

bool ref_run(const char *entry, struct ref_grid grid, const void *args)
{
	static const struct ref_row *const files[] = { ref_memory, ref_data, ref_hbm, ref_link };

	for (size_t f = 0; f < sizeof(files) / sizeof(files[0]); f++) {
		for (const struct ref_row *r = files[f]; r->entry; r++) {
			size_t length = strlen(r->entry);
			bool family = r->entry[length - 1] == '_';

			if (family ? !strncmp(entry, r->entry, length) : !strcmp(entry, r->entry)) {
				r->run(entry, grid, args);
				return true;
			}
		}
	}
	return false;
}
