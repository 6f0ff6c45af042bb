/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/bundle.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/file/file.h"
#include "deploy/answer.h"
#include "launch/command_words.h"

static enum status no_memory(struct error *err)
{
	return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
			       "no memory for the list of files to copy");
}

static bool is_bundle(const char *dir)
{
	char path[PATH_MAX + 16];
	struct stat info;

	snprintf(path, sizeof(path), "%s/assay", dir);
	if (access(path, X_OK))
		return false;
	snprintf(path, sizeof(path), "%s/lib", dir);
	return !stat(path, &info) && S_ISDIR(info.st_mode);
}

/* BUILD/bundle/assay-VERSION-ARCH for the program BUILD/src/assay. */
static bool in_build(char dir[PATH_MAX], const char *own)
{
	const char *src = strstr(own, "/src");
	char folder[PATH_MAX];
	struct dirent *e;
	bool found = false;
	DIR *d;

	if (!src || src[4])
		return false;
	snprintf(folder, sizeof(folder), "%.*s/bundle", (int)(src - own), own);
	d = opendir(folder);
	while (d && !found && (e = readdir(d))) {
		snprintf(dir, PATH_MAX, "%.3800s/%.200s", folder, e->d_name);
		found = !strncmp(e->d_name, "assay-" ASSAY_VERSION "-", strlen("assay-" ASSAY_VERSION "-")) &&
			is_bundle(dir);
	}
	if (d)
		closedir(d);
	return found;
}

enum status bundle_find(char dir[PATH_MAX], const char *given, struct error *err)
{
	char own[PATH_MAX] = "";
	ssize_t n = readlink("/proc/self/exe", own, sizeof(own) - 1);

	if (given) {
		text_copy(dir, PATH_MAX, given);
		return is_bundle(dir)
			       ? STATUS_OK
			       : error_set(
					 err, STATUS_BAD_INPUT,
					 "--bundle %s is no bundle: it needs the program assay and a folder lib",
					 given);
	}
	own[n > 0 ? n : 0] = '\0';
	if (strrchr(own, '/'))
		*strrchr(own, '/') = '\0';
	text_copy(dir, PATH_MAX, own);
	if (*own && (is_bundle(own) || in_build(dir, own)))
		return STATUS_OK;
	return error_set(
		err, STATUS_BAD_INPUT,
		"there is no bundle to copy: make one with meson compile -C build bundle, or name its folder "
		"with --bundle");
}

static struct bundle_file *new_file(struct bundle *b, const char *path, const char *name, struct error *err)
{
	struct bundle_file *grown, *f;

	if (b->count == BUNDLE_FILES_MAX) {
		error_set(err, STATUS_BAD_INPUT, "more than %d files to copy", BUNDLE_FILES_MAX);
		return NULL;
	}
	grown = realloc(b->file, (b->count + 1) * sizeof(*grown));
	if (!grown) {
		no_memory(err);
		return NULL;
	}
	b->file = grown;
	f = &grown[b->count++];
	*f = (struct bundle_file){.path = path ? strdup(path) : NULL, .name = strdup(name)};
	if (f->name && (f->path || !path))
		return f;
	no_memory(err);
	return NULL;
}

/* Names travel as words of lines, so their characters are those that answers may have. */
static enum status check_name(const char *path, const char *last, struct error *err)
{
	char below[300];

	snprintf(below, sizeof(below), "work/%.256s", last);
	return answer_name_is_safe(below)
		       ? STATUS_OK
		       : error_set(
				 err, STATUS_BAD_INPUT,
				 "%s: a file to copy may only have letters, digits and . _ @ : + = , - in its name",
				 path);
}

static enum status add(struct bundle *b, const char *path, const char *name, struct error *err)
{
	struct bundle_file *f;
	struct stat info;

