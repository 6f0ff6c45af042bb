/* SPDX-License-Identifier: Apache-2.0 */
#include "vendor/lib.h"
#include <ctype.h>
#include <dlfcn.h>
#include <glob.h>
#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/process/module.h"
#include "core/text/text.h"
#include "vendor/lib_path.h"

struct search {
	const struct lib_spec *spec;
	void *table;
	struct lib_fact *fact;
	struct text failed; /* reasons why libraries that exist could not be used, for the message */
	bool found;
};

static void note(struct search *s, const char *what)
{
	if (s->failed.size < 400)
		text_addf(&s->failed, "%s%s", s->failed.size ? "; " : "",
			  what ? what : "unknown loader error");
}

/* Turns the loader's "PATH: REASON" around, because a limit on the text may cut a long path but must not cut
 * the reason. */
static void note_loader(struct search *s, const char *name, const char *why)
{
	size_t n = strlen(name);
	char line[PATH_MAX + 256];

	if (!why || strncmp(why, name, n) || strncmp(why + n, ": ", 2)) {
		note(s, why);
		return;
	}
	snprintf(line, sizeof(line), "%s: %s", why + n + 2, name);
	note(s, line);
}

/* Fills the whole table, or none of it. dlsym's result is copied by memcpy, because ISO C has no conversion
 * to a function pointer. */
static bool fill(struct search *s, void *handle, const char *where)
{
	for (size_t i = 0; i < s->spec->symbol_count; i++) {
		const struct lib_symbol *row = &s->spec->symbols[i];
		void *symbol = dlsym(handle, row->symbol);

		if (!symbol && row->need == LIB_NEED_REQUIRED) {
			char line[PATH_MAX + 160];

			snprintf(line, sizeof(line), "no symbol %s in %s", row->symbol, where);
			note(s, line);
			memset(s->table, 0, s->spec->table_size);
			return false;
		}
		memcpy((char *)s->table + row->offset, &symbol, sizeof(symbol));
	}
	return true;
}

static void resolved_path(struct search *s, void *handle, const char *asked)
{
	struct link_map *map = NULL;
	char real[PATH_MAX];
	const char *path = asked;

	if (!dlinfo(handle, RTLD_DI_LINKMAP, &map) && map && map->l_name && *map->l_name)
		path = map->l_name;
	s->fact->path = strdup(realpath(path, real) ? real : path);
}

static void preload(const struct lib_spec *spec, const char *dir)
{
	for (size_t i = 0; spec->preload && spec->preload[i]; i++) {
		char path[PATH_MAX];

		if (dir)
			snprintf(path, sizeof(path), "%s/%s", dir, spec->preload[i]);
		else
			text_copy(path, sizeof(path), spec->preload[i]);
		/* If it is absent here, the loader searches for it when the library needs it. */
		(void)dlopen(path, RTLD_NOW | RTLD_LOCAL);
	}
}

/* Tries one candidate: a file path or, for the loader's own search, a bare soname. */
static bool try_file(struct search *s, const char *name)
{
	void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);

	if (!handle) {
		const char *why = dlerror();

		/* "cannot open shared object file" for the requested name itself only means that it is
		 * absent. */
		if (strchr(name, '/') || (why && strncmp(why, name, strlen(name))))
			note_loader(s, name, why);
		return false;
	}
	if (!fill(s, handle, name))
		return false;
	resolved_path(s, handle, name);
	s->found = true;
	return true;
}

/* File names in wheels contain a hash. */
static bool try_pattern(struct search *s, const char *pattern)
{
	glob_t g = {0};
	bool found = false;

	if (!glob(pattern, 0, NULL, &g))
		for (size_t i = 0; i < g.gl_pathc && !found; i++)
			found = try_file(s, g.gl_pathv[i]);
	globfree(&g);
	return found;
}

static bool try_dir(struct search *s, const char *dir)
{
	char path[PATH_MAX];

	for (size_t i = 0; s->spec->sonames[i]; i++) {
		if (!dir) {
			if (!i)
				preload(s->spec, NULL);
			if (!strchr(s->spec->sonames[i], '*') && try_file(s, s->spec->sonames[i]))
				return true;
			continue;
		}
		snprintf(path, sizeof(path), "%s/%s", dir, s->spec->sonames[i]);
		if (strchr(s->spec->sonames[i], '*') && try_pattern(s, path))
			return true;
		if (access(path, F_OK))
			continue;
		preload(s->spec, dir);
		if (try_file(s, path))
			return true;
	}
	return false;
}

