/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of a stream, which another machine wrote: names that are valid, and texts that are safe to show. */
#ifndef WATCH_LINE_TEXT_H
#define WATCH_LINE_TEXT_H
#include <stdbool.h>
#include "watch/state.h"

/* Copies a text without controls, direction marks and invisible characters, cut to WATCH_TEXT_MAX. */
void line_text_clean(char out[WATCH_TEXT_MAX], const char *s);
/* The name of a metric or label, as Prometheus has it, of at most 127 bytes. */
bool line_text_is_name(const char *s);
/* "NAME" or NAME{LABEL="VALUE"}. */
bool line_text_is_metric(const char *s);
#endif
