/* SPDX-License-Identifier: Apache-2.0 */
#include "core/process/cpu_wait.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

uint64_t cpu_wait_ns(pid_t tid)
{
	char path[64], text[100], *end;
	int fd;
	ssize_t size;

	if (tid)
		snprintf(path, sizeof(path), "/proc/self/task/%d/schedstat", (int)tid);
	else
		snprintf(path, sizeof(path), "/proc/thread-self/schedstat");
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	size = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (size <= 0)
		return 0;
	text[size] = 0;
	strtoull(text, &end, 10); /* time on a CPU; then the time without one */
	return strtoull(end, NULL, 10);
}

uint64_t cpu_wait_longest_ns(const uint64_t *before, const uint64_t *now, unsigned threads)
{
	uint64_t longest = 0;

	for (unsigned i = 0; i < threads; i++)
		if (now[i] > before[i] && now[i] - before[i] > longest)
			longest = now[i] - before[i];
	return longest;
}
