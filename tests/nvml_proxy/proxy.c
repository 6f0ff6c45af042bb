/* SPDX-License-Identifier: Apache-2.0 */
/* A library in place of NVML. It passes each call on to the real library and counts it. On request it also measures the CPU time that the calling
 * thread spends in the call. tests/oracles/peer_top.py compares monitors of GPUs with it. A test of the exporter counts calls with it. Environment:
 *   NVML_PROXY_REAL     path of the real library
 *   NVML_PROXY_DIR      folder. If the first byte of its file `control` is not 0, calls are timed. Each process has its sums in PID.sum there
 *                       (struct sums, in shared memory)
 *   NVML_PROXY_MISSING  error: a function that the real library lacks returns an error. Without this, dlsym finds no such function */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include "functions.h"

#define X(name) #name,
static const char *const names[] = {NVML_FUNCTIONS};
#undef X

enum { NAMES = sizeof(names) / sizeof(names[0]), DEPTH = 16 };

struct sums {
	uint64_t magic, functions;
	uint64_t inside;  /* ns of an empty call that are counted as time of the call */
	uint64_t outside; /* ns of an empty call that are not */
	uint64_t reserved[4];
	struct {
		uint64_t calls, timed, ns;
	} of[NAMES];
};

struct call {
	void *back;
	uint64_t start;
	int index;
};

static struct sums own, *sums = &own;
static const unsigned char off, *control = &off;
static void *real[NAMES];
static __thread struct call stack[DEPTH];
static __thread int depth;

extern const char nvml_proxy_stubs[] __attribute__((visibility("hidden")));
__attribute__((visibility("hidden"))) void *nvml_proxy_resolve(int index);
__attribute__((visibility("hidden"))) void *nvml_proxy_enter(int index, void **back, void *after);
__attribute__((visibility("hidden"))) void *nvml_proxy_leave(void);

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void add(uint64_t *to, uint64_t value)
{
	__atomic_fetch_add(to, value, __ATOMIC_RELAXED);
}

static int missing(void)
{
	return 13; /* NVML_ERROR_FUNCTION_NOT_FOUND */
}

/* Python's ctypes before 3.12.8 crashes when dlsym answers NULL for an indirect function. */
void *nvml_proxy_resolve(int index)
{
	const char *how = getenv("NVML_PROXY_MISSING");

	if (real[index])
		return (void *)(nvml_proxy_stubs + 16 * index);
	return how && !strcmp(how, "error") ? (void *)(uintptr_t)missing : NULL;
}

void *nvml_proxy_enter(int index, void **back, void *after)
{
	add(&sums->of[index].calls, 1);
	if (*(const volatile unsigned char *)control && depth < DEPTH) {
		struct call *c = &stack[depth++];

		c->back = *back;
		c->index = index;
		*back = after;
		if (depth == 1)
			c->start = now();
	}
	return real[index];
}

void *nvml_proxy_leave(void)
{
	uint64_t end = depth == 1 ? now() : 0;
	struct call *c = &stack[--depth];

	if (!depth) { /* a call that the library makes to itself belongs to the outer one */
		add(&sums->of[c->index].timed, 1);
		add(&sums->of[c->index].ns, end - c->start);
	}
	return c->back;
}

static void calibrate(void)
{
	enum { ROUNDS = 1000 };
	static const unsigned char on = 1;
	const unsigned char *kept = control;
	void *back = NULL;
	uint64_t begin, all, inside;
	struct sums *real_sums = sums;

	sums = &own;
	control = &on;
	begin = now();
	for (int i = 0; i < ROUNDS; i++) {
		nvml_proxy_enter(0, &back, NULL);
		nvml_proxy_leave();
	}
	all = (now() - begin) / ROUNDS;
	inside = own.of[0].ns / ROUNDS;
	memset(&own, 0, sizeof(own));
	sums = real_sums;
	control = kept;
	sums->inside = inside;
	sums->outside = all > inside ? all - inside : 0;
}

/* The file that says whether calls are timed. An empty one says no. */
static void find_control(const char *dir)
{
	char name[4096];
	int fd;

	snprintf(name, sizeof(name), "%s/control", dir);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		void *map = lseek(fd, 0, SEEK_END) > 0 ? mmap(NULL, 1, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;

		if (map != MAP_FAILED)
			control = map;
		close(fd);
	}
}

static void share_sums(const char *dir)
{
	char name[4096];
	int fd;

	snprintf(name, sizeof(name), "%s/%ld.sum", dir, (long)getpid());
	fd = open(name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd >= 0) {
		void *map = ftruncate(fd, sizeof(struct sums)) ? MAP_FAILED
							       : mmap(NULL, sizeof(struct sums), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

		if (map != MAP_FAILED)
			sums = map;
		close(fd);
	}
}

__attribute__((constructor)) static void begin(void)
{
	const char *path = getenv("NVML_PROXY_REAL"), *dir = getenv("NVML_PROXY_DIR");
	void *library = path && *path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;

	if (!library)
		return;
	for (int i = 0; i < NAMES; i++)
		real[i] = dlsym(library, names[i]);
	if (!dir)
		return;
	find_control(dir);
	share_sums(dir);
	sums->functions = NAMES;
	calibrate();
	__atomic_store_n(&sums->magic, 0x4e564d4c54494d45, __ATOMIC_RELEASE);
}