/* Tries only the path that the user named. If it fails, nothing else is tried. */
static void try_named(struct search *s, const char *path)
{
	struct stat st;

	if (stat(path, &st)) {
		char line[PATH_MAX + 40];

		snprintf(line, sizeof(line), "%s does not exist", path);
		note(s, line);
	} else if (S_ISDIR(st.st_mode)) {
		(void)try_dir(s, path);
	} else {
		char dir[PATH_MAX], *slash;

		text_copy(dir, sizeof(dir), path);
		slash = strrchr(dir, '/');
		if (slash) {
			*slash = 0;
			preload(s->spec, dir);
		}
		(void)try_file(s, path);
	}
}

static const char *named_by_environment(const char *name, char *variable, size_t size)
{
	size_t n = (size_t)snprintf(variable, size, "ASSAY_LIB_%s", name);

	for (size_t i = 0; i < n && i < size; i++)
		variable[i] = (char)toupper((unsigned char)variable[i]);
	return getenv(variable);
}

static enum status not_found(struct search *s, const char *named, struct error *err)
{
	struct text t = {0};

	if (s->failed.size) {
		text_add(&t, text_str(&s->failed));
	} else if (s->spec->module && !named) {
		text_addf(&t, "%s is not in ", s->spec->sonames[0]);
		module_folders_tell(&t);
		text_add(&t, "; set ASSAY_MODULE_DIR to its folder");
	} else {
		text_addf(&t, "%s not found %s%s%s", s->spec->sonames[0], named ? "in " : "",
			  named ? named : "",
			  named ? ""
			  : s->spec->wheel
				  ? "on the loader's path, in CUDA_HOME, /usr/local/cuda or Python's wheels"
				  : "on the loader's path, in CUDA_HOME or /usr/local/cuda");
	}
	s->fact->missing = strdup(text_str(&t));
	s->fact->status = STATUS_UNAVAILABLE;
	s->fact->cause = CAUSE_LIBRARY_MISSING;
	error_set_cause(err, STATUS_UNAVAILABLE, CAUSE_LIBRARY_MISSING, "library %s: %s", s->spec->name,
			text_str(&t));
	text_release(&t);
	return STATUS_UNAVAILABLE;
}

static void try_modules(struct search *s)
{
	char dir[MODULE_FOLDER_TEXT];

	for (unsigned i = 0; i < MODULE_FOLDERS && !s->found; i++)
		if (module_folder(dir, i))
			(void)try_dir(s, dir);
}

enum status lib_open(void *table, const struct lib_spec *spec, const char *path, struct lib_fact *fact,
		     struct error *err)
{
	struct lib_fact unused = {0};
	struct search s = {.spec = spec, .table = table, .fact = fact ? fact : &unused};
	struct lib_dirs dirs = {0};
	char variable[64];
	enum status st = STATUS_OK;

	*s.fact = (struct lib_fact){.name = spec->name};
	memset(table, 0, spec->table_size);
	if (!path)
		path = named_by_environment(spec->name, variable, sizeof(variable));
	if (path && *path) {
		try_named(&s, path);
		goto out;
	}
	path = NULL;
	if (spec->module) {
		try_modules(&s);
		goto out;
	}
	if (try_dir(&s, NULL))
		goto out;
	lib_dirs_find(&dirs, spec->wheel);
	for (size_t i = 0; i < dirs.count && !s.found; i++)
		(void)try_dir(&s, dirs.dir[i]);
out:
	if (!s.found)
		st = not_found(&s, path, err);
	else if (spec->version)
		s.fact->version = spec->version(table);
	text_release(&s.failed);
	lib_dirs_release(&dirs);
	if (!fact)
		lib_fact_release(&unused);
	return st;
}

void lib_fact_release(struct lib_fact *fact)
{
	free(fact->path);
	free(fact->missing);
	*fact = (struct lib_fact){0};
}
