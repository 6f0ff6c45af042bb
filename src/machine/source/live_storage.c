/* SPDX-License-Identifier: Apache-2.0 */
/* File systems with their free space, and the folders that assay and the libraries write to. */
#include <errno.h>
#include <limits.h>
#include <mntent.h>
#include <stdbool.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include "machine/source/live.h"

enum { TMPFS_MIN = 64 << 20 }; /* smaller ones only hide folders */

static bool on_network(const char *type)
{
	static const char *const types[] = {"nfs",  "nfs4",   "cifs", "smb3",	   "lustre", "ceph",
					    "gpfs", "beegfs", "9p",   "glusterfs", "wekafs", "afs"};

	if (!strncmp(type, "fuse", 4))
		return true;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		if (!strcmp(type, types[i]))
			return true;
	}
	return false;
}

static bool listed(const json_t *list, const char *mount)
{
	const json_t *row;
	size_t i;

	json_array_foreach((json_t *)list, i, row)
	{
		if (!strcmp(json_string_value(json_object_get(row, "mount")), mount))
			return true;
	}
	return false;
}

/* Excludes kernel interfaces and other file systems that cannot hold our data. */
static bool holds_data(const struct mntent *m)
{
	static const char *const types[] = {"ext2",  "ext3",  "ext4",	  "xfs",     "btrfs",
					    "zfs",   "f2fs",  "bcachefs", "overlay", "vfat",
					    "exfat", "ntfs3", "squashfs", "virtiofs"};
	static const char *const kernel[] = {"/dev", "/run", "/sys", "/proc", "/etc"};

	if (!strcmp(m->mnt_dir, "/dev/shm"))
		return true;
	for (size_t i = 0; i < sizeof(kernel) / sizeof(kernel[0]); i++) {
		size_t n = strlen(kernel[i]);

		if (!strncmp(m->mnt_dir, kernel[i], n) && (!m->mnt_dir[n] || m->mnt_dir[n] == '/'))
			return false;
	}
	if (!strncmp(m->mnt_fsname, "/dev/loop", 9))
		return false;
	if (!strcmp(m->mnt_dir, "/") || !strcmp(m->mnt_type, "tmpfs") || on_network(m->mnt_type))
		return true;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		if (!strcmp(m->mnt_type, types[i]))
			return true;
	}
	return !strncmp(m->mnt_fsname, "/dev/", 5);
}

/* Network file systems are listed without their sizes, because a dead server would block the call. */
json_t *live_filesystems(void)
{
	FILE *f = setmntent("/proc/self/mounts", "re");
	json_t *list = json_array();
	struct mntent *m;

	if (!f) {
		json_decref(list);
		return live_refusal("/proc/self/mounts", errno);
	}
	while ((m = getmntent(f)) && json_array_size(list) < 64) {
		struct statvfs v;
		json_t *row;

		if (!holds_data(m) || listed(list, m->mnt_dir))
			continue;
		row = json_pack("{s:s,s:s,s:s}", "device", m->mnt_fsname, "mount", m->mnt_dir, "type",
				m->mnt_type);
		if (row && !on_network(m->mnt_type) && !statvfs(m->mnt_dir, &v)) {
			if (!strcmp(m->mnt_type, "tmpfs") && v.f_blocks * v.f_frsize < TMPFS_MIN &&
			    strcmp(m->mnt_dir, "/dev/shm")) {
				json_decref(row);
				continue;
			}
			json_object_set_new(row, "total_bytes",
					    json_integer((json_int_t)(v.f_blocks * v.f_frsize)));
			json_object_set_new(row, "free_bytes",
					    json_integer((json_int_t)(v.f_bavail * v.f_frsize)));
		}
		if (row)
			json_array_append_new(list, row);
	}
	endmntent(f);
	return list;
}

json_t *live_places(void)
{
	const char *home = getenv("HOME"), *temporary = getenv("TMPDIR");
	char here[PATH_MAX];
	json_t *map = json_object();

	if (getcwd(here, sizeof(here)))
		json_object_set_new(map, "output", json_string(here));
	if (home && *home == '/')
		json_object_set_new(map, "home", json_string(home));
	json_object_set_new(map, "temporary",
			    json_string(temporary && *temporary == '/' ? temporary : "/tmp"));
	return map;
}
