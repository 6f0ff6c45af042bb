/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/cpu_use.h"
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/clock.h"
#include "core/file/file.h"

#define WINDOW_NS 300000000u
enum { TEXT_MAX = 16 << 20, CPUS_MAX = 1 << 20 };

/* columns: user nice system idle iowait irq softirq steal */
enum { COLUMNS = 8, IDLE = 3, IOWAIT = 4, STEAL = 7 };

bool cpu_use_ticks(const char *stat, const bool *usable, unsigned count, double *busy, double *total)
{
	bool any = false;

	*busy = *total = 0;
	for (const char *line = stat; line && *line; line = strchr(line, '\n')) {
		unsigned long long column[COLUMNS] = {0};
		unsigned cpu;

		line += *line == '\n';
		if (strncmp(line, "cpu", 3) || !isdigit((unsigned char)line[3]) ||
		    sscanf(line, "cpu%u %llu %llu %llu %llu %llu %llu %llu %llu", &cpu, &column[0],
			   &column[1], &column[2], &column[3], &column[4], &column[5], &column[6],
			   &column[7]) < 5 ||
		    cpu >= count || !usable[cpu])
			continue;
		any = true;
		for (unsigned i = 0; i < COLUMNS; i++) {
			*total += (double)column[i];
			if (i != IDLE && i != IOWAIT && i != STEAL)
				*busy += (double)column[i];
		}
	}
	return any;
}

bool cpu_use_process(const char *stat, double *ticks, long *parent)
{
	const char *name_end = stat ? strrchr(stat, ')') : NULL; /* the name may contain any character */
	unsigned long long user, system;

	if (!name_end || sscanf(name_end + 1, " %*c %ld %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu",
				parent, &user, &system) != 3)
		return false;
	*ticks = (double)user + (double)system;
	return true;
}

static char *text_of(const char *path)
{
	struct error err = {0};
	char *data = NULL;
	size_t size;

	return file_read(&data, &size, path, TEXT_MAX, &err) ? NULL : data;
}

static bool process_ticks(const char *pid, double *ticks, long *parent)
{
	char path[64], *text;
	bool ok;

	snprintf(path, sizeof(path), "/proc/%.20s/stat", pid);
	text = text_of(path);
	ok = cpu_use_process(text, ticks, parent);
	free(text);
	return ok;
}

static bool same_program(const char *pid, const struct stat *ours)
{
	char path[64];
	struct stat its;

	snprintf(path, sizeof(path), "/proc/%.20s/exe", pid);
	return !stat(path, &its) && its.st_ino == ours->st_ino && its.st_dev == ours->st_dev;
}

/* Ticks of this process and of processes of the same program with the same parent. */
static double own_ticks(void)
{
	DIR *proc = opendir("/proc");
	double sum = 0, ticks;
	struct dirent *e;
	struct stat ours;
	long parent;

	if (!proc || stat("/proc/self/exe", &ours)) {
		if (proc)
			closedir(proc);
		return process_ticks("self", &ticks, &parent) ? ticks : 0;
	}
	while ((e = readdir(proc)))
		if (isdigit((unsigned char)*e->d_name) && same_program(e->d_name, &ours) &&
		    process_ticks(e->d_name, &ticks, &parent) &&
		    (parent == (long)getppid() || strtol(e->d_name, NULL, 10) == (long)getpid()))
			sum += ticks;
	closedir(proc);
	return sum;
}

unsigned cpu_use_usable(bool **usable, cpu_use_affinity *affinity)
{
	/* The kernel refuses a set that is smaller than its own. */
	for (unsigned room = CPU_SETSIZE; room <= CPUS_MAX; room *= 2) {
		size_t size = CPU_ALLOC_SIZE(room);
		cpu_set_t *set = CPU_ALLOC(room);
		bool *of = calloc(room, sizeof(*of)), ok, small;

		if (set)
			CPU_ZERO_S(size, set);
		errno = 0;
		ok = set && of && !affinity(0, size, set);
		small = errno == EINVAL;
		for (unsigned i = 0; ok && i < room; i++)
			of[i] = CPU_ISSET_S(i, size, set);
		CPU_FREE(set);
		if (ok) {
			*usable = of;
			return room;
		}
		free(of);
		if (!small)
			break;
	}
	*usable = NULL;
	return 0;
}

static bool look(const bool *usable, unsigned count, double *busy, double *total, double *own)
{
	char *stat = text_of("/proc/stat");
	bool ok = stat && cpu_use_ticks(stat, usable, count, busy, total);

	free(stat);
	*own = own_ticks();
	return ok;
}

static double share(double part, double whole)
{
	double x = whole > 0 ? part / whole : 0;

	return x < 0 ? 0 : x > 1 ? 1 : x;
}

static json_t *watch(const bool *usable, unsigned count)
{
	double busy[2], total[2], own[2];

	if (!count || !look(usable, count, &busy[0], &total[0], &own[0]))
		return json_object();
	clock_sleep_ns(clock_monotonic(), WINDOW_NS);
	if (!look(usable, count, &busy[1], &total[1], &own[1]) || !(total[1] > total[0]))
		return json_object();
	return json_pack("{s:f, s:f, s:f}", "window_s", WINDOW_NS / 1e9, "busy_share",
			 share(busy[1] - busy[0], total[1] - total[0]), "own_share",
			 share(own[1] - own[0], total[1] - total[0]));
}

json_t *cpu_use_watch(void)
{
	bool *usable;
	unsigned count = cpu_use_usable(&usable, sched_getaffinity);
	json_t *use = watch(usable, count);

	free(usable);
	return use;
}
