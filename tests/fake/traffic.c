/* SPDX-License-Identifier: Apache-2.0 */
#include "traffic.h"
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { DEVICES = 16 };

struct table {
	_Atomic uint64_t bytes[DEVICES][DEVICES];
};

static struct table *shared; /* NULL: not counted */

static void map_file(void)
{
	const char *path = getenv("FAKE_TRAFFIC");
	int fd = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
	void *at;

	if (fd < 0)
		return;
	if (!ftruncate(fd, sizeof(*shared))) {
		at = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		shared = at == MAP_FAILED ? NULL : at;
	}
	close(fd);
}

static struct table *table(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, map_file);
	return shared;
}

void traffic_add(int from, int to, uint64_t bytes)
{
	if (table())
		atomic_fetch_add(&shared->bytes[from % DEVICES][to % DEVICES], bytes);
}

uint64_t traffic_sent(int device)
{
	uint64_t sum = 0;

	for (int to = 0; table() && to < DEVICES; to++)
		sum += atomic_load(&shared->bytes[device % DEVICES][to]);
	return sum;
}

uint64_t traffic_received(int device)
{
	uint64_t sum = 0;

	for (int from = 0; table() && from < DEVICES; from++)
		sum += atomic_load(&shared->bytes[from][device % DEVICES]);
	return sum;
}
