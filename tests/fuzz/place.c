/* SPDX-License-Identifier: Apache-2.0 */
/* Any environment and options, "NAME=value" a line, are a place in a team that holds together, or a refusal. */
#include "fuzz.h"

#include "team/launcher/place.h"

static const char *value_of(void *arg, const char *name)
{
	size_t length = strlen(name);

	for (char **line = arg; *line; line++)
		if (!strncmp(*line, name, length) && (*line)[length] == '=')
			return *line + length + 1;
	return NULL;
}

static void check(const struct team_place *p)
{
	static const char sound[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";

	FUZZ_CHECK(p->size >= 1 && p->rank < p->size);
	FUZZ_CHECK(!p->local_size || p->local_rank < p->local_size);
	FUZZ_CHECK((p->launcher == TEAM_ALONE) == (p->size == 1));
	FUZZ_CHECK(strlen(p->node) < sizeof(p->node) && strlen(p->host) < sizeof(p->host));
	FUZZ_CHECK(strspn(p->job, sound) == strlen(p->job) && *p->job != '.');
	FUZZ_CHECK(p->size == 1 || (*p->host && *p->job));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size), *line[65] = {NULL};
	struct error err = {0};
	struct team_place p;
	struct team_place_options o;
	size_t count = 0;

	for (char *at = text; at && *at && count < 64;) {
		line[count++] = at;
		at = strchr(at, '\n');
		if (at)
			*at++ = '\0';
	}
	const struct environment env = {.get = value_of, .arg = line};

	o = (struct team_place_options){value_of(line, "--rank"), value_of(line, "--size"), value_of(line, "--master"),
					value_of(line, "--node")};
	enum status st = team_place(&p, &o, &env, &err);

	FUZZ_CHECK(st == err.status);
	FUZZ_CHECK(st == STATUS_OK || (st == STATUS_BAD_INPUT && *err.text));
	if (!st)
		check(&p);
	free(text);
	return 0;
}
