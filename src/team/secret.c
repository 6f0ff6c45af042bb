/* SPDX-License-Identifier: Apache-2.0 */
#include "team/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/file.h"
#include "core/random.h"
#include "core/text.h"

enum { JOB_SECRET_BYTES = 16 };

/* `size` bytes without the line's end; refuses what is too short to keep anybody out. */
static enum status take(struct secret *s, const char *text, size_t size, const char *from, struct error *err)
{
	while (size && (text[size - 1] == '\n' || text[size - 1] == '\r'))
		size--;
	if (size < SECRET_MIN || size > SECRET_MAX || memchr(text, 0, size))
		return error_set_cause(err, STATUS_BAD_INPUT, CAUSE_TEAM_REFUSED,
				       "the team's secret in %s has %zu signs where %d to %d are needed",
				       from, size, SECRET_MIN, SECRET_MAX);
	memcpy(s->text, text, size);
	s->text[size] = '\0';
	return STATUS_OK;
}

static enum status check_owner(int fd, const char *path, struct error *err)
{
	struct stat about;

	if (fstat(fd, &about))
		return error_errno(err, errno, "cannot look at %s", path);
	if (!S_ISREG(about.st_mode))
		return error_set_cause(err, STATUS_BAD_INPUT, CAUSE_TEAM_REFUSED,
				       "the team's secret %.300s is no regular file", path);
	if (about.st_uid != geteuid() || about.st_mode & 077)
		return error_set_cause(
			err, STATUS_BAD_INPUT, CAUSE_TEAM_REFUSED,
			"the team's secret %.300s is open to others (mode %04o, user %u): chmod 600", path,
			about.st_mode & 07777, about.st_uid);
	return STATUS_OK;
}

static enum status read_secret(struct secret *s, const char *path, struct error *err)
{
	char text[SECRET_MAX + 3]; /* a line's end, and one more to see that it is too long */
	enum status st;
	ssize_t n;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

	if (fd < 0)
		return error_errno(err, errno, "cannot open the team's secret %s", path);
	st = check_owner(fd, path, err);
	if (!st) {
		n = read(fd, text, sizeof(text));
		st = n < 0 ? error_errno(err, errno, "cannot read the team's secret %s", path)
			   : take(s, text, (size_t)n, path, err);
	}
	close(fd);
	return st;
}

/* The folder is ours alone, or anybody could lay a secret of his own there. */
static enum status private_dir(const char *dir, struct error *err)
{
	struct stat about;
	enum status st = file_make_dir(dir, err);

	if (st)
		return st;
	if (chmod(dir, 0700) || lstat(dir, &about))
		return error_errno(err, errno, "cannot keep %s to ourselves", dir);
	if (!S_ISDIR(about.st_mode) || about.st_uid != geteuid())
		return error_set_cause(err, STATUS_BAD_INPUT, CAUSE_TEAM_REFUSED,
				       "%.300s is not our own folder", dir);
	return STATUS_OK;
}

static enum status job_file(struct secret *s, const struct team_place *p, const struct environment *env,
			    bool make, struct error *err)
{
	const char *runtime = env->get(env->arg, "XDG_RUNTIME_DIR"), *home = env->get(env->arg, "HOME");
	bool one_node = p->local_size == p->size && runtime && *runtime == '/';
	char dir[4000];
	enum status st = STATUS_OK;
	int n;

	if (!one_node && (!home || *home != '/'))
		return error_set_cause(err, STATUS_BAD_INPUT, CAUSE_TEAM_REFUSED,
				       "no place for the team's secret: set ASSAY_TEAM_SECRET, or name a "
				       "file that all ranks "
				       "can read");
	n = snprintf(dir, sizeof(dir), "%s%s/assay/team", one_node ? runtime : home,
		     one_node ? "" : "/.cache");
	if (n >= (int)sizeof(dir))
		return error_set(err, STATUS_BAD_INPUT, "the path of the team's secret is too long");
	if (make)
		st = private_dir(dir, err);
	snprintf(s->file, sizeof(s->file), "%s/%s", dir, p->job);
	return st;
}

/* What lies there already is of a run that was killed: only rank 0 writes it. */
static enum status make_secret(struct secret *s, struct error *err)
{
	char hex[2 * JOB_SECRET_BYTES + 1];
	struct text t = {0};
	enum status st;
	int fd;

	if (!random_hex(hex, sizeof(hex)))
		return error_errno(err, errno, "no random bytes for the team's secret");
	text_add(&t, hex);
	explicit_bzero(hex, sizeof(hex));
	st = take(s, text_str(&t), t.size, s->file, err);
	unlink(s->file);
	fd = open(s->file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (!st && fd < 0)
		st = error_errno(err, errno, "cannot create the team's secret %s", s->file);
	else if (!st && write(fd, text_str(&t), t.size) != (ssize_t)t.size)
		st = error_errno(err, errno, "cannot write the team's secret %s", s->file);
	if (fd >= 0)
		close(fd);
	explicit_bzero(t.data, t.size);
	text_release(&t);
	return st;
}

/* Not there, or not written yet: rank 0 is on its way. */
static enum status await_secret(struct secret *s, struct error *err)
{
	struct stat about;

	if (stat(s->file, &about) || about.st_size < 2 * JOB_SECRET_BYTES)
		return error_set_cause(
			err, STATUS_UNAVAILABLE, CAUSE_TEAM_LATE,
			"rank 0 has not laid the team's secret at %.300s: where the nodes share no home, set "
			"ASSAY_TEAM_SECRET",
			s->file);
	return read_secret(s, s->file, err);
}

enum status secret_find(struct secret *s, const char *file, const struct team_place *p,
			const struct environment *env, struct error *err)
{
	const char *told = env->get(env->arg, "ASSAY_TEAM_SECRET");
	enum status st;

	*s = (struct secret){0};
	if (file)
		return read_secret(s, file, err);
	if (told && *told)
		return take(s, told, strlen(told), "ASSAY_TEAM_SECRET", err);
	st = job_file(s, p, env, p->rank == 0, err);
	if (st)
		return st;
	return p->rank ? await_secret(s, err) : make_secret(s, err);
}

void secret_forget(struct secret *s, bool remove_file)
{
	if (remove_file && *s->file)
		unlink(s->file);
	explicit_bzero(s, sizeof(*s));
}
