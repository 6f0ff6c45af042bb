/* SPDX-License-Identifier: Apache-2.0 */
/* Prepares the run directory of a training run: new, resumed, or begun again if the earlier run had no
 * result; and the configuration saved in it. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cmd/shared/run_dirs.h"
#include "cmd/train/train.h"
#include "core/file/file.h"
#include "journal/journal.h"
#include "journal/record/record.h"
#include "train/checkpoint/names.h"

/* The first line of a configuration that assay saved in a run directory. */
#define TRAIN_MARK "# as assay train understood it\n"

void train_write_config(struct training *t)
{
	text_release(&t->written);
	config_write(&t->written, &t->config);
	config_hash(t->hash, &t->config);
	config_run_hash(t->run_hash, &t->config);
}

/* True if the file does not exist or an earlier attempt wrote it. Any other file belongs to the user. */
static bool is_ours(const char *path)
{
	char first[sizeof(TRAIN_MARK)] = "";
	FILE *f = fopen(path, "re");
	bool ours = f ? fgets(first, sizeof(first), f) && !strcmp(first, TRAIN_MARK) : errno == ENOENT;

	if (f)
		fclose(f);
	return ours;
}

/* True if the folder holds nothing but the configuration of an earlier attempt. */
static bool is_free(const struct training *t, const char *config)
{
	DIR *folder = opendir(t->dir);
	bool others = false;

	if (!folder)
		return errno == ENOENT;
	for (struct dirent *e; !others && (e = readdir(folder));)
		others = strcmp(e->d_name, ".") && strcmp(e->d_name, "..") && strcmp(e->d_name, TRAIN_CONFIG);
	closedir(folder);
	return !others && is_ours(config);
}

/* True if the path is the configuration file that was read: saving our version would overwrite it. */
static bool is_what_was_read(const struct training *t, const char *path)
{
	struct stat kept, read;

	return !stat(path, &kept) && !stat(t->o->config, &read) && kept.st_dev == read.st_dev &&
	       kept.st_ino == read.st_ino;
}

static bool has_checkpoint(const char *dir)
{
	struct checkpoint_list list;
	bool any = checkpoint_list_read(&list, dir, NULL) || list.count;

	checkpoint_list_release(&list);
	return any;
}

/* True if the run in the folder ended before its first step: nothing would be lost. */
static bool came_to_nothing(const char *dir)
{
	struct record r;
	bool nothing;

	if (has_checkpoint(dir) || record_read_run(&r, dir, NULL))
		return false;
	nothing = r.case_count == 1 && !strcmp(r.cases[0].probe, "train") &&
		  !record_series(&r, "train", "loss");
	record_release(&r);
	return nothing;
}

/* Removes the journal, unless another run is writing it. */
static enum status take_journal_away(const char *path, struct error *err)
{
	int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	enum status st = STATUS_OK;

	if (fd < 0)
		return error_errno(err, errno, "cannot open %s", path);
	if (flock(fd, LOCK_EX | LOCK_NB))
		st = error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_BUSY, "%s: another run is writing it now",
				     path);
	else if (unlink(path))
		st = error_errno(err, errno, "cannot remove %s", path);
	close(fd);
	return st;
}

static enum status clear(struct training *t, const char *journal, struct error *err)
{
	if (!came_to_nothing(t->dir))
		return error_set(
			err, STATUS_BAD_INPUT,
			"%s already holds a run: continue it with --resume %s, or choose another folder with --out",
			t->dir, t->dir);
	log_info(t->c->log, LOG_TOPIC_RUN, "%s: the earlier run there made no step; starting it again",
		 t->dir);
	return take_journal_away(journal, err);
}

/* A run that was interrupted before it had a journal left only its configuration. */
static enum status look_for_run(struct training *t, bool journal, const char *config, struct error *err)
{
	t->goes_on = journal;
	if (journal)
		return STATUS_OK;
	if (!is_free(t, config))
		return error_set(err, STATUS_BAD_INPUT, "%s holds no run: " JOURNAL_FILE " is not there",
				 t->dir);
	log_info(t->c->log, LOG_TOPIC_RUN,
		 "%s: the earlier run there ended before it began to work; starting it again", t->dir);
	return STATUS_OK;
}

/* An empty journal counts as none: its run was interrupted right after creating it. */
static enum status has_journal(bool *there, const char *path, struct error *err)
{
	struct stat about;

	*there = !lstat(path, &about);
	if (!*there || !S_ISREG(about.st_mode) || about.st_size)
		return STATUS_OK;
	*there = false;
	return take_journal_away(path, err);
}

/* Of two runs that begin in the folder at the same time, the second one finds the first one's lock or
 * journal. On a file system that cannot lock folders there is no such lock; a worker still checks that the
 * configuration is that of its own run. */
