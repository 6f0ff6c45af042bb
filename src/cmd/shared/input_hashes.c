/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/shared/input_hashes.h"
#include <errno.h>
#include <limits.h>
#include <unistd.h>
#include "core/file/file.h"
#include "judge/judge.h"

static bool path_of(char path[PATH_MAX], const char *dir, const char *name)
{
	return snprintf(path, PATH_MAX, "%s/%s", dir, name) < PATH_MAX && !access(path, F_OK);
}

enum status input_hashes_read(json_t **out, const char *dir, struct error *err)
{
	static const char *const names[] = {JUDGE_EXPECTATIONS_FILE, JUDGE_SITE_FILE};
	json_t *sums = json_object();
	enum status st =
		sums ? STATUS_OK : error_errno(err, ENOMEM, "%s: the checksums of its expectations", dir);

	for (size_t i = 0; !st && i < sizeof(names) / sizeof(names[0]); i++) {
		char path[PATH_MAX], hex[65];

		if (!path_of(path, dir, names[i]))
			continue;
		st = file_sha256_of(hex, path, err);
		if (!st && json_object_set_new(sums, names[i], json_string(hex)))
			st = error_errno(err, ENOMEM, "%s: its checksum", path);
	}
	if (st) {
		json_decref(sums);
		sums = NULL;
	}
	*out = sums;
	return st;
}

enum status input_hashes_check(const struct record *r, const char *name, struct error *err)
{
	const json_t *kept = json_object_get(r->open, "kept");
	const char *was = json_string_value(json_object_get(kept, name)), *what, *option;
	bool set = !strcmp(name, JUDGE_EXPECTATIONS_FILE), here;
	char path[PATH_MAX], is[65] = "";
	enum status st = STATUS_OK;

	if (!kept)
		return STATUS_OK;
	here = path_of(path, r->dir, name);
	if (here && was)
		st = file_sha256_of(is, path, err);
	if (st || (!here && !was) || (was && !strcmp(is, was)))
		return st;
	what = set ? "a set of expectations" : "a site file";
	option = set ? "--expectations DIR" : "--site FILE";
	if (!was)
		return error_set(
			err, STATUS_BAD_INPUT,
			"%s: the run was judged without %s, and this file was added later: remove it, or give "
			"%s to judge by another one",
			path, what, option);
	return error_set(
		err, STATUS_BAD_INPUT,
		"%s: the run was judged by %s that is changed or missing now (SHA-256 %.12s, now %.12s): "
		"restore it, or give %s to judge by another one",
		path, what, was, here ? is : "none", option);
}
