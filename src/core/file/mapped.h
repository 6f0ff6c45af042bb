/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Regular files mapped for reading. If another program shortens a mapped file, or if its disk fails, the
 * kernel sends SIGBUS to the reading process. Our handler maps zeros there and notes the file, so the reader
 * continues. The reader must call mapped_check before it uses the results; mapped_check names the file. A
 * SIGBUS at any other address has the same effect as without our handler.
 */
#ifndef CORE_FILE_MAPPED_H
#define CORE_FILE_MAPPED_H
#include <stdint.h>
#include "core/error.h"

/* Maps a file. The caller ends the mapping with mapped_close. An empty file gives NULL and size 0. */
enum status mapped_open(void **data, uint64_t *size, const char *path, struct error *err);
/* Maps an open file of `size` bytes (not 0). The caller keeps `fd`. `path` is for messages only. */
enum status mapped_take(void **data, int fd, uint64_t size, const char *path, struct error *err);
void mapped_close(void *data, uint64_t size);
/* Installs the handler of SIGBUS above one that was installed since the last mapping. It calls that one for
 * other addresses. */
void mapped_handle_first(void);
/* Releases the resident pages of the mapping, so that they no longer count as this process's memory. A
 * later read loads them from the file again. */
void mapped_forget(void *data, uint64_t size);
/* Returns `st`, unless a mapped file could not be read. In that case returns BAD_INPUT, and *err names
 * that file and replaces any earlier error, because earlier errors came from zeros. A file that is closed
 * already is reported once. Safe to call from any thread. */
enum status mapped_check(enum status st, struct error *err);
/* Like mapped_check, but also compares the files' sizes: a truncation within the last page sends no
 * signal. */
enum status mapped_check_sizes(enum status st, struct error *err);
#endif
