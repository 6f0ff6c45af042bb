/* SPDX-License-Identifier: Apache-2.0 */
#include "core/error.h"

#include <errno.h>
#include <stdarg.h>

static void error_fill(struct error *err, enum status status, enum cause cause, const char *format,
		       va_list args)
{
	err->status = status;
	err->cause = cause;
	if (vsnprintf(err->text, sizeof(err->text), format, args) < 0)
		err->text[0] = '\0';
}

enum status error_set_at(struct error *err, enum status status, enum cause cause, const char *file, int line,
			 const char *format, ...)
{
	va_list args;

	if (!err || err->status)
		return status;
	va_start(args, format);
	error_fill(err, status, cause, format, args);
	va_end(args);
	err->file = file;
	err->line = line;
	return status;
}

static enum status status_of_errno(int errnum, enum cause *cause)
{
	*cause = CAUSE_NONE;
	switch (errnum) {
	case ENOSPC:
	case EDQUOT:
	case EFBIG: /* file size limit (RLIMIT_FSIZE); SIGXFSZ is ignored, so the write fails instead */
		*cause = CAUSE_DISK_FULL;
		return STATUS_NO_RESOURCE;
	case ENOMEM:
		*cause = CAUSE_NO_MEMORY;
		return STATUS_NO_RESOURCE;
	case EMFILE:
	case ENFILE:
		*cause = CAUSE_LIMIT_LOW; /* ulimit -n */
		return STATUS_NO_RESOURCE;
	case EAGAIN:
		return STATUS_NO_RESOURCE;
	case EACCES:
	case EPERM:
	case EROFS:
		*cause = CAUSE_PERMISSION;
		return STATUS_UNAVAILABLE;
	case ENOENT:
		return STATUS_UNAVAILABLE;
	default:
		return STATUS_BAD_INPUT;
	}
}

enum status error_errno_at(struct error *err, int errnum, const char *file, int line, const char *format, ...)
{
	enum cause cause;
	enum status status = status_of_errno(errnum, &cause);
	va_list args;
	size_t used;
	char reason[96];

	if (!err || err->status)
		return status;
	va_start(args, format);
	error_fill(err, status, cause, format, args);
	va_end(args);
	err->file = file;
	err->line = line;
	used = strlen(err->text);
	snprintf(err->text + used, sizeof(err->text) - used, ": %s%s",
		 strerror_r(errnum, reason, sizeof(reason)), errnum == EMFILE ? " (ulimit -n)" : "");
	return status;
}

void error_clear(struct error *err)
{
	*err = (struct error){0};
}
