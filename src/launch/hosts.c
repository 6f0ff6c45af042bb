/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/hosts.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include "core/file/file.h"
#include "core/text/text.h"
#include "team/launcher/nodelist.h"

enum { HOST_NAME = 256, FILE_MAX = 1 << 20, PLACE = 4200 };

const char *hosts_address(const char *name)
{
	const char *at = strrchr(name, '@');

	return at ? at + 1 : name;
}

static enum status check(const char *name, const char *place, struct error *err)
{
	const char *address = hosts_address(name);

	if (!*name)
		return error_set(err, STATUS_BAD_INPUT, "%s has an empty host name", place);
	for (const char *c = name; *c; c++)
		if (!isascii((unsigned char)*c) || (!isalnum((unsigned char)*c) && !strchr("._:@-", *c)))
			return error_set(
				err, STATUS_BAD_INPUT,
				"%s: host \"%.80s\" has characters that no host name has: letters, digits and "
				". _ : @ - are",
				place, name);
	if (*name == '-' || !*address || *address == '-' || address == name + 1)
		return error_set(err, STATUS_BAD_INPUT,
				 "%s: host \"%.80s\" is not written as HOST or USER@HOST", place, name);
	if (strlen(name) >= HOST_NAME)
		return error_set(err, STATUS_BAD_INPUT, "%s: host \"%.80s..\" is too long for a host name",
				 place, name);
	return STATUS_OK;
}

static enum status add(struct hosts *h, const char *name, const char *place, struct error *err)
{
	enum status st = check(name, place, err);
	char **grown;

	for (size_t i = 0; i < h->count && !st; i++)
		if (!strcasecmp(hosts_address(h->name[i]), hosts_address(name)))
			st = error_set(err, STATUS_BAD_INPUT, "%s: host %s is listed twice", place,
				       hosts_address(name));
	if (!st && h->count == HOSTS_MAX)
		st = error_set(err, STATUS_BAD_INPUT, "%s: more than %d hosts", place, HOSTS_MAX);
	if (st)
		return st;
	grown = realloc(h->name, (h->count + 1) * sizeof(*grown));
	if (grown)
		h->name = grown;
	if (!grown || !(h->name[h->count] = strdup(name)))
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "no memory for %zu hosts",
				       h->count);
	h->count++;
	return STATUS_OK;
}

/* "gpu[01-04]", "user@gpu[01-04]": the user applies to each name. */
static enum status add_nodes(struct hosts *h, const char *text, const char *place, struct error *err)
{
	const char *nodes_at = hosts_address(text);
	struct nodelist nodes = {0};
	char name[2 * HOST_NAME];
	enum status st = nodelist_parse(&nodes, nodes_at, HOSTS_MAX, err);

	for (size_t i = 0; i < nodes.count && !st; i++) {
		snprintf(name, sizeof(name), "%.*s%s", (int)(nodes_at - text), text, nodes.name[i]);
		st = add(h, name, place, err);
	}
	nodelist_release(&nodes);
	return st;
}

/* Length up to the next comma outside brackets. */
static size_t item_size(const char *text)
{
	size_t n = 0;

	for (bool inside = false; text[n] && (inside || text[n] != ','); n++)
		inside = text[n] == '[' || (inside && text[n] != ']');
	return n;
}

enum status hosts_parse(struct hosts *h, const char *text, const char *place, struct error *err)
{
	enum status st = STATUS_OK;

	if (!*text)
		return error_set(err, STATUS_BAD_INPUT, "%s names no host", place);
	for (const char *at = text, *end; at && !st; at = *end ? end + 1 : NULL) {
		char *item = strndup(at, item_size(at));

		end = at + item_size(at);
		if (!item)
			return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "no memory for %s",
					       place);
		st = strchr(item, '[') ? add_nodes(h, item, place, err) : add(h, item, place, err);
		free(item);
	}
	return st;
}

/* Adds the host of one line of a file, if it has one. */
static enum status add_line(struct hosts *h, char *line, const char *place, struct error *err)
{
	line += strspn(line, " \t\r");
	line[strcspn(line, "#")] = '\0';
	for (size_t n = strlen(line); n && isspace((unsigned char)line[n - 1]); n--)
		line[n - 1] = '\0';
	return *line ? hosts_parse(h, line, place, err) : STATUS_OK;
}

enum status hosts_read(struct hosts *h, const char *path, struct error *err)
{
	char *data = NULL, place[PLACE];
	unsigned number = 1;
	size_t size = 0;
	enum status st = file_read(&data, &size, path, FILE_MAX, err);

	if (st)
		return st;
	if (strlen(data) != size)
		st = error_set(err, STATUS_BAD_INPUT, "%s is not a text file: it holds a zero byte", path);
	for (char *line = data, *end; line && !st; line = end) {
		end = strchr(line, '\n');
		if (end)
			*end++ = '\0';
		snprintf(place, sizeof(place), "%s:%u", path, number++);
		st = add_line(h, line, place, err);
	}
	free(data);
	if (!st && !h->count)
		st = error_set(err, STATUS_BAD_INPUT, "%s names no host", path);
	return st;
}

void hosts_release(struct hosts *h)
{
	for (size_t i = 0; i < h->count; i++)
		free(h->name[i]);
	free(h->name);
	*h = (struct hosts){0};
}
