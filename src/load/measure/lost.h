/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens that a server reports and does not send. docs/explanation/methods/load.md, "Lost tokens". */
#ifndef LOAD_MEASURE_LOST_H
#define LOAD_MEASURE_LOST_H
#include "load/measure/window.h"

/*
 * The number of streams of the full planned length with fewer events than the server's own rule needs for the
 * reported tokens, and with a text that does not make up for it. NaN: the server has no such rule in this
 * run. *proven: no other reason is possible: the server sends an event for a token without text, and the
 * texts, counted by the tokenizer, lack as many tokens as the events.
 */
double load_lost_streams(const struct load_window *w, bool *proven);
#endif
