/* SPDX-License-Identifier: Apache-2.0 */
#include "report/module.h"
#include <dlfcn.h>
#include <stdbool.h>
#include <unistd.h>
#include "core/text.h"

#ifndef ASSAY_MODULE_DIR
#define ASSAY_MODULE_DIR ""
#endif

enum { PLACES = 5 };

/* The program's own folder; "" where /proc does not tell. */
static void own_folder(char *out, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", out, size - 1);
	char *slash;

	out[n > 0 ? n : 0] = '\0';
	slash = strrchr(out, '/');
	if (slash)
		*slash = '\0';
}

static void place(char *out, size_t size, int index, const char *folder)
{
	static const char *const below[PLACES] = {"", "/lib", "/../lib/assay", "/report", ""};
	const char *stated = getenv("ASSAY_MODULE_DIR");

	if (index == 0)
		text_copy(out, size, stated ? stated : "");
	else if (index == PLACES - 1)
		text_copy(out, size, ASSAY_MODULE_DIR);
	else
		snprintf(out, size, "%s%s", folder, below[index]);
}

enum status module_open(const void **symbol_out, const char *name, const char *symbol, struct error *err)
{
	char folder[2048], dir[2100], path[2200], why[256] = "";
	struct text searched = {0};
	enum status status;

	own_folder(folder, sizeof(folder));
	for (int i = 0; i < PLACES; i++) {
		void *handle;

		place(dir, sizeof(dir), i, folder);
		if (dir[0] != '/')
			continue; /* nothing is loaded from the working directory */
		snprintf(path, sizeof(path), "%s/lib%s.so", dir, name);
		text_addf(&searched, "%s%s", searched.size ? ", " : "", dir);
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
		"the module lib%s.so cannot be loaded: %s%s; it comes with the bundle, or with a build that "
		"has its library; ASSAY_MODULE_DIR names another folder",
		name, *why ? why : "it is in none of ", *why ? "" : text_str(&searched));
	text_release(&searched);
	return status;
}
