/* SPDX-License-Identifier: Apache-2.0 */
/* Hosts as the user names them: on the command line or in a file. No name reaches a shell or ssh unchecked.
 */
#ifndef LAUNCH_HOSTS_H
#define LAUNCH_HOSTS_H
#include <stddef.h>
#include "core/error.h"

enum { HOSTS_MAX = 4096 };

struct hosts {
	char **name; /* "gpu1", "user@gpu1", "::1" */
	size_t count;
};

/* "gpu1,user@gpu2,::1", or with brackets as Slurm writes lists: "gpu[01-04],login1". BAD_INPUT names the
 * item: empty, with other signs than A-Za-z0-9._:@-, beginning with '-', there twice. `place` leads the
 * message. Owner: hosts_release, which one of zeros stands too. */
enum status hosts_parse(struct hosts *h, const char *text, const char *place, struct error *err);
/* A host a line; '#' begins a comment. The same checks, with file and line. */
enum status hosts_read(struct hosts *h, const char *path, struct error *err);
/* Without "user@": what other hosts call it. Lent. */
const char *hosts_address(const char *name);
void hosts_release(struct hosts *h);
#endif
