/* SPDX-License-Identifier: Apache-2.0 */
/* GPUs that the kernel has suspended. NVML and CUDA wake a GPU when they open it. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include "core/file/file.h"
#include "machine/machine.h"

enum { FILE_MOST = 4096 };

static bool begins(const char *folder, const char *device, const char *name, const char *expected)
{
	char path[4096], *content = NULL;
	size_t size;
	bool yes;

	snprintf(path, sizeof(path), "%.3000s/%.255s/%s", folder, device, name);
	yes = !file_read(&content, &size, path, FILE_MOST, NULL) &&
	      !strncmp(content, expected, strlen(expected));
	free(content);
	return yes;
}

static int no_dots(const struct dirent *e)
{
	return e->d_name[0] != '.';
}

void machine_tell_suspended(const struct log *log)
{
	const char *sys = getenv("ASSAY_SYS"); /* a container may have the host's elsewhere */
	struct dirent **entry = NULL;
	char folder[4096];
	int count;

	snprintf(folder, sizeof(folder), "%.3000s/bus/pci/devices", sys && *sys ? sys : "/sys");
	count = scandir(folder, &entry, no_dots, alphasort);
	for (int i = 0; i < count; i++) {
		const char *device = entry[i]->d_name;

		if (begins(folder, device, "vendor", "0x10de") && begins(folder, device, "class", "0x03") &&
		    begins(folder, device, "power/runtime_status", "suspended"))
			log_info(log, LOG_TOPIC_MACHINE,
				 "the kernel has suspended GPU %s, and this command wakes it", device);
		free(entry[i]);
	}
	free(entry);
}
