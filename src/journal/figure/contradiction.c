/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/figure/contradiction.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "core/math/fnv1a.h"
#include "core/text/units.h"

enum { WORD = 96 };
#define SIZE_LEAST 32768.0 /* bytes; for smaller sizes the loop's overhead costs as much as the loop */

/* Options of a key that do not change the measured quantity. */
static const char *const free_words[] = {"threads=", "size=", "search=", "store="};

bool contradiction_asks(const char *key)
{
	if (strstr(key, " unit=add")) /* measures the clock, which more threads may lower */
		return false;
	return !strncmp(key, "peak engine=cpu ", 16) || !strncmp(key, "memory engine=cpu ", 18);
}

static bool is_free(const char *word)
{
	for (size_t i = 0; i < sizeof(free_words) / sizeof(free_words[0]); i++)
		if (!strncmp(word, free_words[i], strlen(free_words[i])))
			return true;
	return false;
}

/* Length of the next word that determines the quantity; 0 at the end. */
static size_t next_word(const char **at)
{
	size_t length;

	for (;;) {
		*at += strspn(*at, " ");
		length = strcspn(*at, " ");
		if (!length || !is_free(*at))
			return length;
		*at += length;
	}
}

static bool same_quantity(const char *a, const char *b)
{
	for (;;) {
		size_t n = next_word(&a), m = next_word(&b);

		if (n != m || strncmp(a, b, n))
			return false;
		if (!n)
			return true;
		a += n;
		b += m;
	}
}

uint64_t contradiction_hash(const char *key)
{
	return fnv1a_add(FNV1A_BEGIN, key, strlen(key));
}

uint64_t contradiction_quantity(const char *key)
{
	uint64_t hash = FNV1A_BEGIN;
	size_t length;

	while ((length = next_word(&key))) {
		hash = fnv1a_add(fnv1a_add(hash, key, length), " ", 1);
		key += length;
	}
	return hash;
}

/* The value of a number option of the key. An option of 0 means "all" and becomes infinity. */
static double option(const char *key, const char *name, const char *unit)
{
	const char *at = strstr(key, name);
	char word[WORD];
	size_t length;
	double value;

	if (!at)
		return INFINITY;
	at += strlen(name);
	length = strcspn(at, " ");
	if (length >= WORD)
		return INFINITY;
	memcpy(word, at, length);
	word[length] = '\0';
	return !units_parse(&value, word, unit, NULL) && value > 0 ? value : INFINITY;
}

double contradiction_size(const char *key)
{
	return option(key, " size=", "B");
}

enum contradiction contradiction_of(const char *less_work, double more, const char *more_work, double less)
{
	double threads = option(less_work, " threads=", NULL), others = option(more_work, " threads=", NULL);
	double size = option(less_work, " size=", "B"), other_size = option(more_work, " size=", "B");
	bool memory = !strncmp(less_work, "memory ", 7);

	if (!contradiction_asks(less_work) || !(less > 0) || !(more > 0) ||
	    !same_quantity(less_work, more_work) || threads > others || size < other_size ||
	    (memory && other_size < SIZE_LEAST) || (threads == others && size == other_size))
		return CONTRADICTION_NONE;
	if (more <= less * (1 + (memory ? CONTRADICTION_MEMORY : CONTRADICTION_CEILING)))
		return CONTRADICTION_NONE;
	return threads < others ? CONTRADICTION_THREADS : CONTRADICTION_SIZE;
}
