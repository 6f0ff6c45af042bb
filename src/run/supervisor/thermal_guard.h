/* SPDX-License-Identifier: Apache-2.0 */
/* The thermal guard ends assay's load on a GPU that is too hot or braked. Limits:
 * docs/explanation/methods/measuring.md, "Thermal guard". It is pure: the caller passes readings with their
 * times. */
#ifndef RUN_SUPERVISOR_THERMAL_GUARD_H
#define RUN_SUPERVISOR_THERMAL_GUARD_H
#include <stdbool.h>
#include <stdint.h>
#include "core/error.h"

#define THERMAL_GUARD_MARGIN_C 3.0	   /* the load ends this far below the slowdown temperature */
#define THERMAL_GUARD_BRAKE_NS 1000000000u /* longest time that a slowdown by the hardware may last */

struct gpu;

struct thermal_guard {	     /* state of one GPU */
	double stop_c;	     /* the load ends at this temperature; 0: the slowdown temperature is unknown */
	bool braking;	     /* the last reading of clock reasons has a hardware slowdown bit */
	uint64_t braking_ns; /* time of the first such reading */
	enum cause cause;    /* NONE: the load may go on */
	char text[128];	     /* why it must end */
};

/* Resets the guard for a new case. */
void thermal_guard_arm(struct thermal_guard *g, const struct gpu *gpu);
/* Takes a telemetry reading. Readings must come in the order of time. The first cause of an end stays. */
void thermal_guard_reading(struct thermal_guard *g, const char *signal, uint64_t t_ns, double value);
#endif
