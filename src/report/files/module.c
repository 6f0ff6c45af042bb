/* SPDX-License-Identifier: Apache-2.0 */
#include "report/files/module.h"
#include <dlfcn.h>
#include <unistd.h>
#include "core/process/module.h"
#include "core/text/text.h"

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
