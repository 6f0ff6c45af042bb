/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/serve/adapters.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { NAME_MOST = 255 };

static bool is_folder(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISDIR(st.st_mode);
}

static bool is_name(const char *name)
{
	for (const char *c = name; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr("._:/@+-", *c))
			return false;
	return *name && strlen(name) <= NAME_MOST;
}

/* The name must be free: requests choose by it. */
static enum status check_name(const struct serve_adapters *a, const char *name, const char *base,
			      struct error *err)
{
	if (!is_name(name))
		return error_set(err, STATUS_BAD_INPUT,
				 "--adapter has the name \"%.100s\"; a name has letters, digits and ._:/@+-",
				 name);
	if (!strcmp(name, base))
		return error_set(err, STATUS_BAD_INPUT,
				 "--adapter has the name %.100s, which is the base model's; choose another",
				 name);
	for (int32_t i = 0; i < a->count; i++)
		if (!strcmp(name, a->name[i]))
			return error_set(err, STATUS_BAD_INPUT, "--adapter has the name %.100s twice", name);
	return STATUS_OK;
}

static enum status add(struct serve_adapters *a, char *item, const char *base, struct error *err)
{
	char *dir = strchr(item, '=');
	enum status st;

	if (a->count == ADAPTERS_MOST)
		return error_set(err, STATUS_BAD_INPUT, "--adapter has more than %d adapters", ADAPTERS_MOST);
	if (!dir || !dir[1])
		return error_set(err, STATUS_BAD_INPUT,
				 "--adapter has \"%.100s\"; several adapters are NAME=DIR,NAME=DIR", item);
	*dir++ = '\0';
	st = check_name(a, item, base, err);
	if (st)
		return st;
	a->name[a->count] = item;
	a->dir[a->count++] = dir;
	return STATUS_OK;
}

enum status serve_adapters_read(struct serve_adapters *a, const char *text, const char *base,
				struct error *err)
{
	enum status st = STATUS_OK;
	char *next;

	*a = (struct serve_adapters){0};
	if (!text)
		return STATUS_OK;
	a->text = strdup(text);
	if (!a->text)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "no memory for --adapter");
	if (is_folder(text) || !strpbrk(text, "=,")) {
		a->dir[a->count++] = a->text;
		return STATUS_OK;
	}
	for (char *at = a->text; !st && at; at = next) {
		next = strchr(at, ',');
		if (next)
			*next++ = '\0';
		st = add(a, at, base, err);
	}
	if (st)
		serve_adapters_release(a);
	return st;
}

void serve_adapters_release(struct serve_adapters *a)
{
	free(a->text);
	*a = (struct serve_adapters){0};
}
