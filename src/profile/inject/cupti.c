/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/inject/cupti.h"
#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include "profile/inject/glibc_compat.h"

COMPAT(dlopen);
COMPAT(dlsym);

enum { PATH = 4096, MAJORS = 2 };

/* Newest first: a driver supports its own major version and older ones. */
static const char *const sonames[MAJORS] = {"libcupti.so.13", "libcupti.so.12"};

struct search {
	struct cupti *cupti;
	int (*start)(struct cupti *c, char why[CUPTI_TEXT]);
	char *path, *why;  /* CUPTI_TEXT bytes each */
	bool described;	   /* `why` describes a library that was found; it is kept, because it is more useful
			      than later ones */
	char loaded[PATH]; /* path of the loaded library that was looked for */
	const char *wanted;
	bool done;
};

/* Binds all required functions, or none. */
static bool bind(struct cupti *c, void *handle, char why[CUPTI_TEXT])
{
	static const struct {
		const char *name;
		size_t offset;
		bool required;
	} symbols[] = {
#define REQUIRED true
#define OPTIONAL false
#define X(need, field, symbol, params) {#symbol, offsetof(struct cupti, field), need},
		CUPTI_FUNCTIONS(X)
#undef X
#undef REQUIRED
#undef OPTIONAL
	};

	*c = (struct cupti){.handle = handle};
	for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
		void *found = dlsym(handle, symbols[i].name);

		memcpy((char *)c + symbols[i].offset, &found, sizeof(found));
		if (!found && symbols[i].required) {
			snprintf(why, CUPTI_TEXT, "it has no function %s", symbols[i].name);
			*c = (struct cupti){0};
			return false;
		}
	}
	return true;
}

/* The library is never closed, because its threads would go on running in it. */
static void attempt(struct search *s, const char *path, int flags)
{
	void *handle = s->done ? NULL : dlopen(path, RTLD_NOW | RTLD_LOCAL | flags);
	char why[CUPTI_TEXT];

	if (!handle)
		return;
	snprintf(why, sizeof(why), "cuptiGetVersion fails");
	s->done = bind(s->cupti, handle, why) && !s->cupti->version(&s->cupti->version_number) &&
		  s->start(s->cupti, why);
	if (s->done) {
		snprintf(s->path, CUPTI_TEXT, "%.255s", path);
		return;
	}
	if (!s->described)
		snprintf(s->why, CUPTI_TEXT, "%.120s: %.120s", path, why);
	s->described = true;
	*s->cupti = (struct cupti){0};
}

static int look_at_loaded(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct search *s = arg;
	const char *slash = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;

	(void)size;
	if (!slash || strncmp(slash + 1, s->wanted, strlen(s->wanted)))
		return 0;
	return snprintf(s->loaded, sizeof(s->loaded), "%s", info->dlpi_name) < (int)sizeof(s->loaded);
}

/* Looks for a loaded library whose file name begins with `begin`, and saves its path. */
static bool is_loaded(struct search *s, const char *begin)
{
	s->wanted = begin;
	return dl_iterate_phdr(look_at_loaded, s) > 0;
}

/* The libraries of one CUDA release lie in one folder, or in neighbouring folders. */
static void attempt_beside(struct search *s, const char *soname)
{
	static const char *const folders[] = {"", "../../cuda_cupti/lib/", "../extras/CUPTI/lib64/",
					      "../../extras/CUPTI/lib64/"};
	char *slash = strrchr(s->loaded, '/'), path[PATH + 64];

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		snprintf(path, sizeof(path), "%.*s%s%s", (int)(slash + 1 - s->loaded), s->loaded, folders[i],
			 soname);
		attempt(s, path, 0);
	}
}

static void attempt_siblings(struct search *s)
{
	static const char *const siblings[MAJORS][5] = {
		{"libcudart.so.13", "libcublasLt.so.13", "libnvrtc.so.13", "libnvJitLink.so.13", NULL},
		{"libcudart.so.12", "libcublasLt.so.12", "libnvrtc.so.12", "libnvJitLink.so.12", NULL}};

	for (unsigned i = 0; i < MAJORS; i++)
		for (const char *const *name = siblings[i]; *name; name++)
			if (is_loaded(s, *name))
				attempt_beside(s, sonames[i]);
}

static void attempt_toolkit(struct search *s, const char *root)
{
	static const char *const folders[] = {"extras/CUPTI/lib64", "lib64", "lib"};
	char path[PATH + 64];

	for (unsigned i = 0; root && *root == '/' && i < MAJORS; i++)
		for (size_t k = 0; k < sizeof(folders) / sizeof(folders[0]); k++)
			if (snprintf(path, sizeof(path), "%s/%s/%s", root, folders[k], sonames[i]) <
			    (int)sizeof(path))
				attempt(s, path, 0);
}

int cupti_open(struct cupti *c, int (*start)(struct cupti *c, char why[CUPTI_TEXT]), char path[CUPTI_TEXT],
	       char why[CUPTI_TEXT])
{
	struct search s = {.cupti = c, .start = start, .path = path, .why = why};
	const char *named = getenv("ASSAY_LIB_CUPTI");

	*c = (struct cupti){0};
	snprintf(
		why, CUPTI_TEXT,
		"no libcupti.so.13 or .12 next to its CUDA libraries, on the loader's path or in the toolkit");
	if (named && *named) {
		snprintf(why, CUPTI_TEXT, "ASSAY_LIB_CUPTI names %.150s, which cannot be loaded", named);
		attempt(&s, named, 0);
		return s.done;
	}
	if (is_loaded(&s, "libcupti.so.")) { /* two CUPTIs in one process conflict */
		attempt(&s, s.loaded, RTLD_NOLOAD);
		return s.done;
	}
	attempt_siblings(&s);
	for (unsigned i = 0; i < MAJORS; i++)
		attempt(&s, sonames[i], 0);
	attempt_toolkit(&s, getenv("CUDA_HOME"));
	attempt_toolkit(&s, getenv("CUDA_PATH"));
	attempt_toolkit(&s, "/usr/local/cuda");
	return s.done;
}

void cupti_load_counters(const char *path)
{
	static const char *const names[] = {"libnvperf_host.so", "libnvperf_target.so"};
	const char *slash = strrchr(path, '/');
	char beside[PATH];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (snprintf(beside, sizeof(beside), "%.*s%s", slash ? (int)(slash + 1 - path) : 0, path,
			     names[i]) < (int)sizeof(beside))
			dlopen(beside, RTLD_NOW | RTLD_LOCAL);
}
