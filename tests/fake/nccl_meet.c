/* SPDX-License-Identifier: Apache-2.0 */
#include "nccl_meet.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, LIMIT_S = 60, HANGING_S = 1, LOOK_MS = 50, YIELDS = 4 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the list */
static struct fake_group *groups;

/* -- making one -- */

static size_t meeting_bytes(void)
{
	return (sizeof(struct fake_meeting) + PAGE - 1) / PAGE * PAGE;
}

static void begin(struct fake_meeting *m, unsigned ranks)
{
	pthread_mutexattr_t a;

	m->ranks = ranks;
	pthread_mutexattr_init(&a);
	pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&m->lock, &a);
	pthread_mutexattr_destroy(&a);
}

static void *map(int fd)
{
	size_t size = meeting_bytes() + 2ul * FAKE_RANKS * FAKE_ROOM; /* sparse */
	void *at;

	if (ftruncate(fd, (off_t)size))
		return NULL;
	at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return at == MAP_FAILED ? NULL : at;
}

/* The path of an id's file. */
static void path_of(char path[PATH_MAX], const char *folder, const ncclUniqueId *id)
{
	uint64_t word[3];

	memcpy(word, id->internal, sizeof(word));
	snprintf(path, PATH_MAX, "%s/nccl-%llx-%llx-%llx", folder, (unsigned long long)word[0],
		 (unsigned long long)word[1], (unsigned long long)word[2]);
}

