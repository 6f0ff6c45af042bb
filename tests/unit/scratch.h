/* SPDX-License-Identifier: Apache-2.0 */
/* cmocka with its headers, and a folder that is gone after the test. */
#ifndef TESTS_SCRATCH_H
#define TESTS_SCRATCH_H
#include <dirent.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

/* cmocka setup: *state is the path of a new folder. */
static inline int scratch_create(void **state)
{
	const char *base = getenv("TMPDIR");
	char *path = malloc(PATH_MAX);

	if (!path)
		return -1;
	snprintf(path, PATH_MAX, "%s/assay-test-XXXXXX", base ? base : "/tmp");
	*state = mkdtemp(path);
	return *state ? 0 : -1;
}

static inline void scratch_empty(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	char name[PATH_MAX];

	while (dir && (entry = readdir(dir))) {
		struct stat info;

		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		if (snprintf(name, sizeof(name), "%s/%s", path, entry->d_name) >= (int)sizeof(name))
			continue;
		if (!lstat(name, &info) && S_ISDIR(info.st_mode))
			scratch_empty(name);
		remove(name);
	}
	if (dir)
		closedir(dir);
}

/* cmocka teardown. */
static inline int scratch_remove(void **state)
{
	chmod(*state, 0700);
	scratch_empty(*state);
	rmdir(*state);
	free(*state);
	return 0;
}

#define scratch_test(test) cmocka_unit_test_setup_teardown(test, scratch_create, scratch_remove)
#endif
