/* SPDX-License-Identifier: Apache-2.0 */
#include "core/file/mapped.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILES_MAX = 4096 };

/* The signal handler reads only begin, end and broken. All other fields change under the lock. */
struct mapped {
	atomic_uintptr_t begin, end; /* begin 0: not mapped */
	atomic_bool broken;
	char *path; /* NULL: this entry is free */
	uint64_t size;
	dev_t device;
	ino_t file;
};

static struct mapped files[FILES_MAX];
static atomic_size_t used;   /* entries of `files` that were ever used */
static atomic_size_t broken; /* files with a fault that is not yet reported, or that are still mapped */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sigaction before;
static uintptr_t page;

static struct mapped *find(uintptr_t at)
{
	for (size_t i = 0; i < atomic_load(&used); i++) {
		uintptr_t begin = atomic_load(&files[i].begin);

		if (begin && at >= begin && at < atomic_load(&files[i].end))
			return &files[i];
	}
	return NULL;
}

static void note(struct mapped *m)
{
	if (!atomic_exchange(&m->broken, true))
		atomic_fetch_add(&broken, 1);
}

/* Maps zeros from the unreadable page to the end of the file: after a truncation nothing else is there. */
static bool fill(struct mapped *m, uintptr_t at)
{
	uintptr_t from = at / page * page, end = (atomic_load(&m->end) + page - 1) / page * page;

	return mmap((void *)from, end - from, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) !=
	       MAP_FAILED;
}

/* Handles a fault outside our files: calls the previous handler and keeps ours installed. Without a
 * previous handler, restores the default action, so that the system ends the process: a fault repeats by
 * itself, and a signal from another process is sent again. */
static void pass_on(int number, siginfo_t *info, void *context)
{
	if (before.sa_flags & SA_SIGINFO) {
		before.sa_sigaction(number, info, context);
	} else if (before.sa_handler == SIG_DFL || (before.sa_handler == SIG_IGN && info->si_code > 0)) {
		signal(SIGBUS, SIG_DFL);
		if (info->si_code <= 0)
			raise(SIGBUS);
	} else if (before.sa_handler != SIG_IGN) {
		before.sa_handler(number);
	}
}

static void on_bus_error(int number, siginfo_t *info, void *context)
{
	int kept = errno;
	struct mapped *m = info->si_code > 0 ? find((uintptr_t)info->si_addr) : NULL;

	if (m)
		note(m);
	if (!m || !fill(m, (uintptr_t)info->si_addr))
		pass_on(number, info, context);
	errno = kept;
}

/* Call under the lock. Called for each file, because a library may have installed its own handler since. */
static void install(void)
{
	struct sigaction act = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO | SA_RESTART}, now;

	page = (uintptr_t)sysconf(_SC_PAGESIZE);
	sigemptyset(&act.sa_mask);
	if (sigaction(SIGBUS, NULL, &now) || (now.sa_flags & SA_SIGINFO && now.sa_sigaction == on_bus_error))
		return;
	before = now;
	sigaction(SIGBUS, &act, NULL);
}

void mapped_handle_first(void)
{
	pthread_mutex_lock(&lock);
	install();
	pthread_mutex_unlock(&lock);
}

/* Call under the lock. */
static struct mapped *free_place(void)
{
	size_t i = 0;

	while (i < FILES_MAX && files[i].path)
		i++;
	if (i == FILES_MAX)
		return NULL;
	if (i == atomic_load(&used))
		atomic_store(&used, i + 1);
	return &files[i];
}

static enum status keep(const struct stat *about, void *map, uint64_t size, const char *path,
			struct error *err)
{
	char *copy = strdup(path);
	struct mapped *m;

	pthread_mutex_lock(&lock);
	install();
	m = copy ? free_place() : NULL;
	if (m) {
		m->path = copy;
		m->size = size;
		m->device = about->st_dev;
		m->file = about->st_ino;
		atomic_store(&m->broken, false);
		atomic_store(&m->end, (uintptr_t)map + size);
		atomic_store(&m->begin, (uintptr_t)map);
	}
	pthread_mutex_unlock(&lock);
	if (m)
		return STATUS_OK;
	free(copy);
	return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
			       "cannot map %s: out of memory, or the limit of %d mapped files is reached",
			       path, FILES_MAX);
}

