/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/file/rank_dir.h"

#include <ctype.h>
#include <stdio.h>
#include "core/text/text.h"

enum { NAME_SIZE = 64 };

void rank_dir_path(char *out, size_t size, const char *dir, const char *name, unsigned rank)
{
	char safe[NAME_SIZE];

	text_copy(safe, sizeof(safe), *name ? name : "_");
	for (char *c = safe; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr("-_.", *c))
			*c = '_';
	if (*safe == '.')
		*safe = '_';
	snprintf(out, size, "%s/" NODES_DIR "/%s/rank-%u", dir, safe, rank);
}
