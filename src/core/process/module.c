/* SPDX-License-Identifier: Apache-2.0 */
#include "core/process/module.h"
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

bool module_folder(char out[MODULE_FOLDER_TEXT], unsigned index)
{
	static const char *const below[MODULE_FOLDERS] = {
		"", "/lib", "/../lib/assay", "/report", "/team", "/profile", "/serve", "/load", ""};
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
