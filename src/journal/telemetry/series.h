/* SPDX-License-Identifier: Apache-2.0 */
/* A telemetry signal over time, and what it says of a span. */
#ifndef JOURNAL_TELEMETRY_SERIES_H
#define JOURNAL_TELEMETRY_SERIES_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/error.h"

/*
 * GPM counters come late: at the begin of windows readings lagged by 0.09 to 0.13 s (H100 and H200), and one
 * still showed a load that had ended. Intervals that begin before LAG do not count. The sampler begins them
 * at ASK: on a host whose CPUs were busy one that began after 0.174 s still held idle time.
 */
#define SERIES_GPM_LAG_NS 150000000ull
#define SERIES_GPM_ASK_NS 190000000ull

enum signal_kind { SIGNAL_GAUGE, SIGNAL_COUNTER, SIGNAL_BITS };

/* A name is looked for among all, and a journal of a stranger may hold any number; a GPU has about twenty. */
enum { SERIES_MAX = 4096 };

struct series {
	char source[40], signal[40];
	enum signal_kind kind;
	uint64_t *t_ns;
	double *value; /* BITS: below 2^53 */
	size_t count, room;
	bool zero_told; /* that it read what no working device can have */
};

/* A counter's difference is interpolated between its own steps (a polled counter moves in ticks); error says
 * how well. */
struct span {
	unsigned readings;
	double first, last, min, mean, max; /* mean: time-weighted (trapezoid) for gauges */
	double rate, rate_error;	    /* counter: units a second from the ticks inside the window */
	unsigned ticks;			    /* distinct counter steps inside */
	uint64_t bits_or, bits_and;
	double gap_s;  /* longest time without a reading inside the window, edges included */
	int went_back; /* counter ran backwards inside */
};

const char *signal_kind_name(enum signal_kind kind); /* "gauge" "counter" "bits" */
bool signal_kind_from_name(const char *name, enum signal_kind *kind);
/* The series of that name in a growing array, added to it where it is new; moves the others. NULL with
 * BAD_INPUT: a name that is none, empty or too long, or a new one beside SERIES_MAX; NO_RESOURCE: no memory.
 */
enum status series_find(struct series **out, struct series **array, size_t *count, const char *source,
			const char *signal, enum signal_kind kind, struct error *err);
enum status series_add(struct series *s, uint64_t t_ns, double value, struct error *err);
/* Index of the first reading at or after t; their count: there is none. */
size_t series_lower_bound(const struct series *s, uint64_t t_ns);
/* The span of a window in which our load ran: readings that no device can have while it works, such as a
 * clock of zero, do not count. UNAVAILABLE where no reading lies in [t0, t1]. */
enum status series_over(const struct series *s, uint64_t t0_ns, uint64_t t1_ns, struct span *out);
/*
 * For readings that tell the mean since the reading before them, and may come up to lag_ns late: the mean
 * over those whose whole interval lies inside [t0, t1], weighted by their length. False: none does.
 */
bool series_whole(const struct series *s, uint64_t t0_ns, uint64_t t1_ns, uint64_t lag_ns, double *mean);
/* The longest time for which the value stood still until some moment of [t0, t1]; readings before the window
 * count. 0: fewer than two readings. */
double series_still_s(const struct series *s, uint64_t t0_ns, uint64_t t1_ns);
#define SERIES_STUCK_S                                                                                       \
	2.0 /* an energy counter that stands still for so long while power is drawn is stuck                 \
	     */
void series_release(struct series *s);
#endif
