/* SPDX-License-Identifier: Apache-2.0 */
/* An error is one complete sentence that names a place. The function that detects the problem writes it;
 * its callers only return the status. On success *err does not change. The first error is kept: a second
 * error_set does not overwrite it. */
#ifndef CORE_ERROR_H
#define CORE_ERROR_H
#include "core/status.h"

struct error {
	enum status status; /* STATUS_OK: no error */
	enum cause cause;   /* CAUSE_NONE if the status alone explains the error */
	const char *file;   /* source file of assay, for --debug; not shown to users */
	int line;
	char text[512];
};

#define error_set(err, status, ...) error_set_at((err), (status), CAUSE_NONE, __FILE__, __LINE__, __VA_ARGS__)
#define error_set_cause(err, status, cause, ...)                                                             \
	error_set_at((err), (status), (cause), __FILE__, __LINE__, __VA_ARGS__)

/* Fills *err unless it is NULL or already holds an error. Returns `status`, so that callers can write
 * `return error_set(..)`. */
enum status error_set_at(struct error *err, enum status status, enum cause cause, const char *file, int line,
			 const char *format, ...) __attribute__((format(printf, 6, 7)));
/* Sets "text: strerror(errno)". The status is NO_RESOURCE for ENOSPC, EDQUOT, EFBIG, ENOMEM, EMFILE,
 * ENFILE and EAGAIN, UNAVAILABLE for EACCES, EPERM, EROFS and ENOENT, and BAD_INPUT for all others. The
 * cause is DISK_FULL, NO_MEMORY, LIMIT_LOW or PERMISSION where one of them applies. */
#define error_errno(err, errnum, ...) error_errno_at((err), (errnum), __FILE__, __LINE__, __VA_ARGS__)
enum status error_errno_at(struct error *err, int errnum, const char *file, int line, const char *format, ...)
	__attribute__((format(printf, 5, 6)));
void error_clear(struct error *err);
#endif
