/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that an open journal is still at its path: a run directory may be removed or moved during the run.
 */
#ifndef JOURNAL_FILE_OPEN_FILE_H
#define JOURNAL_FILE_OPEN_FILE_H
#include <sys/types.h>
#include "core/error.h"

/* OK: the file of `fd` (open for reading) is at `path` and has `size` bytes. Otherwise UNAVAILABLE, because
 * the run must end. If the file was removed, its first `size` bytes are written again: to `path` if possible,
 * else to `path`.1, else to a run directory among the temporary files. The message says which. If the file
 * was moved, it names the new path; if another program wrote into it or cut it, it says so. */
enum status open_file_check(int fd, off_t size, const char *path, struct error *err);
/* Appends the bytes from `at` to `end` of one open file to another and syncs it. `path`: the other file, for
 * messages. */
enum status open_file_copy(int from, off_t at, off_t end, int to, const char *path, struct error *err);
#endif
