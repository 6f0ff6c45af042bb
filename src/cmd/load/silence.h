/* SPDX-License-Identifier: Apache-2.0 */
/* The times in which the server's node sent no telemetry, for the journal and the report. */
#ifndef CMD_LOAD_SILENCE_H
#define CMD_LOAD_SILENCE_H
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* A node that is lost without a word leaves its connection open. Its sampler writes several times per second.
 */
#define LOAD_SILENCE_S 5.0

struct load_silence {
	uint64_t begun_ns, heard_ns; /* heard_ns 0: nothing has come */
	const char *open;	     /* cause of the present silence; NULL: there is none */
	json_t *list;		     /* of {from_s, seconds, cause}; NULL: there was none */
};

void load_silence_begin(struct load_silence *s, uint64_t now_ns);
/* Telemetry has come. Returns whether this ends a silence. */
bool load_silence_heard(struct load_silence *s, uint64_t now_ns);
/* Whether a silence was noticed just now. */
bool load_silence_noticed(struct load_silence *s, uint64_t now_ns);
/* The connection has ended, so nothing more comes. */
void load_silence_ended(struct load_silence *s);
/* The load is over: ends the present silence. A node that never answered was silent all the time. */
void load_silence_close(struct load_silence *s, uint64_t now_ns);
void load_silence_release(struct load_silence *s);
#endif