static enum status claim(struct training *t, struct error *err)
{
	t->claim = open(t->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (t->claim >= 0 && flock(t->claim, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
		return error_set_cause(
			err, STATUS_NO_RESOURCE, CAUSE_BUSY,
			"%s: another run is starting there now: wait for it, or choose another folder",
			t->dir);
	return STATUS_OK;
}

enum status train_save_config(const struct training *t, const char *path, struct error *err)
{
	struct text marked = {0};
	enum status st;

	text_addf(&marked, TRAIN_MARK "%s", text_str(&t->written));
	st = file_write(path, text_str(&marked), marked.size, err);
	text_release(&marked);
	return st;
}

enum status train_folder(struct training *t, struct error *err)
{
	const char *out = t->o->out ? t->o->out : t->config.training.output_dir;
	char journal[PATH_MAX + 32], path[PATH_MAX + 32];
	bool there;
	enum status st;

	if (t->o->resume || out)
		text_copy(t->dir, sizeof(t->dir), t->o->resume ? t->o->resume : out);
	else
		run_dirs_next(t->dir, "train");
	if ((t->o->resume || out) && strcmp(t->dir, t->o->resume ? t->o->resume : out) != 0)
		return error_set(err, STATUS_BAD_INPUT, "--%s: the path is too long",
				 t->o->resume ? "resume" : "out");
	snprintf(journal, sizeof(journal), "%s/" JOURNAL_FILE, t->dir);
	snprintf(path, sizeof(path), "%s/" TRAIN_CONFIG, t->dir);
	st = t->o->resume ? STATUS_OK : file_make_private_dir(t->dir, err);
	if (!st)
		st = claim(t, err);
	if (st)
		return st;
	file_sweep(path);
	st = has_journal(&there, journal, err);
	if (st)
		return st;
	if (t->o->resume)
		return look_for_run(t, there, path, err);
	if ((!there && !is_free(t, path)) || is_what_was_read(t, path))
		return error_set(err, STATUS_BAD_INPUT,
				 "%s is not empty and not a run directory: choose a new folder with --out",
				 t->dir);
	if (there)
		st = clear(t, journal, err);
	return st ? st : train_save_config(t, path, err);
}

/* The run directory that the options or the configuration name; "": none. */
static void named_dir(char dir[PATH_MAX], const struct train_opts *o)
{
	struct config c = {0};

	text_copy(dir, PATH_MAX, o->resume ? o->resume : o->out ? o->out : "");
	if (*dir || !o->config)
		return;
	if (!config_read(&c, o->config, NULL) && c.training.output_dir)
		text_copy(dir, PATH_MAX, c.training.output_dir);
	config_release(&c);
}

const char *train_again(const void *opts)
{
	const struct train_opts *o = opts;
	char dir[PATH_MAX];

	if (o->plan)
		return NULL;
	if (o->resume)
		return "";
	named_dir(dir, o);
	if (*dir)
		return o->resume_if_exists ? "" : " --resume-if-exists";
	return o->resume_if_exists ? " --out \"$run\"" : " --resume-if-exists --out \"$run\"";
}

/* True if the journal of a run is there. */
static bool holds_run(const char *dir)
{
	char path[PATH_MAX + 32];
	struct stat about;

	snprintf(path, sizeof(path), "%s/" JOURNAL_FILE, dir);
	return !stat(path, &about) && S_ISREG(about.st_mode) && about.st_size;
}

enum status train_continue(struct training *t, struct error *err)
{
	char dir[PATH_MAX];
	bool exists = false, known = true;
	enum status st;

	if (!t->o->resume_if_exists)
		return STATUS_OK;
	if (train_ranks_leads(t)) {
		named_dir(dir, t->o);
		known = *dir != '\0';
		exists = known && holds_run(dir);
	}
	st = train_ranks_share(t, &exists, &known, err);
	if (st || !exists)
		return st || known
			       ? st
			       : error_set(
					 err, STATUS_BAD_INPUT,
					 "--resume-if-exists needs a run directory: --out or training: output_dir");
	t->continues = *t->o;
	t->continues.config = t->continues.out = NULL;
	if (train_ranks_leads(t)) /* the others learn the path from rank 0 */
		text_copy(t->continued, sizeof(t->continued), dir);
	t->continues.resume = t->continued;
	t->o = &t->continues;
	return STATUS_OK;
}

enum status train_folder_beside(struct training *t, struct error *err)
{
	char path[PATH_MAX + 32];
	enum status st = file_make_private_dir(t->dir, err);

	snprintf(path, sizeof(path), "%s/" TRAIN_CONFIG, t->dir);
	return st ? st : train_save_config(t, path, err);
}
