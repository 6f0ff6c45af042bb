/* SPDX-License-Identifier: Apache-2.0 */
/* Disks, file systems, and the folders that assay and the libraries write to. */
#include "core/text/text.h"
#include "machine/facts/facts.h"

static void read_disk(struct facts *f, json_t *list, const char *name)
{
	static const char *const skipped[] = {"loop", "ram", "zram", "dm-", "md", "sr", "fd"};
	const char *text;
	double number;
	json_t *row;

	for (size_t i = 0; i < sizeof(skipped) / sizeof(skipped[0]); i++) {
		if (!strncmp(name, skipped[i], strlen(skipped[i])) && strncmp(name, "md", 2))
			return;
	}
	row = json_pack("{s:s}", "name", name);
	if (facts_number(source_textf(f->source, "/sys/block/%s/size", name), &number))
		facts_set_number(row, "bytes", number * 512);
	text = source_textf(f->source, "/sys/block/%s/queue/rotational", name);
	if (text && strncmp(name, "vd", 2)) /* virtual disks report 1 whatever disk is below */
		facts_set(row, "rotational", json_boolean(text[0] == '1'));
	facts_set_text(row, "model", source_textf(f->source, "/sys/block/%s/device/model", name));
	facts_set_text(row, "scheduler", source_textf(f->source, "/sys/block/%s/queue/scheduler", name));
	if (!strncmp(name, "nvme", 4)) {
		text = source_textf(f->source, "/sys/block/%s/device/device/numa_node", name);
		if (facts_number(text, &number))
			facts_set_number(row, "numa_node", number);
	}
	json_array_append_new(list, row);
}

/* The mount that holds `path`, found by comparing names only, because access to the disk may hang. NULL:
 * unknown. */
static const char *mount_of(const json_t *mounts, const char *path)
{
	const char *best = NULL;
	const json_t *row;
	size_t i;

	json_array_foreach((json_t *)mounts, i, row)
	{
		const char *mount = json_string_value(json_object_get(row, "mount"));
		size_t n = mount ? strlen(mount) : 0;

		if (!mount || strncmp(path, mount, n) || (strcmp(mount, "/") && path[n] != '/' && path[n]))
			continue;
		if (!best || n >= strlen(best))
			best = mount;
	}
	return best;
}

/* Folders that are written to: results, caches of assay and of libraries in the home folder, temporary files.
 */
static json_t *read_places(struct facts *f, const json_t *mounts)
{
	static const char *const roles[] = {"output", "home", "temporary"};
	const json_t *places = source_value(f->source, "places");
	const char *out = json_string_value(source_value(f->source, "output"));
	json_t *list = json_array();

	for (size_t i = 0; i < sizeof(roles) / sizeof(roles[0]); i++) {
		const char *path = i == 0 && out ? out : json_string_value(json_object_get(places, roles[i]));
		json_t *row;

		if (!path)
			continue;
		row = json_pack("{s:s,s:s}", "role", roles[i], "path", path);
		facts_set_text(row, "mount", mount_of(mounts, path));
		json_array_append_new(list, row);
	}
	return list;
}

void facts_storage(struct facts *f)
{
	const json_t *names = source_list(f->source, "/sys/block");
	const json_t *mounts = source_value(f->source, "filesystems");
	json_t *storage = json_object(), *disks = json_array(), *name;
	size_t i;

	json_object_set_new(f->tree, "storage", storage);
	json_array_foreach(names, i, name)
		read_disk(f, disks, json_string_value(name) ? json_string_value(name) : "");
	if (!names)
		facts_unreadable(f, "disks", facts_cause_of(source_why(f->source, "/sys/block")),
				 source_why(f->source, "/sys/block"));
	json_object_set_new(storage, "disks", disks);
	if (mounts)
		json_object_set(storage, "filesystems", (json_t *)mounts);
	else
		facts_unreadable(f, "free disk space", facts_cause_of(source_why(f->source, "filesystems")),
				 source_why(f->source, "filesystems"));
	json_object_set_new(storage, "places", read_places(f, mounts));
}
