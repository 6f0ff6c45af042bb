/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Regular files mapped for reading. Another program may make a mapped file shorter, or its disk may fail: the
 * kernel then sends SIGBUS to who reads it. A handler of ours puts zeros there and notes the file, so that
 * the reader goes on to its next mapped_check, which names the file. A reader calls it
 * before its numbers count for anything. A SIGBUS at any other address has the effect that it had before.
 */
#ifndef CORE_FILE_MAPPED_H
#define CORE_FILE_MAPPED_H
#include <stdint.h>
#include "core/error.h"

/* Owner: caller, mapped_close. An empty file is NULL and 0. */
enum status mapped_open(void **data, uint64_t *size, const char *path, struct error *err);
/* The same of an open file of `size` bytes, not 0, which stays the caller's; `path` is for messages. */
enum status mapped_take(void **data, int fd, uint64_t size, const char *path, struct error *err);
void mapped_close(void *data, uint64_t size);
/* What was read of it no longer counts as this process's memory; read again, it comes from the file again. */
void mapped_forget(void *data, uint64_t size);
/* `st`, or where a mapped file could not be read BAD_INPUT, and *err then names that file, whatever it said
 * before: what else went wrong came from zeros. It names a closed file once. From any thread.
 */
enum status mapped_check(enum status st, struct error *err);
/* The same, after a look at the files' sizes: a cut within the last page sends no signal. */
enum status mapped_check_sizes(enum status st, struct error *err);
#endif
