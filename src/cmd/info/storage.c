/* SPDX-License-Identifier: Apache-2.0 */
/* assay info storage and assay info software. */
#include "cmd/info/info.h"
#include "core/json/member.h"

static void disk_table(struct text *t, const json_t *disks)
{
	struct text lines = {0};
	const json_t *row;
	char bytes[32];
	size_t i;

	text_add(&lines, "disk\t>size\tkind\tmodel\t>NUMA node\n");
	json_array_foreach((json_t *)disks, i, row)
	{
		const json_t *rotates = json_object_get(row, "rotational"),
			     *node = json_object_get(row, "numa_node");

		text_addf(&lines, "%s\t%s\t%s\t%s\t", json_member_text(row, "name"),
			  info_bytes(bytes, info_number(row, "bytes")),
			  json_is_true(rotates)	   ? "rotates"
			  : json_is_false(rotates) ? "solid state"
						   : "virtual",
			  json_member_text(row, "model"));
		if (json_is_number(node) && json_number_value(node) >= 0)
			text_addf(&lines, "%.0f", json_number_value(node));
		text_add(&lines, "\n");
	}
	if (json_array_size(disks))
		info_columns(t, text_str(&lines));
	text_release(&lines);
}

static const json_t *filesystem_of(const json_t *list, const char *mount)
{
	const json_t *row;
	size_t i;

	json_array_foreach((json_t *)list, i, row)
	{
		if (!strcmp(json_member_text(row, "mount"), mount))
			return row;
	}
	return NULL;
}

static void free_cells(struct text *lines, const json_t *row)
{
	char free_bytes[32], total[32];

	if (json_object_get(row, "free_bytes"))
		text_addf(lines, "\t%s\t%s", info_bytes(free_bytes, info_number(row, "free_bytes")),
			  info_bytes(total, info_number(row, "total_bytes")));
	else
		text_add(lines, "\tnot read\t");
}

static void filesystem_table(struct text *t, const json_t *list)
{
	struct text lines = {0};
	const json_t *row;
	bool network = false;
	size_t i;

	text_add(&lines, "mounted at\t>free\t>of\tkind\tdevice\n");
	json_array_foreach((json_t *)list, i, row)
	{
		text_add(&lines, json_member_text(row, "mount"));
		free_cells(&lines, row);
		text_addf(&lines, "\t%s\t%s\n", json_member_text(row, "type"),
			  json_member_text(row, "device"));
		network = network || !json_object_get(row, "free_bytes");
	}
	if (json_array_size(list))
		info_columns(t, text_str(&lines));
	if (network)
		text_add(t, "  not read: network file systems, because a dead server would block assay\n");
	text_release(&lines);
}

/* The folders for results, home and temporary files, and the free space there. */
static void place_table(struct text *t, const json_t *places, const json_t *filesystems)
{
	struct text lines = {0};
	const json_t *row;
	size_t i;

	text_add(&lines, "written to\tfolder\t>free\t>of\ton\n");
	json_array_foreach((json_t *)places, i, row)
	{
		const json_t *on = filesystem_of(filesystems, json_member_text(row, "mount"));

		text_addf(&lines, "%s\t%s", json_member_text(row, "role"), json_member_text(row, "path"));
		free_cells(&lines, on);
		text_addf(&lines, "\t%s\n", json_member_text(row, "mount"));
	}
	if (json_array_size(places))
		info_columns(t, text_str(&lines));
	text_release(&lines);
}

void info_storage(struct text *t, const struct machine *m)
{
	const json_t *storage = json_object_get(machine_json(m), "storage");
	const json_t *filesystems = json_object_get(storage, "filesystems");

	text_add(t, "Storage\n");
	disk_table(t, json_object_get(storage, "disks"));
	if (info_why(m, "disks"))
		info_row_unreadable(t, "disks", info_why(m, "disks"));
	filesystem_table(t, filesystems);
	if (info_why(m, "free disk space"))
		info_row_unreadable(t, "free space", info_why(m, "free disk space"));
	place_table(t, json_object_get(storage, "places"), filesystems);
}

void info_disk_row(struct text *t, const struct machine *m)
{
	const json_t *storage = json_object_get(machine_json(m), "storage"), *row, *on;
	const char *mount = "/";
	char bytes[32];
	size_t i;

	json_array_foreach(json_object_get(storage, "places"), i, row)
	{
		if (!strcmp(json_member_text(row, "role"), "output") && *json_member_text(row, "mount"))
			mount = json_member_text(row, "mount");
	}
	on = filesystem_of(json_object_get(storage, "filesystems"), mount);
	if (json_object_get(on, "free_bytes"))
		info_row(t, "disk", "%s free on %s, the disk for results",
			 info_bytes(bytes, info_number(on, "free_bytes")), mount);
}

/* First the libraries that were found, in the order of the list, then those that were not. */
static void library_tables(struct text *t, const json_t *software)
{
	struct text found = {0}, missing = {0};
	const char *name;
	json_t *row;

	text_add(&found, "library\tversion\tfound at\tbuilt\n");
	text_add(&missing, "not found\tsearched as\n");
	json_object_foreach((json_t *)software, name, row)
	{
		const char *version = json_member_text(row, "version");

		size_t n = strcspn(version, *version >= '0' && *version <= '9'
						    ? " "
						    : ""); /* OpenBLAS reports more than a number */

		if (*json_member_text(row, "path"))
			text_addf(&found, "%s\t%.*s\t%s\t%s\n", name, *version ? (int)n : 8,
				  *version ? version : "not reported", json_member_text(row, "path"),
				  version + n + (version[n] == ' '));
		else
			text_addf(&missing, "%s\t%s\n", name, json_member_text(row, "missing"));
	}
	if (strchr(text_str(&found), '/'))
		info_columns(t, text_str(&found));
	if (strchr(strchr(text_str(&missing), '\n') + 1, '\n'))
		info_columns(t, text_str(&missing));
	text_release(&found);
	text_release(&missing);
}

void info_software(struct text *t, const struct machine *m)
{
	const json_t *tree = machine_json(m), *driver = json_object_get(tree, "driver");
	const char *name, *version = json_member_text(driver, "version");
	json_t *value;

	text_add(t, "Software\n");
	info_row(t, "kernel", "%s", json_member_text(json_object_get(tree, "system"), "kernel"));
	info_row(t, "NVIDIA driver", "%s%s%s", *version ? version : "none loaded",
		 *json_member_text(driver, "cuda_version") ? ", CUDA up to " : "",
		 json_member_text(driver, "cuda_version"));
	if (info_why(m, "libraries"))
		info_row_unreadable(t, "libraries", info_why(m, "libraries"));
	library_tables(t, json_object_get(tree, "software"));
	if (json_object_size(json_object_get(tree, "environment")))
		text_add(t, " Environment\n");
	json_object_foreach(json_object_get(tree, "environment"), name, value)
		text_addf(t, "  %s=%s\n", name, json_string_value(value) ? json_string_value(value) : "");
}
