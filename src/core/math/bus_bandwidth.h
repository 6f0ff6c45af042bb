/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes that a collective puts on a rank's link, for a byte of its size: docs/explanation/methods, "Bus
 * bandwidth". */
#ifndef CORE_MATH_BUS_BANDWIDTH_H
#define CORE_MATH_BUS_BANDWIDTH_H

/* Of the whole of the larger side: all of it; what is the others'; that twice. */
enum bus_load { BUS_ALL, BUS_OTHERS, BUS_OTHERS_TWICE };
/* One rank, or none: nothing leaves it, but where all is counted. */
double bus_factor(enum bus_load load, unsigned ranks);
#endif
