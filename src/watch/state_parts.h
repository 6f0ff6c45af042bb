/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of the state, for the readers of its lines (state_line.c, state_header.c). */
#ifndef WATCH_STATE_PARTS_H
#define WATCH_STATE_PARTS_H
#include <jansson.h>
#include "watch/state.h"

#define WRONG(err, ...) error_set(err, STATUS_BAD_INPUT, __VA_ARGS__)

/* Replaces an owned text and counts its bytes; NULL removes it. False: no memory. */
bool watch_set_text(struct watch_state *s, char **place, const char *text);
/* Makes all values absent. */
void watch_forget_values(struct watch_state *s, struct watch_entity *e);
/* Removes an entity; its id is free. */
void watch_free_entity(struct watch_state *s, struct watch_entity *e);
/* A reading that a line gives. */
struct watch_reading {
	uint64_t t_ns, rare_ns; /* rare_ns: when the RARE rows were read; 0: they were not */
	unsigned source;
	bool slow; /* it includes the SLOW rows */
};
/* Closes a reading: values that were read and not sent have not changed. */
void watch_end_entity(struct watch_state *s, struct watch_entity *e, const struct watch_reading *r);

/* Checks the header of a stream, and makes the state that of its node. The second one takes a checked header.
 */
enum status watch_check_header(const json_t *j, struct error *err);
enum status watch_take_header(struct watch_state *s, const json_t *j, struct error *err);
/* A time of the stream in ns. False: it is none. */
bool watch_time_of(const json_t *j, uint64_t *t_ns);
enum status watch_no_memory(struct error *err);
#endif
