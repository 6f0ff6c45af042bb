/* SPDX-License-Identifier: Apache-2.0 */
/* When heat or a brake ends our load on a GPU: METHODS, "Manners". Pure: it is told readings, with their
 * times. */
#ifndef RUN_SUPERVISOR_THERMAL_GUARD_H
#define RUN_SUPERVISOR_THERMAL_GUARD_H
#include <stdbool.h>
#include <stdint.h>
#include "core/error.h"

#define THERMAL_GUARD_MARGIN_C 3.0	   /* so far below the slowdown temperature our load ends */
#define THERMAL_GUARD_BRAKE_NS 1000000000u /* a slowdown by the hardware may last so long */

struct gpu;

struct thermal_guard {	     /* of one GPU */
	double stop_c;	     /* at this temperature; 0: its slowdown temperature is not known */
	bool braking;	     /* the last reading of the reasons has a bit of the hardware */
	uint64_t braking_ns; /* since then */
	enum cause cause;    /* NONE: go on */
	char text[128];	     /* why not */
};

/* Armed anew: what was read before is forgotten. */
void thermal_guard_arm(struct thermal_guard *g, const struct gpu *gpu);
/* A reading of telemetry, in the order of time. The first thing that asks for an end stays. */
void thermal_guard_reading(struct thermal_guard *g, const char *signal, uint64_t t_ns, double value);
#endif
