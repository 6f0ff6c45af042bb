/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the kernel log from /dev/kmsg, or from the kernel's ring buffer by syslog(2). */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/klog.h>
#include <unistd.h>
#include "machine/source/live.h"

static bool of_interest(const char *line)
{
	return strstr(line, "NVRM") || strstr(line, "Xid") || strstr(line, "SXid") ||
	       strstr(line, "nvidia") || strstr(line, "nvlink") || strstr(line, "AER:") ||
	       strstr(line, "Machine check") || strstr(line, "Hardware Error") ||
	       strstr(line, "ut of memory: Killed");
}

static void keep_line(json_t *lines, const char *line)
{
	json_t *text = json_array_size(lines) < 1000 ? json_string(line) : NULL;

	if (text)
		json_array_append_new(lines, text);
}

/* Reads the kernel's ring buffer by syslog(2), if /dev/kmsg may not be read. Lines have the form
 * "<6>[ 12.345678] text". */
static json_t *read_ring(void)
{
	int size = klogctl(10, NULL, 0), got;
	char *data = size > 0 ? malloc((size_t)size + 1) : NULL;
	json_t *lines;

	if (!data)
		return live_refusal("kernel log", size < 0 ? errno : ENOMEM);
	got = klogctl(3, data, size);
	if (got < 0) {
		int errnum = errno;

		free(data);
		return live_refusal("kernel log", errnum);
	}
	data[got] = 0;
	lines = json_array();
	for (char *line = data, *end; *line; line = end) {
		end = line + strcspn(line, "\n");
		if (*end)
			*end++ = 0;
		if (of_interest(line))
			keep_line(lines, line);
	}
	free(data);
	return lines;
}

/* A record of /dev/kmsg is "prio,sequence,us,flags;text\n key=value". It is saved as "[seconds] text". */
json_t *live_kernel_log(void)
{
	int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	char record[8192], line[8300];
	json_t *lines;
	ssize_t n;

	if (fd < 0)
		return read_ring();
	lines = json_array();
	for (unsigned records = 0; records < 200000; records++) {
		unsigned long long us = 0;
		char *text;

		n = read(fd, record, sizeof(record) - 1);
		if (n < 0 && errno == EPIPE)
			continue; /* overwritten while we read; continue with the next record */
		if (n <= 0)
			break;
		record[n] = 0;
		record[strcspn(record, "\n")] = 0;
		text = strchr(record, ';');
		/* first what is cheap: a log has thousands of records, of which few or none are kept */
		if (!text || !of_interest(text + 1) || sscanf(record, "%*u,%*u,%llu", &us) != 1)
			continue;
		snprintf(line, sizeof(line), "[%.6f] %s", (double)us * 1e-6, text + 1);
		keep_line(lines, line);
	}
	close(fd);
	return lines;
}
