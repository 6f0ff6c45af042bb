/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of the state that its line reader (state_line.c) changes. */
#ifndef WATCH_STATE_PARTS_H
#define WATCH_STATE_PARTS_H
#include "watch/state.h"

/* Replaces an owned text and counts its bytes; NULL removes it. False: no memory. */
bool watch_set_text(struct watch_state *s, char **place, const char *text);
/* Makes all values absent. */
void watch_forget_values(struct watch_state *s, struct watch_entity *e);
/* Removes an entity; its id is free. */
void watch_free_entity(struct watch_state *s, struct watch_entity *e);
/* Closes a reading: values that were not sent have not changed. */
void watch_end_entity(struct watch_state *s, struct watch_entity *e, uint64_t t_ns, bool slow);
#endif
