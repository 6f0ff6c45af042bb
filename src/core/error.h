/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An error is one complete sentence with a place, made once, at the bottom; callers above pass the status
 * on. On success *err is untouched; the first error wins (a second error_set leaves it as it is).
 */
#ifndef CORE_ERROR_H
#define CORE_ERROR_H
#include "core/status.h"

struct error {
	enum status status; /* STATUS_OK: empty */
	enum cause cause;   /* CAUSE_NONE where the status alone says it */
	const char *file;   /* our source, for --debug; not for users */
	int line;
	char text[512];
};

#define error_set(err, status, ...) error_set_at((err), (status), CAUSE_NONE, __FILE__, __LINE__, __VA_ARGS__)
#define error_set_cause(err, status, cause, ...)                                                             \
	error_set_at((err), (status), (cause), __FILE__, __LINE__, __VA_ARGS__)

/* Fills *err unless it is NULL or holds an error already. Returns `status`, so `return error_set(..)` works.
 */
enum status error_set_at(struct error *err, enum status status, enum cause cause, const char *file, int line,
			 const char *format, ...) __attribute__((format(printf, 6, 7)));
/* "text: strerror(errno)" with STATUS_NO_RESOURCE for ENOSPC, EDQUOT, EFBIG, ENOMEM, EMFILE, ENFILE, EAGAIN;
 * UNAVAILABLE for EACCES, EPERM, EROFS, ENOENT; else BAD_INPUT. Cause DISK_FULL, NO_MEMORY, PERMISSION
 * accordingly. */
#define error_errno(err, errnum, ...) error_errno_at((err), (errnum), __FILE__, __LINE__, __VA_ARGS__)
enum status error_errno_at(struct error *err, int errnum, const char *file, int line, const char *format, ...)
	__attribute__((format(printf, 5, 6)));
void error_clear(struct error *err);
#endif
