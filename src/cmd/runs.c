/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/runs.h"
#include <errno.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "core/file.h"
#include "journal/journal.h"

enum { NUMBERS_MAX = 10000 };
static const char parent[] = "assay-runs";

/* The first, then -2, -3 .. */
static void numbered(char out[PATH_MAX], const char *name, unsigned number)
{
	time_t now = time(NULL);
	struct tm day;
	char date[16];

	localtime_r(&now, &day);
	strftime(date, sizeof(date), "%Y-%m-%d", &day);
	if (number < 2)
		snprintf(out, PATH_MAX, "%s/%s-%.64s", parent, date, name);
	else
		snprintf(out, PATH_MAX, "%s/%s-%.64s-%u", parent, date, name, number);
}

void runs_next(char out[PATH_MAX], const char *name)
{
	struct stat info;
	unsigned i = 1;

	do
		numbered(out, name, i++);
	while (!lstat(out, &info) && i < NUMBERS_MAX);
}

enum status runs_claim(char out[PATH_MAX], const char *name, struct error *err)
{
	enum status st = file_make_dir(parent, err);

	for (unsigned i = 1; !st && i < NUMBERS_MAX; i++) {
		numbered(out, name, i);
		if (!mkdir(out, 0777))
			return STATUS_OK;
		if (errno != EEXIST)
			st = error_errno(err, errno, "cannot create directory %s", out);
	}
	return st ? st : error_set(err, STATUS_BAD_INPUT, "%s is full of runs: --out names another", parent);
}

bool runs_is(const char *dir)
{
	char path[PATH_MAX];

	return snprintf(path, sizeof(path), "%s/" JOURNAL_FILE, dir) < (int)sizeof(path) &&
	       !access(path, F_OK);
}

enum status runs_pick(struct opt_words *out, const struct opt_words *given, const struct log *log,
		      struct error *err)
{
	const char **kept = calloc(given->count + 1, sizeof(*kept));
	size_t count = 0;

	*out = (struct opt_words){.word = kept};
	if (!kept)
		return error_errno(err, ENOMEM, "%zu runs", given->count);
	for (size_t i = 0; i < given->count; i++)
		if (runs_is(given->word[i]))
			kept[count++] = given->word[i];
	if (!count) {
		memcpy(kept, given->word, given->count * sizeof(*kept));
		count = given->count;
	}
	for (size_t i = 0; count < given->count && i < given->count; i++)
		if (!runs_is(given->word[i]))
			log_warn(log, LOG_TOPIC_RUN,
				 "%s: passed over: no run directory, " JOURNAL_FILE " is not in it",
				 given->word[i]);
	out->count = count;
	return STATUS_OK;
}
