/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recorded traffic. The first line tells the format:
 * - Mooncake: JSON lines with "timestamp" (ms), "input_length", "output_length" and, if known, "hash_ids":
 * one per block of 512 prompt tokens;
 * - Azure: CSV with TIMESTAMP (date and time), ContextTokens, GeneratedTokens;
 * - BurstGPT: CSV with Timestamp (s), Request tokens, Response tokens. Other columns are ignored.
 */
#ifndef LOAD_PLAN_TRACE_H
#define LOAD_PLAN_TRACE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/error.h"

enum { TRACE_LINE_MOST = 16 << 20, TRACE_BLOCKS_MOST = 1 << 26 };

struct trace_row {
	uint64_t at_ns; /* after the first row of the file */
	uint32_t prompt_tokens, output_tokens;
	size_t block; /* index of its first block */
	uint32_t block_count;
};

struct trace {
	struct trace_row *row;
	size_t count, room;
	uint32_t *block;
	size_t block_count, block_room;
	bool cut;	  /* rows beyond the limit of time are left */
	uint64_t skipped; /* rows without a prompt or an answer: failed requests */
};

struct trace_limits {
	uint64_t until_ns;  /* rows from this time on are not read; UINT64_MAX: all */
	uint64_t rows_most; /* more rows are BAD_INPUT */
};

/* BAD_INPUT with file and line: another format, a bad number, a time before that of the line above, more rows
 * than allowed, no rows. Owner: caller, trace_release. */
enum status trace_open(struct trace *t, const char *path, const struct trace_limits *limits,
		       struct error *err);
/* The same for text in memory; `path` is for messages. */
enum status trace_scan(struct trace *t, const char *path, const char *text, uint64_t size,
		       const struct trace_limits *limits, struct error *err);
void trace_release(struct trace *t);

/* Reads "2023-11-16 18:15:46.680590", with T for the blank and with Z or +01:00 at the end if they are there,
 * as nanoseconds since 1970. False: it is none, or not from 1970 to 2200. */
bool trace_time_read(int64_t *ns, const char *text);
#endif
