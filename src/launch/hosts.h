/* SPDX-License-Identifier: Apache-2.0 */
/* Host names from the command line or a file. Every name is checked before a shell or ssh gets it. */
#ifndef LAUNCH_HOSTS_H
#define LAUNCH_HOSTS_H
#include <stddef.h>
#include "core/error.h"

enum { HOSTS_MAX = 4096 };

struct hosts {
	char **name; /* "gpu1", "user@gpu1", "::1" */
	size_t count;
};

/* Parses "gpu1,user@gpu2,::1", or a list with brackets as Slurm writes it: "gpu[01-04],login1". BAD_INPUT
 * names an item that is empty, has other characters than A-Za-z0-9._:@-, begins with '-', or is listed twice.
 * Messages begin with `place`. Owner: caller, hosts_release, which also accepts a zeroed struct. */
enum status hosts_parse(struct hosts *h, const char *text, const char *place, struct error *err);
/* Reads a file with one host per line; '#' begins a comment. The same checks; messages name file and line. */
enum status hosts_read(struct hosts *h, const char *path, struct error *err);
/* The name without "user@", for other hosts. Borrowed. */
const char *hosts_address(const char *name);
void hosts_release(struct hosts *h);
#endif
