/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packs a run directory into one tar.zst: its files below one folder, and SHA256SUMS as `sha256sum -c` reads
 * it. Times, owners and order are fixed, so the same directory gives the same bytes. A module with libarchive
 * does the work; it is loaded when needed.
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
	const char *path; /* path on disk; NULL: the file is `data` */
	const char *data;
	size_t size; /* of data */
};

struct pack_module {
	unsigned version, size; /* of this struct */
	/* Writes to an open file. folder "": names without a folder. Returns 0, or else a sentence in
	 * `message`. */
	int (*write)(int fd, const char *folder, const struct pack_file *files, size_t count, char *message,
		     size_t size);
	/* Calls `visit` with every member and its whole data; `visit` returns 0 to continue. `data` NULL: not
	 * a regular file. Files above `limit` bytes are refused. */
	int (*read)(const char *in, size_t limit,
		    int (*visit)(void *arg, const char *name, const void *data, size_t size), void *arg,
		    char *message, size_t size);
};

/* Packs the files of the run directory `dir`, those of other ranks below nodes/, and those of the runs inside
 * it (pack_is_part), into `out`. Only files that a run has are packed; `left_out` (may be NULL) gets the
 * other names in `dir`, separated by commas. `out` is written to a temporary file and renamed, and replaces
 * only a regular file. BAD_INPUT: no journal. UNAVAILABLE: the module is missing. */
enum status pack_write(const char *out, const char *dir, struct text *left_out, struct error *err);
/* Checks an archive: one folder with plain names (and nodes/NAME/rank-R or runs below it), with a journal or
 * PACK_COLLECTION, every member a regular file with a correct checksum. MISMATCH: the error names the first
 * wrong member. */
enum status pack_verify(const char *path, size_t *files, struct error *err);
#endif