	if (stat(path, &info))
		return error_set(err, STATUS_BAD_INPUT, "%s: %s", path, strerror(errno));
	if (!S_ISREG(info.st_mode))
		return error_set(err, STATUS_BAD_INPUT, "%s is not a regular file", path);
	f = new_file(b, path, name, err);
	if (!f)
		return err->status;
	f->size = (uint64_t)info.st_size;
	f->executable = info.st_mode & S_IXUSR;
	return file_sha256_of(f->sum, path, err);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int no_dots(const struct dirent *e)
{
	return e->d_name[0] != '.';
}

static enum status add_lib(struct bundle *b, const char *dir, struct error *err)
{
	struct dirent **entry = NULL;
	char folder[PATH_MAX + 8], path[PATH_MAX + 300], name[300];
	enum status st = STATUS_OK;
	int count;

	snprintf(folder, sizeof(folder), "%s/lib", dir);
	count = scandir(folder, &entry, no_dots, by_name);
	if (count < 0)
		return error_errno(err, errno, "cannot list %s", folder);
	for (int i = 0; i < count; i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, entry[i]->d_name);
		snprintf(name, sizeof(name), "bundle/lib/%s", entry[i]->d_name);
		if (!st)
			st = check_name(path, entry[i]->d_name, err);
		if (!st)
			st = add(b, path, name, err);
		free(entry[i]);
	}
	free(entry);
	return st;
}

/* The kind of CPU that a program is for, as uname -m prints it. */
static void read_arch(char arch[16], const char *path)
{
	Elf64_Ehdr head = {0};
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, &head, sizeof(head));

	if (fd >= 0)
		close(fd);
	if (n != (ssize_t)sizeof(head) || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0)
		return;
	if (head.e_machine == EM_X86_64)
		text_copy(arch, 16, "x86_64");
	else if (head.e_machine == EM_AARCH64)
		text_copy(arch, 16, "aarch64");
}

enum status bundle_read(struct bundle *b, const char *dir, struct error *err)
{
	char path[PATH_MAX + 8];
	enum status st;

	snprintf(path, sizeof(path), "%s/assay", dir);
	st = add(b, path, "bundle/assay", err);
	read_arch(b->arch, path);
	return st ? st : add_lib(b, dir, err);
}

enum status bundle_add_file(struct bundle *b, const char *path, struct error *err)
{
	const char *slash = strrchr(path, '/'), *last = slash ? slash + 1 : path;
	char name[300];
	enum status st = check_name(path, last, err);

	snprintf(name, sizeof(name), "work/%.256s", last);
	for (size_t i = 0; i < b->count && !st; i++)
		if (!strcmp(b->file[i].name, name))
			st = error_set(err, STATUS_BAD_INPUT, "two files to send have the name %s", last);
	return st ? st : add(b, path, name, err);
}

enum status bundle_add_command(struct bundle *b, const struct opt_words *env, const struct opt_words *words,
			       struct error *err)
{
	struct text t = {0};
	struct bundle_file *f = new_file(b, NULL, "command", err);

	if (!f)
		return err->status;
	for (size_t i = 0; i < env->count; i++) {
		const char *equals = strchr(env->word[i], '=');

		text_addf(&t, "export %.*s=", (int)(equals - env->word[i]), env->word[i]);
		command_words_quote(&t, equals + 1);
		text_add(&t, "\n");
	}
	text_add(&t, "exec ../bundle/assay");
	for (size_t i = 0; i < words->count; i++) {
		text_add(&t, " ");
		command_words_quote(&t, words->word[i]);
	}
	text_add(&t, "\n");
	f->text = strdup(text_str(&t));
	f->size = t.size;
	if (t.failed || !f->text) {
		text_release(&t);
		return no_memory(err);
	}
	file_sha256(f->sum, f->text, f->size);
	text_release(&t);
	return STATUS_OK;
}

void bundle_id(char id[65], const struct bundle *b)
{
	struct text t = {0};

	for (size_t i = 0; i < b->count; i++)
		if (!strncmp(b->file[i].name, "bundle/", 7))
			text_addf(&t, "%s %s\n", b->file[i].sum, b->file[i].name);
	file_sha256(id, text_str(&t), t.size);
	text_release(&t);
}

void bundle_release(struct bundle *b)
{
	for (size_t i = 0; i < b->count; i++) {
		free(b->file[i].path);
		free(b->file[i].text);
		free(b->file[i].name);
	}
	free(b->file);
	*b = (struct bundle){0};
}
