/* SPDX-License-Identifier: Apache-2.0 */
#include "core/process/module.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/text/text.h"

#ifndef ASSAY_MODULE_DIR
#define ASSAY_MODULE_DIR ""
#endif

/* The folder of the running program; "" if /proc cannot be read. */
static void own_folder(char *out, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", out, size - 1);
	char *slash;

	out[n > 0 ? n : 0] = '\0';
	slash = strrchr(out, '/');
	if (slash)
		*slash = '\0';
}

/* What follows the program's folder; the first and the last entry are stated otherwise. */
static const char *const below[MODULE_FOLDERS] = {"",	      "/lib",	"/../lib/assay", "/report", "/team",
						  "/profile", "/serve", "/load",	 "/watch",  ""};

bool module_folder(char out[MODULE_FOLDER_TEXT], unsigned index)
{
	const char *stated = getenv("ASSAY_MODULE_DIR");
	char folder[2048];

	if (index == 0) {
		text_copy(out, MODULE_FOLDER_TEXT, stated ? stated : "");
	} else if (index == MODULE_FOLDERS - 1) {
		text_copy(out, MODULE_FOLDER_TEXT, ASSAY_MODULE_DIR);
	} else {
		own_folder(folder, sizeof(folder));
		snprintf(out, MODULE_FOLDER_TEXT, "%s%s", folder, below[index]);
	}
	return out[0] == '/';
}

void module_folders_tell(struct text *out)
{
	char folder[MODULE_FOLDER_TEXT];

	if (module_folder(folder, 0))
		text_addf(out, "%s, ", folder);
	own_folder(folder, sizeof(folder));
	text_addf(out, "%s (its", folder);
	for (unsigned i = 1; i < MODULE_FOLDERS - 1; i++)
		text_addf(out, "%s %s", i == 1 ? "" : ",", below[i] + 1);
	text_addf(out, ")");
	if (module_folder(folder, MODULE_FOLDERS - 1))
		text_addf(out, ", %s", folder);
}

enum status module_open(const void **symbol_out, const char *name, const char *symbol, struct error *err)
{
	char dir[MODULE_FOLDER_TEXT], path[MODULE_FOLDER_TEXT + 100], why[256] = "";
	struct text searched = {0};
	enum status status;

	module_folders_tell(&searched);
	for (unsigned i = 0; i < MODULE_FOLDERS; i++) {
		void *handle;

		if (!module_folder(dir, i))
			continue;
		snprintf(path, sizeof(path), "%s/lib%s.so", dir, name);
		if (access(path, R_OK))
			continue;
		handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
		*symbol_out = handle ? dlsym(handle, symbol) : NULL;
		if (*symbol_out) {
			text_release(&searched);
			return STATUS_OK;
		}
		text_copy(why, sizeof(why), dlerror());
	}
	status = error_set_cause(
		err, STATUS_UNAVAILABLE, CAUSE_LIBRARY_MISSING,
		"cannot load the module lib%s.so: %s%s; set ASSAY_MODULE_DIR to its folder, or use the bundle or a build with its library",
		name, *why ? why : "it is not in ", *why ? "" : text_str(&searched));
	text_release(&searched);
	return status;
}
