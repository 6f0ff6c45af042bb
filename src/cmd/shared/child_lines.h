/* SPDX-License-Identifier: Apache-2.0 */
/* The parent's end of a channel to a child process (cmd/internal/child_channel.h): its lines "log" and "end".
 */
#ifndef CMD_SHARED_CHILD_LINES_H
#define CMD_SHARED_CHILD_LINES_H
#include <jansson.h>
#include <stdbool.h>
#include "core/error.h"
#include "core/log.h"

/* How the child said that its work ended. Zeroed: it said nothing yet. */
struct child_end {
	bool said;
	enum status status;
	enum cause cause;
	char text[512];
	json_t *values; /* results; NULL: none */
};
/* Takes a line "end"; a status or cause that is not in our lists is BUG or NONE. */
void child_end_take(struct child_end *e, const json_t *line);
void child_end_release(struct child_end *e);
/* Logs a line "log". */
void child_log_take(const struct log *log, const json_t *line);
#endif
