/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The energy that a device used in an exact window, from its energy counter, with an error. A pure function
 * of telemetry. Formulas: docs/explanation/power.md.
 */
#ifndef JOURNAL_TELEMETRY_ENERGY_H
#define JOURNAL_TELEMETRY_ENERGY_H
#include <stdbool.h>
#include <stdint.h>
#include "journal/telemetry/series.h"

/* Counter and integrated power disagree if they differ by more than this share. */
#define ENERGY_DISAGREE_SHARE 0.05
/* An energy whose error is a larger share of it is unknown. */
#define ENERGY_ERROR_SHARE_MOST 0.5

struct energy {
	unsigned devices;
	bool known; /* joules and error_j */
	double joules, error_j;
	char why[160];	 /* the reason, if the energy is not known */
	double period_s; /* median time between the counter's steps; 0: not known */
	unsigned steps;	 /* of the counter in the window */
	bool integrated; /* integral_j: the trapezoid of the power readings over the window */
	double integral_j;
	bool disagrees;	 /* joules and integral_j are both known and differ by more than ENERGY_DISAGREE_SHARE
			  */
	bool idle_known; /* idle_w: the lowest mean power of a whole second in the ten minutes before the
			    window */
	double idle_w;
};

/* `counter` has joules and kind SIGNAL_COUNTER, `power` has watts. A series that was not read is NULL.
 * clock_error_s bounds the error of the readings' times, such as those of another machine. It widens the
 * error of the energy. */
void energy_of_window(struct energy *out, const struct series *counter, const struct series *power,
		      uint64_t t0_ns, uint64_t t1_ns, double clock_error_s);
/* Adds the energy of another device over the same window to *sum, which is zeroed at first. The sum is known
 * only if all parts are; its reason is that of the first part that is not. */
void energy_add(struct energy *sum, const struct energy *one);
#endif
