/* SPDX-License-Identifier: Apache-2.0 */
/* Reading of the node: limits that the system sets: CPUs, memory, locked memory, open files, shared memory,
 * disk. An unlimited value is absent. */
#include "probe/shared/reading.h"

#define FIELDS(X)                                                                                            \
	X(cpu_usable, "", U64, 1, "logical CPUs that assay may use")                                         \
	X(cpu_quota, "", F64, 1, "CPU quota of the cgroup, in CPUs")                                         \
	X(memory_total_bytes, "B", U64, 1, "memory of the host")                                             \
	X(memory_limit_bytes, "B", U64, 1, "memory limit of the cgroup")                                     \
	X(memory_available_bytes, "B", U64, 1, "memory available")                                           \
	X(swap_used_bytes, "B", U64, -1, "swap in use")                                                      \
	X(memlock_bytes, "B", U64, 1, "limit of locked memory")                                              \
	X(nofile, "", U64, 1, "limit of open files")                                                         \
	X(shm_bytes, "B", U64, 1, "size of /dev/shm")                                                        \
	X(disk_free_bytes, "B", U64, 1, "free disk space in the folder for results")                         \
	X(disk_mount, "", TEXT, 0, "mount point of that folder's file system")

static const struct field fields[] = {FIELDS(FIELD_ROW)};
enum { FIELDS(READING_PLACE) COUNT };

struct limits_opts {
	const char *path;
};

static const struct opt rows[] = {
	OPT_ROW(struct limits_opts, path, .name = "path",
		.help = "folder whose free disk space is read; default: the folder for results", .preset = "",
		.shown = "FOLDER", .no_key = true),
};

/* True if `path` is on the file system mounted at `mount`. */
static bool lies_on(const char *path, const char *mount)
{
	size_t n = strlen(mount);

	return !strcmp(mount, "/") || (!strncmp(path, mount, n) && (path[n] == '/' || !path[n]));
}

static void read_filesystems(const struct machine *m, const char *path, struct result *out)
{
	const json_t *list = json_object_get(json_object_get(machine_json(m), "storage"), "filesystems"),
		     *row;
	const json_t *best = NULL;
	size_t longest = 0, i;

	json_array_foreach((json_t *)list, i, row)
	{
		const char *mount = json_string_value(json_object_get(row, "mount"));

		if (!mount)
			continue;
		if (!strcmp(mount, "/dev/shm"))
			reading_number(out, &fields[AT_shm_bytes], row, "total_bytes");
		if (lies_on(path, mount) && strlen(mount) >= longest) {
			longest = strlen(mount);
			best = row;
		}
	}
	reading_number(out, &fields[AT_disk_free_bytes], best, "free_bytes");
	result_text(out, &fields[AT_disk_mount], json_string_value(json_object_get(best, "mount")));
}

/* The folder for results, as the facts contain it; "/" if they do not. */
static const char *output_folder(const struct machine *m)
{
	const json_t *list = json_object_get(json_object_get(machine_json(m), "storage"), "places"), *row;
	const char *path;
	size_t i;

	json_array_foreach((json_t *)list, i, row)
	{
		const char *role = json_string_value(json_object_get(row, "role"));

		path = json_string_value(json_object_get(row, "path"));
		if (role && path && !strcmp(role, "output"))
			return path;
	}
	return "/";
}

static void read_memory(const struct machine *m, struct result *out)
{
	const json_t *memory = json_object_get(machine_json(m), "memory");
	const json_t *swap = json_object_get(memory, "swap_bytes");
	const json_t *swap_free = json_object_get(memory, "swap_free_bytes");
	double used = json_number_value(swap) - json_number_value(swap_free);

	reading_number(out, &fields[AT_memory_total_bytes], memory, "total_bytes");
	reading_number(out, &fields[AT_memory_limit_bytes], memory, "limit_bytes");
	reading_number(out, &fields[AT_memory_available_bytes], memory, "available_bytes");
	if (json_is_number(swap) && json_is_number(swap_free) && used >= 0)
		result_u64(out, &fields[AT_swap_used_bytes], (uint64_t)used);
}

static enum status observe(const struct machine *m, const struct target *t, const void *opts,
			   struct result *out, struct error *err)
{
	const struct limits_opts *o = opts;
	const json_t *limits = json_object_get(machine_json(m), "limits");
	const struct cpu *cpu = machine_cpu(m);

	(void)t, (void)err;
	result_u64(out, &fields[AT_cpu_usable], cpu->usable);
	if (cpu->quota > 0)
		result_f64(out, &fields[AT_cpu_quota], cpu->quota);
	reading_number(out, &fields[AT_memlock_bytes], limits, "memlock_bytes");
	reading_number(out, &fields[AT_nofile], limits, "nofile");
	read_memory(m, out);
	read_filesystems(m, o && o->path && *o->path ? o->path : output_folder(m), out);
	return STATUS_OK;
}

const struct probe probe_limits = {
	.name = "limits",
	.summary = "limits of CPUs, memory, locked memory, open files and disk space",
	.kind = PROBE_READING,
	.reads = TARGET_NODE,
	.opts = {rows, sizeof(rows) / sizeof(rows[0]), sizeof(struct limits_opts)},
	.fields = fields,
	.field_count = COUNT,
	.observe = observe,
};
