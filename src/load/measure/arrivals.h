/* SPDX-License-Identifier: Apache-2.0 */
/* When tokens arrived, and how many requests were in flight. */
#ifndef LOAD_MEASURE_ARRIVALS_H
#define LOAD_MEASURE_ARRIVALS_H
#include "load/measure/window.h"

/* Sums over equal parts of a time. */
struct load_bins {
	double *sum;
	size_t count;
	uint64_t from_ns;
	double width_ns;
};
/* All sums 0. False: no memory. Owner: caller, free(b->sum). */
bool load_bins_open(struct load_bins *b, uint64_t from_ns, uint64_t to_ns, size_t count);
/* Adds to the part that holds the time; a time outside of all parts is left out. */
void load_bins_add(struct load_bins *b, uint64_t at_ns, double amount);
/*
 * Adds the tokens of a request at the times of its chunks, or at the end of an answer that was no stream.
 * The tokens of an answer are spread evenly over its chunks. Answers that failed add nothing; those that the
 * end of the run cancelled add what had come.
 */
void load_bins_add_output(struct load_bins *b, const struct load_record *r, double tokens_per_chunk);
/* Adds the tokens of the prompt at the first token. */
void load_bins_add_prompt(struct load_bins *b, const struct load_record *r);
/* Adds the seconds that the request was in flight: from its send to its end. */
void load_bins_add_flight(struct load_bins *b, const struct load_record *r);
#endif
