/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/require.h"
#include <stddef.h>
#include <string.h>

#define X(name, word) word,
const char *const require_words[] = {REQUIRES(X) NULL};
#undef X

enum require require_from_word(const char *word)
{
	for (int i = 0; word && require_words[i]; i++)
		if (!strcmp(word, require_words[i]))
			return (enum require)i;
	return REQUIRE_JUDGED;
}
