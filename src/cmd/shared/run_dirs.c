/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/shared/run_dirs.h"
#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "core/file/file.h"
#include "core/text/text.h"
#include "journal/journal.h"

enum { NUMBERS_MAX = 10000 };
static const char parent[] = "assay-runs";

/* Makes the name with a number: NAME, then NAME-2, NAME-3 .. */
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

void run_dirs_next(char out[PATH_MAX], const char *name)
{
	struct stat info;
	unsigned i = 1;

	do
		numbered(out, name, i++);
	while (!lstat(out, &info) && i < NUMBERS_MAX);
}

enum status run_dirs_claim(char out[PATH_MAX], const char *name, struct error *err)
{
	enum status st = file_make_dir(parent, err);

	for (unsigned i = 1; !st && i < NUMBERS_MAX; i++) {
		numbered(out, name, i);
		if (!mkdir(out, 0777))
			return STATUS_OK;
		if (errno != EEXIST)
			st = error_errno(err, errno, "cannot create directory %s", out);
	}
	return st ? st
		  : error_set(err, STATUS_BAD_INPUT,
			      "%s has too many runs of this name: choose a folder with --out", parent);
}

/* True if there is something other than an empty folder. */
static bool is_used(const char *dir)
{
	const struct dirent *entry;
	DIR *folder = opendir(dir);
	bool used = !folder && !access(dir, F_OK);

	while (folder && !used && (entry = readdir(folder)))
		used = strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
	if (folder)
		closedir(folder);
	return used;
}

enum status run_dirs_fresh(char out[PATH_MAX], const char *given, const char *name, struct error *err)
{
	if (!given)
		return run_dirs_claim(out, name, err);
	if (!*given || strlen(given) >= PATH_MAX / 2)
		return error_set(err, STATUS_BAD_INPUT, "--out: the path is empty or too long");
	text_copy(out, PATH_MAX, given);
	if (is_used(out))
		return error_set(err, STATUS_BAD_INPUT, "--out %.300s exists and is not an empty folder",
				 out);
	return file_make_dir(out, err);
}

bool run_dirs_is(const char *dir)
{
	return journal_exists(dir);
}

/* Takes the journal's first line only. */
static int take_first(void *arg, enum journal_type type, uint64_t t_ns, const json_t *body)
{
	(void)type;
	(void)t_ns;
	*(json_t **)arg = json_deep_copy(body);
	return 1;
}

enum status run_dirs_whole(const char *dir, struct error *err)
{
	json_t *open = NULL;
	uint64_t cut;
	enum status ignored = journal_read(dir, take_first, &open, &cut, NULL);
	const json_t *team = json_object_get(open, "team");
	json_int_t rank = json_integer_value(json_object_get(team, "rank"));
	json_int_t size = json_integer_value(json_object_get(team, "size"));
	enum status st = STATUS_OK;

	if (rank > 0)
		st = error_set(
			err, STATUS_BAD_INPUT,
			"%s: holds only rank %lld of %lld; use rank 0's folder, which holds the run of all ranks",
			dir, (long long)rank, (long long)size);
	(void)ignored;
	json_decref(open);
	return st;
}

static bool fit(const char *dir)
{
	return run_dirs_is(dir) && !run_dirs_whole(dir, NULL);
}

static void passed_over(const struct log *log, const char *dir)
{
	struct error why = {0};

	if (run_dirs_is(dir) && run_dirs_whole(dir, &why))
		log_warn(log, LOG_TOPIC_RUN, "skipped: %s", why.text);
	else
		log_warn(log, LOG_TOPIC_RUN,
			 "%s: skipped: not a run directory, " JOURNAL_FILE " is not in it", dir);
}

enum status run_dirs_pick(struct opt_words *out, const struct opt_words *given, const struct log *log,
			  struct error *err)
{
	const char **kept = calloc(given->count + 1, sizeof(*kept));
	size_t count = 0;

	*out = (struct opt_words){.word = kept};
	if (!kept)
		return error_errno(err, ENOMEM, "%zu runs", given->count);
	for (size_t i = 0; i < given->count; i++)
		if (fit(given->word[i]))
			kept[count++] = given->word[i];
	if (!count && given->count) {
		memcpy(kept, given->word, given->count * sizeof(*kept));
		count = given->count;
	}
	for (size_t i = 0; count < given->count && i < given->count; i++)
		if (!fit(given->word[i]))
			passed_over(log, given->word[i]);
	out->count = count;
	return STATUS_OK;
}

enum status run_dirs_make(char out[PATH_MAX], const char *given, const char *name, struct error *err)
{
	if (!given)
		return run_dirs_claim(out, name, err);
	text_copy(out, PATH_MAX, given);
	if (!*out || strcmp(out, given) != 0)
		return error_set(err, STATUS_BAD_INPUT, "--out: the path is empty or too long");
	if (run_dirs_is(out))
		return error_set(err, STATUS_BAD_INPUT,
				 "%s already holds a run: choose another folder with --out", out);
	return file_make_private_dir(out, err);
}
