/* SPDX-License-Identifier: Apache-2.0 */
#include "report/pack.h"
#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/file.h"
#include "core/text.h"
#include "journal/journal.h"
#include "journal/nodes.h"
#include "judge/judge.h"
#include "report/module.h"

enum { FILES_MAX = 16384 };
#define FILE_LIMIT ((size_t)1 << 30)

struct packing {
	struct pack_file files[FILES_MAX + 1];
	size_t count;
	struct text sums;
};

static enum status module(const struct pack_module **out, struct error *err)
{
	enum status st = module_open((const void **)out, PACK_MODULE, PACK_SYMBOL, err);

	if (!st && ((*out)->version != PACK_VERSION || (*out)->size != sizeof(**out)))
		st = error_set_cause(err, STATUS_UNAVAILABLE, CAUSE_VERSION_MISMATCH,
				     "the archive module is of another build (version %u, here %d)",
				     (*out)->version, PACK_VERSION);
	return st;
}

static enum status add_file(struct packing *p, const char *dir, const char *name, struct error *err)
{
	char path[4400], hex[65];
	struct stat info;
	enum status st;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	if (lstat(path, &info))
		return error_errno(err, errno, "%s: reading its kind", path);
	if (!S_ISREG(info.st_mode))
		return STATUS_OK;
	if (p->count == FILES_MAX)
		return error_set(err, STATUS_BAD_INPUT, "%s: more than %d files is no run directory", dir,
				 FILES_MAX);
	st = file_sha256_of(hex, path, err);
	if (st)
		return st;
	p->files[p->count].name = strdup(name);
	p->files[p->count].path = strdup(path);
	if (!p->files[p->count].name || !p->files[p->count].path)
		st = error_errno(err, ENOMEM, "%s: packing it", path);
	p->count++;
	text_addf(&p->sums, "%s  %s\n", hex, name);
	return st;
}

/* What a run directory holds: the journal, what was stated, and what report_write and a profile make of them;
 * of a profile not its rings and traces, which are large. */
static bool known(const char *name)
{
	static const char *const names[] = {JOURNAL_FILE,
					    JUDGE_SITE_FILE,
					    JUDGE_EXPECTATIONS_FILE,
					    JOURNAL_FILE JOURNAL_CUT,
					    "manifest.json",
					    "results.csv",
					    "nodes.csv",
					    "results.json",
					    "REPORT.md",
					    "report.html",
					    "roofline.svg",
					    "roofline.png",
					    "roofline.pdf",
					    "PROFILE.md",
					    "PROFILE.html",
					    "summary.csv",
					    "summary.json",
					    "nccl.csv",
					    "breakdown.csv",
					    "copies.csv",
					    "counters.csv"};
	unsigned curve;
	char end;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(name, names[i]))
			return true;
	return sscanf(name, "curve-%3u.sv%c", &curve, &end) == 2 && end == 'g' && !strchr(name, ' ') &&
	       strlen(name) <= strlen("curve-999.svg");
}

