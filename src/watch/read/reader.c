/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/read/reader.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include "core/clock.h"
#include "watch/read/out.h"

bool reader_wait(struct reader_rounds *r, const struct reader_spec *spec)
{
	struct pollfd out = {.fd = STDOUT_FILENO};
	uint64_t step = (uint64_t)(1e9 * spec->interval), now = clock_now_ns(clock_monotonic());

	if (!r->next_ns)
		r->next_ns = r->slow_ns = now;
	while (!*spec->stop && now < r->next_ns) {
		uint64_t left = (r->next_ns - now) / 1000000 + 1;

		if (poll(&out, 1, left < 60000 ? (int)left : 60000) > 0 && out.revents & (POLLERR | POLLHUP))
			return false;
		now = clock_now_ns(clock_monotonic());
	}
	r->next_ns += step;
	if (r->next_ns <= now)
		r->next_ns = now + step; /* a round took long: go on from now */
	r->slow = now >= r->slow_ns;
	while (r->slow_ns <= now)
		r->slow_ns += (uint64_t)(1e9 * (spec->slow > spec->interval ? spec->slow : spec->interval));
	return !*spec->stop;
}

bool reader_text(char *out, size_t size, const char *format, ...)
{
	char path[PATH_MAX];
	va_list args;
	ssize_t n;
	int fd;

	va_start(args, format);
	vsnprintf(path, sizeof(path), format, args);
	va_end(args);
	*out = '\0';
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return false;
	n = read(fd, out, size - 1);
	close(fd);
	out[n > 0 ? n : 0] = '\0';
	return n > 0;
}

bool reader_text_open(int *fd, char *out, size_t size, const char *format, ...)
{
	char path[PATH_MAX];
	va_list args;
	ssize_t n;

	*out = '\0';
	if (*fd < 0) {
		va_start(args, format);
		vsnprintf(path, sizeof(path), format, args);
		va_end(args);
		*fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	}
	n = *fd < 0 ? -1 : pread(*fd, out, size - 1, 0);
	if (n <= 0 && *fd >= 0) {
		close(*fd); /* the device may be gone; another one may have its name later */
		*fd = -1;
	}
	out[n > 0 ? n : 0] = '\0';
	return n > 0;
}

static int by_address(const void *a, const void *b)
{
	return strcmp(a, b);
}

static bool is_address(const char *name)
{
	unsigned domain, bus, device, function;
	char rest;

	return sscanf(name, "%x:%x:%x.%x%c", &domain, &bus, &device, &function, &rest) == 4 &&
	       strlen(name) < sizeof(((struct reader_pci *)0)->address[0]);
}

static bool is_gpu(const char *sys, const char *address)
{
	char vendor[16], class[16];

	return reader_text(vendor, sizeof(vendor), "%s/bus/pci/devices/%s/vendor", sys, address) &&
	       reader_text(class, sizeof(class), "%s/bus/pci/devices/%s/class", sys, address) &&
	       strtoul(vendor, NULL, 16) == 0x10de && strtoul(class, NULL, 16) >> 16 == 0x03;
}

void reader_pci_list(struct reader_pci *p, const char *sys, const char *proc)
{
	char path[PATH_MAX];
	struct dirent *entry;
	DIR *folder;

	p->count = 0;
	snprintf(path, sizeof(path), "%s/driver/nvidia/gpus", proc);
	folder = opendir(path);
	while (folder && (entry = readdir(folder)) && p->count < READER_GPUS_MAX)
		if (is_address(entry->d_name))
			snprintf(p->address[p->count++], sizeof(p->address[0]), "%.15s", entry->d_name);
	if (folder)
		closedir(folder);
	p->granted = p->count > 0;
	if (!p->count) {
		snprintf(path, sizeof(path), "%s/bus/pci/devices", sys);
		folder = opendir(path);
		while (folder && (entry = readdir(folder)) && p->count < READER_GPUS_MAX)
			if (is_address(entry->d_name) && is_gpu(sys, entry->d_name))
				snprintf(p->address[p->count++], sizeof(p->address[0]), "%.15s",
					 entry->d_name);
		if (folder)
			closedir(folder);
	}
	qsort(p->address, p->count, sizeof(p->address[0]), by_address);
}

uint32_t reader_declare(struct watch_out *o, const char *source)
{
	return out_entity(o, METRIC_SCOPE_READER, OUT_NONE, "source", source, NULL);
}

void reader_cpu(struct watch_out *o, uint32_t e)
{
	struct rusage use;

	getrusage(RUSAGE_SELF, &use);
	out_set(o, e, CATALOGUE_READER_CPU,
		(double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
			1e-6 * (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec));
}
