/* SPDX-License-Identifier: Apache-2.0 */
#include "report/files/pack.h"
#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/file/file.h"
#include "core/text/text.h"
#include "journal/file/compressed.h"
#include "journal/file/rank_dir.h"
#include "judge/judge.h"
#include "core/process/module.h"
#include "report/files/pack_check.h"

#define FILE_LIMIT ((size_t)1 << 30)

struct packing {
	struct pack_file files[PACK_FILES_MAX + 1];
	size_t count;
	struct text sums;
	struct text *left_out; /* NULL: not requested */
};

static enum status module(const struct pack_module **out, struct error *err)
{
	enum status st = module_open((const void **)out, PACK_MODULE, PACK_SYMBOL, err);

	if (!st && ((*out)->version != PACK_VERSION || (*out)->size != sizeof(**out)))
		st = error_set_cause(
			err, STATUS_UNAVAILABLE, CAUSE_VERSION_MISMATCH,
			"the archive module belongs to another build (version %u, expected %d); install both from one build",
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
		return error_errno(err, errno, "cannot read the type of %s", path);
	if (!S_ISREG(info.st_mode))
		return STATUS_OK;
	if (p->count == PACK_FILES_MAX)
		return error_set(err, STATUS_BAD_INPUT,
				 "%s has more than %d files, so it is not a run directory", dir,
				 PACK_FILES_MAX);
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

/* "load-ttft.svg" and the like */
static bool is_load_chart(const char *name)
{
	static const char begin[] = "load-";
	const bool begins = !strncmp(name, begin, strlen(begin));
	const size_t word = strspn(begins ? name + strlen(begin) : "", "abcdefghijklmnopqrstuvwxyz");

	return word && word <= 16 && !strcmp(name + strlen(begin) + word, ".svg");
}

/* True for the files of a run directory: the journal, the stated machine, and the files that report_write, a
 * profile, a load test and `assay comprehensive` make. A profile's rings and traces are left out because they
 * are large. */
static bool known(const char *name)
{
	static const char *const names[] = {JOURNAL_FILE,
					    JOURNAL_COMPRESSED,
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
					    "counters.csv",
					    "load.json",
					    "load.csv",
					    "requests.jsonl",
					    "requests.jsonl.zst",
					    "SUMMARY.md",
					    PACK_COLLECTION,
					    "stage.html",
					    "text.txt",
					    "output.txt",
					    "messages.txt"};
	unsigned curve;
	char end;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(name, names[i]))
			return true;
	return is_load_chart(name) || (sscanf(name, "curve-%3u.sv%c", &curve, &end) == 2 && end == 'g' &&
				       !strchr(name, ' ') && strlen(name) <= strlen("curve-999.svg"));
}

static int by_bytes(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static bool has_journal(const char *dir)
{
	char path[4400];
	struct stat info;

	errno = 0;
	snprintf(path, sizeof(path), "%s/" JOURNAL_FILE, dir);
	if (!lstat(path, &info))
		return S_ISREG(info.st_mode) && !access(path, R_OK);
	snprintf(path, sizeof(path), "%s/" JOURNAL_COMPRESSED, dir);
	return !lstat(path, &info) && S_ISREG(info.st_mode) && !access(path, R_OK);
}

/* True for the folder of `assay comprehensive`, whose stages have the journals. */
static bool is_collection(const char *dir)
{
	char path[4400];
	struct stat info;

	snprintf(path, sizeof(path), "%s/" PACK_COLLECTION, dir);
	return !lstat(path, &info) && S_ISREG(info.st_mode);
}

static bool is_folder(const char *dir, const char *name)
{
	char path[4400];
	struct stat info;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return !lstat(path, &info) && S_ISDIR(info.st_mode);
}

/* Whether `below` may hold a further run: `assay comprehensive` has runs in its folder, and its load test has
 * the server's in its own. */
static bool may_hold_parts(const char *below)
{
	unsigned slashes = 0;

	for (; *below; below++)
		slashes += *below == '/';
	return slashes < PACK_PARTS_DEPTH;
}

/* Collects the files of `dir`/`below`. `below`: "" or folders that end with a slash. depth: folders below
 * that of the run. */
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
		else if ((!depth || depth == PACK_NODES_DEPTH) && known(entries[i]->d_name))
			st = add_file(p, dir, name, err);
		else if (pack_is_nodes(entries[i]->d_name, depth) && is_folder(dir, name)) {
			text_copy(name + strlen(name), sizeof(name) - strlen(name), "/");
			st = collect(p, dir, name, depth + 1, err);
		} else if (!depth && may_hold_parts(below) && pack_is_part(entries[i]->d_name) &&
			   is_folder(dir, name)) {
			text_copy(name + strlen(name), sizeof(name) - strlen(name), "/");
			st = collect(p, dir, name, 0, err);
		} else if (!depth && p->left_out && strcmp(entries[i]->d_name, ".") &&
			   strcmp(entries[i]->d_name, "..")) {
			text_addf(p->left_out, "%s%s%s", p->left_out->size ? ", " : "", name,
				  is_folder(dir, name) ? "/" : "");
		}
		free(entries[i]);
	}
	free(entries);
	return st;
}

