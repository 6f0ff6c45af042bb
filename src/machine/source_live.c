/* SPDX-License-Identifier: Apache-2.0 */
/* Live readings that are no files: one function a key, listed at the end. */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <mntent.h>
#include <sched.h>
#include <sys/klog.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>
#include "core/file.h"
#include "core/text.h"
#include "machine/source.h"

static json_t *refuse(const char *what, int errnum)
{
	char text[160], buffer[96];
	const char *why = strerror_r(errnum, buffer, sizeof(buffer));

	snprintf(text, sizeof(text), "%s%s%c%s", what, *what ? ": " : "",
		 why[0] >= 'A' && why[0] <= 'Z' ? why[0] - 'A' + 'a' : why[0], why + 1);
	return json_pack("{s:s}", "error", text);
}

/* "0-3,8" as the kernel writes lists. */
static json_t *read_affinity(void)
{
	cpu_set_t *set;
	size_t size = CPU_ALLOC_SIZE(8192);
	struct text t = {0};
	json_t *value;

	set = CPU_ALLOC(8192);
	if (!set)
		return refuse("sched_getaffinity", ENOMEM);
	if (sched_getaffinity(0, size, set)) {
		CPU_FREE(set);
		return refuse("sched_getaffinity", errno);
	}
	for (int i = 0, from; i < 8192; i++) {
		if (!CPU_ISSET_S((size_t)i, size, set))
			continue;
		from = i;
		while (i + 1 < 8192 && CPU_ISSET_S((size_t)(i + 1), size, set))
			i++;
		text_addf(&t, "%s%d", t.size ? "," : "", from);
		if (i > from)
			text_addf(&t, "-%d", i);
	}
	CPU_FREE(set);
	value = json_string(text_str(&t));
	text_release(&t);
	return value;
}

