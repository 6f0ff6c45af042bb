/* SPDX-License-Identifier: Apache-2.0 */
#include "train/checkpoint/names.h"
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void checkpoint_path(char out[PATH_MAX + 64], const char *run, uint64_t step, const char *suffix)
{
	snprintf(out, PATH_MAX + 64, "%s/" CHECKPOINT_NAME "%s", run, step, suffix);
}

/* Accepts exactly "checkpoint-12", "checkpoint-12.new" and "checkpoint-12.new-ATTEMPT", with the number in
 * its shortest form. */
static int parse_name(const char *name, uint64_t *step, enum checkpoint_name *state)
{
	static const char attempt[] = CHECKPOINT_NEW "-";
	char again[64], *end;

	if (strncmp(name, "checkpoint-", 11) || name[11] < '0' || name[11] > '9')
		return 0;
	errno = 0;
	*step = strtoull(name + 11, &end, 10);
	if (errno)
		return 0;
	*state = *end ? CHECKPOINT_HALF : CHECKPOINT_NAMED;
	snprintf(again, sizeof(again), CHECKPOINT_NAME, *step);
	if (strlen(again) != (size_t)(end - name) || strncmp(again, name, strlen(again)) != 0)
		return 0;
	return !*end || !strcmp(end, CHECKPOINT_NEW) ||
	       (!strncmp(end, attempt, strlen(attempt)) && strlen(end) < 32 &&
		strspn(end + strlen(attempt), "0123456789abcdef") == strlen(end + strlen(attempt)));
}

static int newest_first(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b; /* the step is an entry's first member */

	return *x < *y ? 1 : *x > *y ? -1 : 0;
}

enum status checkpoint_list_read(struct checkpoint_list *list, const char *run, struct error *err)
{
	DIR *d = opendir(run);
	enum status st = STATUS_OK;

	*list = (struct checkpoint_list){0};
	if (!d)
		return error_errno(err, errno, "cannot read %s", run);
	for (struct dirent *e; !st && (e = readdir(d));) {
		enum checkpoint_name state;
		uint64_t step;
		void *grown;

		if (!parse_name(e->d_name, &step, &state))
			continue;
		grown = realloc(list->entry, (list->count + 1) * sizeof(*list->entry));
		if (!grown) {
			st = error_errno(err, ENOMEM, "%s", run);
			break;
		}
		list->entry = grown;
		list->entry[list->count].step = step;
		snprintf(list->entry[list->count].name, sizeof(list->entry->name), "%.63s", e->d_name);
		list->entry[list->count++].state = state;
	}
	closedir(d);
	if (list->count)
		qsort(list->entry, list->count, sizeof(*list->entry), newest_first);
	if (st)
		checkpoint_list_release(list);
	return st;
}

void checkpoint_list_release(struct checkpoint_list *list)
{
	free(list->entry);
	*list = (struct checkpoint_list){0};
}
