/* SPDX-License-Identifier: Apache-2.0 */
/* Processors, memory, network interfaces and disks, from /proc and /sys. Files stay open. */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/clock.h"
#include "telemetry/sample.h"
#include "watch/read/out.h"
#include "watch/read/reader.h"

enum { THINGS_MAX = 64, FILE_MAX = 1 << 18, SECTOR = 512 };

struct thing { /* an interface or a disk */
	char name[32];
	uint32_t e;
	int carrier; /* a file that stays open; -1: closed */
	bool seen;
};
struct host {
	const struct reader_spec *spec;
	struct watch_out out;
	uint32_t self, node, cpu;
	int stat, loadavg, meminfo, netdev, diskstats; /* -1: cannot be read */
	double busy, total;
	bool began;
	struct sample_rapl rapl;
	struct thing interface[THINGS_MAX], disk[THINGS_MAX];
	unsigned interfaces, disks;
	bool physical; /* some interfaces are hardware: virtual ones are left out */
	bool slow;     /* this round looks for new interfaces and disks */
	char *text;    /* FILE_MAX bytes */
};

static int open_in(const char *folder, const char *name)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static bool read_file(struct host *h, int fd)
{
	ssize_t n = fd < 0 ? -1 : pread(fd, h->text, FILE_MAX - 1, 0);

	h->text[n > 0 ? n : 0] = '\0';
	return n > 0;
}

/* Columns: user nice system idle iowait irq softirq steal. sscanf would first find the end of the whole file.
 */
static bool parse_cpu(const char *line, double *busy, double *total)
{
	double column[8] = {0};
	char *end;
	int n = 0;

	if (strncmp(line, "cpu ", 4))
		return false;
	for (line += 4; n < 8; n++, line = end) {
		column[n] = (double)strtoull(line, &end, 10);
		if (end == line)
			break;
	}
	*total = 0;
	for (int i = 0; i < n; i++)
		*total += column[i];
	*busy = *total - column[3] - column[4];
	return n >= 4;
}

static void read_cpu(struct host *h)
{
	double busy, total, load;
	char *end;

	if (read_file(h, h->stat) && parse_cpu(h->text, &busy, &total)) {
		if (h->began && total > h->total && busy >= h->busy)
			out_set(&h->out, h->cpu, CATALOGUE_CPU_BUSY, (busy - h->busy) / (total - h->total));
		h->busy = busy;
		h->total = total;
		h->began = true;
	} else {
		out_absent(&h->out, h->cpu, CATALOGUE_CPU_BUSY, "/proc/stat cannot be read");
	}
	if (read_file(h, h->loadavg)) {
		load = strtod(h->text, &end);
		if (end != h->text)
			out_set(&h->out, h->cpu, CATALOGUE_CPU_LOAD, load);
	}
	if (!h->rapl.zones)
		out_absent(&h->out, h->cpu, CATALOGUE_CPU_ENERGY,
			   h->rapl.refused ? "this user may not read the energy counters (RAPL); root may"
					   : "the machine has no energy counters (RAPL)");
	else if (sample_rapl_read(&h->rapl))
		out_set(&h->out, h->cpu, CATALOGUE_CPU_ENERGY, 1e-6 * h->rapl.sum_uj);
	else
		out_absent(&h->out, h->cpu, CATALOGUE_CPU_ENERGY,
			   "an energy counter (RAPL) cannot be read any more");
}

/* Constants: /proc/stat has a line for each processor, and the time of the boot. */
static void read_constants(struct host *h, double *count, double *boot)
{
	const char *at;

	*count = *boot = 0;
	if (!read_file(h, h->stat))
		return;
	for (at = h->text; (at = strstr(at, "\ncpu")); at += 4)
		(*count)++;
	at = strstr(h->text, "\nbtime ");
	if (at)
		*boot = strtod(at + 7, NULL);
}

static void read_memory(struct host *h)
{
	static const struct {
		const char *name;
		enum catalogue row;
	} rows[] = {{"MemTotal:", CATALOGUE_MEMORY_TOTAL}, {"MemAvailable:", CATALOGUE_MEMORY_AVAILABLE}};

	if (!read_file(h, h->meminfo))
		return;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *at = strstr(h->text, rows[i].name);

		if (at)
			out_set(&h->out, h->cpu, rows[i].row, 1024 * strtod(at + strlen(rows[i].name), NULL));
	}
}

static unsigned find_thing(const struct thing *things, unsigned count, const char *name)
{
	unsigned i = 0;

	while (i < count && strcmp(things[i].name, name))
		i++;
	return i;
}

