/* SPDX-License-Identifier: Apache-2.0 */
/* Reading and writing lines on a channel to another process. */
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

enum lines_state {
	LINES_MORE,
	LINES_END,
	LINES_BROKEN /* a line is too long, out of memory, or a read error */
};

/* Reads what is available without waiting; the descriptor must be non-blocking. Passes each complete line,
 * without its newline, to `take`. Stops early if `take` returns false. */
enum lines_state lines_read(struct lines *l, int fd, bool (*take)(void *arg, const char *line, size_t size),
			    void *arg);
void lines_release(struct lines *l);
/* Writes all of the text and waits as long as needed. A closed peer is an error. */
enum status lines_write(int fd, const char *text, size_t size, struct error *err);
/* Writes one JSON object as a line; numbers have `digits` digits. Takes `line`; NULL means that it could not
 * be allocated. `writing`: locked during the write if threads share the channel, otherwise NULL. */
enum status lines_send(int fd, json_t *line, unsigned digits, pthread_mutex_t *writing, struct error *err);
#endif