/* A directory without a run is a wrong argument, BAD_INPUT. */
static enum status no_run(const char *dir, int errnum, struct error *err)
{
	struct error why = {0};

	return journal_lacking(dir, errnum, &why) == STATUS_UNAVAILABLE
		       ? error_set(err, STATUS_BAD_INPUT, "%s", why.text)
		       : error_set(err, why.status, "%s", why.text);
}

static enum status collect_run(struct packing *p, const char *dir, struct error *err)
{
	enum status st;

	if (!has_journal(dir) && !is_collection(dir))
		return no_run(dir, errno ? errno : ENOENT, err);
	st = collect(p, dir, "", 0, err);
	if (!st && p->sums.failed)
		st = error_errno(err, ENOMEM, "%s: its checksums", dir);
	return st;
}

/* The last part of a path: "assay-runs/2026-11-21-quick/" gives "2026-11-21-quick". */
static void folder_name(char *out, size_t size, const char *dir)
{
	size_t end = strlen(dir), begin;

	while (end > 1 && dir[end - 1] == '/')
		end--;
	for (begin = end; begin > 0 && dir[begin - 1] != '/';)
		begin--;
	snprintf(out, size, "%.*s", (int)(end - begin), dir + begin);
	if (!pack_plain(out, strlen(out)))
		text_copy(out, size, "run");
}

enum status pack_write(const char *out, const char *dir, struct text *left_out, struct error *err)
{
	const struct pack_module *m;
	struct packing *p = calloc(1, sizeof(*p));
	char message[256] = "", folder[256];
	struct file_new file = {.fd = -1};
	enum status st = p ? module(&m, err) : error_errno(err, ENOMEM, "%s: packing it", dir);

	if (!st) {
		p->left_out = left_out;
		st = collect_run(p, dir, err);
	}
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

/* True for an existing path that is no regular file. Reading a pipe or a device could block or never end. */
static bool is_other(const char *path)
{
	struct stat info;

	return !stat(path, &info) && !S_ISREG(info.st_mode);
}

enum status pack_verify(const char *path, size_t *files, struct error *err)
{
	const struct pack_module *m;
	char message[256] = "";
	struct pack_check *c;
	struct stat info;
	enum status st = is_other(path) ? error_set(err, STATUS_BAD_INPUT, "%s is not a regular file", path)
					: module(&m, err);

	if (st)
		return st;
	if (stat(path, &info))
		return error_errno(err, errno, "%s", path);
	c = pack_check_begin((uint64_t)info.st_size);
	if (!c)
		return error_errno(err, ENOMEM, "%s: checking it", path);
	if (!m->read(path, FILE_LIMIT, pack_check_member, c, message, sizeof(message)))
		st = pack_check_end(c, path, files, err);
	else if (!pack_check_refusal(c, path, err))
		st = error_set(err, STATUS_BAD_INPUT, "%s: %s", path, message);
	else
		st = STATUS_MISMATCH;
	pack_check_free(c);
	return st;
}
