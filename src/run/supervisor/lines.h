/* SPDX-License-Identifier: Apache-2.0 */
/* Lines out of a descriptor that somebody else fills, at whatever pace and with whatever bytes. */
#ifndef RUN_SUPERVISOR_LINES_H
#define RUN_SUPERVISOR_LINES_H
#include <jansson.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include "core/error.h"

struct lines { /* valid when zeroed and after lines_release */
	char *data;
	size_t size, room;
};

enum lines_state { LINES_MORE, LINES_END, LINES_BROKEN /* a line too long, no memory, a read error */ };

/* Takes what is there without waiting (the descriptor is non-blocking), and hands each whole line, without
 * its newline, to `take`. Stops early when take returns false. */
enum lines_state lines_read(struct lines *l, int fd, bool (*take)(void *arg, const char *line, size_t size),
			    void *arg);
void lines_release(struct lines *l);
/* Writes all of it, waiting as long as need be; a closed peer is an error. */
enum status lines_write(int fd, const char *text, size_t size, struct error *err);
/* One object, its numbers with so many digits, as a line. Takes it; NULL: there was no memory for it.
 * `writing`: held while the line is written, where threads share the channel; NULL: they do not. */
enum status lines_send(int fd, json_t *line, unsigned digits, pthread_mutex_t *writing, struct error *err);
#endif
