/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/page/own.h"

#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"

void page_own_set(struct page_own *own, enum catalogue row, double value)
{
	own->value[row - PAGE_OWN_FIRST] = value;
	own->present[row - PAGE_OWN_FIRST] = true;
}

const double *page_own_get(const struct page_own *own, enum catalogue row)
{
	return own->present[row - PAGE_OWN_FIRST] ? &own->value[row - PAGE_OWN_FIRST] : NULL;
}

static double seconds_of(struct timeval t)
{
	return (double)t.tv_sec + 1e-6 * (double)t.tv_usec;
}

static void read_memory(struct page_own *own)
{
	FILE *f = fopen("/proc/self/statm", "re");
	unsigned long long size, resident;

	if (!f)
		return;
	if (fscanf(f, "%llu %llu", &size, &resident) == 2)
		page_own_set(own, CATALOGUE_EXPORTER_MEMORY,
			     (double)resident * (double)sysconf(_SC_PAGESIZE));
	fclose(f);
}

/* The start in seconds since 1970, as the kernel says it: the boot's clock, and ticks since the boot. */
static void read_start(struct page_own *own)
{
	FILE *f = fopen("/proc/self/stat", "re");
	unsigned long long ticks;
	struct timespec wall, boot;

	if (!f)
		return;
	/* the name of the program, in brackets, is ours and has no blanks */
	if (fscanf(f,
		   "%*d %*s %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
		   &ticks) == 1 &&
	    !clock_gettime(CLOCK_REALTIME, &wall) && !clock_gettime(CLOCK_BOOTTIME, &boot))
		page_own_set(own, CATALOGUE_EXPORTER_START,
			     (double)wall.tv_sec - (double)boot.tv_sec +
				     1e-9 * (double)(wall.tv_nsec - boot.tv_nsec) +
				     (double)ticks / (double)sysconf(_SC_CLK_TCK));
	fclose(f);
}

void page_own_read_process(struct page_own *own)
{
	struct rusage use;

	if (!getrusage(RUSAGE_SELF, &use))
		page_own_set(own, CATALOGUE_EXPORTER_CPU,
			     seconds_of(use.ru_utime) + seconds_of(use.ru_stime));
	read_memory(own);
	if (!page_own_get(own, CATALOGUE_EXPORTER_START))
		read_start(own);
}