static struct thing *thing_of(struct host *h, struct thing *things, unsigned *count, enum metric_scope scope,
			      const char *label, const char *name)
{
	unsigned i = find_thing(things, *count, name);

	if (i == THINGS_MAX)
		return NULL;
	if (i == *count) {
		(*count)++;
		text_copy(things[i].name, sizeof(things[i].name), name);
		things[i].carrier = -1;
		things[i].e = out_entity(&h->out, scope, OUT_NONE, label, name, NULL);
	}
	things[i].seen = true;
	return &things[i];
}

static void remove_unseen(struct host *h, struct thing *things, unsigned *count)
{
	for (unsigned i = 0; i < *count; i++) {
		if (things[i].seen) {
			things[i].seen = false;
			continue;
		}
		out_gone(&h->out, things[i].e);
		if (things[i].carrier >= 0)
			close(things[i].carrier);
		things[i--] = things[--*count];
	}
}

static bool is_there(const char *format, const char *folder, const char *name)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), format, folder, name);
	return !access(path, F_OK);
}

/* A node has many partitions and virtual interfaces that are left out. Whether a name is one of them is
 * looked up in SLOW rounds only. */
static bool is_interface(const struct host *h, const char *name)
{
	if (!h->slow)
		return find_thing(h->interface, h->interfaces, name) < h->interfaces;
	return strcmp(name, "lo") && !strchr(name, '/') &&
	       (!h->physical || is_there("%s/class/net/%s/device", h->spec->sys, name));
}

/* "  eth0: RX-bytes packets errs drop fifo frame compressed multicast TX-bytes packets errs drop .." */
static void take_interface(struct host *h, char *line)
{
	unsigned long long column[16] = {0};
	char *colon = strchr(line, ':'), *name = line + strspn(line, " "), carrier[8], *end;
	struct thing *t;
	char *at;
	int n = 0;

	if (!colon)
		return;
	*colon = '\0';
	if (strlen(name) >= sizeof(t->name) || !is_interface(h, name))
		return;
	for (at = colon + 1; n < 16; n++) {
		column[n] = strtoull(at, &end, 10);
		if (end == at)
			break;
		at = end;
	}
	t = n >= 12 ? thing_of(h, h->interface, &h->interfaces, METRIC_SCOPE_INTERFACE, "interface", name)
		    : NULL;
	if (!t)
		return;
	out_set(&h->out, t->e, CATALOGUE_INTERFACE_RX, (double)column[0]);
	out_set(&h->out, t->e, CATALOGUE_INTERFACE_TX, (double)column[8]);
	out_set(&h->out, t->e, CATALOGUE_INTERFACE_ERRORS,
		(double)(column[2] + column[3] + column[10] + column[11]));
	if (reader_text_open(&t->carrier, carrier, sizeof(carrier), "%s/class/net/%s/carrier", h->spec->sys,
			     name))
		out_set(&h->out, t->e, CATALOGUE_INTERFACE_UP, *carrier == '1');
	else
		out_absent(&h->out, t->e, CATALOGUE_INTERFACE_UP, "the interface is switched off");
}

static void each_line(struct host *h, void (*take)(struct host *h, char *line))
{
	char *line = h->text, *end;

	while ((end = strchr(line, '\n'))) {
		*end = '\0';
		take(h, line);
		line = end + 1;
	}
}

static void read_interfaces(struct host *h)
{
	if (read_file(h, h->netdev))
		each_line(h, take_interface);
	remove_unseen(h, h->interface, &h->interfaces);
}

/* Partitions have no folder there. */
static bool is_disk(const struct host *h, const char *name)
{
	if (!h->slow)
		return find_thing(h->disk, h->disks, name) < h->disks;
	return strncmp(name, "loop", 4) && strncmp(name, "ram", 3) && !strchr(name, '/') &&
	       is_there("%s/block/%s", h->spec->sys, name);
}