/* Made whole under a name of its own first: whoever opens the id's file finds a meeting that has begun. */
static void offer(const char *path, unsigned ranks)
{
	char own[PATH_MAX + 32];
	struct fake_meeting *m;
	int fd;

	snprintf(own, sizeof(own), "%s.%d.%ld", path, getpid(), syscall(SYS_gettid));
	fd = open(own, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	m = map(fd);
	if (m) {
		begin(m, ranks);
		(void)!link(own, path); /* another may have been faster */
		munmap(m, meeting_bytes() + 2ul * FAKE_RANKS * FAKE_ROOM);
	}
	close(fd);
	unlink(own);
}

static bool meet_in_file(struct fake_group *g, const char *folder, unsigned ranks)
{
	char path[PATH_MAX];
	int fd;

	path_of(path, folder, &g->id);
	offer(path, ranks);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return false;
	g->meeting = map(fd);
	close(fd);
	g->rooms = g->meeting ? (unsigned char *)g->meeting + meeting_bytes() : NULL;
	return g->meeting;
}

static struct fake_group *make(const ncclUniqueId *id, unsigned ranks)
{
	const char *folder = getenv("FAKE_NCCL_MEET");
	struct fake_group *g = calloc(1, sizeof(*g));
	bool made;

	if (!g)
		return NULL;
	g->id = *id;
	if (folder) {
		made = meet_in_file(g, folder, ranks);
	} else {
		g->meeting = calloc(1, sizeof(*g->meeting));
		made = g->meeting;
		if (made)
			begin(g->meeting, ranks);
	}
	if (made)
		return g;
	free(g);
	return NULL;
}

struct fake_group *fake_group_of(const ncclUniqueId *id, unsigned ranks)
{
	struct fake_group *g;

	pthread_mutex_lock(&lock);
	for (g = groups; g && memcmp(&g->id, id, sizeof(*id)); g = g->next)
		;
	if (!g && (g = make(id, ranks))) {
		g->next = groups;
		groups = g;
	}
	pthread_mutex_unlock(&lock);
	return g;
}

ncclUniqueId fake_group_split_id(const struct fake_group *g, int color)
{
	ncclUniqueId id = g->id;
	uint64_t word[3];

	memcpy(word, id.internal, sizeof(word));
	word[2] = (word[2] << 16) + (g->meeting->turn << 8) + (uint64_t)color + 1;
	memcpy(id.internal, word, sizeof(word));
	return id;
}

/* -- waiting -- */

void fake_meeting_lock(struct fake_meeting *m)
{
	if (pthread_mutex_lock(&m->lock) != EOWNERDEAD)
		return;
	pthread_mutex_consistent(&m->lock); /* a rank was killed here: what it was at is not known */
	m->aborted = true;
}

void fake_meeting_unlock(struct fake_meeting *m)
{
	pthread_mutex_unlock(&m->lock);
}

static void wake(struct fake_meeting *m)
{
	syscall(SYS_futex, &m->changes, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void fake_meeting_tell(struct fake_meeting *m)
{
	m->changes++;
	wake(m);
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* A rank's process that was killed. Waits would be for ever; a kernel's would be too. */
static bool somebody_died(const struct fake_meeting *m)
{
	for (unsigned r = 0; r < m->ranks; r++)
		if (m->slot[r].pid && kill(m->slot[r].pid, 0) && errno == ESRCH)
			return true;
	return false;
}

/* Where one hangs by plan the others do not wait for long: a kernel would be waiting, and not the call. */
static double limit_s(void)
{
	return fake_nccl_staged("hang") ? HANGING_S : fake_nccl_number("limit", LIMIT_S);
}

/* Lock not held. False: it has lasted too long. The limit and the other ranks are looked at only if nothing has
 * changed for a while. */
static bool sleep_until_change(struct fake_meeting *m, uint32_t seen, double since)
{
	struct timespec look = {.tv_nsec = LOOK_MS * 1000000};
	bool goes_on = !syscall(SYS_futex, &m->changes, FUTEX_WAIT, seen, &look, NULL, 0) || errno == EAGAIN;

	if (!goes_on) {
		fake_meeting_lock(m);
		goes_on = seconds() - since <= limit_s() && !somebody_died(m);
		fake_meeting_unlock(m);
	}
	return goes_on;
}

bool fake_meeting_join(struct fake_group *g, unsigned rank, int device)
{
	struct fake_meeting *m = g->meeting;
	struct fake_slot *own = &m->slot[rank];
	const char *host = getenv("NCCL_HOSTID");
	char path[PATH_MAX];

	own->device = device;
	if (host)
		snprintf(own->host, sizeof(own->host), "%s", host);
	else if (gethostname(own->host, sizeof(own->host)))
		own->host[0] = '\0';
	own->host[sizeof(own->host) - 1] = '\0';
	own->pid = getpid();
	for (unsigned r = 0; r < m->ranks; r++)
		m->aborted |= r != rank && m->slot[r].pid && m->slot[r].device == device &&
			      !strcmp(m->slot[r].host, own->host);
	if (++m->joined == m->ranks && g->rooms) {
		path_of(path, getenv("FAKE_NCCL_MEET"), &g->id);
		unlink(path);
	}
	fake_meeting_tell(m);
	return !m->aborted;
}

bool fake_meeting_await_all(struct fake_meeting *m)
{
	double since = seconds();
	bool goes_on = true;

	while (m->joined < m->ranks && !m->aborted && goes_on) {
		uint32_t seen = m->changes;

		fake_meeting_unlock(m);
		goes_on = sleep_until_change(m, seen, since);
		fake_meeting_lock(m);
	}
	return goes_on && !m->aborted;
}

/* Who waits does not take the lock again: all wake at once, and would sleep once more for it. Most ranks come within
 * microseconds of each other, so each offers its processor to the others a few times before it sleeps. */
static bool await_turn_after(struct fake_meeting *m, uint64_t turn)
{
	double since = seconds();
	bool goes_on = true;

	for (int i = 0; i < YIELDS && m->turn == turn && !m->aborted; i++)
		sched_yield();
	while (goes_on) {
		uint32_t seen = m->changes;

		if (m->turn != turn || m->aborted)
			break;
		goes_on = sleep_until_change(m, seen, since);
	}
	return m->turn != turn;
}

bool fake_meeting_turn(struct fake_group *g, void (*work)(struct fake_group *g))
{
	struct fake_meeting *m = g->meeting;
	uint64_t turn;
	bool last;

	fake_meeting_lock(m);
	turn = m->turn;
	last = ++m->arrived == m->ranks;
	if (last) {
		if (work)
			work(g);
		m->arrived = 0;
		m->turn++;
		m->changes++;
	}
	fake_meeting_unlock(m);
	if (!last)
		return await_turn_after(m, turn);
	wake(m);
	return true;
}
