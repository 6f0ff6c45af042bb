/* SPDX-License-Identifier: Apache-2.0 */
/* Where an open journal stands: a run directory may be removed or moved while it is written. */
#ifndef JOURNAL_FILE_OPEN_FILE_H
#define JOURNAL_FILE_OPEN_FILE_H
#include <sys/types.h>
#include "core/error.h"

/* OK: the file of `fd` (open for reading) stands at `path` and has `size` bytes. Else UNAVAILABLE, for the
 * run is to end: of a file that was removed, its first `size` bytes were written to `path` again where that
 * could be done, else to `path`.1, else to a run directory among the temporary files, and the message says
 * which; of one that was moved, it says where it is; of one that another wrote into or cut, it says so. */
enum status open_file_check(int fd, off_t size, const char *path, struct error *err);
/* Bytes `at` up to `end` of an open file to the end of another, and to the disk. `path`: the other, for
 * messages. */
enum status open_file_copy(int from, off_t at, off_t end, int to, const char *path, struct error *err);
#endif