static int by_bytes(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static bool has_journal(const char *dir)
{
	char path[4400];
	struct stat info;

	snprintf(path, sizeof(path), "%s/" JOURNAL_FILE, dir);
	return !lstat(path, &info) && S_ISREG(info.st_mode);
}

/* One name of a file or folder, in ASCII, as anybody may unpack and print it. */
static bool plain(const char *name, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (name[i] <= ' ' || name[i] >= 0x7f || name[i] == '/' || name[i] == '\\')
			return false;
	return size && name[0] != '.';
}

/* Where the other ranks' journals are (journal/nodes.h): the folder of this name, so many folders down. */
static bool is_nodes(const char *name, unsigned depth)
{
	unsigned rank;
	int used = 0;

	switch (depth) {
	case 0:
		return !strcmp(name, NODES_DIR);
	case 1:
		return plain(name, strlen(name));
	case 2:
		return sscanf(name, "rank-%9u%n", &rank, &used) == 1 && !name[used];
	default:
		return false;
	}
}
enum { NODES_DEPTH = 3 };

static bool is_folder(const char *dir, const char *name)
{
	char path[4400];
	struct stat info;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return !lstat(path, &info) && S_ISDIR(info.st_mode);
}

/* `below`: "" or folders that end with a slash. */
static enum status collect(struct packing *p, const char *dir, const char *below, unsigned depth,
			   struct error *err)
{
	struct dirent **entries;
	enum status st = STATUS_OK;
	char path[4400], name[512];
	int count;

	snprintf(path, sizeof(path), "%s/%s", dir, below);
	count = scandir(path, &entries, NULL, by_bytes);
	if (count < 0)
		return error_errno(err, errno, "%s: reading the run directory", path);
	for (int i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "%s%.255s", below, entries[i]->d_name);
		if (st)
			;
		else if ((!depth || depth == NODES_DEPTH) && known(entries[i]->d_name))
			st = add_file(p, dir, name, err);
		else if (is_nodes(entries[i]->d_name, depth) && is_folder(dir, name)) {
			text_copy(name + strlen(name), sizeof(name) - strlen(name), "/");
			st = collect(p, dir, name, depth + 1, err);
		}
		free(entries[i]);
	}
	free(entries);
	return st;
}

static enum status collect_run(struct packing *p, const char *dir, struct error *err)
{
	enum status st;

	if (!has_journal(dir))
		return error_set(err, STATUS_BAD_INPUT,
				 "%s is no run directory: there is no " JOURNAL_FILE " in it", dir);
	st = collect(p, dir, "", 0, err);
	if (!st && p->sums.failed)
		st = error_errno(err, ENOMEM, "%s: its checksums", dir);
	return st;
}

/* "assay-runs/2026-11-21-quick/" gives "2026-11-21-quick". */
static void folder_name(char *out, size_t size, const char *dir)
{
	size_t end = strlen(dir), begin;

	while (end > 1 && dir[end - 1] == '/')
		end--;
	for (begin = end; begin > 0 && dir[begin - 1] != '/';)
		begin--;
	snprintf(out, size, "%.*s", (int)(end - begin), dir + begin);
	if (!plain(out, strlen(out)))
		text_copy(out, size, "run");
}

enum status pack_write(const char *out, const char *dir, struct error *err)
{
	const struct pack_module *m;
	struct packing *p = calloc(1, sizeof(*p));
	char message[256] = "", folder[256];
	struct file_new file = {.fd = -1};
	enum status st = p ? module(&m, err) : error_errno(err, ENOMEM, "%s: packing it", dir);

	if (!st)
		st = collect_run(p, dir, err);
	if (st)
		goto out;
	p->files[p->count] =
		(struct pack_file){.name = PACK_SUMS, .data = p->sums.data, .size = p->sums.size};
	folder_name(folder, sizeof(folder), dir);
	st = file_new_begin(&file, out, err);
	if (!st && m->write(file.fd, folder, p->files, p->count + 1, message, sizeof(message)))
		st = error_set(err, STATUS_NO_RESOURCE, "%s: %s", out, message);
	st = file_new_end(&file, st, err);
out:
	for (size_t i = 0; p && i < p->count; i++) {
		free((char *)p->files[i].name);
		free((char *)p->files[i].path);
	}
	if (p)
		text_release(&p->sums);
	free(p);
	return st;
}

struct checking {
	struct text found, sums; /* lines as in SHA256SUMS */
	char folder[256];	 /* the first member's */
	size_t files;
	bool journal;
	const char *why; /* what is wrong with the member `which`; NULL: nothing */
	char which[160];
};

/* A name in the archive's folder, or that of another rank's file below it. */
static bool is_member(const char *file)
{
	char name[256];
	size_t n;

	for (unsigned depth = 0; depth < NODES_DEPTH && strchr(file, '/'); depth++) {
		n = strcspn(file, "/");
		if (n >= sizeof(name))
			return false;
		snprintf(name, sizeof(name), "%.*s", (int)n, file);
		if (!is_nodes(name, depth))
			return false;
		file += n + 1;
		if (!strchr(file, '/') && depth + 1 < NODES_DEPTH)
			return false;
	}
	return plain(file, strlen(file));
}

