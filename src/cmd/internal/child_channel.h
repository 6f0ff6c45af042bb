/* SPDX-License-Identifier: Apache-2.0 */
/* The child's end of a channel to the process that started it (core/process/process.h): it reads one line of
 * JSON, and writes lines of JSON with a member "type". */
#ifndef CMD_INTERNAL_CHILD_CHANNEL_H
#define CMD_INTERNAL_CHILD_CHANNEL_H
#include <pthread.h>
#include <signal.h>
#include "core/log.h"
#include "run/supervisor/lines.h"

enum { CHILD_CHANNEL = 3, CHILD_SHARED = 4 }; /* descriptors */

struct child_channel {
	pthread_mutex_t writing; /* several threads may write lines */
	struct lines in;
	json_t *first; /* the line that was read; NULL: none */
};
#define CHILD_CHANNEL_NEW                                                                                    \
	{                                                                                                    \
		.writing = PTHREAD_MUTEX_INITIALIZER                                                         \
	}

/* TERM calls on_term, INT and PIPE are ignored, and there is no core file. Descriptors 3 and 4 are not passed
 * on. */
void child_prepare(void (*on_term)(int sig));
/* Waits for the first line until *stop is set or the channel ends. False: there is none. */
bool child_read(struct child_channel *c, const volatile sig_atomic_t *stop);
void child_release(struct child_channel *c);
/* Sends `body` (taken; NULL: no members) as a line of this type. Fits struct train_job's emit. */
enum status child_send(void *channel, const char *type, json_t *body, struct error *err);
/* The last line: how the work ended. `values` (taken; NULL: none) are its results. */
void child_send_end(struct child_channel *c, enum status st, const struct error *err, json_t *values);
/* A log whose lines go to the channel. */
struct log child_log(struct child_channel *c);
#endif
