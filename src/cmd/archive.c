/* SPDX-License-Identifier: Apache-2.0 */
/* assay archive: packs a run directory into one file with checksums. */
#include <limits.h>
#include "cmd/command.h"
#include "cmd/shared/input_hashes.h"
#include "cmd/shared/run_dirs.h"
#include "cmd/shared/show.h"
#include "report/files/pack.h"

struct archive_opts {
	const char *dir, *out;
	bool check;
};

static const struct opt opts[] = {
	OPT_ROW(struct archive_opts, dir, .name = "dir", .positional = true, .shown = "DIR",
		.help = "a run directory; with --check, an archive"),
	OPT_ROW(struct archive_opts, out, .name = "out", .shown = "FILE",
		.help = "name of the archive (default: DIR.tar.zst)"),
	OPT_ROW(struct archive_opts, check, .name = "check",
		.help = "read an archive and compare every file with its checksum"),
};

/* Makes DIR.tar.zst, next to the directory. "." and ".." are replaced by their real names. */
static void default_name(char out[PATH_MAX], const char *dir)
{
	size_t end = strlen(dir);
	char real[PATH_MAX];

	while (end > 1 && dir[end - 1] == '/')
		end--;
	if (dir[end - 1] == '.' && (end == 1 || dir[end - 2] == '/' || dir[end - 2] == '.') &&
	    realpath(dir, real)) {
		dir = real;
		end = strlen(real);
	}
	snprintf(out, PATH_MAX, "%.*s.tar.zst", (int)end, dir);
}

/* Refuses a run that would be judged differently after unpacking. */
static enum status check_kept(const char *dir, struct error *err)
{
	struct record r;
	enum status st;

	if (!run_dirs_is(dir))
		return STATUS_OK; /* pack_write reports this error */
	st = run_dirs_whole(dir, err);
	if (!st)
		st = record_read(&r, dir, err);
	if (st)
		return st;
	st = input_hashes_check(&r, JUDGE_EXPECTATIONS_FILE, err);
	if (!st)
		st = input_hashes_check(&r, JUDGE_SITE_FILE, err);
	record_release(&r);
	return st;
}

static int run(const struct command_context *c, const void *opts_)
{
	const struct archive_opts *o = opts_;
	struct error err = {0};
	struct text line = {0}, left_out = {0};
	char out[PATH_MAX];
	size_t files = 0;
	enum status st;

	if (!o->dir) {
		error_set(&err, STATUS_BAD_INPUT,
			  o->check ? "no archive given: assay archive --check FILE"
				   : "no run directory given: assay archive DIR");
		return command_complain(c, &err);
	}
	if (o->check) {
		text_copy(out, sizeof(out), o->dir);
	} else if (o->out) {
		text_copy(out, sizeof(out), o->out);
	} else {
		default_name(out, o->dir);
	}
	st = o->check ? STATUS_OK : check_kept(o->dir, &err);
	if (!st && !o->check)
		st = pack_write(out, o->dir, &left_out, &err);
	/* Read the archive back: one that cannot be read is an error. */
	if (!st)
		st = pack_verify(out, &files, &err);
	if (st)
		text_release(&left_out);
	if (st == STATUS_MISMATCH) {
		log_error(c->log, LOG_TOPIC_RUN, "%s", err.text);
		return EXIT_FAILED;
	}
	if (st)
		return command_complain(c, &err);
	text_addf(&line, "%s: %zu files, all checksums match\n", out, files);
	if (left_out.size)
		text_addf(&line, "not included: %s\n", left_out.data);
	text_release(&left_out);
	show_text(&line, UTF8_KEEP_NOTHING);
	text_release(&line);
	return EXIT_PASS;
}

const struct command command_archive = {
	.name = "archive",
	.summary = "pack a run directory into one tar.zst file with checksums",
	.example = "assay archive assay-runs/2026-11-21-quick   # writes assay-runs/2026-11-21-quick.tar.zst",
	.help = "Packs the files of a run directory with their SHA-256 checksums, then reads the archive back to "
		"verify it. Pseudonyms in the run directory stay pseudonyms in the archive.",
	.opts = {opts, sizeof(opts) / sizeof(opts[0]), sizeof(struct archive_opts)},
	.alone = true,
	.run = run,
};
