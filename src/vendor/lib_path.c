/* SPDX-License-Identifier: Apache-2.0 */
#include "vendor/lib_path.h"
#include <glob.h>
#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/text/text.h"

static void add_dir(struct lib_dirs *d, const char *path)
{
	struct stat st;

	if (d->count == LIB_DIRS_MAX || stat(path, &st) || !S_ISDIR(st.st_mode))
		return;
	for (size_t i = 0; i < d->count; i++) {
		if (!strcmp(d->dir[i], path))
			return;
	}
	d->dir[d->count] = strdup(path);
	if (d->dir[d->count])
		d->count++;
}

static void add_glob(struct lib_dirs *d, const char *pattern)
{
	glob_t g = {0};

	if (!glob(pattern, GLOB_NOSORT | GLOB_BRACE, NULL, &g)) {
		for (size_t i = 0; i < g.gl_pathc; i++)
			add_dir(d, g.gl_pathv[i]);
	}
	globfree(&g);
}

/* `below` is the path below each site-packages folder of one Python prefix. */
static void add_below_prefix(struct lib_dirs *d, const char *prefix, const char *below)
{
	static const char *const kinds[] = {"site-packages", "dist-packages"};
	char pattern[PATH_MAX];

	for (size_t i = 0; i < 2; i++) {
		snprintf(pattern, sizeof(pattern), "%s/lib/python3*/%s/%s", prefix, kinds[i], below);
		add_glob(d, pattern);
		snprintf(pattern, sizeof(pattern), "%s/lib64/python3*/%s/%s", prefix, kinds[i], below);
		add_glob(d, pattern);
	}
}

/* Removes the last `levels` components of the path. */
static bool parent(char *path, unsigned levels)
{
	while (levels--) {
		char *slash = strrchr(path, '/');

		if (!slash || slash == path)
			return false;
		*slash = 0;
	}
	return true;
}

/* A pyenv shim is a script. A file next to it names the version that the script would start. */
static void add_pyenv(struct lib_dirs *d, const char *shim, const char *below)
{
	char root[PATH_MAX], name[128] = "", path[PATH_MAX + 160];
	const char *forced = getenv("PYENV_VERSION");
	FILE *f;

	text_copy(root, sizeof(root), shim);
	if (!parent(root, 2))
		return;
	if (forced && *forced) {
		text_copy(name, sizeof(name), forced);
	} else {
		snprintf(path, sizeof(path), "%s/version", root);
		f = fopen(path, "re");
		if (!f)
			return;
		if (!fgets(name, sizeof(name), f))
			name[0] = 0;
		fclose(f);
	}
	name[strcspn(name, ":\r\n")] = 0;
	if (!*name || strchr(name, '/'))
		return;
	snprintf(path, sizeof(path), "%s/versions/%s", root, name);
	add_below_prefix(d, path, below);
}

/* `python` is an existing path. Adds its own prefix (a virtual environment's), then the prefix of the file
 * that it links to. */
static void add_python(struct lib_dirs *d, const char *python, const char *below)
{
	char prefix[PATH_MAX], real[PATH_MAX];

	if (strstr(python, "/shims/"))
		add_pyenv(d, python, below);
	text_copy(prefix, sizeof(prefix), python);
	if (parent(prefix, 2))
		add_below_prefix(d, prefix, below);
	if (realpath(python, real) && parent(real, 2)) {
		add_below_prefix(d, real, below);
		if (!strcmp(real, "/usr"))
			add_below_prefix(d, "/usr/local", below);
	}
}

static void add_python_on_path(struct lib_dirs *d, const char *below)
{
	const char *p = getenv("PATH");
	char python[PATH_MAX];

	while (p && *p) {
		size_t n = strcspn(p, ":");

		if (n && *p == '/' && n < PATH_MAX - 16) {
			snprintf(python, sizeof(python), "%.*s/python3", (int)n, p);
			if (!access(python, X_OK))
				add_python(d, python, below);
		}
		p += n + (p[n] == ':');
	}
}

static void add_wheels(struct lib_dirs *d, const char *below)
{
	const char *home = getenv("HOME"), *data = getenv("XDG_DATA_HOME");
	const char *venv = getenv("VIRTUAL_ENV"), *conda = getenv("CONDA_PREFIX");
	char path[PATH_MAX];

	if (data && *data) {
		snprintf(path, sizeof(path), "%s/assay/wheels/%s", data, below);
		add_glob(d, path);
	} else if (home) {
		snprintf(path, sizeof(path), "%s/.local/share/assay/wheels/%s", home, below);
		add_glob(d, path);
	}
	add_python_on_path(d, below);
	if (venv && *venv)
		add_below_prefix(d, venv, below);
	if (conda && *conda)
		add_below_prefix(d, conda, below);
	if (home) {
		snprintf(path, sizeof(path), "%s/.local", home);
		add_below_prefix(d, path, below);
	}
}

static void add_toolkit(struct lib_dirs *d, const char *root)
{
	static const char *const below[] = {"lib64", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib",
					    "extras/CUPTI/lib64", "lib"};
	char path[PATH_MAX];

	for (size_t i = 0; root && *root && i < sizeof(below) / sizeof(below[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", root, below[i]);
		add_dir(d, path);
	}
}

void lib_dirs_find(struct lib_dirs *d, const char *wheel)
{
	*d = (struct lib_dirs){0};
	add_toolkit(d, getenv("CUDA_HOME"));
	add_toolkit(d, getenv("CUDA_PATH"));
	add_toolkit(d, "/usr/local/cuda");
	if (!wheel)
		return;
	add_wheels(d, wheel);
	if (!strncmp(wheel, "nvidia/", 7))
		add_wheels(d, "nvidia/*/lib");
	if (getenv("CONDA_PREFIX")) {
		char path[PATH_MAX];

		snprintf(path, sizeof(path), "%s/lib", getenv("CONDA_PREFIX"));
		add_dir(d, path);
	}
}

void lib_dirs_release(struct lib_dirs *d)
{
	for (size_t i = 0; i < d->count; i++)
		free(d->dir[i]);
	*d = (struct lib_dirs){0};
}
