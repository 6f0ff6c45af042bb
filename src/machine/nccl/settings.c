/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/nccl/settings.h"
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/file/file.h"

enum { FILE_BYTES_MAX = 256 << 10, ENVIRON_BYTES_MAX = 4 << 20 };

/* Keeps only settings of NCCL and CUDA; other content of the file may be private. */
static void thin(char *text)
{
	char *out = text;

	while (*text) {
		size_t n = strcspn(text, "\n");

		n += text[n] == '\n';
		if (!strncmp(text, "NCCL_", 5) || !strncmp(text, "CUDA_", 5)) {
			memmove(out, text, n);
			out += n;
		}
		text += n;
	}
	*out = 0;
}

static void add_file(json_t *files, const char *path, const char *shown)
{
	struct error err = {0};
	char *text = NULL;
	size_t size = 0;
	json_t *row;

	if (access(path, F_OK) && errno == ENOENT)
		return;
	if (file_read(&text, &size, path, FILE_BYTES_MAX, &err)) {
		row = json_pack("{s:s,s:s}", "path", shown, "error", err.text);
	} else {
		thin(text);
		row = json_pack("{s:s,s:s}", "path", shown, "text", text);
		if (!row)
			row = json_pack("{s:s,s:s}", "path", shown, "error", "not UTF-8 text");
	}
	if (row)
		json_array_append_new(files, row);
	free(text);
}

json_t *nccl_files_read(const char *conf_file, const char *home, const char *root)
{
	json_t *files = json_array();
	char path[PATH_MAX];

	if (conf_file && *conf_file) {
		snprintf(path, sizeof(path), "%s%s", root, conf_file);
		add_file(files, path, conf_file);
	} else if (home && *home) {
		snprintf(path, sizeof(path), "%s%s/.nccl.conf", root, home);
		add_file(files, path, "~/.nccl.conf");
	}
	snprintf(path, sizeof(path), "%s/etc/nccl.conf", root);
	add_file(files, path, "/etc/nccl.conf");
	return files;
}

json_t *nccl_environment(const char *block, size_t size)
{
	json_t *map = json_object();
	size_t at = 0;

	while (at < size) {
		const char *line = block + at;
		size_t n = strnlen(line, size - at), name = strcspn(line, "=");
		char key[128];

		at += n + 1;
		if (strncmp(line, "NCCL_", 5) || name >= n || name >= sizeof(key))
			continue;
		snprintf(key, sizeof(key), "%.*s", (int)name, line);
		json_object_set_new(map, key, json_stringn(line + name + 1, n - name - 1));
	}
	return map;
}

static enum status own_process(long pid, uid_t *uid, struct error *err)
{
	struct stat st;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%ld", pid);
	if (stat(path, &st))
		return error_set(err, STATUS_BAD_INPUT, "--pid %ld: no such process", pid);
	if (st.st_uid != geteuid())
		return error_set(err, STATUS_BAD_INPUT, "--pid %ld: the process belongs to another user",
				 pid);
	*uid = st.st_uid;
	return STATUS_OK;
}

enum status nccl_process_read(long pid, json_t **environment, json_t **files, struct error *err)
{
	struct passwd entry, *found = NULL;
	char path[64], buffer[4096], *block = NULL;
	const char *conf;
	uid_t uid = 0;
	size_t size = 0;
	enum status st = own_process(pid, &uid, err);

	if (st)
		return st;
	snprintf(path, sizeof(path), "/proc/%ld/environ", pid);
	st = file_read(&block, &size, path, ENVIRON_BYTES_MAX, err);
	if (st)
		return st;
	*environment = nccl_environment(block, size);
	free(block);
	/* The process may run in a container, so the files are read from its own mount namespace. */
	snprintf(path, sizeof(path), "/proc/%ld/root", pid);
	getpwuid_r(uid, &entry, buffer, sizeof(buffer), &found);
	conf = json_string_value(json_object_get(*environment, "NCCL_CONF_FILE"));
	*files = nccl_files_read(conf, found ? found->pw_dir : NULL, path);
	return STATUS_OK;
}

static const json_t *winner(const json_t *rows, const char *name)
{
	const json_t *row;
	size_t i;

	json_array_foreach((json_t *)rows, i, row)
	{
		if (!strcmp(json_string_value(json_object_get(row, "name")), name))
			return row;
	}
	return NULL;
}

/* Ignores NULL values (not valid UTF-8) and names without letters. */
static void add_row(json_t *rows, const char *name, const char *value, const char *from)
{
	const json_t *first = winner(rows, name);
	json_t *row = *name ? json_pack("{s:s,s:s,s:s}", "name", name, "value", value, "from", from) : NULL;

	if (row && first)
		json_object_set(row, "beaten_by", json_object_get(first, "from"));
	if (row)
		json_array_append_new(rows, row);
}

/* As NCCL reads the file: "#" begins a comment in the first column only, and blanks belong to name and value.
 */
static void add_lines(json_t *rows, const char *text, const char *path)
{
	while (*text) {
		size_t n = strcspn(text, "\n"), name = strcspn(text, "=\n");
		char key[256], value[1024];

		if (*text != '#' && name < n && name < sizeof(key)) {
			snprintf(key, sizeof(key), "%.*s", (int)name, text);
			snprintf(value, sizeof(value), "%.*s", (int)(n - name - 1), text + name + 1);
			add_row(rows, key, value, path);
		}
		text += n + (text[n] == '\n');
	}
}

static void add_environment(json_t *rows, const json_t *environment)
{
	size_t count = 0, room = json_object_size(environment);
	const char **names = calloc(room ? room : 1, sizeof(*names)), *name;
	json_t *value;

	if (!names)
		return;
	json_object_foreach((json_t *)environment, name, value)
	{
		if (!strncmp(name, "NCCL_", 5) && json_is_string(value))
			names[count++] = name;
	}
	qsort(names, count, sizeof(*names), text_compare);
	for (size_t i = 0; i < count; i++)
		add_row(rows, names[i], json_string_value(json_object_get(environment, names[i])),
			"environment");
	free(names);
}

json_t *nccl_settings(const json_t *environment, const json_t *files)
{
	json_t *rows = json_array();
	const json_t *file;
	size_t i;

	add_environment(rows, environment);
	json_array_foreach((json_t *)files, i, file)
	{
		const char *text = json_string_value(json_object_get(file, "text"));
		const char *path = json_string_value(json_object_get(file, "path"));

		if (text && path)
			add_lines(rows, text, path);
	}
	return rows;
}

const char *nccl_setting(const json_t *settings, const char *name)
{
	return json_string_value(json_object_get(winner(settings, name), "value"));
}

void nccl_value_normal(const char *name, const char *value, char *out, size_t size)
{
	static const char *const words[] = {"NCCL_DEBUG", "NCCL_LAUNCH_MODE", "NCCL_NET",
					    "NCCL_NET_GDR_LEVEL", "NCCL_P2P_LEVEL"};
	bool upper = false;

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		upper = upper || !strcmp(words[i], name);
	text_copy(out, size, value);
	for (; upper && *out; out++)
		*out = (char)toupper((unsigned char)*out);
}
