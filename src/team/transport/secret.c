/* SPDX-License-Identifier: Apache-2.0 */
#include "team/transport/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/file/file.h"
#include "core/math/random.h"
#include "core/text/text.h"

enum { JOB_SECRET_BYTES = 16 };

/* Takes `size` bytes without a final newline. BAD_INPUT: too short to be a secret, or too long. */
static enum status take(struct secret *s, const char *text, size_t size, const char *from, struct error *err)
{
	while (size && (text[size - 1] == '\n' || text[size - 1] == '\r'))
		size--;
	if (size < SECRET_MIN || size > SECRET_MAX || memchr(text, 0, size))
		return error_set_cause(err, STATUS_BAD_INPUT, CAUSE_TEAM_REFUSED,
				       "the team's secret in %s has %zu characters; it needs %d to %d", from,
				       size, SECRET_MIN, SECRET_MAX);
	memcpy(s->text, text, size);
	s->text[size] = '\0';
	return STATUS_OK;
}

static enum status check_owner(int fd, const char *path, struct error *err)
{
	struct stat about;

	if (fstat(fd, &about))
		return error_errno(err, errno, "cannot read the properties of %s", path);
	if (!S_ISREG(about.st_mode))
		return error_set_cause(err, STATUS_BAD_INPUT, CAUSE_TEAM_REFUSED,
				       "the file %.300s of the team's secret is not a regular file", path);
	if (about.st_uid != geteuid() || about.st_mode & 077)
		return error_set_cause(
			err, STATUS_BAD_INPUT, CAUSE_TEAM_REFUSED,
			"the file %.300s of the team's secret is open to other users (mode %04o, user %u): chmod 600",
			path, about.st_mode & 07777, about.st_uid);
	return STATUS_OK;
}

static enum status read_secret(struct secret *s, const char *path, struct error *err)
{
	char text[SECRET_MAX +
		  3]; /* room for a newline, and for one more byte to detect a text that is too long */
	enum status st;
	ssize_t n;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

	if (fd < 0)
		return error_errno(err, errno, "cannot open the file %s of the team's secret", path);
	st = check_owner(fd, path, err);
	if (!st) {
		n = read(fd, text, sizeof(text));
		st = n < 0 ? error_errno(err, errno, "cannot read the file %s of the team's secret", path)
			   : take(s, text, (size_t)n, path, err);
	}
	close(fd);
	return st;
}

static enum status keep_private(int fd, const char *dir, struct error *err)
{
	struct stat about;

	if (fstat(fd, &about))
		return error_errno(err, errno, "cannot read the properties of %s", dir);
	if (about.st_uid != geteuid())
		return error_set_cause(
			err, STATUS_BAD_INPUT, CAUSE_TEAM_REFUSED,
			"the folder %.300s for the team's secret belongs to user %u: remove it", dir,
			about.st_uid);
	if (fchmod(fd, 0700))
		return error_errno(err, errno, "cannot make %s private", dir);
	return STATUS_OK;
}

/* Makes the folder private to this user, so that no other user can place a secret there. *out: the open
 * folder; the caller closes it. A symbolic link is not followed, so the mode of a folder elsewhere does not
 * change. */
static enum status private_dir(int *out, const char *dir, struct error *err)
{
	enum status st = file_make_dir(dir, err);
	int fd;

	if (st)
		return st;
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && (errno == ELOOP || errno == ENOTDIR))
		return error_set_cause(
			err, STATUS_BAD_INPUT, CAUSE_TEAM_REFUSED,
			"%.300s is a symbolic link, and the team's secret needs a real folder: remove the link",
			dir);
	if (fd < 0)
		return error_errno(err, errno, "cannot open the folder %s", dir);
	st = keep_private(fd, dir, err);
	if (st)
		close(fd);
	else
		*out = fd;
	return st;
}

/* XDG_RUNTIME_DIR may name a folder of another node, because a job keeps the variables of the node it was
 * submitted from. */
static bool is_own_folder(const char *path)
{
	struct stat about;

	return path && *path == '/' && !stat(path, &about) && S_ISDIR(about.st_mode) &&
	       about.st_uid == geteuid();
}

/* *folder: the open folder in which rank 0 writes the file. `folder` NULL: another rank writes it. */
static enum status job_file(struct secret *s, const struct team_place *p, const struct environment *env,
			    int *folder, struct error *err)
{
	const char *runtime = env->get(env->arg, "XDG_RUNTIME_DIR"), *home = env->get(env->arg, "HOME");
	bool one_node = p->local_size == p->size && is_own_folder(runtime);
	char dir[4000];
	enum status st = STATUS_OK;
	int n;

	if (!one_node && (!home || *home != '/'))
		return error_set_cause(
			err, STATUS_BAD_INPUT, CAUSE_TEAM_REFUSED,
			"no folder for the team's secret: set ASSAY_TEAM_SECRET, or name a file that all ranks can "
			"read with --team-secret");
	n = snprintf(dir, sizeof(dir), "%s%s/assay/team", one_node ? runtime : home,
		     one_node ? "" : "/.cache");
	if (n >= (int)sizeof(dir))
		return error_set(err, STATUS_BAD_INPUT, "the path of the team's secret is too long");
	if (folder)
		st = private_dir(folder, dir, err);
	snprintf(s->file, sizeof(s->file), "%s/%s", dir, p->job);
	return st;
}

