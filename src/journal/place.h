/* SPDX-License-Identifier: Apache-2.0 */
/* Where an open journal stands: a run directory may be removed or moved while it is written. */
#ifndef JOURNAL_PLACE_H
#define JOURNAL_PLACE_H
#include <sys/types.h>
#include "core/error.h"

/* OK: the file of `fd` (open for reading) stands at `path`. Else UNAVAILABLE, for the run is to end: of a
 * file that was removed, its first `size` bytes were written to `path` again where that could be done, and
 * the message says so; of one that was moved, it says where it is. */
enum status place_check(int fd, off_t size, const char *path, struct error *err);
#endif
