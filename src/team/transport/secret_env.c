/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every child process inherits a secret in the environment: helpers, workers, and the programs that `profile`
 * runs. So it is moved here before the first child starts, and stays here until the team has joined.
 */
#include <stdlib.h>
#include <string.h>
#include "team/transport/secret.h"

static struct {
	const char *name;
	char *value; /* the value in the environment; NULL: it had none, or the value was wiped */
} told[] = {{SECRET_VARIABLE, NULL}, {SECRET_FILE_VARIABLE, NULL}};

enum { TOLD = sizeof(told) / sizeof(told[0]) };

static void wipe(char *text)
{
	if (text)
		explicit_bzero(text, strlen(text));
}

void secret_take_env(void)
{
	for (size_t i = 0; i < TOLD; i++) {
		char *value = getenv(told[i].name);

		if (!value)
			continue;
		wipe(told[i].value);
		free(told[i].value);
		told[i].value = strdup(value);
		wipe(value); /* /proc/PID/environ shows these bytes */
		unsetenv(told[i].name);
	}
}

void secret_restore_env(void)
{
	for (size_t i = 0; i < TOLD; i++)
		if (told[i].value)
			setenv(told[i].name, told[i].value, 1);
	secret_forget_env();
}

const char *secret_environment(void *arg, const char *name)
{
	(void)arg;
	for (size_t i = 0; i < TOLD; i++)
		if (!strcmp(name, told[i].name))
			return told[i].value;
	return getenv(name);
}

void secret_forget_env(void)
{
	for (size_t i = 0; i < TOLD; i++) {
		wipe(told[i].value);
		free(told[i].value);
		told[i].value = NULL;
	}
}
