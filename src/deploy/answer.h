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

/* word, form of the rest of its line. STREAM is a name and a number of bytes. FILE has size, sum and name.
 * SAME has sum and name. A sum has 64 digits. */
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
	enum answer_kind kind; /* DATA: some bytes of the last FILE or BYTES. DATA_END: all have arrived */
	const char *text;      /* the rest of the line. BYTES: "out" or "err". FILE, SAME: a safe name */
	uint64_t number;       /* FREE: KiB. PART, BYTES, FILE: bytes. RUN: exit code */
	char sum[65];	       /* HAVE, FILE, SAME */
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

/* Parses the next bytes. MISMATCH: they are no answer; the message quotes the line. Bytes after "end" are
 * ignored. */
enum status answer_feed(struct answer *a, const char *data, size_t size, struct error *err);
/* True for "out", "err" and relative names below work/. No part of a name may be empty, "." or "..", or have
 * characters other than A-Za-z0-9._@:+=,- */
bool answer_name_is_safe(const char *name);
#endif
