/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/stream/words.h"

bool words_find(const char *text, size_t size, const char *const *words, size_t count, size_t *at,
		size_t *word)
{
	const char *found = NULL;

	for (size_t i = 0; i < count; i++) {
		const char *here = memmem(text, size, words[i], strlen(words[i]));

		if (here && (!found || here < found)) {
			found = here;
			*word = i;
		}
	}
	if (found)
		*at = (size_t)(found - text);
	return found != NULL;
}

static size_t held_of(const char *text, size_t size, const char *word)
{
	size_t most = strlen(word) - 1, held;

	for (held = most < size ? most : size; held; held--)
		if (!memcmp(text + size - held, word, held))
			break;
	return held;
}

size_t words_held(const char *text, size_t size, const char *const *words, size_t count)
{
	size_t most = 0, held;

	for (size_t i = 0; i < count; i++) {
		held = held_of(text, size, words[i]);
		if (held > most)
			most = held;
	}
	return most;
}