/* Writes a new file `name` in the private folder; `path` is for messages. An existing file is left from a run
 * that was killed, and is replaced. */
static enum status write_secret(int folder, const char *name, const char *path, const char *text,
				struct error *err)
{
	enum status st = STATUS_OK;
	int fd;

	unlinkat(folder, name, 0);
	fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return error_errno(err, errno, "cannot create the file %s of the team's secret", path);
	if (write(fd, text, strlen(text)) != (ssize_t)strlen(text) || fsync(fd))
		st = error_errno(err, errno, "cannot write the file %s of the team's secret", path);
	close(fd);
	return st;
}

/* Only rank 0 writes it. */
static enum status make_secret(struct secret *s, int folder, const char *job, struct error *err)
{
	char hex[2 * JOB_SECRET_BYTES + 1];
	enum status st;

	if (!random_hex(hex, sizeof(hex)))
		return error_errno(err, errno, "cannot read random bytes for the team's secret");
	st = take(s, hex, strlen(hex), s->file, err);
	explicit_bzero(hex, sizeof(hex));
	return st ? st : write_secret(folder, job, s->file, s->text, err);
}

enum status secret_write_file(char path[4096], const char *name, const char *text,
			      const struct environment *env, struct error *err)
{
	const char *home = env->get(env->arg, "HOME");
	char dir[4000];
	enum status st;
	int folder;

	if (!home || *home != '/' ||
	    snprintf(dir, sizeof(dir), "%s/.cache/assay/team", home) >= (int)sizeof(dir))
		return error_set_cause(err, STATUS_BAD_INPUT, CAUSE_TEAM_REFUSED,
				       "no folder for the team's secret: set HOME to a folder");
	st = private_dir(&folder, dir, err);
	snprintf(path, 4096, "%s/%.64s", dir, name);
	if (st)
		return st;
	st = write_secret(folder, path + strlen(dir) + 1, path, text, err);
	close(folder);
	return st;
}

/* Reads the file that a launcher wrote for this start; rank 0 removes it when all ranks have joined. A node
 * may see it late, because NFS caches a folder for some seconds. */
static enum status read_laid(struct secret *s, const char *path, struct error *err)
{
	struct error why = {0};
	struct stat about;
	enum status st;

	if (lstat(path, &about) ? errno == ENOENT || errno == ESTALE
				: S_ISREG(about.st_mode) && !about.st_size)
		return error_set_cause(
			err, STATUS_UNAVAILABLE, CAUSE_TEAM_LATE,
			"the file %.150s of the team's secret is not on this node yet: if the nodes share no home "
			"folder, place one file of mode 0600 on each and name it with --team-secret",
			path);
	st = read_secret(s, path, &why);
	if (st)
		return error_set_cause(
			err, st, CAUSE_TEAM_REFUSED,
			"%.400s: if the nodes share no home folder, place one file of mode 0600 on each and name it "
			"with --team-secret",
			why.text);
	text_copy(s->file, sizeof(s->file), path);
	return STATUS_OK;
}

/* The job's file does not exist or is not written yet: rank 0 may still be starting. */
static enum status await_secret(struct secret *s, struct error *err)
{
	struct stat about;

	if (stat(s->file, &about) || about.st_size < 2 * JOB_SECRET_BYTES)
		return error_set_cause(
			err, STATUS_UNAVAILABLE, CAUSE_TEAM_LATE,
			"rank 0 has not written the team's secret to %.300s: if the nodes share no home folder, "
			"place one file of mode 0600 on each and name it with --team-secret",
			s->file);
	return read_secret(s, s->file, err);
}

enum status secret_find(struct secret *s, const char *file, const struct team_place *p,
			const struct environment *env, struct error *err)
{
	const char *told = env->get(env->arg, SECRET_VARIABLE);
	const char *laid = env->get(env->arg, SECRET_FILE_VARIABLE);
	enum status st;
	int folder = -1;

	*s = (struct secret){0};
	if (file)
		return read_secret(s, file, err);
	if (told && *told)
		return take(s, told, strlen(told), SECRET_VARIABLE, err);
	if (laid && *laid)
		return read_laid(s, laid, err);
	st = job_file(s, p, env, p->rank ? NULL : &folder, err);
	if (st)
		return st;
	if (p->rank)
		return await_secret(s, err);
	st = make_secret(s, folder, p->job, err);
	close(folder);
	return st;
}

void secret_forget(struct secret *s, bool remove_file)
{
	if (remove_file && *s->file)
		unlink(s->file);
	explicit_bzero(s, sizeof(*s));
}
