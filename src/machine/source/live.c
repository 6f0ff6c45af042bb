/* SPDX-License-Identifier: Apache-2.0 */
/* Live readings that are not files: one function per key, listed at the end. */
#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <pwd.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>
#include "core/text/redact.h"
#include "core/file/file.h"
#include "core/text/text.h"
#include "machine/source/live.h"
#include "machine/nccl/settings.h"
#include "machine/source/source.h"

json_t *live_refusal(const char *what, int errnum)
{
	char text[160], buffer[96];
	const char *why = strerror_r(errnum, buffer, sizeof(buffer));

	snprintf(text, sizeof(text), "%s%s%c%s", what, *what ? ": " : "",
		 why[0] >= 'A' && why[0] <= 'Z' ? why[0] - 'A' + 'a' : why[0], why + 1);
	return json_pack("{s:s}", "error", text);
}

/* A list of CPUs in the kernel's form, such as "0-3,8". */
static json_t *read_affinity(void)
{
	cpu_set_t *set;
	size_t size = CPU_ALLOC_SIZE(8192);
	struct text t = {0};
	json_t *value;

	set = CPU_ALLOC(8192);
	if (!set)
		return live_refusal("sched_getaffinity", ENOMEM);
	if (sched_getaffinity(0, size, set)) {
		CPU_FREE(set);
		return live_refusal("sched_getaffinity", errno);
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
		return live_refusal("uname", errno);
	v = json_pack("{s:s,s:s,s:s,s:I,s:b}", "kernel", u.release, "architecture", u.machine, "hostname",
		      u.nodename, "page_bytes", (json_int_t)sysconf(_SC_PAGESIZE), "root",
		      (int)(geteuid() == 0));
	return v ? v : live_refusal("uname", EILSEQ);
}

static void set_variable(json_t *map, const char *name, const char *value)
{
	size_t size = redact_variable(NULL, 0, name, value) + 1;
	char *shown = malloc(size);

	if (shown) {
		redact_variable(shown, size, name, value);
		json_object_set_new(map, name, json_string(shown));
	}
	free(shown);
}

/* Environment variables that influence what assay measures. They contain no secrets. */
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
		if (!strncmp(*e, "ASSAY_TEAM_SECRET=", n + 1) ||
		    !strncmp(*e, "ASSAY_TEAM_SECRET_FILE=", n + 1) || !strncmp(*e, "ASSAY_JOB=", n + 1))
			continue; /* describes one start of the process, not the machine */
		if (n > 8 && !strncmp(*e + n - 8, "_VERSION", 8))
			continue; /* the image's statement about itself; the libraries' own versions are more
				     reliable */
		snprintf(name, sizeof(name), "%.*s", (int)n, *e);
		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
			size_t m = strlen(names[i]);
			bool prefix = names[i][m - 1] == '_';

			if (prefix ? !strncmp(name, names[i], m) : !strcmp(name, names[i]))
				set_variable(map, name, *e + n + 1);
		}
	}
	return map;
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

/* Files whose existence is the information. */
static json_t *read_marks(void)
{
	return json_pack("{s:b,s:b,s:b,s:b,s:b}", "dockerenv", !access("/.dockerenv", F_OK), "containerenv",
			 !access("/run/.containerenv", F_OK), "wsl",
			 !access("/proc/sys/fs/binfmt_misc/WSLInterop", F_OK), "vfio",
			 !access("/dev/vfio/vfio", F_OK), "infiniband", !access("/dev/infiniband", F_OK));
}

/* Options of the kernel's command line that influence what assay measures. Other options may be private. */
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
		return live_refusal("/proc/cmdline", errno ? errno : EIO);
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

static json_t *read_hypervisor(void)
{
	char signature[13] = "";
#if defined(__x86_64__)
	unsigned a, b = 0, c = 0, d = 0;

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c >> 31))
		return json_object();
	__cpuid(0x40000000, a, b, c, d);
	memcpy(signature, &b, 4);
	memcpy(signature + 4, &c, 4);
	memcpy(signature + 8, &d, 4);
#endif
	return json_pack("{s:s}", "signature", signature);
}

static json_t *read_user(void)
{
	const char *home = getenv("HOME"), *user = getenv("USER");

	return json_pack("{s:s,s:s}", "home", home ? home : "", "name", user ? user : "");
}

static json_t *read_nccl_files(void)
{
	struct passwd entry, *found = NULL;
	char buffer[4096];

	getpwuid_r(geteuid(), &entry, buffer, sizeof(buffer), &found);
	return nccl_files_read(getenv("NCCL_CONF_FILE"), found ? found->pw_dir : NULL, "");
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
		{"filesystems", live_filesystems},
		{"places", live_places},
		{"environment", read_environment},
		{"kernel_log", live_kernel_log},
		{"device_nodes", read_device_nodes},
		{"dmi_memory", live_memory},
		{"hypervisor", read_hypervisor},
		{"marks", read_marks},
		{"user", read_user},
		{"nccl_files", read_nccl_files},
		{"kernel_options", read_kernel_options},
		{NULL, NULL},
	};

	for (size_t i = 0; values[i].key; i++) {
		if (!strcmp(values[i].key, key)) {
			json_t *v = values[i].read();

			return v ? v : json_pack("{s:s}", "error", "not text");
		}
	}
	return NULL;
}
