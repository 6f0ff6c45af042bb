/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The truth file: one JSON line for each request, with what was really done. Times are nanoseconds of
 * CLOCK_MONOTONIC, taken right before the bytes were handed to the kernel. Several threads may append to one
 * file; each writes whole lines.
 */
#ifndef TESTS_LOAD_TRUTH_H
#define TESTS_LOAD_TRUTH_H
#include "load/answer.h"

struct truth {
	int fd; /* -1: none; belongs to the caller */
	bool failed;
	struct buf lines;
};

void truth_add(struct truth *t, const struct answer *a, uint64_t end_ns);
void truth_add_refused(struct truth *t, uint64_t connection, uint64_t now_ns);
void truth_flush(struct truth *t); /* all lines to the file */
#endif