/* Why a member is none of ours; NULL: it is. */
static const char *refuse(struct checking *c, const char *name, const void *data, size_t folder)
{
	const char *file = name + folder + (name[folder] == '/');
	char line[300];

	if (!data)
		return "is no regular file";
	if (!name[folder] || !plain(name, folder) || !is_member(file))
		return "is not a plain name in one folder";
	if (!c->folder[0])
		snprintf(c->folder, sizeof(c->folder), "%.*s", (int)folder, name);
	if (strlen(c->folder) != folder || strncmp(c->folder, name, folder))
		return "is in a second folder";
	snprintf(line, sizeof(line), "  %s\n", file);
	if (strstr(text_str(&c->found), line) || (c->sums.size && !strcmp(file, PACK_SUMS)))
		return "is there twice";
	return NULL;
}

static int check(void *arg, const char *name, const void *data, size_t size)
{
	struct checking *c = arg;
	size_t folder = strcspn(name, "/");
	char hex[65];

	c->why = refuse(c, name, data, folder);
	if (c->why) {
		text_copy(c->which, sizeof(c->which), name);
		return -1;
	}
	name += folder + 1;
	if (!strcmp(name, PACK_SUMS)) {
		text_add_bytes(&c->sums, data, size);
		return 0;
	}
	file_sha256(hex, data, size);
	text_addf(&c->found, "%s  %s\n", hex, name);
	c->journal = c->journal || !strcmp(name, JOURNAL_FILE);
	c->files++;
	return 0;
}

/* The first line of `lines` that `among` lacks, without its end; NULL: none. */
static char *first_missing(const char *lines, const char *among)
{
	while (*lines) {
		const char *end = strchr(lines, '\n');
		size_t size = end ? (size_t)(end - lines) + 1 : strlen(lines);
		char *line = strndup(lines, size);
		const char *at = line ? strstr(among, line) : NULL;

		if (!line || !at || (at != among && at[-1] != '\n')) {
			if (line)
				line[strcspn(line, "\n")] = '\0';
			return line;
		}
		free(line);
		lines += size;
	}
	return NULL;
}

/* What is there and is no file would be waited for, or never end; the module says why one cannot be read. */
static bool is_other(const char *path)
{
	struct stat info;

	return !stat(path, &info) && !S_ISREG(info.st_mode);
}

enum status pack_verify(const char *path, size_t *files, struct error *err)
{
	const struct pack_module *m;
	struct checking c = {0};
	char message[256] = "", *missing = NULL;
	enum status st = is_other(path) ? error_set(err, STATUS_BAD_INPUT, "%s: it is no regular file", path)
					: module(&m, err);

	if (st)
		return st;
	if (m->read(path, FILE_LIMIT, check, &c, message, sizeof(message))) {
		st = c.why ? error_set(err, STATUS_MISMATCH, "%s: its member \"%s\" %s: no archive of a run",
				       path, c.which, c.why)
			   : error_set(err, STATUS_BAD_INPUT, "%s: %s", path, message);
		goto out;
	}
	missing = first_missing(text_str(&c.sums), text_str(&c.found));
	if (!missing)
		missing = first_missing(text_str(&c.found), text_str(&c.sums));
	if (missing || !c.sums.size)
		st = error_set(err, STATUS_MISMATCH, "%s: %s is missing or is not what its checksum says",
			       path, missing && strlen(missing) > 66 ? missing + 66 : PACK_SUMS);
	else if (!c.journal)
		st = error_set(err, STATUS_MISMATCH, "%s: no " JOURNAL_FILE " is in it: no archive of a run",
			       path);
	*files = c.files;
out:
	free(missing);
	text_release(&c.found);
	text_release(&c.sums);
	return st;
}
