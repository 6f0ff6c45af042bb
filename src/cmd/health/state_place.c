/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/health/state_place.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cmd/health/lock.h"
#include "core/file/file.h"

enum { ASIDE_MAX = 100 }; /* damaged states that are kept */

enum status state_place_find(char out[PATH_MAX], const char *given, struct error *err)
{
	const char *stated = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	int n;

	if (given && !*given) /* an unset variable in a script */
		return error_set(err, STATUS_BAD_INPUT, "--state is empty");
	if (given)
		n = snprintf(out, PATH_MAX, "%s", given);
	else if (!geteuid())
		n = snprintf(out, PATH_MAX, "/var/lib/assay/health.json");
	else if (stated && *stated == '/')
		n = snprintf(out, PATH_MAX, "%s/assay/health.json", stated);
	else if (home && *home == '/')
		n = snprintf(out, PATH_MAX, "%s/.local/state/assay/health.json", home);
	else
		return error_set(err, STATUS_UNAVAILABLE,
				 "there is no folder for the state: HOME is not set; use --state FILE");
	/* room for the names beside it */
	if (n >= PATH_MAX - 128)
		return error_set(err, STATUS_BAD_INPUT, "--state: the path is too long");
	return STATUS_OK;
}

static void folder_of(char out[PATH_MAX], const char *path)
{
	char *slash;

	text_copy(out, PATH_MAX, path);
	slash = strrchr(out, '/');
	if (!slash)
		text_copy(out, PATH_MAX, ".");
	else
		slash[slash == out] = '\0'; /* "/" keeps its slash */
}

/* Renames without replacing anything. File systems without RENAME_NOREPLACE get a second name, then lose the
 * first. */
static bool move(const char *from, const char *to)
{
	if (!renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE))
		return true;
	if (errno != EINVAL && errno != ENOSYS)
		return false;
	return !link(from, to) && !unlink(from);
}

/* Renames a damaged state to FILE.bad, or FILE.bad.1 and so on if that exists. True: the name is free. */
static bool set_aside(const char *path, const struct log *log, const struct error *why)
{
	char bad[PATH_MAX];

	snprintf(bad, sizeof(bad), "%.*s.bad", PATH_MAX - 16, path);
	for (unsigned i = 1; i <= ASIDE_MAX; i++) {
		if (move(path, bad)) {
			log_warn(log, LOG_TOPIC_RUN,
				 "%s; it is now %s, and the run begins with an empty state", why->text, bad);
			return true;
		}
		if (errno != EEXIST)
			break;
		snprintf(bad, sizeof(bad), "%.*s.bad.%u", PATH_MAX - 16, path, i);
	}
	log_warn(log, LOG_TOPIC_RUN, "no state is kept: %s; it cannot be renamed to %s: %s", why->text, bad,
		 strerror(errno));
	return false;
}

enum status state_place_open(struct state_place *p, const struct log *log, const volatile sig_atomic_t *stop,
			     struct error *err)
{
	char folder[PATH_MAX];
	struct error why = {0};
	bool damaged = false;
	enum status st;

	p->lock = -1;
	folder_of(folder, p->path);
	st = access(folder, F_OK) ? file_make_private_dir(folder, &why) : STATUS_OK;
	if (!st)
		st = health_lock(&p->lock, folder, stop, &why);
	if (st && why.cause == CAUSE_BUSY) {
		*err = why;
		return st;
	}
	if (!st)
		st = health_state_read(&p->state, p->path, &damaged, &why);
	p->saves = !st;
	if (damaged)
		p->saves = set_aside(p->path, log, &why);
	else if (st)
		log_warn(log, LOG_TOPIC_RUN, "no state is kept: %s", why.text);
	return STATUS_OK;
}

bool state_place_save(struct state_place *p, const struct log *log)
{
	struct error err = {0};

	if (p->saves && health_state_write(&p->state, p->path, &err)) {
		log_warn(log, LOG_TOPIC_RUN,
			 "the state is not saved, so this run neither drains nor resumes the node: %s",
			 err.text);
		p->saves = false;
	}
	return p->saves;
}

void state_place_close(struct state_place *p)
{
	if (p->lock >= 0)
		close(p->lock);
	health_state_release(&p->state);
}
