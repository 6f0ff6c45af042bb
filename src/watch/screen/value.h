/* SPDX-License-Identifier: Apache-2.0 */
/* Values of the catalogue as text. A counter is shown as its rate, so its unit is per second. */
#ifndef WATCH_SCREEN_VALUE_H
#define WATCH_SCREEN_VALUE_H
#include "watch/state.h"

enum { SCREEN_VALUE = 24 };

/* The value that a screen shows: a gauge itself, a counter as its rate per second. False: absent. */
bool screen_sample(double *out, const struct watch_entity *e, enum catalogue row);
/* At most six columns: "93%", "61.2G", "71C", "512W", "1980M". Bytes are binary, other units decimal. "-" if
 * `present` is false. */
const char *screen_short(char out[SCREEN_VALUE], enum catalogue row, double value, bool present);
/* With its unit: "93.0 %", "61.2 GiB", "12.3 GB/s". */
const char *screen_long(char out[SCREEN_VALUE], enum catalogue row, double value, bool present);
/* A number of at most five columns with a prefix: "999", "1.23k", "12.3M". `base`: 1000 or 1024. */
void screen_compact(char out[SCREEN_VALUE], double value, double base);
/* The row's name without what its entity says already, with its fixed label: "power_watts",
 * "clock_held idle". */
const char *screen_row_name(char out[96], enum catalogue row);
/* "12 s", "3 min", "2 h": an age or a duration. */
const char *screen_duration(char out[SCREEN_VALUE], double seconds);
#endif