/* "259 0 nvme0n1 reads merged sectors ms writes merged sectors ms in-flight busy-ms .." */
static void take_disk(struct host *h, char *line)
{
	enum { SECTORS_READ = 2, SECTORS_WRITTEN = 6, BUSY_MS = 9, COLUMNS };
	unsigned long long column[COLUMNS];
	char name[sizeof(h->disk->name)], *at = line, *end;
	struct thing *t;
	size_t size;

	for (int i = 0; i < 2; i++) { /* major and minor number */
		strtoul(at, &end, 10);
		if (end == at)
			return;
		at = end;
	}
	at += strspn(at, " ");
	size = strcspn(at, " ");
	if (!size || size >= sizeof(name))
		return;
	memcpy(name, at, size);
	name[size] = '\0';
	if (!is_disk(h, name))
		return;
	at += size;
	for (int i = 0; i < COLUMNS; i++) {
		column[i] = strtoull(at, &end, 10);
		if (end == at)
			return;
		at = end;
	}
	t = thing_of(h, h->disk, &h->disks, METRIC_SCOPE_DISK, "disk", name);
	if (!t)
		return;
	out_set(&h->out, t->e, CATALOGUE_DISK_READ, SECTOR * (double)column[SECTORS_READ]);
	out_set(&h->out, t->e, CATALOGUE_DISK_WRITTEN, SECTOR * (double)column[SECTORS_WRITTEN]);
	out_set(&h->out, t->e, CATALOGUE_DISK_BUSY, 1e-3 * (double)column[BUSY_MS]);
}

static void read_disks(struct host *h)
{
	if (read_file(h, h->diskstats))
		each_line(h, take_disk);
	remove_unseen(h, h->disk, &h->disks);
}

static bool has_physical(const struct host *h)
{
	char path[PATH_MAX];
	struct dirent *entry;
	bool found = false;
	DIR *folder;

	snprintf(path, sizeof(path), "%s/class/net", h->spec->sys);
	folder = opendir(path);
	while (folder && !found && (entry = readdir(folder)))
		found = entry->d_name[0] != '.' &&
			is_there("%s/class/net/%s/device", h->spec->sys, entry->d_name);
	if (folder)
		closedir(folder);
	return found;
}

static void declare_cpu(struct host *h)
{
	char text[8192], *model = reader_text(text, sizeof(text), "%s/cpuinfo", h->spec->proc)
					  ? strstr(text, "model name")
					  : NULL;

	model = model ? strchr(model, ':') : NULL;
	if (model) {
		model += 1 + strspn(model + 1, " ");
		model[strcspn(model, "\n")] = '\0';
	}
	h->cpu = out_entity(&h->out, METRIC_SCOPE_CPU, OUT_NONE, "model", model, NULL);
	h->node = out_entity(&h->out, METRIC_SCOPE_NODE, OUT_NONE, NULL);
}

/* RAPL is found below the folder that holds sys. */
static void open_rapl(struct host *h)
{
	char root[PATH_MAX];
	size_t size;

	text_copy(root, sizeof(root), h->spec->sys);
	size = strlen(root);
	if (size < 4 || strcmp(root + size - 4, "/sys"))
		return;
	root[size - 4] = '\0';
	sample_rapl_open(&h->rapl, NULL, root);
}

static void begin(struct host *h, const struct reader_spec *spec)
{
	h->spec = spec;
	out_init(&h->out, STDOUT_FILENO);
	h->stat = open_in(spec->proc, "stat");
	h->loadavg = open_in(spec->proc, "loadavg");
	h->meminfo = open_in(spec->proc, "meminfo");
	h->netdev = open_in(spec->proc, "net/dev");
	h->diskstats = open_in(spec->proc, "diskstats");
	h->physical = has_physical(h);
	h->self = reader_declare(&h->out, "host");
	declare_cpu(h);
	open_rapl(h);
}

int reader_host(const struct reader_spec *spec)
{
	struct host *h = calloc(1, sizeof(*h));
	struct reader_rounds rounds = {0};
	double count = 0, boot = 0;

	if (!h || !(h->text = malloc(FILE_MAX))) {
		free(h);
		return 1;
	}
	begin(h, spec);
	while (reader_wait(&rounds, spec)) {
		uint64_t t_ns = clock_now_ns(clock_monotonic());

		h->slow = rounds.slow;
		if (!(count > 0 && boot > 0))
			read_constants(h, &count, &boot);
		if (count > 0)
			out_set(&h->out, h->cpu, CATALOGUE_CPU_COUNT, count);
		if (boot > 0)
			out_set(&h->out, h->node, CATALOGUE_NODE_BOOT, boot);
		read_cpu(h);
		read_memory(h);
		read_interfaces(h);
		read_disks(h);
		if (rounds.slow)
			reader_cpu(&h->out, h->self);
		out_end(&h->out, OUT_NONE, t_ns, rounds.slow);
		if (!out_flush(&h->out))
			break;
	}
	sample_rapl_close(&h->rapl);
	out_release(&h->out);
	free(h->text);
	free(h);
	return 0;
}
