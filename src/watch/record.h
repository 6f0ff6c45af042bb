/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a recording: lines "NODE MS LINE" of one or several streams, compressed with zstd. MS is the
 * reader's time since the recording began. After 60 s or 4 MB a new frame begins with the line
 * "assay-recording 1 NODES MS WALL" and the whole state of each node, so that a reader can begin there.
 */
#ifndef WATCH_RECORD_H
#define WATCH_RECORD_H
#include "watch/state.h"

#define WATCH_RECORDING "assay-recording 1 "
enum { WATCH_NODES_MAX = 1024 };

struct watch_recorder;
/* Makes the file. BAD_INPUT: it exists already. Owner: caller, watch_recorder_close. */
enum status watch_recorder_open(struct watch_recorder **out, const char *path, unsigned nodes,
				struct error *err);
/* Writes the whole state of a node, which stays borrowed until close or until NULL is given. */
void watch_recorder_node(struct watch_recorder *r, unsigned node, const struct watch_state *state);
/* Writes one line, before the node's state takes it. */
void watch_recorder_line(struct watch_recorder *r, unsigned node, const char *line, size_t size);
/* Why nothing is written any more, such as a full disk; NULL: it works. */
const char *watch_recorder_why(const struct watch_recorder *r);
/* Not OK: the recording is not complete on the disk. NULL is allowed. */
enum status watch_recorder_close(struct watch_recorder *r, struct error *err);
#endif