enum status mapped_take(void **data, int fd, uint64_t size, const char *path, struct error *err)
{
	struct stat about;
	enum status st;
	void *map;

	*data = NULL;
	if (fstat(fd, &about))
		return error_errno(err, errno, "cannot read %s", path);
	map = mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED)
		return error_errno(err, errno, "cannot map %s", path);
	st = keep(&about, map, size, path, err);
	if (st)
		munmap(map, (size_t)size);
	else
		*data = map;
	return st;
}

enum status mapped_open(void **data, uint64_t *size, const char *path, struct error *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	enum status st = STATUS_OK;
	struct stat about;

	*data = NULL;
	*size = 0;
	if (fd < 0)
		return error_errno(err, errno, "cannot open %s", path);
	if (fstat(fd, &about))
		st = error_errno(err, errno, "cannot read %s", path);
	else if (!S_ISREG(about.st_mode))
		st = error_set(err, STATUS_BAD_INPUT, "cannot read %s: it is %s", path,
			       S_ISDIR(about.st_mode) ? "a folder, not a file" : "not a regular file");
	else if (about.st_size > 0)
		st = mapped_take(data, fd, (uint64_t)about.st_size, path, err);
	if (*data)
		*size = (uint64_t)about.st_size;
	close(fd);
	return st;
}

/* Call under the lock. */
static void let_go(struct mapped *m)
{
	if (atomic_exchange(&m->broken, false))
		atomic_fetch_sub(&broken, 1);
	free(m->path);
	m->path = NULL;
}

void mapped_close(void *data, uint64_t size)
{
	struct mapped *m;

	if (!data)
		return;
	pthread_mutex_lock(&lock);
	m = find((uintptr_t)data);
	if (m) {
		atomic_store(&m->begin, 0);
		if (!atomic_load(&m->broken)) /* otherwise mapped_check must still report it */
			let_go(m);
	}
	pthread_mutex_unlock(&lock);
	munmap(data, (size_t)size);
}

void mapped_forget(void *data, uint64_t size)
{
	if (data)
		madvise(data, (size_t)size, MADV_DONTNEED);
}

static bool is_shorter(const struct mapped *m, uint64_t *size)
{
	struct stat now;

	*size = 0;
	if (stat(m->path, &now) || now.st_dev != m->device ||
	    now.st_ino != m->file) /* the path is another file now */
		return false;
	*size = (uint64_t)now.st_size;
	return *size < m->size;
}

static enum status tell(const struct mapped *m, struct error *err)
{
	uint64_t size;

	if (err)
		error_clear(err);
	if (is_shorter(m, &size))
		return error_set(err, STATUS_BAD_INPUT,
				 "%s: another program shortened the file while assay read it: %" PRIu64
				 " bytes instead of %" PRIu64,
				 m->path, size, m->size);
	return error_set(
		err, STATUS_BAD_INPUT,
		"%s: cannot read the file to its end: another program shortened it, or its disk failed",
		m->path);
}

enum status mapped_check(enum status st, struct error *err)
{
	bool told = false;

	if (!atomic_load(&broken))
		return st;
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < atomic_load(&used) && !told; i++) {
		if (!files[i].path || !atomic_load(&files[i].broken))
			continue;
		st = tell(&files[i], err);
		told = true;
		if (!atomic_load(&files[i].begin))
			let_go(&files[i]);
	}
	pthread_mutex_unlock(&lock);
	return st;
}

enum status mapped_check_sizes(enum status st, struct error *err)
{
	uint64_t size;

	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < atomic_load(&used); i++)
		if (files[i].path && atomic_load(&files[i].begin) && is_shorter(&files[i], &size))
			note(&files[i]);
	pthread_mutex_unlock(&lock);
	return mapped_check(st, err);
}
