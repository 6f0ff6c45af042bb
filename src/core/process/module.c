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

/* What follows the program's folder; the first and the last entry are stated otherwise. */
static const char *const below[MODULE_FOLDERS] = {"",	      "/lib",	"/../lib/assay", "/report", "/team",
						  "/profile", "/serve", "/load",	 ""};

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
