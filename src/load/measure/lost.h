/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens that a server reports and does not send. docs/explanation/methods/load.md, "Lost tokens". */
#ifndef LOAD_MEASURE_LOST_H
#define LOAD_MEASURE_LOST_H
#include "load/measure/window.h"

/*
 * The number of streams that lost tokens. Such a stream has the full planned length. It has fewer events than
 * the server's own rule needs for the reported tokens, and its text does not make up for them. NaN: the
 * server has no such rule in this run. *proven: nothing else explains the difference. The server sends an
 * event for a token without text, and the counted texts lack as many tokens as the events.
 */
double load_lost_streams(const struct load_window *w, bool *proven);
#endif
