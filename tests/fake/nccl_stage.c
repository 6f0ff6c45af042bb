/* SPDX-License-Identifier: Apache-2.0 */
/* Reading FAKE_NCCL. */
#include "nccl_fake.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNTERS = 64 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	char name[64];
	uint64_t count;
} counter[COUNTERS];

/* The text after "name=" in the words, or NULL. */
static const char *value_of(const char *name)
{
	const char *words = getenv("FAKE_NCCL");
	size_t length = strlen(name);

	for (const char *p = words; p && *p; p += strcspn(p, ",") + (p[strcspn(p, ",")] == ','))
		if (!strncmp(p, name, length) && p[length] == '=')
			return p + length + 1;
	return NULL;
}

static uint64_t count_up(const char *name)
{
	uint64_t count = 0;

	pthread_mutex_lock(&lock);
	for (int i = 0; i < COUNTERS && !count; i++) {
		if (!counter[i].name[0])
			snprintf(counter[i].name, sizeof(counter[i].name), "%s", name);
		if (!strcmp(counter[i].name, name))
			count = ++counter[i].count;
	}
	pthread_mutex_unlock(&lock);
	return count;
}

int fake_nccl_code(const char *symbol)
{
	const char *value = value_of(symbol);
	char *end;
	int code = value ? (int)strtol(value, &end, 10) : 0;

	if (!code)
		return 0;
	return count_up(symbol) >= (*end == '@' ? strtoull(end + 1, NULL, 10) : 1) ? code : 0;
}

bool fake_nccl_staged(const char *word)
{
	return value_of(word);
}

double fake_nccl_number(const char *word, double fallback)
{
	const char *value = value_of(word);

	return value ? strtod(value, NULL) : fallback;
}

bool fake_nccl_rank(const char *word, unsigned rank, uint64_t *value, uint64_t *from)
{
	const char *text = value_of(word);
	char *end;

	if (!text || strtoul(text, &end, 10) != rank)
		return false;
	if (*end == ':')
		*value = strtoull(end + 1, &end, 10);
	if (from)
		*from = *end == '@' ? strtoull(end + 1, NULL, 10) : 1;
	return true;
}
