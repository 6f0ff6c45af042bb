/* SPDX-License-Identifier: Apache-2.0 */
/* A telemetry signal over time, and its statistics over a window. */
#ifndef JOURNAL_TELEMETRY_SERIES_H
#define JOURNAL_TELEMETRY_SERIES_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/error.h"

/*
 * GPM counters are late. At the start of windows, readings lagged by 0.09 to 0.13 s (H100 and H200), and one
 * still showed a load that had ended. So intervals that begin within LAG after the start of a window do not
 * count. The sampler begins its interval at ASK, because on a host with busy CPUs an interval that began
 * after 0.174 s still contained idle time.
 */
#define SERIES_GPM_LAG_NS 150000000ull
#define SERIES_GPM_ASK_NS 190000000ull

/* EVENT: each reading is something that happened once, so none stands for another. */
enum signal_kind { SIGNAL_GAUGE, SIGNAL_COUNTER, SIGNAL_BITS, SIGNAL_EVENT };

/* Limit, because series_find searches all names and a foreign journal may hold any number. A GPU has about
 * twenty. */
enum { SERIES_MAX = 4096 };

struct series {
	char source[40], signal[40];
	enum signal_kind kind;
	uint64_t *t_ns;
	double *value; /* BITS: below 2^53 */
	size_t count, room;
	bool zero_told; /* that it gave a value that no working device can have */
};

/* Statistics of the readings in a window. A polled counter moves in steps, so its rate is taken between its
 * own steps. */
struct span {
	unsigned readings;
	double first, last, min, mean, max; /* mean: time-weighted (trapezoid) for gauges */
	double rate,
		rate_error; /* counter: units per second between its steps in the window, and the error */
	unsigned ticks;	    /* counter steps in the window */
	uint64_t bits_or, bits_and;
	double gap_s;  /* longest time without a reading inside the window, edges included */
	int went_back; /* the counter decreased in the window */
};

const char *signal_kind_name(enum signal_kind kind); /* "gauge" "counter" "bits" "event" */
bool signal_kind_from_name(const char *name, enum signal_kind *kind);
/* Finds the series of that name, or adds it to the growing array, which may move the others. *out NULL with
 * BAD_INPUT: the name is missing, empty or too long, or there are SERIES_MAX series already; with
 * NO_RESOURCE: no memory. */
enum status series_find(struct series **out, struct series **array, size_t *count, const char *source,
			const char *signal, enum signal_kind kind, struct error *err);
enum status series_add(struct series *s, uint64_t t_ns, double value, struct error *err);
/* Index of the first reading at or after t; the number of readings if there is none. */
size_t series_lower_bound(const struct series *s, uint64_t t_ns);
/* Statistics of a window in which a measured load ran. Readings that no working device can have, such as a
 * clock of zero, do not count. UNAVAILABLE: no reading in [t0, t1]. */
enum status series_over(const struct series *s, uint64_t t0_ns, uint64_t t1_ns, struct span *out);
/*
 * For readings that are the mean since the previous reading and may be up to lag_ns late. *mean: the mean of
 * those whose whole interval is inside [t0, t1], weighted by its length. False: there is none.
 */
bool series_whole(const struct series *s, uint64_t t0_ns, uint64_t t1_ns, uint64_t lag_ns, double *mean);
/* The longest time without a change of the value that ends in [t0, t1]. It may begin before the window. 0:
 * fewer than two readings. */
double series_still_s(const struct series *s, uint64_t t0_ns, uint64_t t1_ns);
/* An energy counter that does not change for so long while the device draws power is stuck. */
#define SERIES_STUCK_S 2.0
void series_release(struct series *s);
#endif
