/* SPDX-License-Identifier: Apache-2.0 */
/* An environment of the test's own: "NAME=value" texts, NULL ends. */
#ifndef TESTS_TEAM_ENV_H
#define TESTS_TEAM_ENV_H
#include <string.h>
#include "team/launcher/place.h"

static inline const char *team_env_get(void *arg, const char *name)
{
	const char *const *row = arg;

	for (; *row; row++)
		if (!strncmp(*row, name, strlen(name)) && (*row)[strlen(name)] == '=')
			return *row + strlen(name) + 1;
	return NULL;
}

static inline struct environment team_env(const char *const *rows)
{
	return (struct environment){.get = team_env_get, .arg = (void *)(uintptr_t)rows};
}
#endif
