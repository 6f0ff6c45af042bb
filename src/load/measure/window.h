/* SPDX-License-Identifier: Apache-2.0 */
/* The requests of the measured window in the order of the schedule, and what is known of each. */
#ifndef LOAD_MEASURE_WINDOW_H
#define LOAD_MEASURE_WINDOW_H
#include "load/measure/summary.h"

struct load_window {
	const struct load_records *all;
	const struct load_measure_spec *spec;
	const struct load_record **due; /* [count]; lent from `all` */
	size_t count;
	double length_s;
	double tokens_per_chunk; /* of all complete streams; 1 if their tokens are unknown */
};
/* False: no memory. `all` and `spec` must outlive *w. Owner: caller, load_window_close. */
bool load_window_open(struct load_window *w, const struct load_records *all,
		      const struct load_measure_spec *spec);
void load_window_close(struct load_window *w);
bool load_window_holds(const struct load_window *w, uint64_t at_ns);

static inline bool load_is_answered(const struct load_record *r)
{
	return r->error == LOAD_ERROR_NONE;
}
/* Output tokens as reported, or else as counted; LOAD_UNKNOWN. */
int64_t load_output_tokens(const struct load_record *r);

/* NaN: this request has no such time. */
enum load_latency { LOAD_TTFT, LOAD_TTFT_SEND, LOAD_TPOT, LOAD_E2E, LOAD_E2E_SEND, LOAD_LAG };
double load_latency_of(const struct load_record *r, enum load_latency kind);

/* A list of numbers. Zeroed is empty. Owner: caller, load_series_release. */
struct load_series {
	double *x;
	size_t count, room;
};
bool load_series_add(struct load_series *s, double x); /* false: no memory */
void load_series_release(struct load_series *s);
/* The times of one kind of the due requests that have one, in the order of the schedule. */
bool load_window_latencies(struct load_series *s, const struct load_window *w, enum load_latency kind);

/* Sets a member unless the value is NaN or infinite. */
void load_put(json_t *out, const char *name, double value);
#endif
