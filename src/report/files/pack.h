/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run directory as one tar.zst: its files below one folder, and SHA256SUMS as `sha256sum -c` reads it.
 * Times, owners and order are fixed, so the same directory gives the same bytes. By libarchive, in a module
 * that is loaded when it is asked for.
 */
#ifndef REPORT_FILES_PACK_H
#define REPORT_FILES_PACK_H
#include <stddef.h>
#include "core/error.h"
#include "core/text/text.h"

#define PACK_MODULE "assay-archive"
#define PACK_SYMBOL "assay_archive_1"
enum { PACK_VERSION = 2 };
#define PACK_SUMS "SHA256SUMS"

struct pack_file {
	const char *name; /* below the archive's folder: "journal.jsonl" */
	const char *path; /* on disk; NULL: `data` */
	const char *data;
	size_t size; /* of data */
};

struct pack_module {
	unsigned version, size; /* of this struct */
	/* To an open file; folder "": the names as they stand. 0, or not 0 with a sentence in `message`. */
	int (*write)(int fd, const char *folder, const struct pack_file *files, size_t count, char *message,
		     size_t size);
	/* Calls `visit` with every member, whole; it returns 0 to go on. `data` NULL: no regular file. Files
	 * above `limit` bytes are refused. */
	int (*read)(const char *in, size_t limit,
		    int (*visit)(void *arg, const char *name, const void *data, size_t size), void *arg,
		    char *message, size_t size);
};

/* Packs the files of the run directory `dir`, those that a run has and no other, and those of a team's other
 * ranks below nodes/, into `out`: beside and renamed, over nothing but a regular file. BAD_INPUT where there
 * is no journal; UNAVAILABLE where the module is missing. `left_out` (or NULL) gets the names in `dir` that
 * are not packed, with commas between. */
enum status pack_write(const char *out, const char *dir, struct text *left_out, struct error *err);
/* Reads it back: one folder of plain names (and nodes/NAME/rank-R below it), a journal among them, each
 * regular and as its checksum says. MISMATCH names the first that is not. */
enum status pack_verify(const char *path, size_t *files, struct error *err);
#endif
