/* SPDX-License-Identifier: Apache-2.0 */
/* Signals of the host: busy CPU time and package energy. The files stay open, and each reading starts at
 * offset 0. */
#include <fcntl.h>
#include <stdarg.h>
#include <unistd.h>
#include "telemetry/sample.h"

__attribute__((format(printf, 1, 2))) static int open_file(const char *format, ...)
{
	char path[512];
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(path, sizeof(path), format, args);
	va_end(args);
	return n > 0 && (size_t)n < sizeof(path) ? open(path, O_RDONLY | O_CLOEXEC) : -1;
}

/* Reads the first bytes of a file as text; false: none. */
static bool read_start(int fd, char *out, size_t size)
{
	ssize_t n = fd < 0 ? -1 : pread(fd, out, size - 1, 0);

	if (n <= 0)
		return false;
	out[n] = '\0';
	return true;
}

static bool read_number(int fd, double *out)
{
	char text[64], *end;
	double value;

	if (!read_start(fd, text, sizeof(text)))
		return false;
	value = strtod(text, &end);
	if (end == text)
		return false;
	*out = value;
	return true;
}

/* Uses only the zones "package-N": their parts (core, dram) would be counted twice. */
static void open_packages(struct sample_host *h, const char *root)
{
	unsigned zone;

	for (zone = 0; zone < 64 && h->packages < RAPL_PACKAGES; zone++) {
		char name[64] = "";
		double range = 0;
		int fd = open_file("%s/sys/class/powercap/intel-rapl:%u/name", root, zone);
		bool package = read_start(fd, name, sizeof(name)) && !strncmp(name, "package-", 8);

		if (fd >= 0)
			close(fd);
		if (!package)
			continue;
		fd = open_file("%s/sys/class/powercap/intel-rapl:%u/max_energy_range_uj", root, zone);
		if (!read_number(fd, &range))
			range = 0;
		if (fd >= 0)
			close(fd);
		fd = open_file("%s/sys/class/powercap/intel-rapl:%u/energy_uj", root, zone);
		if (fd < 0)
			continue; /* on most machines only root can read it */
		h->energy_range[h->packages] = range;
		h->energy_fd[h->packages++] = fd;
	}
}

void sample_host_init(struct sample_host *h, const char *root, unsigned source, uint64_t now_ns)
{
	*h = (struct sample_host){.source = source};
	schedule_init(&h->schedule, now_ns, 0);
	h->stat_fd = open_file("%s/proc/stat", root);
	open_packages(h, root);
}

void sample_host_release(struct sample_host *h)
{
	unsigned i;

	if (h->stat_fd >= 0)
		close(h->stat_fd);
	for (i = 0; i < h->packages; i++)
		close(h->energy_fd[i]);
	*h = (struct sample_host){.stat_fd = -1};
}

/* Columns: user nice system idle iowait irq softirq steal; user already includes guest time. */
static bool read_stat(int fd, double *busy, double *total)
{
	double column[8] = {0};
	char text[512], *at, *end;
	unsigned i;

	if (!read_start(fd, text, sizeof(text)) || strncmp(text, "cpu ", 4))
		return false;
	at = text + 4;
	*total = 0;
	for (i = 0; i < 8; i++) {
		column[i] = strtod(at, &end);
		if (end == at)
			break;
		at = end;
		*total += column[i];
	}
	*busy = *total - column[3] - column[4];
	return i >= 4;
}

static void tick_busy(struct sample_host *h, struct batch *b, const struct clock *clock)
{
	uint64_t now = clock_now_ns(clock);
	double busy, total;

	if (!schedule_due(&h->schedule, TELEMETRY_cpu_busy_share, now))
		return;
	if (!read_stat(h->stat_fd, &busy, &total)) {
		schedule_never(&h->schedule, TELEMETRY_cpu_busy_share);
		return;
	}
	/* On some kernels idle time may decrease slightly: such an interval is ignored. */
	if (h->began && total > h->total && busy >= h->busy)
		batch_add(b, h->source, TELEMETRY_cpu_busy_share, now, (busy - h->busy) / (total - h->total));
	h->busy = busy;
	h->total = total;
	h->began = true;
}

/* The 32-bit registers wrap within minutes under load; the sum is kept in a double. */
static void tick_energy(struct sample_host *h, struct batch *b, const struct clock *clock)
{
	uint64_t now = clock_now_ns(clock);
	unsigned i;

	if (!h->packages || !schedule_due(&h->schedule, TELEMETRY_cpu_energy_j, now))
		return;
	for (i = 0; i < h->packages; i++) {
		double uj, step;

		if (!read_number(h->energy_fd[i], &uj)) {
			schedule_never(&h->schedule, TELEMETRY_cpu_energy_j);
			return;
		}
		step = uj - h->energy_last[i];
		if (step < 0)
			step += h->energy_range[i];
		if (h->energy_began && step >= 0)
			h->energy_uj += step;
		h->energy_last[i] = uj;
	}
	h->energy_began = true;
	batch_add(b, h->source, TELEMETRY_cpu_energy_j, now, h->energy_uj * 1e-6);
}

void sample_host_tick(struct sample_host *h, struct batch *b, const struct clock *clock)
{
	tick_busy(h, b, clock);
	tick_energy(h, b, clock);
}