static json_t *limit_value(int resource)
{
	struct rlimit limit;

	if (getrlimit((__rlimit_resource_t)resource, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return json_string("unlimited");
	return json_integer((json_int_t)limit.rlim_cur);
}

static json_t *read_limits(void)
{
	return json_pack("{s:o,s:o,s:o,s:o}", "memlock_bytes", limit_value(RLIMIT_MEMLOCK), "nofile",
			 limit_value(RLIMIT_NOFILE), "nproc", limit_value(RLIMIT_NPROC), "stack_bytes",
			 limit_value(RLIMIT_STACK));
}

static json_t *read_system(void)
{
	struct utsname u;
	json_t *v;

	if (uname(&u))
		return refuse("uname", errno);
	v = json_pack("{s:s,s:s,s:s,s:I,s:b}", "kernel", u.release, "architecture", u.machine, "hostname",
		      u.nodename, "page_bytes", (json_int_t)sysconf(_SC_PAGESIZE), "uid",
		      (int)(geteuid() != 0));
	return v ? v : refuse("uname", EILSEQ);
}

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

/* File systems that hold data. One on a network is listed but not asked: a dead server would hang us. */
static json_t *read_filesystems(void)
{
	FILE *f = setmntent("/proc/self/mounts", "re");
	json_t *list = json_array();
	struct mntent *m;

	if (!f) {
		json_decref(list);
		return refuse("/proc/self/mounts", errno);
	}
	while ((m = getmntent(f)) && json_array_size(list) < 64) {
		bool network = on_network(m->mnt_type);
		bool root = !strcmp(m->mnt_dir, "/"), shm = !strcmp(m->mnt_dir, "/dev/shm");
		struct statvfs v;
		json_t *row;

		if (!network && !root && !shm && strncmp(m->mnt_fsname, "/dev/", 5))
			continue;
		if (!strncmp(m->mnt_fsname, "/dev/loop", 9) || !strncmp(m->mnt_dir, "/etc/", 5) ||
		    listed(list, m->mnt_dir))
			continue;
		row = json_pack("{s:s,s:s,s:s}", "device", m->mnt_fsname, "mount", m->mnt_dir, "type",
				m->mnt_type);
		if (row && !network && !statvfs(m->mnt_dir, &v)) {
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

/* Variables that steer what we measure. Secrets are never among these names. */
static json_t *read_environment(void)
{
	static const char *const names[] = {
		"CUDA_",
		"NVIDIA_VISIBLE_DEVICES",
		"NVIDIA_DRIVER_CAPABILITIES",
		"NCCL_",
		"OMP_",
		"OPENBLAS_",
		"MKL_",
		"BLIS_",
		"DNNL_",
		"ONEDNN_",
		"KMP_",
		"GOMP_",
		"CUBLAS_",
		"CUBLASLT_",
		"CUDNN_",
		"NVTE_",
		"UCX_",
		"FI_",
		"SLURM_JOB_ID",
		"SLURMD_NODENAME",
		"SLURM_STEP_GPUS",
		"SLURM_JOB_GPUS",
		"LOCAL_RANK",
		"RANK",
		"WORLD_SIZE",
		"LD_LIBRARY_PATH",
		"LD_PRELOAD",
		"MALLOC_",
		"PYTORCH_CUDA_ALLOC_CONF",
		"ASSAY_",
	};
	json_t *map = json_object();

	for (char **e = environ; e && *e; e++) {
		size_t n = strcspn(*e, "=");
		char name[128];

		if (!(*e)[n] || n >= sizeof(name))
			continue;
		if (n > 8 && !strncmp(*e + n - 8, "_VERSION", 8))
			continue; /* what an image says of itself; the libraries say it better */
		snprintf(name, sizeof(name), "%.*s", (int)n, *e);
		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
			size_t m = strlen(names[i]);
			bool prefix = names[i][m - 1] == '_';

			if (prefix ? !strncmp(name, names[i], m) : !strcmp(name, names[i]))
				json_object_set_new(map, name, json_string(*e + n + 1));
		}
	}
	return map;
}

static bool of_interest(const char *line)
{
	return strstr(line, "NVRM") || strstr(line, "Xid") || strstr(line, "SXid") ||
	       strstr(line, "nvidia") || strstr(line, "nvlink") || strstr(line, "AER:") ||
	       strstr(line, "Machine check") || strstr(line, "Hardware Error") ||
	       strstr(line, "ut of memory: Killed");
}

static void keep_line(json_t *lines, const char *line)
{
	if (of_interest(line) && json_array_size(lines) < 1000) {
		json_t *text = json_string(line);

		if (text)
			json_array_append_new(lines, text);
	}
}

/* The kernel's ring buffer by syslog(2), where /dev/kmsg is closed to us. Lines are "<6>[ 12.345678] text".
 */
static json_t *read_ring(void)
{
	int size = klogctl(10, NULL, 0), got;
	char *data = size > 0 ? malloc((size_t)size + 1) : NULL;
	json_t *lines;

	if (!data)
		return refuse("kernel log", size < 0 ? errno : ENOMEM);
	got = klogctl(3, data, size);
	if (got < 0) {
		int errnum = errno;

		free(data);
		return refuse("kernel log", errnum);
	}
	data[got] = 0;
	lines = json_array();
	for (char *line = data, *end; *line; line = end) {
		end = line + strcspn(line, "\n");
		if (*end)
			*end++ = 0;
		keep_line(lines, line);
	}
	free(data);
	return lines;
}

/* A record of /dev/kmsg is "prio,sequence,us,flags;text\n key=value": kept as "[seconds] text". */
static json_t *read_kernel_log(void)
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
			continue; /* overwritten while we read: the next one follows */
		if (n <= 0)
			break;
		record[n] = 0;
		record[strcspn(record, "\n")] = 0;
		text = strchr(record, ';');
		if (!text || sscanf(record, "%*u,%*u,%llu", &us) != 1)
			continue;
		snprintf(line, sizeof(line), "[%.6f] %s", (double)us * 1e-6, text + 1);
		keep_line(lines, line);
	}
	close(fd);
	return lines;
}

static json_t *read_device_nodes(void)
{
	glob_t g = {0};
	json_t *list = json_array();

	if (!glob("/dev/nvidia*", 0, NULL, &g)) {
		for (size_t i = 0; i < g.gl_pathc; i++) {
			if (!strcmp(g.gl_pathv[i], "/dev/nvidia-caps"))
				continue;
			json_array_append_new(list, json_pack("{s:s,s:b}", "path", g.gl_pathv[i], "open",
							      !access(g.gl_pathv[i], R_OK | W_OK)));
		}
	}
	globfree(&g);
	return list;
}

static json_t *read_dmi_memory(void)
{
	static const char *const path = "/sys/firmware/dmi/tables/DMI";
	struct error err = {0};
	char *data = NULL;
	size_t size = 0;
	json_t *list;

	errno = 0;
	if (file_read(&data, &size, path, 1 << 20, &err))
		return refuse(path, errno ? errno : EIO);
	list = dmi_memory_parse((const unsigned char *)data, size);
	free(data);
	return list;
}

/* Files whose presence alone tells. */
static json_t *read_marks(void)
{
	return json_pack("{s:b,s:b,s:b,s:b,s:b}", "dockerenv", !access("/.dockerenv", F_OK), "containerenv",
			 !access("/run/.containerenv", F_OK), "wsl",
			 !access("/proc/sys/fs/binfmt_misc/WSLInterop", F_OK), "vfio",
			 !access("/dev/vfio/vfio", F_OK), "infiniband", !access("/dev/infiniband", F_OK));
}

/* Words of the kernel's command line that change what we measure; the rest is nobody's business. */
static json_t *read_kernel_options(void)
{
	static const char *const wanted[] = {"iommu",	    "hugepages", "isolcpus", "nohz_full",
					     "mitigations", "pci=",	 "numa",     "transparent_hugepage",
					     "idle=",	    "cstate"};
	struct error err = {0};
	char *data = NULL, *save = NULL;
	size_t size = 0;
	json_t *list;

	errno = 0;
	if (file_read(&data, &size, "/proc/cmdline", 65536, &err))
		return refuse("/proc/cmdline", errno ? errno : EIO);
	list = json_array();
	for (char *word = strtok_r(data, " \n", &save); word; word = strtok_r(NULL, " \n", &save)) {
		for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
			if (strstr(word, wanted[i])) {
				json_array_append_new(list, json_string(word));
				break;
			}
		}
	}
	free(data);
	return list;
}

static json_t *read_user(void)
{
	const char *home = getenv("HOME"), *user = getenv("USER");

	return json_pack("{s:s,s:s}", "home", home ? home : "", "name", user ? user : "");
}

json_t *source_live_value(const char *key)
{
	static const struct {
		const char *key;
		json_t *(*read)(void);
	} values[] = {
		{"affinity", read_affinity},
		{"limits", read_limits},
		{"system", read_system},
		{"filesystems", read_filesystems},
		{"environment", read_environment},
		{"kernel_log", read_kernel_log},
		{"device_nodes", read_device_nodes},
		{"dmi_memory", read_dmi_memory},
		{"marks", read_marks},
		{"user", read_user},
		{"kernel_options", read_kernel_options},
	};

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		if (!strcmp(values[i].key, key)) {
			json_t *v = values[i].read();

			return v ? v : json_pack("{s:s}", "error", "not text");
		}
	}
	return NULL;
}
