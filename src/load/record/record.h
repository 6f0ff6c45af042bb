/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the load test stores of each request: one JSON line in requests.jsonl. All times are nanoseconds of
 * CLOCK_MONOTONIC after the begin of the run; LOAD_NEVER: it did not happen.
 */
#ifndef LOAD_RECORD_RECORD_H
#define LOAD_RECORD_RECORD_H
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/error.h"
#include "core/text/text.h"

#define LOAD_REQUESTS_FILE "requests.jsonl"
#define LOAD_NEVER UINT64_MAX
#define LOAD_UNKNOWN (-1) /* of a count that the server did not report */

/* name, word in files, meaning */
/* clang-format off */
#define LOAD_ERRORS(X)                                                                                    \
	X(NONE, "", "answered completely")                                                                \
	X(DNS, "dns", "the host name could not be resolved")                                              \
	X(CONNECT, "connect", "no connection: refused, unreachable, or no free port")                     \
	X(TLS, "tls", "the TLS handshake or the certificate failed")                                      \
	X(TIMEOUT, "timeout", "no complete answer within the time limit of a request")                    \
	X(RESET, "reset", "the connection was lost")                                                      \
	X(CUT, "cut", "the answer ended before its end mark")                                             \
	X(GARBAGE, "garbage", "the answer is no HTTP, event stream or JSON, or is larger than 16 MiB")                        \
	X(REDIRECT, "redirect", "status 3xx; redirects are not followed")                                 \
	X(LIMITED, "limited", "status 429")                                                               \
	X(UNAVAILABLE, "unavailable", "status 503")                                                       \
	X(REFUSED, "refused", "another status 4xx")                                                       \
	X(SERVER, "server", "another status 5xx, or an error event within the stream")                    \
	X(CLIENT, "client", "the client had no memory, descriptor or port left")  \
	X(CANCELLED, "cancelled", "the run ended before the answer")
/* clang-format on */
#define X(name, ...) LOAD_ERROR_##name,
enum load_error { LOAD_ERRORS(X) LOAD_ERROR_COUNT };
#undef X
const char *load_error_word(enum load_error e);

/* Faults of an answer that is otherwise complete. */
enum load_flag {
	LOAD_FLAG_NO_DONE = 1,	   /* a stream without its last event [DONE] */
	LOAD_FLAG_NO_FINISH = 2,   /* no finish_reason */
	LOAD_FLAG_DUPLICATE = 4,   /* an event came twice */
	LOAD_FLAG_NO_USAGE = 8,	   /* usage was asked for and is absent */
	LOAD_FLAG_AFTER_DONE = 16, /* events after the end mark */
	LOAD_FLAG_RESENT = 32,	   /* sent again: the server had closed the connection, see flight.c */
	LOAD_FLAG_LOW_USAGE = 64   /* usage reports fewer tokens than the stream has events with text */
};

struct load_record {
	uint64_t index; /* in the plan, from 0 */
	uint32_t stage; /* of a sweep, from 0 */
	uint32_t session, turn;
	uint64_t scheduled_ns; /* due by the schedule */
	uint64_t handed_ns;    /* handed to the HTTP library */
	uint64_t connected_ns; /* the connection stood; of a reused one: handed_ns */
	uint64_t sent_ns;      /* immediately before its first byte was written */
	uint64_t first_byte_ns, first_token_ns, last_token_ns, end_ns; /* tokens: of a stream */
	uint32_t prompt_asked, output_asked;			       /* tokens */
	int64_t prompt_usage, output_usage, cached,
		output_counted; /* tokens; LOAD_UNKNOWN: absent. output_counted:
				   the answer's text by our tokenizer */
	uint32_t chunks;	/* events with text or parts of a call */
	uint32_t blanks; /* events with an empty text, and the one with finish_reason if it has no text */
	uint32_t status; /* HTTP status; 0: none */
	enum load_error error;
	uint32_t flags;	  /* enum load_flag */
	uint32_t *gap_us; /* between consecutive chunks, microseconds; [chunks - 1], or NULL */
	uint32_t gap_count;
};
void load_record_release(struct load_record *r);

/* Appends the record as one JSON line. Absent times and counts are left out. */
void load_record_write(struct text *out, const struct load_record *r);
/* Reads one line (fuzzed). BAD_INPUT: not a record, or times that contradict each other; names the field.
 * Owner: caller, load_record_release. */
enum status load_record_read(struct load_record *r, const char *line, size_t size, struct error *err);

struct load_records {
	struct load_record *record;
	size_t count, room;
};
/* Takes ownership of *r and zeroes it. */
enum status load_records_add(struct load_records *all, struct load_record *r, struct error *err);
/* Reads requests.jsonl or requests.jsonl.zst of a run directory. A torn last line is dropped and counted in
 * *cut. BAD_INPUT names file and line. Owner: caller, load_records_release. */
enum status load_records_open(struct load_records *all, const char *dir, size_t *cut, struct error *err);
void load_records_release(struct load_records *all);
#endif
