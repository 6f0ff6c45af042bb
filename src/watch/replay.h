/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a recording (watch/record.h), compressed or not. A file that is cut is read up to the cut. */
#ifndef WATCH_REPLAY_H
#define WATCH_REPLAY_H
#include "watch/state.h"

struct watch_replay;
/* BAD_INPUT: not a recording. The states are empty until watch_replay_seek. Owner: caller,
 * watch_replay_close. */
enum status watch_replay_open(struct watch_replay **out, const char *path, struct error *err);
void watch_replay_close(struct watch_replay *r); /* NULL is allowed */
unsigned watch_replay_nodes(const struct watch_replay *r);
/* Borrowed; stays valid until close. */
const struct watch_state *watch_replay_state(const struct watch_replay *r, unsigned node);
void watch_replay_keep(struct watch_replay *r, enum catalogue row);
/* Seconds from the first to the last line that can be read. */
double watch_replay_length(const struct watch_replay *r);
/* Why the file ends early; NULL: it is whole. */
const char *watch_replay_why(const struct watch_replay *r);
/* Makes the states of a time, in seconds from the beginning. Going on by little is cheap. BAD_INPUT: a line
 * on the way is wrong; the states are those before it. */
enum status watch_replay_seek(struct watch_replay *r, double seconds, struct error *err);
#endif
