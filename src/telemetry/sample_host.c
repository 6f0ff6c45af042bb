/* SPDX-License-Identifier: Apache-2.0 */
/* Signals of the host: busy CPU time, package energy and the node's power meter. The files stay open, and
 * each reading starts at offset 0. */
#include <fcntl.h>
#include <stdarg.h>
#include <unistd.h>
#include "telemetry/sample.h"

enum { HWMON_MOST = 256 };

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

/* Opens the counter of a zone, such as "2" or "2:0", if the zone's name begins with `name`. */
static void open_zone(struct sample_rapl *r, const char *root, const char *zone, const char *name)
{
	char found[64] = "";
	double range = 0;
	int fd = open_file("%s/sys/class/powercap/intel-rapl:%s/name", root, zone);
	bool same = read_start(fd, found, sizeof(found)) && !strncmp(found, name, strlen(name));

	if (fd >= 0)
		close(fd);
	if (!same || r->zones == RAPL_ZONES)
		return;
	fd = open_file("%s/sys/class/powercap/intel-rapl:%s/max_energy_range_uj", root, zone);
	if (!read_number(fd, &range))
		range = 0;
	if (fd >= 0)
		close(fd);
	fd = open_file("%s/sys/class/powercap/intel-rapl:%s/energy_uj", root, zone);
	if (fd < 0) {
		r->refused = true; /* on most machines only root can read it */
		return;
	}
	r->range[r->zones] = range;
	r->fd[r->zones++] = fd;
}

/* Among a zone's parts, only "dram" is outside the package. The other parts would be counted twice. */
void sample_rapl_open(struct sample_rapl *packages, struct sample_rapl *dram, const char *root)
{
	char zone[16];
	int folder = open_file("%s/sys/class/powercap", root);

	if (folder < 0)
		return; /* as in most virtual machines; there may be 576 names of zones to try */
	close(folder);
	for (unsigned i = 0; i < 64; i++) {
		snprintf(zone, sizeof(zone), "%u", i);
		open_zone(packages, root, zone, "package-");
		for (unsigned part = 0; dram && part < 8; part++) {
			snprintf(zone, sizeof(zone), "%u:%u", i, part);
			open_zone(dram, root, zone, "dram");
		}
	}
}

/* The device number of a hwmon folder is an ACPI power meter's, which "name" tells. */
static bool is_power_meter(const char *root, unsigned index)
{
	char name[64] = "";
	int fd = open_file("%s/sys/class/hwmon/hwmon%u/name", root, index);
	bool same =
		read_start(fd, name, sizeof(name)) && !strncmp(name, "power_meter", strlen("power_meter"));

	if (fd >= 0)
		close(fd);
	return same;
}

static int open_meter(const char *root, unsigned index)
{
	int fd = open_file("%s/sys/class/hwmon/hwmon%u/power1_average", root, index);

	return fd >= 0 ? fd : open_file("%s/sys/class/hwmon/hwmon%u/power1_input", root, index);
}

/* With two meters, nothing says which of them measures the node, so neither counts. */
static int find_meter(const char *root)
{
	int found = -1;

	for (unsigned i = 0; i < HWMON_MOST; i++) {
		if (!is_power_meter(root, i))
			continue;
		if (found >= 0) {
			close(found);
			return -1;
		}
		found = open_meter(root, i);
		if (found < 0)
			return -1;
	}
	return found;
}

void sample_host_init(struct sample_host *h, const char *root, unsigned source, uint64_t now_ns)
{
	*h = (struct sample_host){.source = source};
	schedule_init(&h->schedule, now_ns, 0);
	h->stat_fd = open_file("%s/proc/stat", root);
	h->meter_fd = find_meter(root);
	sample_rapl_open(&h->packages, &h->dram, root);
}

void sample_rapl_close(const struct sample_rapl *r)
{
	for (unsigned i = 0; i < r->zones; i++)
		close(r->fd[i]);
}

void sample_host_release(struct sample_host *h)
{
	if (h->stat_fd >= 0)
		close(h->stat_fd);
	if (h->meter_fd >= 0)
		close(h->meter_fd);
	sample_rapl_close(&h->packages);
	sample_rapl_close(&h->dram);
	*h = (struct sample_host){.stat_fd = -1, .meter_fd = -1};
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
bool sample_rapl_read(struct sample_rapl *r)
{
	for (unsigned i = 0; i < r->zones; i++) {
		double uj, step;

		if (!read_number(r->fd[i], &uj))
			return false;
		step = uj - r->last[i];
		if (step < 0)
			step += r->range[i];
		if (r->began && step < 0)
			return false;
		if (r->began)
			r->sum_uj += step;
		r->last[i] = uj;
	}
	r->began = true;
	return true;
}

static void tick_energy(struct sample_host *h, struct sample_rapl *r, enum telemetry_signal_id signal,
			struct batch *b, const struct clock *clock)
{
	uint64_t now = clock_now_ns(clock);

	if (!r->zones || !schedule_due(&h->schedule, signal, now))
		return;
	if (sample_rapl_read(r))
		batch_add(b, h->source, signal, now, r->sum_uj * 1e-6);
	else
		schedule_never(&h->schedule, signal);
}

/* The meter tells microwatts. Some give 0 until their first average, or fail while they are busy: then this
 * reading is left out. */
static void tick_meter(struct sample_host *h, struct batch *b, const struct clock *clock)
{
	uint64_t now = clock_now_ns(clock);
	double uw;

	if (h->meter_fd < 0 || !schedule_due(&h->schedule, TELEMETRY_node_power_w, now))
		return;
	if (read_number(h->meter_fd, &uw) && uw > 0)
		batch_add(b, h->source, TELEMETRY_node_power_w, now, uw * 1e-6);
}

void sample_host_tick(struct sample_host *h, struct batch *b, const struct clock *clock)
{
	tick_busy(h, b, clock);
	tick_energy(h, &h->packages, TELEMETRY_cpu_energy_j, b, clock);
	tick_energy(h, &h->dram, TELEMETRY_dram_energy_j, b, clock);
	tick_meter(h, b, clock);
}
