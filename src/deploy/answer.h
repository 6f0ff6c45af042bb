/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses what a node answers (node.sh): lines of words, and the bytes that follow "file" and "bytes". The
 * node may be hostile, and its shell may print a greeting before the first line.
 */
#ifndef DEPLOY_ANSWER_H
#define DEPLOY_ANSWER_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/error.h"

/* word, what follows: TEXT to the end of the line, NUMBER, SUM of 64 digits, STATE of a run, NAME of a stream
 * and a number of bytes, FILE (size, sum, name), SAME (sum, name), NOTHING */
/* clang-format off */
#define ANSWERS(X) \
	X(ARCH, "arch", TEXT) \
	X(LACKS, "lacks", TEXT) \
	X(FREE, "free", NUMBER) \
	X(PART, "part", NUMBER) \
	X(HAVE, "have", SUM) \
	X(RUN, "run", STATE) \
	X(BYTES, "bytes", STREAM) \
	X(FILE, "file", FILE) \
	X(SAME, "same", SAME) \
	X(SKIP, "skip", NOTHING) \
	X(CLEANED, "cleaned", NOTHING) \
	X(FAIL, "fail", TEXT) \
	X(END, "end", NOTHING)
/* clang-format on */
#define X(name, ...) ANSWER_##name,
enum answer_kind { ANSWERS(X) ANSWER_KIND_COUNT, ANSWER_DATA = ANSWER_KIND_COUNT, ANSWER_DATA_END };
#undef X

enum node_run { NODE_NONE, NODE_RUNNING, NODE_ENDED, NODE_GONE };

struct answer_event {
	enum answer_kind
		kind; /* DATA: a part of the bytes of the last FILE or BYTES; DATA_END: all have arrived */
	const char *text; /* the rest of the line; of BYTES: "out" or "err"; of FILE and SAME: a safe name */
	uint64_t number;  /* of FREE (KiB), PART, BYTES and FILE (bytes), RUN (exit code) */
	char sum[65];	  /* of HAVE, FILE, SAME */
	enum node_run run;
	const char *data; /* of DATA */
	size_t size;
};

enum { ANSWER_LINE = 2048, ANSWER_GREETING = 1 << 16, ANSWER_NAME = 1024, ANSWER_DEPTH = 16 };

/* Zeroed, with `take` set, it waits for the first line. */
struct answer {
	/* Receives each event. A status other than OK ends the parsing. */
	enum status (*take)(void *arg, const struct answer_event *e, struct error *err);
	void *arg;
	bool begun, ended; /* the lines "begin" and "end" were read */
	char line[ANSWER_LINE];
	size_t size;	 /* of the incomplete line */
	size_t greeting; /* bytes before "begin" */
	uint64_t left;	 /* bytes of a file or stream that have not arrived */
};

/* Parses the next bytes. MISMATCH: they are no answer; the message quotes the line. What follows "end" is
 * ignored. */
enum status answer_feed(struct answer *a, const char *data, size_t size, struct error *err);
/* True for "out", "err" and for names below work/: relative, without empty, "." and ".." parts and without
 * characters other than A-Za-z0-9._@:+=,- */
bool answer_name_is_safe(const char *name);
#endif
